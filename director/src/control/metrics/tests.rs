//! The page keeps the rules of its format, and the document has every family of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::api::*;
use super::super::health::{CheckView, DirectionView, HealthState, ServerHealth};
use super::super::nlb::views::{HostView, NlbView, ParamsView, QueryView, RuleView};
use super::super::nlb::{NlbAnswer, NlbCommand, NlbReply, NlbRequest, NlbResult};
use super::super::operations::{Command, Operations};
use super::super::workers::{FramesView, HistogramView, SocketView, StateCount, WorkerView};
use super::text;
use super::traffic::{MOST_SERVERS, MOST_SERVICES};
use crate::fwmark::Rule;
use crate::health::journal::Journal;

mod shipped;

/// A director that has some of everything, and so many services of one server each.
struct Rich {
    services: usize,
}

fn key(number: usize) -> ServiceKey {
    let ip = std::net::Ipv4Addr::from_bits(0xc000_0200 + number as u32);
    ServiceKey::Address { protocol: Protocol::Tcp, address: (ip, 80).into() }
}

fn server(number: usize) -> ServerView {
    let ip = std::net::Ipv4Addr::from_bits(0x0a00_0000 + number as u32);
    let text = format!(
        r#"{{"address":"{ip}:80","forwarding":"nat","weight":7,"active":1,"inactive":2,
        "persistent":0,"stats":{}}}"#,
        serde_json::to_string(&Stats::default()).unwrap(),
    );
    serde_json::from_str(&text).unwrap()
}

fn count(verdict: &str, reason: &str) -> VerdictCount {
    VerdictCount {
        verdict: verdict.to_owned(),
        reason: reason.to_owned(),
        meaning: String::new(),
        packets: 3,
    }
}

fn histogram() -> HistogramView {
    HistogramView { bounds: vec![1.0, 2.0], counts: vec![1, 2, 3], sum: 9.0 }
}

impl Operations for Rich {
    fn apply(&self, _: Command) -> Result<(), Refusal> {
        Ok(())
    }

    fn services(&self) -> Vec<ServiceView> {
        let spec = |number| {
            let key = serde_json::to_string(&key(number)).unwrap();
            let text = format!(r#"{},"scheduler":"rr"}}"#, key.trim_end_matches('}'));
            serde_json::from_str(&text).unwrap()
        };
        let service = |number| ServiceView {
            spec: spec(number),
            declared: true,
            stats: Stats::default(),
            servers: vec![server(number)],
            fallback: (number == 0).then(|| server(1 << 20)),
        };
        (0..self.services).map(service).collect()
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts { tcp: 1, tcp_fin: 1, udp: 1 }
    }

    fn settings(&self) -> BTreeMap<String, u32> {
        BTreeMap::new()
    }

    fn marks(&self) -> Vec<Rule> {
        Vec::new()
    }

    fn servers(&self) -> Vec<ServerHealth> {
        let check = CheckView {
            kind: "http".to_owned(),
            state: HealthState::Up,
            in_a_row: 1,
            last: String::new(),
            took: 1.0,
            made: 3,
            failed: 1,
        };
        let direction = DirectionView {
            mode: "udp".to_owned(),
            incarnation: 1,
            boot: None,
            round_trip: 0.25,
            lost: 2.0,
            refused: 0,
            agent_state: "up".to_owned(),
            load: Some(2500),
            connections: 7,
            queue: 0,
        };
        let health = |number| ServerHealth {
            service: key(number),
            address: server(number).spec.address,
            weight: 7,
            effective_weight: 7,
            state: HealthState::Up,
            since: 1,
            reason: String::new(),
            kept: false,
            active: 1,
            inactive: 1,
            checks: vec![check.clone()],
            direction: Some(direction.clone()),
        };
        (0..self.services).map(health).collect()
    }

    fn journal(&self) -> Option<Arc<Journal>> {
        None
    }

    fn connections(&self, _: usize) -> Option<Vec<ConnectionView>> {
        None
    }

    fn connection_states(&self) -> Vec<StateCount> {
        let (protocol, state) = ("tcp".to_owned(), "ESTABLISHED".to_owned());
        vec![StateCount { protocol, state, connections: 5 }]
    }

    fn nlb(&self, request: NlbRequest) -> Result<NlbReply, Refusal> {
        let name = "web\"1\n".to_owned();
        let host = HostView { host: 1, name: name.clone(), heard: true, ..HostView::default() };
        let view = match request.command {
            NlbCommand::Query => {
                NlbView::Query(QueryView { hosts: vec![host], ..QueryView::default() })
            }
            _ => NlbView::Params(ParamsView {
                rules: vec![RuleView { rule: "tcp 80".to_owned(), ..RuleView::default() }],
                refused_heartbeats: vec![count("", "replay")],
                refused_commands: vec![count("", "forged")],
                ..ParamsView::default()
            }),
        };
        let answer = NlbAnswer {
            host: 1,
            name,
            state: "converged as DEFAULT".to_owned(),
            result: NlbResult::Done,
            message: None,
            view: Some(Box::new(view)),
        };
        Ok(NlbReply { answers: vec![answer], silent: vec![] })
    }

    fn status(&self) -> Status {
        let port = PortView {
            interface: "eth0".to_owned(),
            queue: 0,
            worker: 0,
            io: "AF_XDP copy".to_owned(),
            received: 1,
            transmitted: 2,
            receive_dropped: 3,
            transmit_dropped: 4,
            receiving: 5,
            transmitting: 6,
            socket: Some(SocketView::default()),
        };
        let worker = WorkerView {
            worker: 0,
            breaths: histogram(),
            batches: histogram(),
            frames: FramesView::default(),
        };
        Status {
            version: "1".to_owned(),
            pid: 1,
            uptime: 1.5,
            mode: "dispatcher".to_owned(),
            config: None,
            applied: None,
            table_size: 1,
            connections: 5,
            max_connections: 9,
            services: 1,
            ports: vec![port],
            workers: vec![worker],
            verdicts: ["dropped", "forwarded", "passed"]
                .map(|verdict| count(verdict, "why"))
                .into(),
            packets: String::new(),
            overflow: vec![count("", "evicted")],
            health: None,
            warnings: vec![],
        }
    }
}

/// A family of a page.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
    samples: usize,
}

/// Reads a page and fails where it breaks a rule of the format or of its naming.
fn families(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut name, mut seen) = (String::new(), BTreeSet::new());
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (this, help) = rest.split_once(' ').unwrap();
            name = this.to_owned();
            let family = Family { help: help.to_owned(), ..Family::default() };
            assert!(families.insert(name.clone(), family).is_none(), "{name} is there twice");
            assert!(help.ends_with('.') || help.ends_with('?'), "{line}");
            continue;
        }
        let family = families.get_mut(&name).expect(line);
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (this, kind) = rest.split_once(' ').unwrap();
            assert_eq!((this, family.kind.as_str()), (name.as_str(), ""), "{line}");
            family.kind = kind.to_owned();
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let letters = name.chars().all(|it| it.is_ascii_lowercase() || it == '_');
            assert!(letters && name.starts_with("switchyard_"), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect(line);
        value.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
        assert!(seen.insert(series.to_owned()), "{series} is there twice");
        let (this, labels) = match series.split_once('{') {
            Some((this, labels)) => (this, labels.strip_suffix('}').expect(line)),
            None => (series, ""),
        };
        let suffix = this.strip_prefix(&name).unwrap_or_else(|| panic!("{line} is not of {name}"));
        let is_histogram = family.kind == "histogram";
        assert!(suffix.is_empty() != is_histogram, "{line}");
        assert!(is_histogram || suffix.is_empty(), "{line}");
        family.samples += 1;
        for label in labels.split("\",").filter(|label| !label.is_empty()) {
            let (label, _) = label.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
            if label != "le" {
                family.labels.insert(label.to_owned());
            }
        }
    }
    families
}

#[test]
fn the_page_keeps_the_rules_of_the_format_and_of_naming() {
    let page = text(&Rich { services: 3 }, &[("/metrics", 1)]);
    let families = families(&page);
    for (name, family) in &families {
        assert!(family.samples > 0, "{name} has no sample here, so nothing of it was tried");
    }
    assert_eq!(families["switchyard_worker_breath_seconds"].samples, 5);
    assert!(page.contains("\nswitchyard_nlb_converged 1\n"), "{page}");
    assert!(page.contains("name=\"web\\\"1\\n\""), "{page}");
}

#[test]
fn a_page_for_more_services_than_anybody_has_stays_bounded_and_says_so() {
    let services = MOST_SERVERS + 17;
    let page = text(&Rich { services }, &[]);
    let all = families(&page);
    assert_eq!(all["switchyard_service_connections_total"].samples, MOST_SERVICES);
    assert!(all["switchyard_server_picks_total"].samples <= MOST_SERVERS);
    assert!(all["switchyard_server_up"].samples <= MOST_SERVERS);
    let omitted = format!("switchyard_omitted{{kind=\"service\"}} {}\n", services - MOST_SERVICES);
    assert!(page.contains(&omitted), "{omitted}");
}

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
const BEGIN: &str = "<!-- families -->\n";
const END: &str = "<!-- end of families -->";

/// `UPDATE_GOLDEN=1 cargo test -p director metrics` writes the table.
#[test]
fn the_document_has_every_family_with_its_labels() {
    let mut table = "| metric | type | labels | |\n|---|---|---|---|\n".to_owned();
    for (name, family) in families(&text(&Rich { services: 1 }, &[("/metrics", 1)])) {
        let labels: Vec<String> = family.labels.iter().map(|it| format!("`{it}`")).collect();
        let labels = labels.join(", ");
        table += &format!("| `{name}` | {} | {labels} | {} |\n", family.kind, family.help);
    }
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(DOCUMENT, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(written, table, "UPDATE_GOLDEN=1 cargo test -p director metrics writes the table");
}

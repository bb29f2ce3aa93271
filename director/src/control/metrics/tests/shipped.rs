//! The dashboard and the alerts that come with us ask for what the page has: a metric or label that is
//! renamed would else leave empty graphs, and alerts that never fire.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Family, Rich, families, text};

const DASHBOARD: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/grafana/switchyard.json");
const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/prometheus/alerts.yml");

/// Labels that Prometheus adds, or a histogram's buckets have.
const ADDED: [&str; 3] = ["instance", "job", "le"];

/// What a question and the words beside it name.
#[derive(Debug, Default, PartialEq)]
struct Named {
    /// Metrics with the labels that they are chosen by.
    metrics: Vec<(String, Vec<(String, String)>)>,
    /// Labels of the answer: of `by (...)`, `on (...)`, and of legends.
    labels: BTreeSet<String>,
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Reads as much of PromQL as is needed to find names.
fn named(question: &str, words: &str) -> Named {
    let mut named = Named::default();
    let mut rest = question;
    while let Some(start) = rest.find("switchyard_") {
        rest = &rest[start..];
        let end = rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let mut choice = vec![];
        if let Some(inner) = after.strip_prefix('{') {
            let (inner, _) = inner.split_once('}').unwrap_or_else(|| panic!("{question}"));
            for one in inner.split("\",") {
                let (label, value) = one.split_once('=').unwrap_or_else(|| panic!("{question}"));
                let value = value.trim_matches(['~', '"']);
                choice.push((label.to_owned(), value.to_owned()));
            }
        }
        named.metrics.push((name.to_owned(), choice));
        rest = after;
    }
    for word in ["by (", "on (", "group_left ("] {
        for list in question.split(word).skip(1) {
            let (list, _) = list.split_once(')').unwrap_or_else(|| panic!("{question}"));
            named.labels.extend(list.split(',').map(|it| it.trim().to_owned()));
        }
    }
    for word in words.split("{{").skip(1) {
        let (word, _) = word.split_once("}}").unwrap_or_else(|| panic!("{words}"));
        let word = word.split('|').next().unwrap_or_default().trim();
        if word != "$value" {
            named.labels.insert(word.trim_start_matches("$labels.").to_owned());
        }
    }
    named.labels.remove("");
    named
}

/// What is wrong with a question, as far as names go.
fn wrongs(named: &Named, page: &str, families: &BTreeMap<String, Family>) -> Vec<String> {
    let mut wrongs = vec![];
    let mut all: BTreeSet<&str> = ADDED.into();
    for (name, choice) in &named.metrics {
        let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|it| name.strip_suffix(it));
        let histogram = histogram.and_then(|base| families.get(base));
        let histogram = histogram.filter(|family| family.kind == "histogram");
        let plain = families.get(name).filter(|family| family.kind != "histogram");
        let Some(family) = histogram.or(plain) else {
            wrongs.push(format!("no metric {name}"));
            continue;
        };
        all.extend(family.labels.iter().map(String::as_str));
        for (label, value) in choice {
            if ADDED.contains(&label.as_str()) {
                continue;
            }
            if !family.labels.contains(label) {
                wrongs.push(format!("{name} has no label {label}"));
            } else if !value.starts_with('$') && !page.contains(&format!("{label}=\"{value}\"")) {
                wrongs.push(format!("{label} of {name} is never {value}"));
            }
        }
    }
    let unknown = named.labels.iter().filter(|label| !all.contains(label.as_str()));
    wrongs.extend(unknown.map(|label| format!("no label {label} is in {:?}", named.metrics)));
    wrongs
}

/// Every question of a dashboard, with its legend.
fn questions(value: &Value, found: &mut Vec<(String, String)>) {
    let text = |key| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    for key in ["expr", "definition"] {
        if !text(key).is_empty() {
            found.push((text(key), text("legendFormat")));
        }
    }
    match value {
        Value::Array(values) => values.iter().for_each(|value| questions(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| questions(value, found)),
        _ => {}
    }
}

fn page() -> (String, BTreeMap<String, Family>) {
    let page = text(&Rich { services: 1 }, &[("/metrics", 1)]);
    let families = families(&page);
    (page, families)
}

#[track_caller]
fn are_answered(questions: &[(String, String)]) {
    let (page, families) = page();
    for (question, words) in questions {
        let wrongs = wrongs(&named(question, words), &page, &families);
        assert!(wrongs.is_empty(), "{question}\n{words}\n{}", wrongs.join("\n"));
    }
}

#[test]
fn every_graph_of_the_dashboard_asks_for_what_there_is() {
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string(DASHBOARD).unwrap()).unwrap();
    let mut found = vec![];
    questions(&dashboard, &mut found);
    assert!(found.len() > 40, "{} questions", found.len());
    are_answered(&found);
    // No two panels lie on each other, and each has a number of its own.
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut ids, mut places) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(x < 24 && places.insert((x, y)), "{panel}");
            }
        }
    }
}

#[test]
fn every_alert_asks_for_what_there_is() {
    let alerts = std::fs::read_to_string(ALERTS).unwrap();
    let mut found: Vec<(String, String)> = vec![];
    for line in alerts.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(question) = line.strip_prefix("expr: ") {
            found.push((question.to_owned(), String::new()));
        } else if let Some((_, words)) = found.last_mut()
            && ["summary: ", "description: "].iter().any(|key| line.starts_with(key))
        {
            words.push_str(line);
        }
    }
    assert_eq!(found.len(), alerts.matches("- alert: ").count());
    are_answered(&found);
}

#[test]
fn a_name_that_the_page_does_not_have_is_found() {
    let (page, families) = page();
    let wrong = |question, words| wrongs(&named(question, words), &page, &families).join("; ");
    assert_eq!(wrong("sum by (service, le) (switchyard_server_up)", "{{server}} {{ $value }}"), "");
    assert_eq!(wrong("switchyard_sever_up", ""), "no metric switchyard_sever_up");
    let histogram = "switchyard_worker_breath_seconds";
    assert_eq!(wrong(histogram, ""), format!("no metric {histogram}"));
    assert_eq!(wrong("switchyard_worker_breath_seconds_sum", ""), "");
    assert_eq!(
        wrong("switchyard_packets_total{why=\"x\",verdict=\"lost\"}", ""),
        "switchyard_packets_total has no label why; \
         verdict of switchyard_packets_total is never lost"
    );
    assert!(wrong("switchyard_server_up", "{{ $labels.queue }}").starts_with("no label queue"));
}

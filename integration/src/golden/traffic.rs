//! The same invocations after traffic: both sides are brought into the same state by the same packets,
//! written byte by byte, before they are asked.
//!
//! What is typed is in `cases/traffic.txt`, in acts that begin with a line `= NAME`; the packets that
//! come before an act are here, by its name. Output, errors and codes are compared as everywhere
//! else, but for what time makes of them: see [`Alike`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};

use super::alike::Alike;
use super::case::{self, Case};
use super::script::{Answer, answers, script};
use super::{Report, report};
use crate::parity::{Chunks, Flow, Kind, Packet, Protocol, Stage};
use crate::topology::{VIP_V4, VIP_V6};

const CASES: &str = include_str!("cases/traffic.txt");

/// Until the kernel's counters show all packets: it adds them up every two seconds.
const SETTLED: Duration = Duration::from_millis(2500);

/// Carries out all acts in one lab.
///
/// # Errors
/// When the lab cannot be built, or a side does not come to its end; differences are in the report.
pub fn run_after_traffic() -> Result<Report> {
    let mut stage = Stage::build("golden-traffic")?;
    stage.marks(&[serde_json::from_str(MARKED).context("the rule for marks")?])?;
    let mut all = Report::default();
    let mut sent = 0;
    for (name, cases) in acts(CASES) {
        for packets in packets(name) {
            stage.send(&packets, sent).with_context(|| format!("packets of act {name}"))?;
            sent = sent.wrapping_add(packets.len() as u16);
        }
        std::thread::sleep(SETTLED);
        for cases in scripts(&cases) {
            let [theirs, ours] = stage.shell(&script(cases)).with_context(|| name.to_owned())?;
            let read = |printed: &str| -> Result<Vec<Answer>> { answers(printed, cases.len()) };
            let theirs = read(&theirs).with_context(|| format!("act {name}, the real tool"))?;
            let ours = read(&ours).with_context(|| format!("act {name}, our tool"))?;
            for (case, (theirs, ours)) in cases.iter().zip(theirs.iter().zip(&ours)) {
                let alike = Alike::of(case);
                let equal = alike.compare(theirs, ours);
                let [theirs, ours] = [theirs, ours].map(|answer| alike.in_order(answer));
                all.add_compared(&format!("traffic, {name}"), case, [&theirs, &ours], equal);
            }
        }
    }
    if !all.is_equal() {
        all.differences.push(report::indented(&stage.verdicts()?));
    }
    Ok(all)
}

/// Acts by name.
fn acts(text: &str) -> Vec<(&str, Vec<Case>)> {
    let acts = text.split("\n= ").skip(1);
    acts.filter_map(|act| act.split_once('\n'))
        .map(|(name, cases)| (name, case::read(cases)))
        .collect()
}

/// Cases that go to both sides together. Those that show how long connections have left begin a script
/// of their own, so that both sides are asked at the same time.
fn scripts(cases: &[Case]) -> impl Iterator<Item = &[Case]> {
    cases.chunk_by(|_, next| Alike::of(next) != Alike::Connections)
}

/// What is marked: a service by mark has what comes to this port.
const MARKED: &str =
    r#"{"mark": 7, "protocol": "tcp", "destination": "192.0.2.10/32", "ports": ["7001"]}"#;

/// The packets before an act, in bursts: what a server says in one, it answers to an earlier one.
fn packets(act: &str) -> Vec<Vec<Packet>> {
    let each = |flows: &[Flow], kind| -> Vec<Packet> {
        flows.iter().map(|&flow| Packet::new(flow, kind)).collect()
    };
    let answers = |flows: &[Flow], kind| -> Vec<Packet> {
        flows.iter().map(|&flow| Packet::answer(flow, kind)).collect()
    };
    let all = Flows::new();
    let Flows { nat, one_way, datagrams, single, calls, sctp, .. } = &all;
    match act {
        "opened" => vec![
            each(&[&nat[..], one_way].concat(), Kind::Syn),
            each(&[&datagrams[..], single].concat(), Kind::Datagram(40)),
            calls.iter().zip(1..).map(|(&flow, call)| Packet::new(flow, Kind::Sip(call))).collect(),
        ],
        "answered" => vec![
            answers(nat, Kind::SynAck),
            each(&[&nat[..], one_way].concat(), Kind::Ack),
            each(&[&nat[..], one_way].concat(), Kind::Data(1000)),
            answers(nat, Kind::Data(1400)),
            [answers(&datagrams[..1], Kind::Datagram(500)), answers(single, Kind::Datagram(300))]
                .concat(),
            // An association that is not answered is forgotten after three seconds.
            each(sctp, Kind::Sctp(Chunks::Init)),
            answers(sctp, Kind::Sctp(Chunks::InitAck)),
            each(sctp, Kind::Sctp(Chunks::CookieEcho)),
            answers(sctp, Kind::Sctp(Chunks::CookieAck)),
        ],
        "ended" => vec![
            each(&nat[..3], Kind::Fin),
            answers(&nat[..2], Kind::Fin),
            each(&nat[..1], Kind::Ack),
            each(&one_way[..2], Kind::Fin),
            each(&sctp[..1], Kind::Sctp(Chunks::Shutdown)),
        ],
        "refilled" => vec![each(&all.later, Kind::Syn)],
        _ => Vec::new(),
    }
}

/// Who speaks with whom.
struct Flows {
    /// TCP to servers that answer by the director.
    nat: Vec<Flow>,
    /// TCP to servers that answer by themselves.
    one_way: Vec<Flow>,
    datagrams: Vec<Flow>,
    /// To a service that schedules each packet.
    single: Vec<Flow>,
    calls: Vec<Flow>,
    sctp: Vec<Flow>,
    /// TCP, of clients that come when servers have changed.
    later: Vec<Flow>,
}

impl Flows {
    fn new() -> Flows {
        let of = |protocol, vip: IpAddr, port, clients: std::ops::Range<u16>| {
            let service = SocketAddr::new(vip, port);
            clients.map(move |number| Flow { protocol, client: client(number, service), service })
        };
        let (tcp, udp) = (Protocol::Tcp, Protocol::Udp);
        Flows {
            nat: of(tcp, VIP_V4, 80, 1..5)
                .chain(of(tcp, VIP_V4, 443, 11..13))
                .chain(of(tcp, VIP_V6, 80, 21..23))
                .chain(of(tcp, VIP_V4, 7001, 31..33))
                .collect(),
            one_way: of(tcp, VIP_V4, 81, 41..44).chain(of(tcp, VIP_V4, 82, 51..53)).collect(),
            datagrams: of(udp, VIP_V4, 53, 61..63).chain(of(udp, VIP_V6, 53, 64..65)).collect(),
            single: of(udp, VIP_V4, 54, 66..68).collect(),
            calls: of(udp, VIP_V4, 5060, 71..73).collect(),
            sctp: of(Protocol::Sctp, VIP_V4, 2905, 81..83).collect(),
            later: of(tcp, VIP_V4, 80, 91..94).chain(of(tcp, VIP_V4, 81, 95..98)).collect(),
        }
    }
}

/// Client number `number`: neighbours in pairs of networks, for persistence.
fn client(number: u16, service: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match service {
        SocketAddr::V4(_) => Ipv4Addr::new(198, 18, number as u8 % 2, number as u8).into(),
        SocketAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0x2, 0, 0, 0, 0, number).into(),
    };
    SocketAddr::new(ip, 4000 + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_act_that_has_packets_is_there_and_listings_of_connections_begin_a_script() {
        let acts = acts(CASES);
        let names: Vec<&str> = acts.iter().map(|(name, _)| *name).collect();
        for name in ["opened", "answered", "ended", "refilled"] {
            assert!(names.contains(&name) && !packets(name).is_empty(), "{name}");
        }
        assert!(packets("rules").is_empty(), "what nobody has opened gets no packets");
        for (name, cases) in &acts {
            let scripts: Vec<_> = scripts(cases).collect();
            assert_eq!(scripts.concat(), *cases, "{name}");
            let late = |script: &&[Case]| {
                script.iter().skip(1).any(|case| Alike::of(case) == Alike::Connections)
            };
            assert!(!scripts.iter().any(late), "{name}");
        }
    }
}

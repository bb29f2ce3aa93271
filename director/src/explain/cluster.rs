//! The same for a file of `mode = "nlb"`: each host's own decision, all of them up and agreed.

use super::words;
use crate::config::Config;
use crate::control::explain::{Explanation, Outcome, Step};
use crate::world::{Cluster, ClusterHost, NoWorld};

/// What is assumed of a cluster that nobody has asked.
const ASSUMED: &str = "all hosts of the file are up and agreed, and none holds flows";

/// Explains a frame to the hosts of a file.
///
/// # Errors
/// What of the file a node would refuse.
pub fn of_cluster(config: &Config, frame: &[u8]) -> Result<Explanation, NoWorld> {
    let mut cluster = Cluster::from_config(config)?;
    let mut frame = frame.to_vec();
    if let Some(to) = frame.get_mut(..6) {
        to.copy_from_slice(&cluster.mac());
    }
    let decisions: Vec<_> = cluster.decide(&frame).collect();
    let takers = decisions.iter().filter(|(_, decision)| decision.passes()).count();
    let outcome = match takers {
        0 => Outcome::Dropped,
        1 => Outcome::Forwarded,
        // What every host takes is nobody's share.
        _ => Outcome::Passed,
    };
    let why = decisions.iter().find(|(_, decision)| decision.passes()).or(decisions.first());
    let (reason, meaning) = why.map_or(("no_hosts", "The file has no hosts."), |(_, decision)| {
        (decision.reason.label(), decision.reason.explanation())
    });
    let steps = decisions.iter().map(|(host, decision)| {
        let does = if decision.passes() { "takes it" } else { "drops it" };
        let (label, why) = (decision.reason.label(), decision.reason.explanation());
        let text = format!("{} {does} ({label}): {why}", who(host));
        Step { stage: "filter".to_owned(), text, details: Vec::new() }
    });
    Ok(Explanation {
        packet: words::packet(&frame),
        outcome,
        reason: reason.to_owned(),
        meaning: meaning.to_owned(),
        steps: steps.collect(),
        changes: Vec::new(),
        answer: None,
        assumed: vec![ASSUMED.to_owned()],
    })
}

fn who(host: &ClusterHost) -> String {
    let address = host.address.map(|address| format!(" ({address})")).unwrap_or_default();
    format!("host {}{address}", host.id.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::build::{Transport, Wanted, frame};

    const FILE: &str = r#"
        mode = "nlb"
        interfaces = ["eth0"]
        [nlb]
        key = "0123456789abcdef"
        [[service]]
        listen = "192.0.2.10:80/tcp"
            [[service.server]]
            address = "10.0.0.11"
            [[service.server]]
            address = "10.0.0.12"
    "#;

    fn told(port: u16, to: &str) -> Explanation {
        let config = crate::config::parse(FILE, "test.toml").unwrap();
        let wanted = Wanted {
            transport: Transport::Tcp(2),
            source: std::net::SocketAddr::new("198.51.100.7".parse().unwrap(), port),
            destination: to.parse().unwrap(),
            data: 0,
            ttl: 64,
            dont_fragment: true,
        };
        of_cluster(&config, &frame(&wanted).unwrap()).unwrap()
    }

    #[test]
    fn one_host_takes_a_clients_packet_and_the_other_one_says_why_not() {
        let mut takers = std::collections::BTreeSet::new();
        for port in 1..50 {
            let told = told(port, "192.0.2.10:80");
            assert_eq!((told.outcome, told.reason.as_str()), (Outcome::Forwarded, "own-bucket"));
            let takes = told.steps.iter().filter(|step| step.text.contains("takes it"));
            takers.extend(takes.map(|step| step.text.clone()));
            assert!(told.steps.iter().any(|step| step.text.contains("drops it (not-owner)")));
        }
        assert_eq!(takers.len(), 2, "{takers:?}");
        assert!(takers.first().unwrap().starts_with("host 1 (10.0.0.11) takes it"));
    }

    #[test]
    fn a_packet_for_nobody_is_not_called_served() {
        assert_eq!(told(1, "192.0.2.99:80").outcome, Outcome::Dropped);
    }
}

//! Packets to a cluster without a dispatcher.

use std::collections::BTreeSet;
use std::time::Instant;

use integration::cluster::{self, Cluster};
use integration::programs;

use super::*;
use crate::bed::{can_run, dirctl};

#[test]
fn in_mode_nlb_the_host_is_named_that_then_answers() {
    if !can_run() {
        return;
    }
    let cluster = Cluster::build("explain", 2).unwrap();
    let program = programs::path("switchyard-lab").unwrap();
    let _web = cluster.start_web(&program, 200).unwrap();
    let nodes = cluster.start_nodes(&cluster.config("nlb", "", "")).unwrap();
    let vip = SocketAddr::new(cluster::VIP_V4, 80);
    let begun = Instant::now();
    let mut seen = BTreeSet::new();
    for port in 42_001..42_013 {
        let from = SocketAddr::new("10.78.0.100".parse().unwrap(), port);
        let words = ["explain", "tcp", &from.to_string(), &vip.to_string()];
        let ask = || dirctl(&cluster.hosts[0], nodes[0].socket(), &words);
        let mut said = ask();
        // They have just converged: buckets change hands for some heartbeats.
        while said.code == Some(1) && begun.elapsed() < Duration::from_secs(10) {
            said.names(&["(handover)", "does not serve it yet"]);
            std::thread::sleep(Duration::from_millis(20));
            said = ask();
        }
        assert_eq!(said.code, Some(0), "{said:?}");
        let takers: Vec<&str> = (said.out.lines())
            .filter(|line| line.contains("takes it"))
            .filter_map(|line| line.split("host ").nth(1)?.split(' ').next())
            .collect();
        let [taker] = takers[..] else { panic!("{said:?}") };
        said.names(&["bucket", "drops it"]);
        let answered = who(connect(&cluster.client, from, vip).unwrap());
        assert_eq!(answered, format!("host{taker}"), "{said:?}");
        seen.insert(answered);
    }
    assert_eq!(seen.len(), 2, "all went to one host");
    let (from, other) = ("10.78.0.100:1", "10.78.0.250:80");
    let said = dirctl(&cluster.hosts[0], nodes[0].socket(), &["explain", "tcp", from, other]);
    assert_eq!(said.code, Some(4), "{said:?}");
    said.names(&["10.78.0.250 is no virtual address"]);
}

//! Each type of tunnel over each family: what our director sends is answered from the VIP.

use super::bed::{Bed, config, server};
use crate::possible;

/// How many requests by each family of clients.
const REQUESTS: u64 = 3;

/// Runs the agent with these tunnels one after the other, over the server's address of one family.
/// `devices` are the types that the agent is to have made.
fn is_unpacked(family: usize, tunnels: &[&str], devices: &[&str]) {
    if !possible() {
        return;
    }
    let mut bed = Bed::build().unwrap();
    let before = bed.state().unwrap();
    for tunnel in tunnels {
        bed.configure(&config(server()[family], tunnel)).unwrap();
        bed.start_agent("--tunnel-by kernel").unwrap();
        bed.ask(REQUESTS).unwrap_or_else(|error| panic!("{tunnel}: {error:#}"));
        let received = bed.received("swtun").unwrap();
        println!("{tunnel}: {received:?}");
        assert_eq!(received.len(), devices.len(), "{tunnel}: {received:?}");
        for ((name, packets), of) in received.iter().zip(devices) {
            let shown = bed.guest.must(&format!("ip -d link show {name}")).unwrap();
            assert!(shown.contains(&format!(" {of} ")), "{tunnel}: {name} is no {of}: {shown}");
            assert!(*packets >= REQUESTS, "{tunnel}: not through {name}: {received:?}");
        }
        assert_eq!(bed.end_agent("TERM").unwrap(), 0, "{}", bed.agent_log().unwrap());
        assert_eq!(bed.state().unwrap(), before, "{tunnel}");
    }
}

#[test]
fn ipip_over_ipv4_is_unpacked_by_the_kernels_ipip_and_sit() {
    is_unpacked(0, &["\"ipip\""], &["ipip", "sit"]);
}

#[test]
fn ipip_over_ipv6_is_unpacked_by_the_kernels_ip6tnl() {
    is_unpacked(1, &["\"ipip\""], &["ip6tnl"]);
}

#[test]
fn gre_over_ipv4_is_unpacked_by_the_kernels_gre() {
    is_unpacked(0, &["\"gre\"", "{ type = \"gre\", checksum = \"csum\" }"], &["gre"]);
}

#[test]
fn gre_over_ipv6_is_unpacked_by_the_kernels_ip6gre() {
    is_unpacked(1, &["\"gre\"", "{ type = \"gre\", checksum = \"csum\" }"], &["ip6gre"]);
}

/// Every checksum that GUE knows.
const GUE: [&str; 3] = [
    "{ type = \"gue\", port = 5555 }",
    "{ type = \"gue\", port = 5555, checksum = \"csum\" }",
    "{ type = \"gue\", port = 5555, checksum = \"remcsum\" }",
];

#[test]
fn gue_over_ipv4_is_unpacked_by_the_kernels_fou_with_ipip_and_sit() {
    is_unpacked(0, &GUE, &["ipip", "sit"]);
}

#[test]
fn gue_over_ipv6_is_unpacked_by_the_kernels_fou_with_ip6tnl() {
    is_unpacked(1, &GUE, &["ip6tnl"]);
}

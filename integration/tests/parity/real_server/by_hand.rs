//! A server without the agent, by the commands of `docs/real-servers.md`.

use integration::topology::{VIP_V4, VIP_V6};

use super::bed::{Bed, config, server};
use crate::possible;

/// What is typed for a tunnel, the tunnel, and to which of the server's addresses it comes.
fn rows() -> Vec<(String, &'static str, usize)> {
    let [v4, v6] = server();
    let csum = "{ type = \"gre\", checksum = \"csum\" }";
    let gue = "{ type = \"gue\", port = 6080 }";
    let ip6tnl =
        format!("ip link add tun6 type ip6tnl mode any local {v6} remote any; ip link set tun6 up");
    let ip4 = "modprobe -a ipip sit; ip link set tunl0 up; ip link set sit0 up";
    let gre = format!("ip link add gre1 type gre local {v4} remote any");
    let gre6 = format!("ip link add gre1 type ip6gre local {v6} remote any");
    vec![
        (ip4.to_owned(), "\"ipip\"", 0),
        (ip6tnl.clone(), "\"ipip\"", 1),
        (format!("{gre}; ip link set gre1 up"), "\"gre\"", 0),
        (format!("{gre} icsum; ip link set gre1 up"), csum, 0),
        (format!("{gre6}; ip link set gre1 up"), "\"gre\"", 1),
        (format!("{gre6} icsum; ip link set gre1 up"), csum, 1),
        (format!("{ip4}; modprobe fou; ip fou add port 6080 gue"), gue, 0),
        (format!("{ip6tnl}; modprobe fou; ip -6 fou add port 6080 gue"), gue, 1),
    ]
}

#[test]
fn the_commands_of_the_documents_make_a_real_server_of_a_host_without_agent() {
    if !possible() {
        return;
    }
    let mut bed = Bed::build().unwrap();
    bed.guest
        .must(&format!(
            "ip address add {VIP_V4}/32 dev lo; ip -6 address add {VIP_V6}/128 dev lo nodad; \
             cd /proc/sys/net/ipv4/conf; echo 1 >all/arp_ignore; echo 2 >all/arp_announce"
        ))
        .unwrap();
    for (typed, tunnel, family) in rows() {
        // The guest's modules are not where the machine's are.
        let typed = format!("set -e; {}", typed.replace("modprobe", "modprobe -d /run/root"));
        bed.guest.must(&typed).unwrap();
        bed.configure(&config(server()[family], tunnel)).unwrap();
        bed.ask(3).unwrap_or_else(|error| panic!("{tunnel} after {typed}: {error:#}"));
        bed.guest
            .must(
                "for d in gre1 tun6; do ip link del $d 2>/dev/null; done; \
                 for d in tunl0 sit0; do ip link set $d down 2>/dev/null; done; \
                 ip fou del port 6080 2>/dev/null; ip -6 fou del port 6080 2>/dev/null; true",
            )
            .unwrap();
    }
}

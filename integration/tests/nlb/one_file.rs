//! One file for both modes: on a director and its servers, and with one word changed on a cluster.

use std::time::Duration;

use integration::cluster::{VIP_V4, VIP_V6};
use integration::running::Director;

use crate::bed::{Bed, FAMILIES, Site};
use crate::load::{failed, requests, tally};
use crate::witness::Witness;
use crate::{LAB_BINARY, can_run};

/// Hosts in the file; the next machine is the director.
const SERVERS: usize = 3;

#[test]
fn quick_the_same_file_serves_a_site_by_a_director_and_with_one_word_changed_without() {
    if !can_run() {
        return;
    }
    let site = Site { mode: "dispatcher", ..Site::new(SERVERS) };
    let file = format!("own_addresses = true\n{}", site.file());
    let mut bed = Bed::with_hosts("one-file", SERVERS + 1, site).unwrap();

    let agents: Vec<_> = bed.cluster.hosts[..SERVERS]
        .iter()
        .map(|server| {
            let agent = server
                .command(LAB_BINARY)
                .args(["realserver-agent", "run"])
                .args(["--vip", &VIP_V4.to_string(), "--vip", &VIP_V6.to_string()])
                .spawn()
                .unwrap();
            agent.wait_for_log("ready", Duration::from_secs(10)).unwrap();
            agent
        })
        .collect();
    let director = Director::start(&bed.cluster.lab, &bed.cluster.hosts[SERVERS], &file).unwrap();
    everybody_is_served(&bed);
    director.stop().unwrap();
    for agent in agents {
        assert!(agent.stop().unwrap().success(), "{}", agent.log());
    }

    let changed = file.replace("mode = \"dispatcher\"", "mode = \"nlb\"");
    assert_ne!(changed, file);
    let all: Vec<usize> = (1..=SERVERS).collect();
    bed.start_with(&all, &changed).unwrap();
    bed.wait_converged(&all, &all).unwrap();
    bed.settle();
    everybody_is_served(&bed);
    bed.stop_all().unwrap();
}

fn everybody_is_served(bed: &Bed) {
    for vip in [VIP_V4, VIP_V6] {
        bed.cluster.client.forget_neighbours("eth0").unwrap();
        let family = usize::from(vip.is_ipv6());
        let witness = Witness::start(&bed.cluster).unwrap();
        let made = requests(&bed.cluster.client, family, 300).unwrap();
        let counts = tally(&made);
        println!("\n{}: {counts:?}", FAMILIES[family].0);
        assert!(failed(&made).is_empty(), "{counts:?}");
        assert_eq!(counts.len(), SERVERS, "{counts:?}");
        assert_eq!(witness.finish().unwrap().answered_twice(), Vec::<String>::new());
    }
}

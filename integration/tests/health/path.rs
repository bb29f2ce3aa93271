//! Checks that go to the VIP along the way of clients' packets: they find what a check of the server's
//! own address cannot.

use std::time::Duration;

use director::control::health::HealthState;
use integration::topology::Kind;
use nix::sys::signal::Signal;

use crate::bed::{Bed, Wanted, vip};
use crate::can_run;

const SOON: Duration = Duration::from_secs(5);

fn check(kind: &str) -> String {
    format!(
        "check = {{ type = \"{kind}\", via = \"path\", interval = \"200ms\", timeout = \"150ms\", \
         rise = 2, fall = 2 }}"
    )
}

#[test]
fn a_server_that_has_lost_the_vip_fails_although_its_own_address_answers() {
    if !can_run() {
        return;
    }
    for kind in ["tcp", "http"] {
        let bed = Bed::build(Wanted::new(Kind::Direct, &check(kind))).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let all_up = bed.servers().unwrap().iter().all(|it| it.state == HealthState::Up);
        assert!(all_up, "{kind}: {:?}\n{}", bed.servers(), bed.director.process().log());
        bed.topology.servers[0].remove_address("lo", &vip().to_string()).unwrap();
        bed.wait_for(1, HealthState::Down, SOON).unwrap();
        bed.served_by(60, &[2, 3]);
        bed.topology.servers[0].add_address("lo", &vip().to_string()).unwrap();
        bed.wait_for(1, HealthState::Up, SOON).unwrap();
        bed.director.stop().unwrap();
    }
}

#[test]
fn a_server_that_does_not_unpack_its_tunnel_fails_although_its_own_address_answers() {
    if !can_run() {
        return;
    }
    let mut bed = Bed::build(Wanted::new(Kind::Tunnel, &check("http"))).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let all_up = bed.servers().unwrap().iter().all(|it| it.state == HealthState::Up);
    assert!(all_up, "{:?}\n{}", bed.servers(), bed.director.process().log());
    bed.agents[1].signal(Signal::SIGKILL).unwrap();
    bed.wait_for(2, HealthState::Down, SOON).unwrap();
    bed.served_by(60, &[1, 3]);
    bed.start_agent(2, &[]).unwrap();
    bed.wait_for(2, HealthState::Up, SOON).unwrap();
    bed.served_by(60, &[1, 2, 3]);
    bed.director.stop().unwrap();
}

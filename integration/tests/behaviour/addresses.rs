//! `own_addresses = true`: the VIPs come and go with the director.

use integration::ping::ping;
use integration::topology::{Kind, Options};
use nix::sys::signal::Signal;

use super::bed::{Bed, SECOND, VIPS, can_run, has_address, lay, service, top, web};

/// A bed whose director brings the VIPs itself.
fn bed() -> (Bed, String) {
    let topology = lay(Kind::Nat, &Options::default());
    for vip in VIPS {
        topology.director.remove_address("eth0", &vip.to_string()).unwrap();
        assert!(!has_address(&topology, vip));
    }
    let config = top("copy") + "own_addresses = true\n" + &web(Kind::Nat, "rr", &[1, 1, 1]);
    (Bed::of(topology, &config), config)
}

#[test]
fn quick_own_addresses_come_and_go_with_the_director() {
    if !can_run() {
        return;
    }
    let (bed, config) = bed();
    bed.carries(9);
    for vip in VIPS {
        bed.topology.client.run(|| ping(vip, 56, SECOND)).unwrap().unwrap();
    }
    // A service of another address brings it, and takes it away when it goes.
    let other = "192.0.2.20".parse().unwrap();
    let more = service(Kind::Nat, other, 80, "rr", "", &[1, 1, 1]);
    bed.director.reload(&(config.clone() + &more)).unwrap();
    bed.director.process().wait_for_log("reloaded", SECOND * 5).unwrap();
    let tally = bed.fetch(other, 80, 6);
    assert_eq!((tally.answered(), tally.failed()), (6, 0), "{tally:?}");
    bed.director.ipvsadm(&["-D", "-t", "192.0.2.20:80"]).unwrap();
    for _ in 0..100 {
        if has_address(&bed.topology, other) {
            std::thread::sleep(SECOND / 50);
        }
    }
    assert!(!has_address(&bed.topology, other), "{other} stays without its service");
    bed.carries(9);

    let Bed { topology, director, .. } = bed;
    director.stop().unwrap();
    for vip in VIPS {
        assert!(!has_address(&topology, vip), "{vip} stays after SIGTERM");
    }
}

#[test]
fn addresses_of_a_killed_director_are_adopted_and_taken_away() {
    if !can_run() {
        return;
    }
    let (mut bed, config) = bed();
    bed.director.process().signal(Signal::SIGKILL).unwrap();
    bed.director.process().wait(SECOND * 5).unwrap().expect("killed");
    for vip in VIPS {
        assert!(has_address(&bed.topology, vip), "nobody could have taken {vip} away");
    }
    bed.succeed(&config);
    bed.carries(9);
    let Bed { topology, director, .. } = bed;
    director.stop().unwrap();
    for vip in VIPS {
        assert!(!has_address(&topology, vip), "{vip} of the killed one stays for ever");
    }
}

#[test]
fn an_address_of_the_operator_is_never_taken_away() {
    if !can_run() {
        return;
    }
    let config = top("copy") + "own_addresses = true\n" + &web(Kind::Nat, "rr", &[1, 1, 1]);
    let Bed { topology, director, .. } = Bed::with(Kind::Nat, &config);
    director.stop().unwrap();
    for vip in VIPS {
        assert!(has_address(&topology, vip), "{vip} was there before the director");
    }
}

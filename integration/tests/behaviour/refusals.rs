//! What keeps a director from starting, or makes it end: a clear message, exit code 1, and nobody
//! else is harmed.

use std::time::Instant;

use integration::topology::{Kind, Options};

use super::bed::{Bed, SECOND, VIPS, WAYS, can_run, has_address, lay, run_director, top, web};

/// Refused with exit code 1 within the limit, and the message says all of `words`.
#[track_caller]
fn refused((code, message): (Option<i32>, String), words: &[&str]) {
    assert_eq!(code, Some(1), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    for word in words {
        assert!(message.contains(word), "no {word:?} in:\n{message}");
    }
}

fn config(io: &str) -> String {
    top(io) + &web(Kind::Nat, "rr", &[1, 1, 1])
}

#[test]
fn quick_a_second_director_on_the_interface_is_refused_and_the_first_goes_on() {
    if !can_run() {
        return;
    }
    let bed = Bed::new(Kind::Nat, "copy");
    let control = format!("control = \"{}\"\n", bed.director.socket().display());
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| bed.carries(400));
        let same = run_director(&bed.topology, "same", &(control + &config("copy")), SECOND * 5);
        refused(same, &["another director", "control socket", "stop it first"]);
        for io in WAYS.into_iter().chain(["auto"]) {
            let other = run_director(&bed.topology, io, &config(io), SECOND * 5);
            refused(other, &["another director already holds interface eth0", "stop it first"]);
        }
        traffic.join().unwrap();
    });
    assert!(bed.director.socket().exists(), "the second has taken the first one's socket away");
    bed.carries(9);
    bed.director.stop().unwrap();
}

#[test]
fn a_refused_director_with_own_addresses_leaves_the_first_ones_alone() {
    if !can_run() {
        return;
    }
    let topology = lay(Kind::Nat, &Options::default());
    for vip in VIPS {
        topology.director.remove_address("eth0", &vip.to_string()).unwrap();
    }
    let own = top("copy") + "own_addresses = true\n" + &web(Kind::Nat, "rr", &[1, 1, 1]);
    let bed = Bed::of(topology, &own);
    refused(run_director(&bed.topology, "second", &own, SECOND * 5), &["another director"]);
    assert!(VIPS.iter().all(|vip| has_address(&bed.topology, *vip)));
    bed.carries(9);
}

#[test]
fn quick_a_missing_interface_or_impossible_io_is_said_with_its_remedy() {
    if !can_run() {
        return;
    }
    let topology = lay(Kind::Nat, &Options::default());
    let run = |name: &str, text: &str| run_director(&topology, name, text, SECOND * 5);
    let missing = config("auto").replace("eth0", "eth7");
    refused(run("missing", &missing), &["no interface \"eth7\"", "ip link"]);
    refused(
        run("zero", &config("zero-copy")),
        &["zero-copy", "eth0", "use copy mode", "io in the configuration"],
    );
    // A wrong file is another exit code, with its line and key.
    let (code, message) = run("wrong", &config("auto").replace("\"rr\"", "\"rrr\""));
    assert_eq!(code, Some(2), "{message}");
    for word in ["wrong.toml:8:", "scheduler", "rrr"] {
        assert!(message.contains(word), "no {word:?} in:\n{message}");
    }
}

/// Large MTUs: AF_XDP has chunks of a page at most, AF_PACKET carries all.
#[test]
fn jumbo_frames_are_carried_or_refused_with_the_remedy() {
    if !can_run() {
        return;
    }
    let jumbo = Options { mtu: Some(9000), ..Options::default() };
    let topology = lay(Kind::Nat, &jumbo);
    for io in ["copy", "generic"] {
        let answer = run_director(&topology, io, &config(io), SECOND * 5);
        refused(answer, &["MTU 9000", "lower it", "io = \"packet\""]);
    }
    let bed = Bed::of(topology, &config("auto"));
    let log = bed.director.process().log();
    assert!(log.contains("packets: AF_PACKET on eth0"), "{log}");
    bed.carries(9);
    super::path::upload_is_whole(&bed, 80);
    let status = bed.director.status().unwrap();
    let dropped: u64 = status.ports.iter().map(|port| port.receive_dropped).sum();
    assert_eq!(dropped, 0, "{:?}", status.ports);
}

#[test]
fn an_interface_removed_under_the_director_ends_it_with_a_message() {
    if !can_run() {
        return;
    }
    for io in WAYS {
        let bed = Bed::new(Kind::Nat, io);
        bed.carries(3);
        bed.topology.director.remove_interface("eth0").unwrap();
        let start = Instant::now();
        let process = bed.director.process();
        let status = process.wait(SECOND * 8).unwrap().expect("it hangs");
        let log = process.log();
        refused((status.code(), log), &["director: worker ", "eth0", "was the interface removed?"]);
        assert!(start.elapsed() < SECOND * 5, "{io}: it took {:?}", start.elapsed());
        assert!(!bed.director.socket().exists(), "{io}: the control socket stays");
    }
}

#[test]
fn an_interface_that_is_down_for_a_while_carries_again() {
    if !can_run() {
        return;
    }
    for io in WAYS {
        let bed = Bed::new(Kind::Direct, io);
        bed.topology.director.sysctl("net.ipv6.conf.eth0.keep_addr_on_down", "1").unwrap();
        bed.carries(3);
        bed.topology.director.set_up("eth0", false).unwrap();
        std::thread::sleep(SECOND / 2);
        bed.topology.director.set_up("eth0", true).unwrap();
        // The bridge hears of the carrier a little later.
        std::thread::sleep(SECOND);
        bed.carries(6);
        assert!(bed.director.status().unwrap().warnings.is_empty());
    }
}

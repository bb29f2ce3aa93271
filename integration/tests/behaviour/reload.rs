//! SIGHUP: what differs in the file changes, and nothing else notices.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use integration::http::Tally;
use integration::programs;
use integration::topology::{Kind, server_addresses};

use super::bed::{Bed, SECOND, VIPS, can_run, kernel_web, of, service, top, web};

/// Replaces the file and waits for the director's word on it.
#[track_caller]
fn reload(bed: &Bed, config: &str, word: &str) {
    let seen = bed.director.process().log().matches(word).count();
    bed.director.reload(config).unwrap();
    for _ in 0..500 {
        if bed.director.process().log().matches(word).count() > seen {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no {word:?} after a reload:\n{}", bed.director.process().log());
}

/// Requests to port 80 without end while `meanwhile` runs; returns what became of them.
fn under_traffic(bed: &Bed, vip: IpAddr, meanwhile: impl FnOnce()) -> Tally {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let mut sum = Tally::default();
            while !stop.load(Relaxed) {
                let tally = bed.fetch(vip, 80, 40);
                for (name, count) in tally.by_server {
                    *sum.by_server.entry(name).or_default() += count;
                }
                for (error, count) in tally.errors {
                    *sum.errors.entry(error).or_default() += count;
                }
            }
            sum
        });
        meanwhile();
        stop.store(true, Relaxed);
        traffic.join().unwrap()
    })
}

/// What `dirctl status` prints while there is something to warn of.
fn warned(bed: &Bed) -> String {
    let output = bed
        .topology
        .director
        .command(programs::path("dirctl").unwrap())
        .arg("status")
        .env("SWITCHYARD_SOCKET", bed.director.socket())
        .output(SECOND * 5)
        .unwrap();
    // So a script notices too.
    assert_eq!(output.status.code(), Some(1), "dirctl status: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until server `number` of the service on port 80 has no active connection: then it may go.
fn until_idle(bed: &Bed, vip: IpAddr, number: usize) {
    use director::control::api::ServiceKey;
    let address = SocketAddr::new(server_addresses(number)[usize::from(vip.is_ipv6())], 80);
    let is_it = |key: ServiceKey| matches!(key, ServiceKey::Address { address, .. } if address == SocketAddr::new(vip, 80));
    for _ in 0..300 {
        let views = bed.director.services().unwrap();
        let servers =
            views.iter().filter(|view| is_it(view.spec.key)).flat_map(|view| &view.servers);
        if servers.filter(|server| server.spec.address == address).all(|server| server.active == 0)
        {
            return;
        }
        std::thread::sleep(SECOND / 100);
    }
    panic!("server {number} is never idle");
}

#[test]
fn quick_reloads_under_traffic_fail_no_request() {
    if !can_run() {
        return;
    }
    let [vip, other] = VIPS;
    let untouched = service(Kind::Nat, other, 80, "rr", "", &[1, 1, 1]);
    let file = |weights: &[u32], more: &str| {
        top("copy") + &untouched + &service(Kind::Nat, vip, 80, "wrr", "", weights) + more
    };
    let bed = Bed::with(Kind::Nat, &file(&[1, 1, 1], ""));
    bed.serve(81);
    let more = service(Kind::Nat, vip, 81, "rr", "", &[1, 1, 1]);
    let mut changed = Tally::default();
    let untouched = under_traffic(&bed, other, || {
        changed = under_traffic(&bed, vip, || {
            for round in 0..3_u32 {
                reload(&bed, &file(&[1, 1, 1], &more), "reloaded: ");
                let tally = bed.fetch(vip, 81, 6);
                assert_eq!((tally.answered(), tally.failed()), (6, 0), "round {round}: {tally:?}");
                reload(&bed, &file(&[3, 2, 1], ""), "reloaded: ");
                // Out of service first, as an operator does; then away, and back.
                reload(&bed, &file(&[3, 2, 0], ""), "reloaded: ");
                until_idle(&bed, vip, 3);
                reload(&bed, &file(&[3, 2], ""), "reloaded: ");
                std::thread::sleep(SECOND / 10);
            }
        });
    });
    for tally in [&changed, &untouched] {
        assert!(tally.answered() > 100 && tally.failed() == 0, "{tally:?}");
    }
    let tally = bed.fetch(vip, 80, 50);
    let shares = [1, 2, 3].map(|number| of(&tally, number));
    assert_eq!(shares, [30, 20, 0], "weights 3:2 and a server that was removed");
    assert!(bed.director.status().unwrap().warnings.is_empty());
}

#[test]
fn quick_a_wrong_file_changes_nothing_and_is_warned_of_until_a_right_one_comes() {
    if !can_run() {
        return;
    }
    let right = top("copy") + &web(Kind::Nat, "rr", &[1, 1, 1]);
    let bed = Bed::with(Kind::Nat, &right);
    let before = bed.director.ipvsadm(&["-S", "-n"]).unwrap();
    // Everything else in it would change a lot.
    let wrong = top("copy") + &web(Kind::Nat, "nosuch", &[7]).replace("weight", "wieght");
    reload(&bed, &wrong, "reload refused");
    assert_eq!(bed.director.ipvsadm(&["-S", "-n"]).unwrap(), before);
    let status = warned(&bed);
    for word in ["director.toml:8:", "nosuch", "wieght"] {
        assert!(status.contains(word), "no {word:?} in:\n{status}");
    }
    bed.carries(9);
    // So does a file that is gone.
    reload(&bed, "", "reload refused");
    assert_eq!(bed.director.ipvsadm(&["-S", "-n"]).unwrap(), before);
    reload(&bed, &right, "reloaded: ");
    let warnings = bed.director.status().unwrap().warnings;
    assert!(warnings.is_empty(), "{warnings:?} after a good reload");
    // What a reload cannot do is said, and what it can is done.
    reload(&bed, &right.replace("\"copy\"", "\"packet\""), "restart the director");
    let warnings = bed.director.status().unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("io changed")), "{warnings:?}");
    bed.carries(9);
}

#[test]
fn a_server_quiesced_at_run_time_stays_so_over_a_reload_that_does_not_touch_it() {
    if !can_run() {
        return;
    }
    let [vip, _] = VIPS;
    let file = |more: &str| top("copy") + &web(Kind::Nat, "rr", &[1, 1, 1]) + more;
    let bed = Bed::with(Kind::Nat, &file(""));
    bed.serve(90);
    let edit = ["-e", "-t", "192.0.2.10:80", "-r", "10.77.0.12:80", "-m", "-w", "0"];
    bed.director.ipvsadm(&edit).unwrap();
    // And a service that only the operator knows.
    bed.director.ipvsadm(&["-A", "-t", "192.0.2.10:90", "-s", "rr"]).unwrap();
    let add = ["-a", "-t", "192.0.2.10:90", "-r", "10.77.0.11:90", "-m"];
    bed.director.ipvsadm(&add).unwrap();
    reload(&bed, &file(&service(Kind::Nat, vip, 81, "rr", "", &[1, 1, 1])), "reloaded: ");
    let tally = bed.fetch(vip, 80, 40);
    assert_eq!([1, 2, 3].map(|number| of(&tally, number)), [20, 0, 20], "{tally:?}");
    assert_eq!(bed.fetch(vip, 90, 3).answered(), 3);
    // A reload that does touch it has the last word.
    let touched = file("").replacen("weight = 1", "weight = 2", 3);
    reload(&bed, &touched, "reloaded: ");
    let tally = bed.fetch(vip, 80, 30);
    assert_eq!([1, 2, 3].map(|number| of(&tally, number)), [10, 10, 10], "{tally:?}");
}

#[test]
fn a_service_removed_by_a_reload_is_the_kernels_at_once() {
    if !can_run() {
        return;
    }
    let [vip, other] = VIPS;
    let first = service(Kind::Nat, vip, 80, "rr", "", &[1, 1, 1]);
    let bed = Bed::with(Kind::Nat, &(top("copy") + &web(Kind::Nat, "rr", &[1, 1, 1])));
    let _kernel = kernel_web(&bed.topology, 80);
    bed.carries(9);
    reload(&bed, &(top("copy") + &first), "reloaded: ");
    let tally = bed.fetch(other, 80, 9);
    assert_eq!(tally.by_server.get("kernel"), Some(&9), "{tally:?}");
    assert_eq!(bed.fetch(vip, 80, 9).by_server.len(), 3);
}

#[test]
fn quick_settings_follow_the_file_and_go_back_to_their_default() {
    if !can_run() {
        return;
    }
    let file = |settings: &str| top("copy") + &web(Kind::Nat, "rr", &[1]) + settings;
    let bed = Bed::with(Kind::Nat, &file("[settings]\nsloppy_tcp = true\n"));
    let settings = || bed.director.client().unwrap().settings().unwrap();
    assert_eq!(settings()["sloppy_tcp"], 1, "from the start");
    reload(&bed, &file("[settings]\nsloppy_tcp = true\nam_droprate = 20\n"), "reloaded: ");
    assert_eq!((settings()["sloppy_tcp"], settings()["am_droprate"]), (1, 20));
    reload(&bed, &file(""), "reloaded: ");
    assert_eq!((settings()["sloppy_tcp"], settings()["am_droprate"]), (0, 10));
}

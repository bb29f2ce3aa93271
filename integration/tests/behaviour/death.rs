//! However the director ends, the kernel has the traffic at once, and a new director can start.

use std::time::{Duration, Instant};

use integration::lab::Process;
use integration::topology::{Kind, Options, Topology};
use nix::sys::signal::Signal;

use super::bed::{Bed, SECOND, VIPS, WAYS, can_run, fetch, kernel_web, lay, top, web};

/// How long the kernel may take to have its traffic back, and a start to succeed.
const AT_ONCE: Duration = SECOND;

#[track_caller]
fn kernel_answers(topology: &Topology) {
    for vip in VIPS {
        let start = Instant::now();
        let tally = fetch(topology, vip, 80, 1);
        assert_eq!(tally.by_server.get("kernel"), Some(&1), "{vip}: {tally:?}");
        assert!(start.elapsed() < AT_ONCE, "{vip}: after {:?}", start.elapsed());
    }
}

fn end(process: &Process, signal: Signal) -> Option<i32> {
    process.signal(signal).unwrap();
    process.wait(SECOND * 5).unwrap().expect("the director does not end").code()
}

fn dies(io: &str) {
    let topology = lay(Kind::Nat, &Options::default());
    let kernel = kernel_web(&topology, 80);
    let config = top(io) + &web(Kind::Nat, "rr", &[1, 1, 1]);
    let mut bed = Bed::of(topology, &config);
    bed.carries(9);
    assert_eq!(end(bed.director.process(), Signal::SIGKILL), None);
    kernel_answers(&bed.topology);

    // The next one starts on the same queues and finds a socket that nobody listens on.
    assert!(bed.director.socket().exists(), "kill -9 leaves the control socket");
    bed.succeed(&config);
    bed.carries(9);
    assert_eq!(end(bed.director.process(), Signal::SIGTERM), Some(0));
    assert!(!bed.director.socket().exists(), "SIGTERM leaves the control socket");
    kernel_answers(&bed.topology);

    // And the third at once after a clean end, which Ctrl-C is too.
    bed.succeed(&config);
    bed.carries(9);
    let log = bed.director.process().log();
    let word = match io {
        "packet" => "AF_PACKET",
        _ => io,
    };
    assert!(log.contains(word), "{log}");
    assert_eq!(end(bed.director.process(), Signal::SIGINT), Some(0));
    kernel_answers(&bed.topology);
    assert!(kernel.is_running().unwrap());
}

#[test]
fn quick_the_kernel_has_the_traffic_when_the_director_dies() {
    if can_run() {
        dies("copy");
    }
}

#[test]
fn the_kernel_has_the_traffic_when_a_director_in_another_mode_dies() {
    if can_run() {
        WAYS.iter().filter(|io| **io != "copy").for_each(|io| dies(io));
    }
}

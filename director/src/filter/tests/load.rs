//! The verifier takes the program whatever options are on, with room to spare.

use std::os::fd::{AsFd, AsRawFd};

use netio::bpf::Program;
use nlb::filter::{Echo, Policy};
use nlb::rules::{Mode, Protocol, Rule, Rules, Scope};

use super::bed;
use crate::filter::{Capacity, Filter};

/// Steps that the verifier may need: it gives up after a million, and other kernels than this one
/// may need more.
const MOST_STEPS: u64 = 250_000;

#[test]
fn every_variant_of_the_program_is_taken_by_the_verifier_with_room_to_spare() {
    for variant in 0..16 {
        let policy = Policy {
            echo: if variant & 1 == 0 { Echo::One } else { Echo::All },
            track: variant & 2 != 0,
            udp_pin: variant & 4 != 0,
            ..bed::policy(if variant & 8 == 0 { Rules::none() } else { most_ranges() })
        };
        let capacity = Capacity { flows: 64, fragments: 64 };
        let Some(filter) = bed::opened(Filter::open(&policy, capacity)) else { return };
        let steps = steps(filter.program());
        eprintln!("variant {variant}: {steps} steps");
        assert!(steps < MOST_STEPS, "variant {variant}: {steps} steps of the verifier");
    }
}

/// What the kernel says of its verification.
fn steps(program: &Program) -> u64 {
    let path = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
    let text = std::fs::read_to_string(path).expect("our own descriptor");
    let line = text.lines().find_map(|line| line.strip_prefix("verified_insns:"));
    line.expect("since kernel 5.16").trim().parse().expect("a number")
}

/// As many ranges as there may be.
fn most_ranges() -> Rules {
    let rule = |place: u16| Rule {
        scope: Scope::All,
        protocol: Protocol::Tcp,
        first_port: 1000 * place,
        last_port: 1000 * place + 999,
        mode: Mode::Disabled,
    };
    Rules::new((0..32).map(rule).collect()).expect("right rules")
}

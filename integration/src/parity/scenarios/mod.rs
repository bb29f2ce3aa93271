//! The scenarios that are compared, by name.

mod clients;
mod errors;
mod fragments;
mod fwmark;
mod hashing;
mod packets;
mod persistence;
mod rules;
mod schedulers;
mod sctp;
mod sctp_states;
mod sip;
mod states;

use std::time::Duration;

use super::step::{Scenario, Step};

/// All of them.
pub fn all() -> Vec<Scenario> {
    [
        schedulers::all(),
        hashing::all(),
        packets::all(),
        states::all(),
        errors::all(),
        fragments::all(),
        sctp::all(),
        sctp_states::all(),
        persistence::all(),
        fwmark::all(),
        sip::all(),
    ]
    .concat()
}

/// The one called `name`.
pub fn find(name: &str) -> Option<Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}

/// Waits until the kernel's counters show all packets: it adds them up every two seconds.
fn settle() -> Step {
    Step::Wait(Duration::from_millis(2500))
}

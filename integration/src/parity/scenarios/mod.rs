//! The scenarios that are compared, by name.

mod cache_bypass;
mod clients;
mod errors;
mod fragments;
mod ftp;
mod ftp_cases;
mod ftp_services;
mod fwmark;
mod hashing;
mod icmp_settings;
mod one_packet;
mod overlaps;
mod packets;
mod persistence;
mod rules;
mod schedulers;
mod sctp;
mod sctp_states;
mod settings;
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
        ftp::all(),
        ftp_services::all(),
        errors::all(),
        fragments::all(),
        overlaps::all(),
        sctp::all(),
        sctp_states::all(),
        settings::all(),
        icmp_settings::all(),
        persistence::all(),
        fwmark::all(),
        cache_bypass::all(),
        one_packet::all(),
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

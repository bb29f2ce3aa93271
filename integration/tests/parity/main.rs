//! Switchyard against the kernel: the same packets to both, and the same answers from both.
//!
//! The same kernel is a real server as well (`real_server`): it has devices for tunnels.
//!
//! Each scenario is described in `integration/src/parity/scenarios/` and can be watched with
//! `cargo xtask parity SCENARIO`. One test per scenario; `docs/parity.md` has a row for each.

mod by_address;
mod by_load;
mod exceptions;
mod ftp;
mod fwmark;
mod kernel_host;
mod one_packet;
mod packets;
mod persistence;
mod real_server;
mod sctp;
mod settings;
mod states;

use integration::parity::{run, scenarios};

/// Whether the comparison can be made here; says why not.
fn possible() -> bool {
    match integration::lab::supported().and_then(|()| integration::kernel_host::supported()) {
        Ok(()) => true,
        Err(reason) => {
            eprintln!("skipped: {reason:#}");
            false
        }
    }
}

/// Runs the scenario; both sides have to do the same.
fn assert_equal(name: &str) {
    if !possible() {
        return;
    }
    let scenario = scenarios::find(name).expect("there is such a scenario");
    let report = run(&scenario).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(report.is_equal(), "{report}\n(cargo xtask parity {name} shows both sides)");
}

/// Tests by scenario, and their names for the test that none is missing.
macro_rules! same {
    ($($test:ident: $scenario:literal,)*) => {
        $(
            #[test]
            fn $test() {
                crate::assert_equal($scenario);
            }
        )*

        /// The scenarios that this file tests.
        pub(crate) const SCENARIOS: &[&str] = &[$($scenario),*];
    };
}
use same;

#[test]
fn every_scenario_is_tested_quick() {
    let mut tested: Vec<&str> = [
        by_address::SCENARIOS,
        by_load::SCENARIOS,
        exceptions::SCENARIOS,
        fwmark::SCENARIOS,
        ftp::SCENARIOS,
        packets::SCENARIOS,
        persistence::SCENARIOS,
        sctp::SCENARIOS,
        settings::SCENARIOS,
        states::SCENARIOS,
        one_packet::SCENARIOS,
    ]
    .concat();
    tested.sort_unstable();
    let all = scenarios::all();
    let mut wanted: Vec<&str> = all.iter().map(|scenario| scenario.name.as_str()).collect();
    wanted.sort_unstable();
    assert_eq!(tested, wanted);
}

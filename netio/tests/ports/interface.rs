//! What the interface module says of a veth.

use std::thread;
use std::time::{Duration, Instant};

use netio::interface::{self, Queues, State};

use crate::frames::PATIENCE;
use crate::lab;

#[test]
fn a_veth_tells_its_queues_mtu_address_and_state() {
    lab::alone(|| {
        lab::veth("swi0", "swi1", 3);
        assert_eq!(interface::queues("swi0").unwrap(), Queues { receive: 3, transmit: 3 });
        assert_eq!(interface::mtu("swi0").unwrap(), 1500);
        lab::set_mtu("swi0", 9000);
        assert_eq!(interface::mtu("swi0").unwrap(), 9000);
        let (ours, peers) = (interface::mac("swi0").unwrap(), interface::mac("swi1").unwrap());
        assert!(ours != peers && ours[0] & 1 == 0, "{ours:?} {peers:?}");
        becomes(State::Up);
        lab::down("swi1");
        becomes(State::NoCarrier);
        lab::down("swi0");
        becomes(State::Down);
    });
}

/// The kernel notices a change of carrier within about a second.
fn becomes(wanted: State) {
    let start = Instant::now();
    while interface::state("swi0").unwrap() != wanted {
        assert!(start.elapsed() < PATIENCE, "never {wanted:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

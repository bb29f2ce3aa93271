//! What is not for a service goes up to the kernel as it came, and what an AF_PACKET port sees of
//! other traffic is left alone.

use std::sync::Arc;

use arc_swap::ArcSwap;
use director::control::api::{Forwarding, Protocol};
use director::steer::{KeySet, Mark};
use director::worker::Filter;

use crate::bed::{Bed, CLIENT, Options, VIP, at};
use crate::frames::{ACK, SYN, tcp, udp};

#[test]
fn the_kernel_gets_every_byte_of_what_is_not_for_a_service() {
    let mut bed = Bed::new(1);
    bed.serve(Protocol::Tcp, VIP, &["10.77.0.11:80"], Forwarding::Nat);
    let mut arp = vec![0xff; 60];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let frames = [
        arp,
        udp(at(CLIENT), at(VIP)),
        tcp(at(CLIENT), at("192.0.2.10:22"), SYN),
        tcp(at(CLIENT), at(VIP), ACK),
    ];
    for frame in &frames {
        assert!(bed.request(0, frame).is_empty());
    }
    assert_eq!(*bed.hands[0].passed.lock().unwrap(), frames);
    assert_eq!(bed.count(0, "passed_not_ip"), 1);
    assert_eq!(bed.count(0, "passed_no_service"), 2);
    assert_eq!(bed.count(0, "passed_no_connection"), 1);
}

#[test]
fn a_kernel_that_takes_nothing_is_a_counted_drop_and_not_a_pass() {
    let mut bed = Bed::with(vec![Options { deaf_kernel: true, ..Options::default() }]);
    bed.request(0, &udp(at(CLIENT), at(VIP)));
    assert_eq!((bed.count(0, "pass_failed"), bed.count(0, "passed_no_service")), (1, 0));
    // A port without an upcall is no better.
    bed.reply(0, &udp(at(CLIENT), at(VIP)));
    assert_eq!(bed.count(0, "pass_failed"), 2);
}

#[test]
fn a_filtered_port_takes_what_is_steered_and_not_what_bears_our_mark() {
    let mut keys = KeySet::new();
    keys.add_service(6, at(VIP).ip(), 80);
    let mark = Mark([2, 1, 1, 1, 1, 1]);
    let filter = Filter { keys: Arc::new(ArcSwap::from_pointee(keys)), mark: Some(mark) };
    let mut bed = Bed::with(vec![Options { filter: Some(filter), ..Options::default() }]);
    bed.serve(Protocol::Tcp, VIP, &["10.77.0.11:80"], Forwarding::Nat);
    let frame = tcp(at(CLIENT), at(VIP), SYN);
    assert_eq!(bed.request(0, &frame).len(), 1);
    let mut marked = frame;
    marked[6..12].copy_from_slice(&mark.0);
    assert!(bed.request(0, &marked).is_empty());
    assert!(bed.request(0, &udp(at(CLIENT), at(VIP))).is_empty());
    assert!(bed.hands[0].passed.lock().unwrap().is_empty(), "the kernel has its own copy");
    let counted: u64 = bed.hands[0].status.verdicts.rows().map(|row| row.packets).sum();
    assert_eq!(counted, 1, "what is not ours is not counted either");
}

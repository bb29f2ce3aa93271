//! Nothing is lost and nothing is allocated: what a worker owes its operator.

use std::time::Duration;

use director::control::api::{Forwarding, Protocol};
use director::control::operations::Command;
use netio::CountingAllocator;

use crate::bed::{Bed, CLIENT, CLIENT6, FRAMES, VIP, VIP6, at};
use crate::fragments::{across, in_two};
use crate::frames::{ACK, SYN, SYN_ACK, tcp, udp};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Allocations in `breaths` breaths, each with all of these frames; the buffers go round.
fn allocations(bed: &mut Bed, frames: &[Vec<u8>], breaths: u32) -> u64 {
    let mut counted = 0;
    for _ in 0..breaths {
        let hands = &mut bed.hands[0];
        for frame in frames {
            assert!(hands.front.inject(frame, None));
        }
        bed.now += Duration::from_millis(7);
        let before = CountingAllocator::allocations();
        assert_eq!(hands.worker.breath(bed.now).unwrap(), frames.len());
        counted += CountingAllocator::allocations() - before;
        for wire in [&hands.front, &hands.back] {
            while let Some(packet) = wire.collect() {
                wire.recycle(packet);
            }
        }
    }
    counted
}

#[test]
fn an_established_packet_allocates_nothing_by_any_method_in_either_family() {
    for (forwarding, vip, client, real) in [
        (Forwarding::Nat, VIP, CLIENT, "10.77.0.11:80"),
        (Forwarding::Nat, VIP6, CLIENT6, "[fd77::11]:80"),
        (Forwarding::Tunnel, VIP, CLIENT, "10.77.0.12:80"),
        (Forwarding::Tunnel, VIP6, CLIENT6, "[fd77::12]:80"),
        (Forwarding::Direct, VIP, CLIENT, "10.77.0.13:80"),
        (Forwarding::Direct, VIP6, CLIENT6, "[fd77::13]:80"),
    ] {
        let mut bed = Bed::new(1);
        bed.serve(Protocol::Tcp, vip, &[real], forwarding);
        let (client, vip, real) = (at(client), at(vip), at(real));
        bed.request(0, &tcp(client, vip, SYN));
        let mut frames = vec![tcp(client, vip, ACK); 32];
        if forwarding == Forwarding::Nat {
            bed.reply(0, &tcp(real, client, SYN_ACK));
            frames.extend(vec![tcp(real, client, ACK); 32]);
        }
        assert!(allocations(&mut bed, &frames, 40) > 0, "the counter counts");
        assert_eq!(allocations(&mut bed, &frames, 200), 0, "{forwarding:?} {vip}");
        let sent = bed.hands[0].status.verdicts.rows().take(4).map(|row| row.packets).sum::<u64>();
        assert!(sent >= 240 * frames.len() as u64, "packets did pass: {sent}");
    }
}

#[test]
fn passing_dropping_and_answering_allocate_nothing_either() {
    let mut bed = Bed::new(1);
    bed.serve(Protocol::Udp, VIP, &[], Forwarding::Nat);
    // One client may hear of more than one error a second here.
    let settings = [("icmp_ratelimit".to_owned(), 0)].into();
    bed.table.change(Command::SetSettings { settings }, bed.now).unwrap();
    let mut cut = udp(at(CLIENT), at(VIP));
    cut.truncate(30);
    let frames = [vec![udp(at(CLIENT), at(VIP)); 4], vec![cut; 4]].concat();
    allocations(&mut bed, &frames, 20);
    assert_eq!(allocations(&mut bed, &frames, 100), 0);
    assert!(bed.count(0, "icmp_sent") > 100 && bed.count(0, "truncated") == 480);
}

#[test]
fn fragments_allocate_nothing_whether_they_fit_or_not() {
    let [first, second] = in_two();
    for (frames, label) in [
        (vec![first.clone(), second.clone()], "sent_nat"),
        (vec![first.clone(), first.clone(), second.clone()], "fragment_duplicate"),
        (vec![first, across(), second], "fragment_overlap"),
    ] {
        let mut bed = Bed::new(1);
        bed.serve(Protocol::Udp, VIP, &["10.77.0.11:80"], Forwarding::Nat);
        allocations(&mut bed, &frames, 40);
        assert_eq!(allocations(&mut bed, &frames, 200), 0, "{label}");
        assert!(bed.count(0, label) >= 240, "{label}");
    }
}

#[test]
fn every_packet_is_in_exactly_one_counter() {
    let mut bed = Bed::new(1);
    bed.serve(Protocol::Tcp, VIP, &["10.77.0.11:80", "10.77.0.99:80"], Forwarding::Nat);
    let mut injected = 0;
    for port in 1001..=1500 {
        let client = at(&format!("198.51.100.7:{port}"));
        for frame in [
            tcp(client, at(VIP), SYN),
            tcp(client, at("192.0.2.10:81"), SYN),
            tcp(client, at(VIP), ACK)[..40].to_vec(),
        ] {
            bed.request(0, &frame);
            injected += 1;
        }
    }
    let waiting = bed.hands[0].worker.frames().waiting as u64;
    assert_eq!(waiting, 250, "round robin sent half of them to the silent server");
    let counted: u64 = bed.hands[0].status.verdicts.rows().map(|row| row.packets).sum();
    assert_eq!(counted + waiting, injected);
    bed.wait(Duration::from_secs(4));
    let counted: u64 = bed.hands[0].status.verdicts.rows().map(|row| row.packets).sum();
    assert_eq!(counted, injected);
    assert_eq!(bed.hands[0].worker.frames().free, FRAMES as usize);
    assert_eq!(bed.hands[0].status.lost_frames(), 0);
    let ports = bed.hands[0].status.ports();
    assert_eq!((ports[0].counters.received, ports[1].counters.transmitted), (injected, 250));
}

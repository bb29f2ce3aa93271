//! The packet path allocates nothing once it is warm: counted by the allocator itself.

use std::time::{Duration, Instant};

use netio::{CountingAllocator, MemoryPort, PacketOptions, PacketPort, Pool, Port, XskPort};

use crate::frames::{filled, numbered};
use crate::program::{NATIVE, Redirect};
use crate::{lab, xsk};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Sends 32 frames from one port to the other, as workers do.
fn breath(
    batch: &mut Vec<netio::Frame>,
    bytes: &[u8],
    (from, from_pool): (&mut impl Port, &mut Pool),
    (to, to_pool): (&mut impl Port, &mut Pool),
) -> usize {
    batch.extend((0..32).map(|_| filled(from_pool, bytes)));
    from.transmit(from_pool, batch).unwrap();
    from.flush(from_pool).unwrap();
    let mut received = 0;
    let start = Instant::now();
    while received < 32 && start.elapsed() < Duration::from_millis(100) {
        received += to.receive(to_pool, batch, 64).unwrap();
        to.flush(to_pool).unwrap();
        batch.drain(..).for_each(|frame| to_pool.release(frame));
    }
    received
}

fn allocates_nothing(
    (from, from_pool): (&mut impl Port, &mut Pool),
    (to, to_pool): (&mut impl Port, &mut Pool),
) {
    let bytes = numbered(1, 200);
    // Packets of two breaths can come in one, when the machine is busy.
    let mut batch = Vec::with_capacity(128);
    let mut before = 0;
    let mut received = 0;
    for round in 0..20 {
        if round == 10 {
            before = CountingAllocator::allocations();
        }
        received += breath(&mut batch, &bytes, (from, from_pool), (to, to_pool));
    }
    assert!(before > 0, "the counter counts");
    assert_eq!(CountingAllocator::allocations() - before, 0);
    assert!(received >= 600, "packets did pass: {received}");
}

#[test]
fn a_warm_breath_between_memory_ports_allocates_nothing() {
    let (mut left, mut right) = MemoryPort::pair(64);
    let (mut here, mut there) = (xsk::pool(), xsk::pool());
    allocates_nothing((&mut left, &mut here), (&mut right, &mut there));
}

#[test]
fn a_warm_breath_between_sockets_allocates_nothing() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let (mut here, mut there) = (xsk::pool(), xsk::pool());
        let mut port = XskPort::open(&mut here, xsk::options("sw0", 0)).unwrap();
        let redirect = Redirect::attach(port.interface_index(), NATIVE);
        redirect.set(0, port.fd());
        let mut peer = PacketPort::open(PacketOptions::new("sw1")).unwrap();
        allocates_nothing((&mut peer, &mut there), (&mut port, &mut here));
        allocates_nothing((&mut port, &mut here), (&mut peer, &mut there));
    });
}

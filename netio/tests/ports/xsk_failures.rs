//! What an AF_XDP port does when it cannot have what it wants.

use std::time::{Duration, Instant};

use netio::{Bind, InterfaceError, OpenError, PacketOptions, PacketPort, PartialChecksum, Pool};
use netio::{Port, Rings, XskOptions, XskPort};

use crate::frames::{collect, filled, number, numbered};
use crate::lab;
use crate::xsk::{options, pool};

#[test]
fn zero_copy_on_a_veth_is_refused_with_the_remedy_and_leaves_nothing_behind() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let mut pool = pool();
        let wanted = XskOptions { mode: Bind::ZeroCopy, ..options("sw0", 0) };
        let refused = XskPort::open(&mut pool, wanted).unwrap_err();
        assert!(matches!(refused, OpenError::ZeroCopyUnsupported { .. }), "{refused}");
        assert!(refused.to_string().contains("copy mode"), "{refused}");
        assert_eq!(pool.available(), pool.capacity());
        XskPort::open(&mut pool, options("sw0", 0)).unwrap();
    });
}

#[test]
fn a_queue_that_another_has_is_waited_for_and_then_reported() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let (mut first, mut second) = (pool(), pool());
        let port = XskPort::open(&mut first, options("sw0", 0)).unwrap();
        let start = Instant::now();
        let refused = XskPort::open(&mut second, options("sw0", 0)).unwrap_err();
        assert!(matches!(refused, OpenError::Busy { .. }), "{refused}");
        let waited = start.elapsed();
        assert!(
            waited > Duration::from_millis(800) && waited < Duration::from_secs(3),
            "{waited:?}"
        );
        assert_eq!(second.available(), second.capacity());
        let again = XskPort::open(&mut first, options("sw0", 0)).unwrap_err();
        assert!(matches!(again, OpenError::Busy { .. }), "same pool: {again}");
        // The kernel lets the queue go a little after the socket is closed: no error must come of it.
        port.close(&mut first);
        XskPort::open(&mut second, options("sw0", 0)).unwrap();
    });
}

#[test]
fn a_pool_outlives_its_first_socket_and_is_shared_through_the_others() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 3);
        let mut pool = pool();
        let first = XskPort::open(&mut pool, options("sw0", 0)).unwrap();
        let second = XskPort::open(&mut pool, options("sw0", 1)).unwrap();
        first.close(&mut pool);
        let third = XskPort::open(&mut pool, options("sw0", 2)).unwrap();
        second.close(&mut pool);
        third.close(&mut pool);
        // All are gone: the memory is registered anew.
        let fourth = XskPort::open(&mut pool, options("sw0", 0)).unwrap();
        fourth.close(&mut pool);
        assert_eq!(pool.available(), pool.capacity());
    });
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 2);
        let mut pool = pool();
        let mut refused = |options| XskPort::open(&mut pool, options).unwrap_err();
        assert!(matches!(
            refused(options("sw9", 0)),
            OpenError::Interface(InterfaceError::Missing { .. })
        ));
        assert!(matches!(refused(options("sw0", 2)), OpenError::NoSuchQueue { queues: 2, .. }));
        let odd = XskOptions { rings: Rings { rx: 64, tx: 100 }, ..options("sw0", 0) };
        assert!(matches!(refused(odd), OpenError::RingSize { ring: "TX", size: 100 }));
        let huge = XskOptions { rings: Rings { rx: 8192, tx: 64 }, ..options("sw0", 0) };
        assert!(matches!(refused(huge), OpenError::PoolExhausted { .. }));
        let mut large = Pool::new(512, 8192).unwrap();
        let error = XskPort::open(&mut large, options("sw0", 0)).unwrap_err();
        assert!(matches!(error, OpenError::ChunkSize { chunk_size: 8192 }), "{error}");
        let port = XskPort::open(&mut pool, options("sw0", 0)).unwrap();
        let mixed = XskOptions { mode: Bind::ZeroCopy, ..options("sw0", 1) };
        let error = XskPort::open(&mut pool, mixed).unwrap_err();
        assert!(matches!(error, OpenError::ModeMismatch { .. }), "{error}");
        port.close(&mut pool);
    });
}

#[test]
fn frames_that_the_kernel_would_choke_on_do_not_stop_those_behind_them() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let mut pool = pool();
        let mut port = XskPort::open(&mut pool, options("sw0", 0)).unwrap();
        let mut peer = PacketPort::open(PacketOptions::new("sw1")).unwrap();
        let mut frames = vec![
            filled(&mut pool, &[]),
            filled(&mut pool, &[0; 13]),
            filled(&mut pool, &numbered(0, 60)),
        ];
        let mut beyond = filled(&mut pool, &numbered(1, 60));
        beyond.partial = Some(PartialChecksum { start: 50, offset: 16 });
        frames.push(beyond);
        let mut at_start = filled(&mut pool, &[]);
        pool.reshape(&mut at_start, 0, 60);
        pool.bytes_mut(&mut at_start).copy_from_slice(&numbered(2, 60));
        frames.push(at_start);
        let mut at_end = filled(&mut pool, &[]);
        pool.reshape(&mut at_end, 2048 - 60, 60);
        pool.bytes_mut(&mut at_end).copy_from_slice(&numbered(3, 60));
        frames.push(at_end);
        // Larger than the MTU: the veth drops it, and the chunk still comes back.
        frames.push(filled(&mut pool, &numbered(4, 1792)));
        frames.push(filled(&mut pool, &numbered(5, 1514)));
        port.transmit(&mut pool, &mut frames).unwrap();
        port.flush(&mut pool).unwrap();
        let numbers = collect(&mut peer, &mut Pool::new(64, 2048).unwrap(), 4, number);
        assert_eq!(numbers, [0, 2, 3, 5]);
        assert_eq!(port.counters().transmit_dropped, 3);
        assert_eq!(port.statistics().tx_invalid, 0);
        assert_eq!(pool.available() + port.held().total(), pool.capacity());
    });
}

#[test]
fn an_interface_that_is_off_is_no_error_and_one_that_is_gone_is() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let mut pool = pool();
        let mut port = XskPort::open(&mut pool, options("sw0", 0)).unwrap();
        lab::down("sw0");
        for round in 0..2000 {
            let mut frames = vec![filled(&mut pool, &numbered(round, 60))];
            port.transmit(&mut pool, &mut frames).unwrap();
            port.flush(&mut pool).unwrap();
        }
        assert!(port.counters().transmit_dropped > 0, "the ring has filled up");
        assert_eq!(pool.available() + port.held().total(), pool.capacity());
        lab::up("sw0");
        port.flush(&mut pool).unwrap();
        lab::remove("sw0");
        let outcome = (0..1000).try_for_each(|_| port.flush(&mut pool));
        assert!(outcome.is_err(), "the interface is gone, and nobody has said so");
        port.close(&mut pool);
        assert_eq!(pool.available(), pool.capacity());
    });
}

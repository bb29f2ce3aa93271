//! Both ends of a ring in memory: no kernel, no root.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

const OFFSETS: libc::xdp_ring_offset =
    libc::xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };

/// The two ends of a ring whose cursors begin at `cursor`.
fn pair(size: u32, cursor: u32) -> (Producer<u64>, Consumer<u64>) {
    let len = OFFSETS.desc as usize + size as usize * size_of::<u64>();
    let mapping = Arc::new(Mapping::anonymous(len).unwrap());
    let ring = || Ring::new(Arc::clone(&mapping), &OFFSETS, size);
    let start = ring();
    Ring::<u64>::word(&start.producer).store(cursor, Ordering::Relaxed);
    Ring::<u64>::word(&start.consumer).store(cursor, Ordering::Relaxed);
    (Producer::new(ring()), Consumer::new(ring()))
}

fn drain(consumer: &mut Consumer<u64>) -> Vec<u64> {
    let entries = std::iter::from_fn(|| consumer.pop()).collect();
    consumer.release();
    entries
}

#[test]
fn an_empty_ring_has_nothing_to_pop() {
    let (mut producer, mut consumer) = pair(4, 0);
    assert_eq!(consumer.pop(), None);
    assert_eq!((producer.room(), producer.unconsumed()), (4, 0));
}

#[test]
fn what_is_not_published_is_not_seen() {
    let (mut producer, mut consumer) = pair(4, 0);
    assert!(producer.push(1));
    assert_eq!(consumer.pop(), None);
    producer.publish();
    assert_eq!(consumer.pop(), Some(1));
}

#[test]
fn a_full_ring_refuses_and_loses_nothing() {
    let (mut producer, mut consumer) = pair(4, 0);
    for entry in 0..4 {
        assert!(producer.push(entry));
    }
    assert!(!producer.push(99));
    producer.publish();
    assert!(!producer.push(99));
    assert_eq!(drain(&mut consumer), [0, 1, 2, 3]);
    assert_eq!(producer.room(), 4);
}

#[test]
fn a_popped_place_is_not_overwritten_before_its_release() {
    let (mut producer, mut consumer) = pair(2, 0);
    assert!(producer.push(1) && producer.push(2));
    producer.publish();
    assert_eq!(consumer.pop(), Some(1));
    assert!(!producer.push(3));
    consumer.release();
    assert!(producer.push(3));
    producer.publish();
    assert_eq!(drain(&mut consumer), [2, 3]);
}

#[test]
fn cursors_run_past_two_to_the_thirty_two() {
    let (mut producer, mut consumer) = pair(8, u32::MAX - 11);
    let mut seen = Vec::new();
    for round in 0..8_u64 {
        for entry in 0..5 {
            assert!(producer.push(round * 5 + entry));
        }
        producer.publish();
        assert_eq!(producer.unconsumed(), 5);
        seen.extend(drain(&mut consumer));
    }
    assert_eq!(seen, (0..40).collect::<Vec<_>>());
    assert!(Ring::<u64>::word(&producer.0.producer).load(Ordering::Relaxed) < 100, "has wrapped");
}

#[test]
fn a_full_ring_is_full_also_across_the_wrap() {
    let (mut producer, mut consumer) = pair(4, u32::MAX - 1);
    for entry in 0..4 {
        assert!(producer.push(entry));
    }
    assert!(!producer.push(4));
    producer.publish();
    assert_eq!(producer.unconsumed(), 4);
    assert_eq!(drain(&mut consumer), [0, 1, 2, 3]);
}

#[test]
fn the_wakeup_flag_is_read_from_the_ring() {
    let (producer, _consumer) = pair(4, 0);
    assert!(!producer.needs_wakeup());
    let flags = Ring::<u64>::word(&producer.0.flags);
    flags.store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
    assert!(producer.needs_wakeup());
    flags.store(!libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
    assert!(!producer.needs_wakeup());
}

#[test]
fn entries_cross_threads_whole_and_in_order() {
    const COUNT: u64 = 50_000;
    let (mut producer, mut consumer) = pair(64, u32::MAX - 1000);
    let sender = std::thread::spawn(move || {
        let mut next = 0;
        while next < COUNT {
            if producer.push(next | next << 32) {
                next += 1;
            } else {
                std::thread::yield_now();
            }
            producer.publish();
        }
    });
    let mut next = 0;
    while next < COUNT {
        match consumer.pop() {
            Some(entry) => {
                assert_eq!(entry, next | next << 32);
                next += 1;
            }
            None => std::thread::yield_now(),
        }
        consumer.release();
    }
    sender.join().unwrap();
}

proptest! {
    #[test]
    fn any_interleaving_is_a_bounded_queue(
        cursor in any::<u32>(),
        steps in prop::collection::vec((0_u32..6, any::<bool>()), 1..300),
    ) {
        let (mut producer, mut consumer) = pair(8, cursor);
        let mut queue = std::collections::VecDeque::new();
        let mut next = 0_u64;
        for (count, pushes) in steps {
            for _ in 0..count {
                if pushes {
                    prop_assert_eq!(producer.push(next), queue.len() < 8);
                    if queue.len() < 8 {
                        queue.push_back(next);
                        next += 1;
                    }
                } else {
                    prop_assert_eq!(consumer.pop(), queue.pop_front());
                }
            }
            producer.publish();
            consumer.release();
        }
    }
}

//! What a pool promises: chunks are neither lost nor given twice, and frames do not overlap.

use proptest::prelude::*;

use super::*;

fn filled(pool: &mut Pool, content: &[u8]) -> Frame {
    let mut frame = pool.allocate().unwrap();
    let start = frame.start();
    pool.reshape(&mut frame, start, content.len());
    pool.bytes_mut(&mut frame).copy_from_slice(content);
    frame
}

#[test]
fn a_new_frame_is_empty_and_has_headroom() {
    let mut pool = Pool::new(2, 2048).unwrap();
    let frame = pool.allocate().unwrap();
    assert_eq!((frame.start(), frame.len(), frame.is_empty()), (HEADROOM as usize, 0, true));
    assert_eq!(frame.partial, None);
    pool.release(frame);
}

#[test]
fn an_exhausted_pool_says_so_and_recovers() {
    let mut pool = Pool::new(2, 2048).unwrap();
    let (a, b) = (pool.allocate().unwrap(), pool.allocate().unwrap());
    assert_eq!(pool.allocate(), None);
    assert_eq!(pool.available(), 0);
    pool.release(a);
    assert_eq!(pool.available(), 1);
    let c = pool.allocate().unwrap();
    pool.release(b);
    pool.release(c);
    assert_eq!(pool.available(), pool.capacity());
}

#[test]
fn sizes_that_are_no_power_of_two_or_out_of_range_are_refused() {
    for (chunks, size) in [(0, 2048), (1, 1024), (1, 3000), (1, 131_072), (1, 0)] {
        let refused = Pool::new(chunks, size).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{chunks} x {size}");
    }
    for size in [2048, 4096, 65536] {
        assert_eq!(Pool::new(1, size).unwrap().chunk_size(), size as usize);
    }
}

#[test]
fn a_frame_grows_into_its_headroom_without_moving_its_bytes() {
    let mut pool = Pool::new(1, 2048).unwrap();
    let mut frame = filled(&mut pool, b"payload");
    let start = frame.start();
    pool.reshape(&mut frame, start - 4, 4 + 7);
    pool.bytes_mut(&mut frame)[..4].copy_from_slice(b"head");
    assert_eq!(pool.bytes(&frame), b"headpayload");
    assert_eq!(&pool.chunk_mut(&mut frame)[start..start + 7], b"payload");
    pool.release(frame);
}

#[test]
fn a_duplicate_has_its_own_bytes() {
    let mut pool = Pool::new(2, 2048).unwrap();
    let mut frame = filled(&mut pool, b"one");
    frame.partial = Some(PartialChecksum { start: 34, offset: 16 });
    let copy = pool.duplicate(&frame).unwrap();
    assert_eq!(copy.partial, frame.partial);
    pool.bytes_mut(&mut frame).copy_from_slice(b"two");
    assert_eq!(pool.bytes(&copy), b"one");
    assert_eq!(pool.duplicate(&frame), None);
    pool.release(frame);
    pool.release(copy);
}

#[test]
#[should_panic(expected = "not within a chunk")]
fn a_frame_cannot_be_shaped_past_its_chunk() {
    let mut pool = Pool::new(2, 2048).unwrap();
    let mut frame = pool.allocate().unwrap();
    pool.reshape(&mut frame, 2000, 49);
}

#[test]
#[should_panic(expected = "not of")]
fn a_frame_of_another_pool_cannot_reach_this_ones_memory() {
    let mut pool = Pool::new(1, 2048).unwrap();
    let mut other = Pool::new(1, 2048).unwrap();
    let mut frame = other.allocate().unwrap();
    let _ = pool.bytes_mut(&mut frame);
}

#[test]
#[should_panic(expected = "not of")]
fn a_frame_of_another_pool_cannot_be_released_here() {
    let mut pool = Pool::new(1, 2048).unwrap();
    let frame = Pool::new(1, 2048).unwrap().allocate().unwrap();
    pool.release(frame);
}

proptest! {
    /// Each held frame carries its own number from edge to edge of the chunk; if two frames ever
    /// shared a byte, or a chunk were lost or doubled, a later check would see it.
    #[test]
    fn chunks_are_neither_lost_nor_shared(steps in prop::collection::vec((any::<bool>(), any::<usize>()), 1..200)) {
        let mut pool = Pool::new(16, 2048).unwrap();
        let mut held: Vec<(u8, Frame)> = Vec::new();
        for (number, (take, which)) in steps.into_iter().enumerate() {
            let number = number as u8;
            if take {
                match pool.allocate() {
                    Some(mut frame) => {
                        pool.chunk_mut(&mut frame).fill(number);
                        held.push((number, frame));
                    }
                    None => prop_assert_eq!(held.len(), pool.capacity()),
                }
            } else if !held.is_empty() {
                let (_, frame) = held.swap_remove(which % held.len());
                pool.release(frame);
            }
            prop_assert_eq!(pool.available() + held.len(), pool.capacity());
            for (number, frame) in &mut held {
                let size = pool.chunk_size();
                pool.reshape(frame, 0, size);
                prop_assert!(pool.bytes(frame).iter().all(|byte| byte == number));
            }
        }
        for (_, frame) in held {
            pool.release(frame);
        }
        prop_assert_eq!(pool.available(), pool.capacity());
    }
}

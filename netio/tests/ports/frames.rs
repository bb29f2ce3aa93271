//! Frames to send and to recognise, and the two things that tests do with ports.

use std::time::{Duration, Instant};

use netio::{Frame, PartialChecksum, Pool, Port};

/// How long a packet may be on its way before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// What the experimental ethertype 0x88b5 marks: frames of ours that no kernel answers.
pub(crate) const MARK: [u8; 2] = [0x88, 0xb5];

/// An Ethernet frame of `len` bytes with `number` in it.
pub(crate) fn numbered(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xff; 6];
    bytes.extend([2, 0, 0, 0, 0, 1]);
    bytes.extend(MARK);
    bytes.extend(number.to_be_bytes());
    bytes.resize(len, number as u8);
    bytes
}

/// The number in a frame of `numbered`, whose other bytes are checked too.
pub(crate) fn number(bytes: &[u8]) -> Option<u32> {
    if bytes.get(12..14)? != MARK {
        return None;
    }
    let number = u32::from_be_bytes(bytes.get(14..18)?.try_into().ok()?);
    assert_eq!(bytes, numbered(number, bytes.len()), "bytes have changed on the way");
    Some(number)
}

/// A frame of the pool with `bytes` in it.
pub(crate) fn filled(pool: &mut Pool, bytes: &[u8]) -> Frame {
    let mut frame = pool.allocate().expect("a free chunk");
    let start = frame.start();
    pool.reshape(&mut frame, start, bytes.len());
    pool.bytes_mut(&mut frame).copy_from_slice(bytes);
    frame
}

/// Transmits and flushes.
pub(crate) fn send(port: &mut impl Port, pool: &mut Pool, bytes: &[Vec<u8>]) {
    let mut frames = bytes.iter().map(|bytes| filled(pool, bytes)).collect();
    port.transmit(pool, &mut frames).unwrap();
    port.flush(pool).unwrap();
    assert!(frames.is_empty());
}

/// Receives until `wanted` frames of those that `which` picks have come, and a little longer, in
/// case there are too many.
pub(crate) fn collect<T>(
    port: &mut impl Port,
    pool: &mut Pool,
    wanted: usize,
    mut which: impl FnMut(&[u8]) -> Option<T>,
) -> Vec<T> {
    let mut found = Vec::new();
    let mut batch = Vec::new();
    let mut deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if port.receive(pool, &mut batch, 64).unwrap() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        for frame in batch.drain(..) {
            found.extend(which(pool.bytes(&frame)));
            pool.release(frame);
        }
        port.flush(pool).unwrap();
        if found.len() >= wanted {
            deadline = deadline.min(Instant::now() + Duration::from_millis(20));
        }
    }
    found
}

/// Where an IPv4 TCP or UDP checksum is, if the frame has only the pseudo-header's sum in it: as
/// frames look that the kernel of a veth's other end has sent.
pub(crate) fn partial(bytes: &[u8]) -> Option<PartialChecksum> {
    let offset = match (bytes.get(12..14)?, bytes.get(23)?) {
        ([0x08, 0x00], 6) => 16,
        ([0x08, 0x00], 17) => 6,
        _ => return None,
    };
    let length = u16::from_be_bytes([bytes[16], bytes[17]]) - 20;
    let addresses =
        bytes[26..34].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum = addresses.sum::<u32>() + u32::from(bytes[23]) + u32::from(length);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let field = 34 + usize::from(offset);
    let is_partial = u32::from(u16::from_be_bytes([bytes[field], bytes[field + 1]])) == sum;
    is_partial.then_some(PartialChecksum { start: 34, offset })
}

/// Swaps the MAC addresses, the IPv4 addresses and the ports: the packet goes back as an answer.
/// None of it changes a checksum.
pub(crate) fn turn_around(bytes: &mut [u8]) {
    for (one, other, len) in [(0, 6, 6), (26, 30, 4), (34, 36, 2)] {
        for byte in 0..len {
            bytes.swap(one + byte, other + byte);
        }
    }
}

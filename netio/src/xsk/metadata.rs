//! Frames into TX descriptors, with the request that the kernel complete a checksum.
//!
//! A descriptor that the kernel does not like stops the whole TX ring (a bad checksum request is
//! retried for ever) or is swallowed without a completion (a bad length): nothing may get into the
//! ring that has not been checked here. See `xsk_skb_metadata()` and `xp_aligned_validate_desc()`
//! in net/xdp of Linux 6.18, and Documentation/networking/xsk-tx-metadata.rst.

use crate::{Frame, PartialChecksum, Pool, complete_checksum};

/// Bytes before a frame that hold a request: flags, checksum start and offset, launch time.
pub(crate) const METADATA: u32 = 24;

/// Without an Ethernet header it is not a frame.
const SHORTEST: usize = 14;

/// What the kernel takes on a TX ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxFormat {
    /// Whether the UMEM was registered with [`METADATA`]; then *every* frame needs that many bytes
    /// before it in its chunk, with or without a request in them.
    pub(crate) reserve: bool,
    /// Whether a request to complete a checksum is understood.
    pub(crate) completes: bool,
}

impl TxFormat {
    /// The descriptor for `frame`, or `None` when it cannot be sent. May move the frame in its
    /// chunk; completes its checksum here when the kernel will not.
    pub(crate) fn describe(self, pool: &mut Pool, frame: &mut Frame) -> Option<libc::xdp_desc> {
        let reserve = if self.reserve { METADATA as usize } else { 0 };
        if frame.len() < SHORTEST {
            return None;
        }
        if frame.start() < reserve {
            make_room(pool, frame, reserve)?;
        }
        let options = match frame.partial {
            None => 0,
            Some(partial) if self.completes => {
                let field = usize::from(partial.start) + usize::from(partial.offset);
                if field + 2 > frame.len() {
                    return None;
                }
                let start = frame.start();
                let space = &mut pool.chunk_mut(frame)[start - METADATA as usize..start];
                space.copy_from_slice(&request(partial));
                libc::XDP_TX_METADATA
            }
            Some(partial) => {
                if !complete_checksum(pool.bytes_mut(frame), partial) {
                    return None;
                }
                0
            }
        };
        let addr = u64::from(frame.chunk()) * pool.chunk_size() as u64 + frame.start() as u64;
        Some(libc::xdp_desc { addr, len: frame.len() as u32, options })
    }
}

/// Moves a frame that has eaten up its headroom to `start`.
fn make_room(pool: &mut Pool, frame: &mut Frame, start: usize) -> Option<()> {
    let (old, len) = (frame.start(), frame.len());
    if len > pool.chunk_size() - start {
        return None;
    }
    pool.chunk_mut(frame).copy_within(old..old + len, start);
    pool.reshape(frame, start, len);
    Some(())
}

/// `struct xsk_tx_metadata` of linux/if_xdp.h.
fn request(partial: PartialChecksum) -> [u8; METADATA as usize] {
    let mut bytes = [0; METADATA as usize];
    bytes[..8].copy_from_slice(&u64::from(libc::XDP_TXMD_FLAGS_CHECKSUM).to_ne_bytes());
    bytes[8..10].copy_from_slice(&partial.start.to_ne_bytes());
    bytes[10..12].copy_from_slice(&partial.offset.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTIAL: PartialChecksum = PartialChecksum { start: 14, offset: 6 };
    const METADATA_SOCKET: TxFormat = TxFormat { reserve: true, completes: true };

    fn frame(pool: &mut Pool, start: usize, len: usize) -> Frame {
        let mut frame = pool.allocate().unwrap();
        pool.reshape(&mut frame, start, len);
        for (index, byte) in pool.bytes_mut(&mut frame).iter_mut().enumerate() {
            *byte = index as u8;
        }
        frame
    }

    #[test]
    fn the_address_points_at_the_frame_in_its_chunk() {
        let mut pool = Pool::new(3, 2048).unwrap();
        let taken = [pool.allocate().unwrap(), pool.allocate().unwrap()];
        let mut frame = frame(&mut pool, 300, 60);
        let descriptor = METADATA_SOCKET.describe(&mut pool, &mut frame).unwrap();
        assert_eq!((descriptor.addr, descriptor.len, descriptor.options), (2 * 2048 + 300, 60, 0));
        taken.into_iter().chain([frame]).for_each(|frame| pool.release(frame));
    }

    #[test]
    fn a_partial_checksum_is_asked_for_just_before_the_frame() {
        let mut pool = Pool::new(1, 2048).unwrap();
        let mut frame = frame(&mut pool, 256, 60);
        frame.partial = Some(PARTIAL);
        let descriptor = METADATA_SOCKET.describe(&mut pool, &mut frame).unwrap();
        assert_eq!(descriptor.options, libc::XDP_TX_METADATA);
        assert_eq!(pool.bytes(&frame)[20..22], [20, 21], "the field is left alone");
        let request = &pool.chunk_mut(&mut frame)[232..256];
        assert_eq!(request[..8], 2_u64.to_ne_bytes());
        assert_eq!(request[8..10], 14_u16.to_ne_bytes());
        assert_eq!(request[10..12], 6_u16.to_ne_bytes());
        assert_eq!(request[12..], [0; 12]);
        pool.release(frame);
    }

    #[test]
    fn a_checksum_that_the_kernel_will_not_complete_is_completed_here() {
        let mut pool = Pool::new(1, 2048).unwrap();
        let mut frame = frame(&mut pool, 256, 60);
        frame.partial = Some(PARTIAL);
        let before = pool.bytes(&frame).to_vec();
        let format = TxFormat { reserve: true, completes: false };
        assert_eq!(format.describe(&mut pool, &mut frame).unwrap().options, 0);
        let mut expected = before;
        assert!(complete_checksum(&mut expected, PARTIAL));
        assert_eq!(pool.bytes(&frame), expected);
        pool.release(frame);
    }

    #[test]
    fn a_frame_without_headroom_is_moved_when_metadata_needs_it() {
        let mut pool = Pool::new(1, 2048).unwrap();
        let mut frame = frame(&mut pool, 3, 100);
        let before = pool.bytes(&frame).to_vec();
        let descriptor = METADATA_SOCKET.describe(&mut pool, &mut frame).unwrap();
        assert_eq!((descriptor.addr, descriptor.len), (24, 100));
        assert_eq!(pool.bytes(&frame), before);
        pool.release(frame);
    }

    #[test]
    fn what_would_stop_the_ring_is_never_described() {
        let mut pool = Pool::new(1, 2048).unwrap();
        let mut frame = frame(&mut pool, 0, 2040);
        assert!(METADATA_SOCKET.describe(&mut pool, &mut frame).is_none(), "no room to move");
        pool.reshape(&mut frame, 256, 13);
        assert!(METADATA_SOCKET.describe(&mut pool, &mut frame).is_none(), "too short");
        pool.reshape(&mut frame, 256, 21);
        frame.partial = Some(PARTIAL);
        assert!(METADATA_SOCKET.describe(&mut pool, &mut frame).is_none(), "field past the end");
        let software = TxFormat { reserve: false, completes: false };
        assert!(software.describe(&mut pool, &mut frame).is_none(), "field past the end");
        pool.reshape(&mut frame, 256, 22);
        assert!(METADATA_SOCKET.describe(&mut pool, &mut frame).is_some());
        pool.release(frame);
    }
}

//! CRC32c (Castagnoli), the checksum of SCTP (RFC 9260 appendix A).

use crate::wire::{protocol, sctp as wire};
use crate::{Fragment, Headers};

/// The polynomial 0x1edc6f41, its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[n][b]`: what byte `b` does to the remainder when `n` more bytes follow it. Eight tables
/// take eight bytes at once ("slicing by 8").
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = remainder & 1;
            remainder = (remainder >> 1) ^ (POLYNOMIAL * carry);
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut place = 1;
    while place < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[place - 1][byte];
            tables[place][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        place += 1;
    }
    tables
}

/// Takes `bytes` into the remainder.
fn update(remainder: u32, bytes: &[u8]) -> u32 {
    let (chunks, tail) = bytes.as_chunks::<8>();
    let mut remainder = remainder;
    for chunk in chunks {
        let word = (u64::from_le_bytes(*chunk) ^ u64::from(remainder)).to_le_bytes();
        remainder = 0;
        for (byte, table) in word.into_iter().zip(TABLES.iter().rev()) {
            remainder ^= table[usize::from(byte)];
        }
    }
    for byte in tail {
        let index = (remainder as u8) ^ byte;
        remainder = (remainder >> 8) ^ TABLES[0][usize::from(index)];
    }
    remainder
}

/// CRC32c of an SCTP packet (common header and chunks, no IP header), its checksum field counted as
/// 0. Of something shorter than the common header: the CRC of what is there.
pub fn sctp(packet: &[u8]) -> u32 {
    let mut remainder = !0;
    if let Some((ports_and_tag, rest)) = packet.split_at_checked(wire::CHECKSUM)
        && let Some(chunks) = rest.get(4..)
    {
        remainder = update(remainder, ports_and_tag);
        remainder = update(remainder, &[0; 4]);
        remainder = update(remainder, chunks);
    } else {
        remainder = update(remainder, packet);
    }
    !remainder
}

/// Completes the checksum of a whole SCTP packet whose sender left it to hardware. Linux leaves a 0
/// then (`sctp_packet_pack`), which an honest checksum is once in 2^32, and is again when computed.
/// AF_XDP's TX metadata cannot ask for a CRC, so this must be done here. True when the field was 0
/// and has been filled.
pub fn complete_sctp(frame: &mut [u8], headers: &Headers) -> bool {
    if headers.protocol != protocol::SCTP || headers.fragment != Fragment::Whole {
        return false;
    }
    let missing = wire::Header::at(frame, headers.l4).is_some_and(|sctp| sctp.checksum() == 0);
    missing && fill_sctp(frame, headers)
}

/// Computes the checksum of a whole SCTP packet and writes it.
pub(crate) fn fill_sctp(frame: &mut [u8], headers: &Headers) -> bool {
    let Some(packet) = frame.get_mut(headers.l4..headers.end) else {
        return false;
    };
    let checksum = sctp(packet);
    match wire::Header::at_mut(packet, 0) {
        Some(mut header) => {
            header.set_checksum(checksum);
            true
        }
        None => false,
    }
}

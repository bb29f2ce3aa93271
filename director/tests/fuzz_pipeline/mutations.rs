//! What goes wrong on a wire, and what an attacker does on purpose.

use crate::random::Random;

/// Changes a frame; often repairs its IPv4 header checksum, so that the change gets further than
/// the first check.
pub(crate) fn mutate(random: &mut Random, frame: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..1 + random.below(3) {
        change(random, frame, other);
    }
    if random.chance(700) {
        repair(frame);
    }
}

fn change(random: &mut Random, frame: &mut Vec<u8>, other: &[u8]) {
    if frame.is_empty() {
        return frame.extend_from_slice(other);
    }
    // Headers are where it hurts.
    let reach = if random.chance(800) { frame.len().min(80) } else { frame.len() };
    let place = random.below(reach);
    match random.below(9) {
        0 => frame[place] ^= 1 << random.below(8),
        1 => frame[place] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff]),
        2 => frame[place] = random.bits() as u8,
        3 => frame.truncate(place),
        4 => frame.resize((frame.len() + random.below(1500)).min(1792), random.bits() as u8),
        5 => {
            // The tail of another frame.
            frame.truncate(place);
            frame.extend_from_slice(other.get(place..).unwrap_or_default());
        }
        6 => {
            // A length field, a little off.
            let lengths: &[usize] = &[16, 18, 38, 58];
            if let Some(byte) = frame.get_mut(*random.pick(lengths) + 1) {
                *byte = byte.wrapping_add(random.below(9) as u8).wrapping_sub(4);
            }
        }
        7 => {
            // Bytes twice, or bytes missing.
            let end = (place + random.below(24)).min(frame.len());
            if random.chance(500) {
                let piece = frame[place..end].to_vec();
                frame.splice(place..place, piece);
                frame.truncate(1792);
            } else {
                frame.drain(place..end);
            }
        }
        _ => {
            // Version and length, protocol, fragment bits: the fields that decide where to look.
            let fields: &[usize] = &[12, 13, 14, 20, 21, 22, 23, 26, 34, 46, 54];
            if let Some(byte) = frame.get_mut(*random.pick(fields)) {
                *byte = *random.pick(&[0, 1, 4, 6, 17, 41, 43, 44, 50, 58, 60, 0x20, 0x45, 0x4f]);
            }
        }
    }
}

/// Makes the IPv4 header checksum right again, where there is one.
fn repair(frame: &mut [u8]) {
    let l3 = match frame.get(12..14) {
        Some([0x08, 0x00]) => 14,
        Some([0x81, 0x00]) if frame.get(16..18) == Some(&[0x08, 0x00]) => 18,
        _ => return,
    };
    let Some(first) = frame.get(l3) else { return };
    let end = l3 + usize::from(first & 0x0f) * 4;
    if let Some(header) = frame.get_mut(l3..end)
        && header.len() >= 20
    {
        header[10..12].fill(0);
        let checksum = forwarding::checksum::Sum::default().bytes(header).checksum();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

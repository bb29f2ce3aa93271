//! MSS clamping: a SYN tells the other side the largest segment that its sender takes, and we may
//! lower it, so that segments fit a way that is narrower than the sender knows (a tunnel, above
//! all, whose ICMP errors do not always arrive).
//!
//! Knows TCP's options. Must not know the way nor its MTU: [`that_fits`] is for who does.

use crate::checksum::{Delta, Partial};
use crate::wire::{ipv4, ipv6, tcp};
use crate::{Family, Headers};

/// The largest segment whose packet is no longer than `mtu` bytes, without options. Never less than
/// every host takes: 536 over IPv4, 1220 over IPv6 (RFC 9293 section 3.7.1).
///
/// ```
/// use forwarding::{Family, mss};
///
/// assert_eq!(mss::that_fits(Family::V4, 1480), 1440);
/// assert_eq!(mss::that_fits(Family::V6, 1460), 1400);
/// ```
#[inline]
pub fn that_fits(family: Family, mtu: u32) -> u16 {
    let (header, least) = match family {
        Family::V4 => (ipv4::LEN + tcp::LEN, 536),
        Family::V6 => (ipv6::LEN + tcp::LEN, 1220),
    };
    u16::try_from(mtu.saturating_sub(header as u32)).unwrap_or(u16::MAX).max(least)
}

/// Lowers the MSS that a segment with SYN announces to at most `most`; one that is lower stays. A
/// segment without the option is left alone: its sender takes 536 (IPv6: 1220) bytes, and there is
/// no room for one more. Whether something has been changed.
///
/// The checksum follows, unless it is [`Partial`]: then it does not cover the options yet.
pub fn clamp(frame: &mut [u8], headers: &Headers, partial: Option<Partial>, most: u16) -> bool {
    if !headers.is_tcp() || headers.tcp_flags & tcp::SYN == 0 {
        return false;
    }
    let Some(segment) = frame.get_mut(headers.l4..headers.end) else { return false };
    let Some(header_len) = tcp::Header::at(segment, 0).map(|header| header.header_len()) else {
        return false;
    };
    let mut delta = None;
    let mut at = tcp::LEN;
    while let Some(option) = segment.get_mut(at..header_len) {
        at += match *option {
            [] | [tcp::END_OF_OPTIONS, ..] => break,
            [tcp::NO_OPERATION, ..] => 1,
            [tcp::MAXIMUM_SEGMENT_SIZE, 4, ref mut high, ref mut low, ..] => {
                let announced = u16::from_be_bytes([*high, *low]);
                if announced > most {
                    [*high, *low] = most.to_be_bytes();
                    delta = Some(added(delta.unwrap_or_default(), at, announced, most));
                }
                4
            }
            // An option without a length, or that is not even as long as its own two bytes.
            [_] | [_, 0 | 1, ..] => break,
            [_, length, ..] => usize::from(length),
        };
    }
    let Some(delta) = delta else { return false };
    if partial.is_none()
        && let Some(mut header) = tcp::Header::at_mut(segment, 0)
    {
        header.set_checksum(delta.apply(header.checksum()));
    }
    true
}

/// What another value of the option at `at`, an even or odd place, does to the checksum.
fn added(delta: Delta, at: usize, old: u16, new: u16) -> Delta {
    match at % 2 {
        0 => delta.u16(old, new),
        // Its bytes lie in two words of the sum, each in the other half: a ones' complement sum
        // does not tell that from the bytes swapped.
        _ => delta.u16(old.swap_bytes(), new.swap_bytes()),
    }
}

#[cfg(test)]
mod tests;

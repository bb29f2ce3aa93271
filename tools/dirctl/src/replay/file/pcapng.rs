//! pcapng, block by block: sections, interfaces and packets; all else is skipped.

use std::io::Read;
use std::time::Duration;

use super::{Captured, LONGEST, Order, Problem, begin, fill, skip};
use crate::replay::link::Link;

/// Bytes of a block that has no packet, of those that are read and not skipped.
const LONGEST_DESCRIPTION: usize = 65_536;

/// Interfaces of a section at most.
const INTERFACES: usize = 65_536;

/// What a pcapng file says of an interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    /// Its number, if it is none that we know.
    link: Result<Link, u32>,
    /// 0 = no limit.
    snaplen: u32,
    resolution: Resolution,
    /// Seconds to be added.
    offset: u64,
}

/// What a unit of a pcapng time is: 10^-n seconds, or 2^-n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    Decimal(u32),
    Binary(u32),
}

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

pub(super) fn next_block<'a>(
    input: &mut Box<dyn Read>,
    order: &mut Order,
    interfaces: &mut Vec<Interface>,
    packet: &'a mut Vec<u8>,
) -> Result<Option<Captured<'a>>, Problem> {
    loop {
        let mut kind = [0; 4];
        if !begin(input, &mut kind)? {
            return Ok(None);
        }
        if order.word(&kind, 0) == SECTION {
            *order = section(input)?;
            interfaces.clear();
            continue;
        }
        let mut length = [0; 4];
        fill(input, &mut length)?;
        let total = order.word(&length, 0) as usize;
        let Some(body) = total.checked_sub(12).filter(|body| body % 4 == 0) else {
            return Err(Problem::Damaged("a block has a length that cannot be"));
        };
        let kind = order.word(&kind, 0);
        let (most, head) = match kind {
            INTERFACE => (LONGEST_DESCRIPTION, 8),
            ENHANCED_PACKET | OLD_PACKET => (LONGEST + LONGEST_DESCRIPTION, 20),
            SIMPLE_PACKET => (LONGEST + LONGEST_DESCRIPTION, 4),
            _ => {
                skip(input, body + 4)?;
                continue;
            }
        };
        if !(head..=most).contains(&body) {
            return Err(Problem::Damaged("a block has a length that cannot be"));
        }
        packet.resize(body, 0);
        fill(input, packet)?;
        let mut again = [0; 4];
        fill(input, &mut again)?;
        if again != length {
            return Err(Problem::Damaged("a block does not end where it says"));
        }
        if kind == INTERFACE {
            if interfaces.len() >= INTERFACES {
                return Err(Problem::Damaged("it has more interfaces than there can be"));
            }
            interfaces.push(Interface::read(*order, packet));
            continue;
        }
        let bytes: &'a [u8] = packet;
        return packet_of(kind, *order, interfaces, bytes).map(Some);
    }
}

/// The packet in the body of a block.
fn packet_of<'a>(
    kind: u32,
    order: Order,
    interfaces: &[Interface],
    body: &'a [u8],
) -> Result<Captured<'a>, Problem> {
    let word = |at| order.word(body, at);
    let number = match kind {
        ENHANCED_PACKET => word(0) as usize,
        OLD_PACKET => usize::from(order.half(body, 0)),
        _ => 0,
    };
    let of = interfaces.get(number).copied();
    let of = of.ok_or(Problem::Damaged("a packet is of an interface that is not described"))?;
    let link = of.link.map_err(Problem::UnknownLink)?;
    let (time, captured, length, data) = match kind {
        SIMPLE_PACKET => {
            let length = word(0) as usize;
            let limit = if of.snaplen == 0 { length } else { length.min(of.snaplen as usize) };
            // It has no time.
            (Duration::ZERO, limit.min(body.len() - 4), length, &body[4..])
        }
        _ => {
            let units = u64::from(word(4)) << 32 | u64::from(word(8));
            (of.time(units), word(12) as usize, word(16) as usize, &body[20..])
        }
    };
    let bytes = data.get(..captured);
    let bytes = bytes.ok_or(Problem::Damaged("a packet is longer than its block"))?;
    Ok(Captured { time, link, length: length.max(captured), bytes })
}

/// Reads the rest of a section header, of which the type has been read.
pub(super) fn section(input: &mut Box<dyn Read>) -> Result<Order, Problem> {
    let mut head = [0; 8];
    fill(input, &mut head)?;
    let order = match head[4..] {
        [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
        [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
        _ => return Err(Problem::Damaged("a section has no byte order")),
    };
    match (order.word(&head, 0) as usize).checked_sub(12) {
        Some(rest) if rest >= 16 && rest % 4 == 0 => skip(input, rest)?,
        _ => return Err(Problem::Damaged("a section header has a length that cannot be")),
    }
    Ok(order)
}

impl Interface {
    fn read(order: Order, body: &[u8]) -> Interface {
        let number = u32::from(order.half(body, 0));
        let mut interface = Interface {
            link: Link::of(number).ok_or(number),
            snaplen: order.word(body, 4),
            resolution: Resolution::Decimal(6),
            offset: 0,
        };
        let mut options = &body[8..];
        while let Some((head, rest)) = options.split_first_chunk::<4>() {
            let (code, length) = (order.half(head, 0), usize::from(order.half(head, 2)));
            let Some(value) = rest.get(..length).filter(|_| code != 0) else { break };
            match (code, value) {
                (9, [power]) if power & 0x80 == 0 => {
                    interface.resolution = Resolution::Decimal(u32::from(*power));
                }
                (9, [power]) => interface.resolution = Resolution::Binary(u32::from(power & 0x7f)),
                (14, [_, _, _, _, _, _, _, _]) => {
                    let (one, two) = (order.word(value, 0), order.word(value, 4));
                    let (low, high) = if order == Order::Little { (one, two) } else { (two, one) };
                    interface.offset = u64::from(high) << 32 | u64::from(low);
                }
                _ => {}
            }
            options = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        interface
    }

    fn time(&self, units: u64) -> Duration {
        let units = u128::from(units);
        let nanoseconds = match self.resolution {
            Resolution::Decimal(power @ 0..=9) => units * 10_u128.pow(9 - power),
            Resolution::Decimal(power) => {
                units.checked_div(10_u128.pow((power - 9).min(38))).unwrap_or(0)
            }
            Resolution::Binary(power @ 0..=64) => (units * 1_000_000_000) >> power,
            Resolution::Binary(_) => 0,
        };
        let seconds = u64::try_from(nanoseconds / 1_000_000_000).unwrap_or(u64::MAX);
        // An offset may be negative: then it wraps.
        let seconds = seconds.wrapping_add(self.offset);
        Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32)
    }
}

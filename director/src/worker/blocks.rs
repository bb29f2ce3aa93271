//! Ways to clients, by blocks of addresses: nearly all clients of a director are behind one router,
//! and there are too many of them to remember a way for each.

use std::net::IpAddr;

use super::recent::Recent;
use crate::dispatch::established::Exit;

/// Different ways that are told apart; there are hardly ever more than a few.
const WAYS: usize = 1024;

/// What is known of a block of IPv4: nothing.
const UNKNOWN: u16 = 0;
/// Its addresses go different ways.
const MIXED: u16 = 1;
/// From here on: the number of its way.
const FIRST_WAY: u16 = 2;

/// See the module.
pub(super) struct Blocks {
    /// By the first 16 bits of an IPv4 address.
    v4: Box<[u16]>,
    ways: Vec<Exit>,
    /// By the first 48 bits of an IPv6 address.
    v6: Recent<u64, Exit>,
}

impl Blocks {
    pub(super) fn new() -> Blocks {
        Blocks {
            v4: vec![UNKNOWN; 1 << 16].into(),
            ways: Vec::with_capacity(WAYS),
            v6: Recent::new(),
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.v4.fill(UNKNOWN);
        self.ways.clear();
        self.v6.clear();
    }

    /// The way to `client`, if that of its block is known.
    #[inline(always)]
    pub(super) fn get(&self, client: IpAddr) -> Option<Exit> {
        match client {
            IpAddr::V4(v4) => {
                let way = self.v4[v4.to_bits() as usize >> 16].checked_sub(FIRST_WAY)?;
                self.ways.get(usize::from(way)).copied()
            }
            IpAddr::V6(v6) => self.v6.get(&((v6.to_bits() >> 80) as u64)),
        }
    }

    /// Whether it is worth asking what the way of the client's block is.
    pub(super) fn is_unknown(&self, client: IpAddr) -> bool {
        match client {
            IpAddr::V4(v4) => self.v4[v4.to_bits() as usize >> 16] == UNKNOWN,
            IpAddr::V6(_) => true,
        }
    }

    /// Remembers the way of the client's block; `None`: it has no single one.
    pub(super) fn put(&mut self, client: IpAddr, way: Option<Exit>) {
        match (client, way) {
            (IpAddr::V4(v4), way) => {
                let number = way.and_then(|way| self.number(way)).unwrap_or(MIXED);
                self.v4[v4.to_bits() as usize >> 16] = number;
            }
            (IpAddr::V6(v6), Some(way)) => self.v6.put((v6.to_bits() >> 80) as u64, way),
            (IpAddr::V6(_), None) => {}
        }
    }

    fn number(&mut self, way: Exit) -> Option<u16> {
        let known = self.ways.iter().position(|known| *known == way);
        let place = known.or_else(|| {
            (self.ways.len() < WAYS).then(|| {
                self.ways.push(way);
                self.ways.len() - 1
            })
        })?;
        Some(place as u16 + FIRST_WAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(port: usize) -> Exit {
        Exit { mtu: 1500, source: None, port, addresses: [4; 12] }
    }

    #[test]
    fn a_block_has_one_way_or_none() {
        let mut blocks = Blocks::new();
        let at = |text: &str| text.parse().unwrap();
        for (client, other, stranger) in [
            ("198.51.100.7", "198.51.7.1", "198.52.100.7"),
            ("2001:db8:7::1", "2001:db8:7:9::", "2001:db8:8::1"),
        ] {
            assert!(blocks.is_unknown(at(client)) && blocks.get(at(client)).is_none());
            blocks.put(at(client), Some(way(1)));
            assert_eq!((blocks.get(at(other)), blocks.get(at(stranger))), (Some(way(1)), None));
        }
        blocks.put(at("10.0.0.1"), None);
        assert!(!blocks.is_unknown(at("10.0.9.9")) && blocks.get(at("10.0.9.9")).is_none());
        blocks.clear();
        assert!(blocks.is_unknown(at("10.0.0.1")) && blocks.get(at("198.51.100.7")).is_none());
    }

    #[test]
    fn more_ways_than_can_be_told_apart_are_not_remembered() {
        let mut blocks = Blocks::new();
        for number in 0..2000u32 {
            let client = std::net::Ipv4Addr::from_bits(number << 16).into();
            blocks.put(client, Some(way(number as usize)));
            let known = (number < WAYS as u32).then(|| way(number as usize));
            assert_eq!(blocks.get(client), known);
        }
    }
}

//! The floor of the pipeline: the least that any balancer does with a packet.
//!
//! The same frames through the same port and packet memory. Of each frame the addresses and ports
//! are read, and the Ethernet addresses written; and one cache line is read from a table that
//! has one for every connection, fetched ahead over the batch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use netio::{Frame, MemoryPort, Pool, Port, Wire, prefetch};

use super::template::ROUND;
use super::turns::Carrier;

/// Frames taken at a time: as many as a worker takes.
const BATCH: usize = 64;

/// One cache line for one connection.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Line([u64; 8]);

/// A table with `lines` lines, all of them really there: memory that nobody has written is one
/// page of zeros many times over.
pub(super) fn lines(lines: usize) -> Arc<Vec<Line>> {
    Arc::new((1..=lines as u64).map(|number| Line([number; 8])).collect())
}

/// One port, its packet memory, and what was said above between in and out.
pub(super) struct Floor {
    /// Behind the same dispatch as a worker's.
    port: Box<dyn Port>,
    wire: Wire,
    pool: Pool,
    frames: Vec<Frame>,
    /// Which line each frame of the batch needs.
    places: Vec<usize>,
    /// `None`: receive and transmit only.
    table: Option<Arc<Vec<Line>>>,
    /// What was read, so that it has to be.
    read: u64,
}

impl Floor {
    /// Without a table it does not even look at the frames: the port alone.
    pub(super) fn new(table: Option<Arc<Vec<Line>>>) -> Result<Floor> {
        let (port, wire) = MemoryPort::new("floor", ROUND);
        Ok(Floor {
            port: Box::new(port),
            wire,
            pool: Pool::new(4 * ROUND as u32, 2048)?,
            frames: Vec::with_capacity(BATCH),
            places: Vec::with_capacity(BATCH),
            table,
            read: 0,
        })
    }

    fn touch(&mut self) {
        let Some(table) = &self.table else { return };
        self.places.clear();
        for frame in &mut self.frames {
            let bytes = self.pool.bytes_mut(frame);
            let place = place(bytes, table.len());
            bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
            prefetch(&table[place]);
            self.places.push(place);
        }
        for &place in &self.places {
            self.read = self.read.wrapping_add(table[place].0[(self.read & 7) as usize]);
        }
    }
}

impl Carrier for Floor {
    fn wire(&self) -> &Wire {
        &self.wire
    }

    fn carry(&mut self) -> Result<Duration> {
        let start = Instant::now();
        while self.port.receive(&mut self.pool, &mut self.frames, BATCH)? > 0 {
            self.touch();
            self.port.transmit(&mut self.pool, &mut self.frames)?;
            self.port.flush(&mut self.pool)?;
        }
        let took = start.elapsed();
        std::hint::black_box(self.read);
        Ok(took)
    }
}

/// A line by a hash of all addresses and ports: two multiplications, no memory. Source: the
/// constants are odd words of the fractional parts of square roots.
fn place(frame: &[u8], lines: usize) -> usize {
    let word = |at: usize| -> u64 {
        frame.get(at..at + 8).map_or(0, |bytes| {
            u64::from_le_bytes([
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
            ])
        })
    };
    let mut hash = 0x6a09_e667_f3bc_c909_u64;
    // IPv4: both addresses, then both ports; IPv6: both addresses and both ports.
    let words: &[usize] =
        if frame.get(12) == Some(&0x08) { &[26, 34] } else { &[22, 30, 38, 46, 54] };
    for &at in words {
        let product = u128::from(hash ^ word(at)) * 0xbb67_ae85_84ca_a73b_u128;
        hash = (product >> 64) as u64 ^ product as u64;
    }
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::super::frames::tcp;
    use super::super::template::client;
    use super::*;

    #[test]
    fn the_floor_reads_as_many_different_lines_as_chance_gives() {
        for vip in ["192.0.2.10:80", "[2001:db8:1::10]:80"] {
            let vip: std::net::SocketAddr = vip.parse().unwrap();
            let mut seen = vec![false; 4096];
            for number in 0..4096 {
                seen[place(&tcp(client(number, vip.is_ipv4()), vip, 0x10), 4096)] = true;
            }
            // 1 - 1/e of all is 2589; that it is random is the point.
            let found = seen.iter().filter(|seen| **seen).count();
            assert!((2450..2730).contains(&found), "{found} of 4096 lines, {vip}");
        }
    }
}

//! Packets and bytes that a worker has counted by itself, for many packets of a server at a time:
//! the counters of services and servers are everybody's, and each addition to them is slow.

/// What has been counted of one binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) in_packets: u64,
    pub(super) in_bytes: u64,
    pub(super) out_packets: u64,
    pub(super) out_bytes: u64,
}

/// See the module. Bindings are numbered.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    tallies: Vec<Tally>,
    /// Those that are not 0.
    touched: Vec<u32>,
}

impl Tallies {
    /// Makes room for bindings below `len`: counting must not allocate.
    pub(super) fn make_room(&mut self, len: usize) {
        if len > self.tallies.len() {
            self.tallies.resize(len, Tally::default());
            self.touched.reserve(len - self.touched.len());
        }
    }

    /// Counts a packet of `bytes`; nothing where there is no room.
    #[inline(always)]
    pub(super) fn count(&mut self, binding: usize, bytes: usize, incoming: bool) {
        let Some(tally) = self.tallies.get_mut(binding) else { return };
        if tally.in_packets | tally.out_packets == 0 {
            self.touched.push(binding as u32);
        }
        if incoming {
            tally.in_packets += 1;
            tally.in_bytes += bytes as u64;
        } else {
            tally.out_packets += 1;
            tally.out_bytes += bytes as u64;
        }
    }

    /// Gives every tally that is not 0 to `take`, and begins anew.
    pub(super) fn drain(&mut self, mut take: impl FnMut(u32, Tally)) {
        for binding in self.touched.drain(..) {
            if let Some(tally) = self.tallies.get_mut(binding as usize) {
                take(binding, std::mem::take(tally));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_given_once() {
        let mut tallies = Tallies::default();
        tallies.count(3, 100, true);
        assert!(tallies.touched.is_empty(), "no room");
        tallies.make_room(4);
        tallies.count(3, 100, true);
        tallies.count(3, 60, true);
        tallies.count(3, 40, false);
        tallies.count(0, 1, false);
        let mut given = Vec::new();
        tallies.drain(|binding, tally| given.push((binding, tally)));
        let three = Tally { in_packets: 2, in_bytes: 160, out_packets: 1, out_bytes: 40 };
        let none = Tally { out_packets: 1, out_bytes: 1, ..Tally::default() };
        assert_eq!(given, [(3, three), (0, none)]);
        assert!(tallies.touched.is_empty());
        tallies.drain(|_, _| panic!("again"));
    }
}

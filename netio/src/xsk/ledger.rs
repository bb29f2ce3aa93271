//! Which chunks a port has given to the kernel.

/// One bit for each chunk of the pool: set while the kernel has it.
///
/// A chunk that the kernel hands back is believed only if its bit is set: so whatever stands in a
/// ring, no chunk ever gets two owners, and a closing port knows what to give back.
#[derive(Debug)]
pub(crate) struct Ledger {
    bits: Box<[u64]>,
    held: usize,
}

impl Ledger {
    /// A ledger for a pool of `chunks`, none of them held.
    pub(crate) fn new(chunks: usize) -> Ledger {
        Ledger { bits: vec![0; chunks.div_ceil(64)].into(), held: 0 }
    }

    /// Notes that the kernel now has `chunk`.
    pub(crate) fn give(&mut self, chunk: u32) {
        let (word, bit) = Ledger::place(chunk);
        debug_assert_eq!(self.bits[word] & bit, 0, "chunk {chunk} given twice");
        self.bits[word] |= bit;
        self.held += 1;
    }

    /// Notes that `chunk` has come back. `false` when the kernel did not have it.
    #[must_use]
    pub(crate) fn take(&mut self, chunk: u32) -> bool {
        let (word, bit) = Ledger::place(chunk);
        let Some(word) = self.bits.get_mut(word) else {
            return false;
        };
        let had = *word & bit != 0;
        *word &= !bit;
        self.held -= usize::from(had);
        had
    }

    /// How many chunks the kernel has.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// The chunks that the kernel has, by number.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.bits.iter().enumerate();
        words.flat_map(|(word, bits)| {
            let set = (0..64).filter(move |bit| bits >> bit & 1 != 0);
            set.map(move |bit| word as u32 * 64 + bit)
        })
    }

    fn place(chunk: u32) -> (usize, u64) {
        ((chunk / 64) as usize, 1 << (chunk % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_comes_back_once() {
        let mut ledger = Ledger::new(130);
        for chunk in [0, 63, 64, 129] {
            ledger.give(chunk);
        }
        assert_eq!(ledger.chunks().collect::<Vec<_>>(), [0, 63, 64, 129]);
        assert!(ledger.take(64));
        assert!(!ledger.take(64), "twice");
        assert!(!ledger.take(1), "never given");
        assert!(!ledger.take(5000) && !ledger.take(u32::MAX), "no such chunk");
        assert_eq!((ledger.held(), ledger.chunks().count()), (3, 3));
    }
}

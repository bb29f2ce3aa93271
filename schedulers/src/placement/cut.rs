//! Segments of different widths, and a quick way to the one that an offset lies in.
//!
//! Knows widths and offsets. Must not know whose segment it is.
//!
//! With weights w of members in row order and their sum W, offset o lies in the first segment k with
//! `(o * W) >> 32 < w_0 + ... + w_k`. With equal weights that is segment `(o * N) >> 32`.
//!
//! The row is divided into cells, one or more to a member, and each cell knows the segment that its
//! first offset lies in. From there it is seldom further than two segments, which are looked at without
//! a branch; where many small ones lie in one cell, the rest is a binary search.

/// Rows of at most so many segments have four cells or more to a segment, longer ones one or more: they
/// would be too large for the processor's caches otherwise.
const FINE: usize = 4096;

/// The segments of all rows.
#[derive(Debug)]
pub(super) struct Cut {
    /// The last offset of every segment, row after row, and two more than there are, for a look ahead.
    lasts: Box<[u32]>,
    /// For each cell the segment of its first offset, counted within the row.
    cells: Box<[u16]>,
    /// log2 of the cells of a row.
    bits: u32,
    /// Segments of a row.
    len: usize,
}

impl Cut {
    /// Cuts rows of `len` segments; `widths` are those of all rows, one after the other. No width is
    /// 0, and they sum up to the same in each row.
    pub(super) fn of(widths: impl ExactSizeIterator<Item = u64>, len: usize) -> Cut {
        let cells_each = if len <= FINE { 4 } else { 1 };
        let bits = (len * cells_each).next_power_of_two().trailing_zeros();
        let rows = widths.len() / len;
        let mut cut = Cut {
            lasts: vec![u32::MAX; widths.len() + 2].into(),
            cells: vec![0; rows << bits].into(),
            bits,
            len,
        };
        let mut widths = widths;
        let mut row = Vec::with_capacity(len);
        for number in 0..rows {
            row.clear();
            row.extend(widths.by_ref().take(len).scan(0, |sum, width| {
                *sum += width;
                Some(*sum)
            }));
            cut.fill(number, &row);
        }
        cut
    }

    /// Takes in a row, given the sum of the widths up to and with each segment.
    fn fill(&mut self, number: usize, sums: &[u64]) {
        let Some(&all) = sums.last() else { return };
        let lasts = &mut self.lasts[number * self.len..][..self.len];
        for (last, &sum) in lasts.iter_mut().zip(sums) {
            // The first offset behind it is the least o with o * all >= sum * 2^32; no segment ends
            // before the first offset, nor behind 2^32.
            let end = (u128::from(sum) << 32).div_ceil(u128::from(all));
            *last = (end - 1) as u32;
        }
        let mut segment = 0;
        for (cell, start) in
            self.cells[number << self.bits..][..1 << self.bits].iter_mut().zip(0_u32..)
        {
            while lasts[segment] < start << (32 - self.bits) {
                segment += 1;
            }
            *cell = segment as u16;
        }
    }

    /// Where in all rows the segment stands that `offset` lies in.
    #[inline]
    pub(super) fn place(&self, row: usize, offset: u32) -> usize {
        let cell = (row << self.bits) + (u64::from(offset) >> (32 - self.bits)) as usize;
        let place = row * self.len + usize::from(self.cells[cell]);
        let one = self.lasts[place] < offset;
        let two = one & (self.lasts[place + 1] < offset);
        let place = place + usize::from(one) + usize::from(two);
        if self.lasts[place] >= offset { place } else { self.search(row, place, offset) }
    }

    /// The same from `place` on, where many segments lie in a cell. The last one of the row ends with
    /// the row, so that there is one.
    #[cold]
    fn search(&self, row: usize, place: usize, offset: u32) -> usize {
        let rest = &self.lasts[place..(row + 1) * self.len];
        place + rest.partition_point(|&last| last < offset)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.lasts) + size_of_val(&*self.cells)
    }
}

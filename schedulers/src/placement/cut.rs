//! Segments of different widths, and a quick way to the one that an offset lies in.
//!
//! Knows rows, widths and offsets. Must not know who is in service.
//!
//! With weights w of members in row order and their sum W, offset o lies in the first segment k with
//! `(o * W) >> 32 < w_0 + ... + w_k`. With equal weights that is segment `(o * N) >> 32`.
//!
//! What would make it slow to find is memory: all ends of a thousand members in 512 rows are 2 MiB, and
//! a binary search looks at ten of them, one after the other. So a row is also divided into cells of 32
//! bytes, with the ends in it in 16 bits and the owners of what ends there: one cache line is all
//! that a look-up needs. Only where a cell does not tell is there a search among the exact ends: where
//! an offset and an end are the same in 16 bits, and behind the eighth end of a cell, of which there
//! are four in the mean at most.

/// Ends of a cell.
const LANES: usize = 8;
/// Members to a cell in the mean, at most.
const MEAN: usize = 4;

/// See the module.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Cell {
    /// The last offsets of the segments that end in it, then [`NONE`].
    ends: [u16; LANES],
    /// Who has those segments, and the one that goes on behind the cell.
    owners: [u16; LANES],
}

/// No end.
const NONE: u16 = u16::MAX;

/// The segments of all rows.
#[derive(Debug)]
pub(super) struct Cut {
    cells: Box<[Cell]>,
    /// Cells of a row, a power of 2.
    each: usize,
    /// The last offset of every segment, row after row.
    lasts: Box<[u32]>,
    /// Segments of a row.
    len: usize,
}

impl Cut {
    /// Cuts rows of `len` segments, 1..=65,535. `widths` are those of all segments, row after row: none
    /// is 0, and those of a row always come to the same. `owners` are those of the segments.
    pub(super) fn of(mut widths: impl Iterator<Item = u32>, owners: &[u16], len: usize) -> Cut {
        let each = len.div_ceil(MEAN).next_power_of_two();
        let bits = each.trailing_zeros();
        let rows = owners.len() / len;
        let mut cells = Vec::with_capacity(rows * each);
        let mut lasts = Vec::with_capacity(owners.len());
        let mut sums = Vec::with_capacity(len);
        for owners in owners.chunks_exact(len) {
            sums.clear();
            sums.extend(widths.by_ref().take(len).scan(0, |sum, width| {
                *sum += u64::from(width);
                Some(*sum)
            }));
            let all = sums.last().copied().unwrap_or(1);
            let start = lasts.len();
            lasts.extend(sums.iter().map(|&sum| last_offset(sum, all)));
            cells_of(bits, &lasts[start..], owners, &mut cells);
        }
        Cut { cells: cells.into(), each, lasts: lasts.into(), len }
    }

    /// Who has the segment of the row that `offset` lies in, if that can be told by the cell.
    #[inline]
    pub(super) fn owner(&self, row: usize, offset: u32) -> Option<u16> {
        // The cell's number in the upper half, the place in it in the lower.
        let place = u64::from(offset) * self.each as u64;
        let cell = &self.cells[row * self.each + (place >> 32) as usize];
        let offset = (place as u32 >> 16) as u16;
        // A binary search without a branch, for the first end that is not before the offset.
        let mut lane = 0;
        for step in [4, 2, 1] {
            lane += step * usize::from(cell.ends[(lane + step - 1) % LANES] < offset);
        }
        (cell.ends[lane % LANES] > offset).then(|| cell.owners[lane % LANES])
    }

    /// Where in all rows the segment stands that `offset` lies in.
    pub(super) fn place(&self, row: usize, offset: u32) -> usize {
        let start = row * self.len;
        start + self.lasts[start..start + self.len].partition_point(|&last| last < offset)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.cells) + size_of_val(&*self.lasts)
    }
}

/// Adds the cells of a row.
fn cells_of(bits: u32, lasts: &[u32], owners: &[u16], cells: &mut Vec<Cell>) {
    let mut segment = 0;
    for number in 0..1_u64 << bits {
        let mut cell = Cell { ends: [NONE; LANES], owners: [0; LANES] };
        let segments = lasts.iter().zip(owners).skip(segment);
        let is_here = |last: u32| u64::from(last) >> (32 - bits) == number;
        for (lane, (&last, &owner)) in segments.take(LANES).enumerate() {
            cell.owners[lane] = owner;
            if !is_here(last) {
                break;
            }
            cell.ends[lane] = (last << bits >> 16) as u16;
        }
        segment += lasts[segment..].iter().take_while(|&&last| is_here(last)).count();
        cells.push(cell);
    }
}

/// The last offset of a segment, of the sum of the widths up to and with it, and of all: the first one
/// behind it is the least o with `o * all >= sum * 2^32`, which is at least 1.
fn last_offset(sum: u64, all: u64) -> u32 {
    let end = match u32::try_from(sum) {
        // The usual weights, and quicker.
        Ok(sum) => (u64::from(sum) << 32).div_ceil(all).into(),
        Err(_) => (u128::from(sum) << 32).div_ceil(u128::from(all)),
    };
    (end - 1) as u32
}

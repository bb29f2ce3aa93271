//! Segments of different widths, and a quick way to the one that an offset lies in.
//!
//! Knows rows, widths and offsets. Must not know who is in service.
//!
//! With weights w of members in row order and their sum W, offset o lies in the first segment k with
//! `(o * W) >> 32 < w_0 + ... + w_k`. With equal weights that is segment `(o * N) >> 32`.
//!
//! What would make it slow to find is memory: all ends of a thousand members in 512 rows are 2 MiB, and
//! a binary search looks at ten of them, one after the other. So a row is also divided into cells of 8
//! bytes, two for each member and some besides. Most have no end in them or one, and hold it, exactly,
//! with the owners before and behind it: one read and one comparison tell who has an offset. A cell
//! with more ends (at most every tenth in the mean, with the usual weights) says where the first of them
//! stands among the ends of all rows, and one of the next few is the one.
//!
//! | bits | no end in the cell | one | 2 to 8 | more |
//! |---|---|---|---|---|
//! | 0..32 | all 1 | that offset's place in the cell | number of the first segment that ends in it | all 1 |
//! | 32..48 | owner | owner up to the end | [`MORE`] | [`MORE`] |
//! | 48..64 | owner | owner behind it | [`MORE`] | [`MORE`] |

/// Cells of a row for each member.
const FOR_EACH: usize = 2;
/// And so many besides: with few members they cost little, and fewer cells have more than one end.
const BESIDES: usize = 16;
/// In place of an owner. At most 65,535 members: it is none of their ids.
const MORE: u16 = u16::MAX;
/// So many ends in a cell are looked at one after the other; among more there is a binary search.
const NEAR: usize = 8;
/// In place of a segment's number, of which there are fewer.
const NOWHERE: u32 = u32::MAX;

/// The segments of all rows.
#[derive(Debug)]
pub(super) struct Cut {
    cells: Box<[u64]>,
    /// Cells of a row.
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
        let each = len * FOR_EACH + BESIDES;
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
            cells_of(each, start, &lasts[start..], owners, &mut cells);
        }
        Cut { cells: cells.into(), each, lasts: lasts.into(), len }
    }

    /// Who has the segment of the row that `offset` lies in.
    ///
    /// # Errors
    /// Where in all rows the segment stands, when the cell does not tell who has it.
    #[inline]
    pub(super) fn owner(&self, row: usize, offset: u32) -> Result<u16, usize> {
        let (number, place) = in_cells(self.each, offset);
        let cell = self.cells[row * self.each + number];
        let is_behind = place > cell as u32;
        let owner = (cell >> (32 + 16 * u32::from(is_behind))) as u16;
        if owner == MORE { Err(self.search(row, cell as u32 as usize, offset)) } else { Ok(owner) }
    }

    /// Where the segment stands, when the first one that ends in its cell stands at `place`. By itself,
    /// and no more than this, so that the usual way stays short.
    #[cold]
    fn search(&self, row: usize, mut place: usize, offset: u32) -> usize {
        loop {
            match self.lasts.get(place) {
                Some(&last) if last < offset => place += 1,
                Some(_) => return place,
                // Nowhere.
                None => return self.place(row, offset),
            }
        }
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

/// The number of the cell in the row that an offset lies in, and its place there: of a row of 2^32
/// times `each` places, every cell has 2^32, and offsets keep their order.
#[inline]
fn in_cells(each: usize, offset: u32) -> (usize, u32) {
    let place = u64::from(offset) * each as u64;
    ((place >> 32) as usize, place as u32)
}

/// Adds the cells of a row, whose first segment stands at `start` in all rows.
fn cells_of(each: usize, start: usize, lasts: &[u32], owners: &[u16], cells: &mut Vec<u64>) {
    let pack = |low: u32, before: u16, behind: u16| {
        u64::from(low) | u64::from(before) << 32 | u64::from(behind) << 48
    };
    let mut ends = lasts.iter().map(|&last| in_cells(each, last)).peekable();
    let mut first = 0;
    for number in 0..each {
        let (mut count, mut end) = (0, u32::MAX);
        while let Some((_, place)) = ends.next_if(|(home, _)| *home == number) {
            (count, end) = (count + 1, place);
        }
        let owner = owners[first];
        cells.push(match count {
            0 => pack(end, owner, owner),
            // Behind the last end of the row there is nothing.
            1 => pack(end, owner, *owners.get(first + 1).unwrap_or(&owner)),
            // At most 65,535 members times 512, see `PlacementOptions::most_members`.
            2..=NEAR => pack((start + first) as u32, MORE, MORE),
            _ => pack(NOWHERE, MORE, MORE),
        });
        first += count;
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

//! Rows, segments, and who is in service: who has a key.

use super::PlacementOptions;
use super::cut::Cut;
use super::member::Member;
use super::rows::Rows;
use crate::TooManyServers;

/// Who has which keys, for one list of members. Nothing in it changes: for another list make another.
///
/// Members are named by their place in the list, and the order of the list does not matter otherwise.
///
/// ```
/// use schedulers::placement::{Member, PlacementOptions, Table, name_hash};
///
/// let member = |host| Member::new(std::net::Ipv4Addr::new(192, 0, 2, host).into(), 53, 1);
/// let options = PlacementOptions { sticky: true, ..PlacementOptions::default() };
/// let mut members = [member(1), member(2), member(3)];
/// let table = Table::build(&members, options).unwrap();
///
/// let key = name_hash("www.example.com").unwrap();
/// let owner = table.owner(key).unwrap();
/// members[owner] = members[owner].weighing(0);
/// let without = Table::build(&members, options).unwrap();
/// assert_eq!(without.owner(key), table.replica(key));
/// ```
#[derive(Debug)]
pub struct Table {
    options: PlacementOptions,
    members: Box<[Member]>,
    pub(super) rows: Rows,
    /// When not all segments are equally wide.
    cut: Option<Cut>,
    /// Who stands in for whom, segment by segment, when somebody with a place is out of service.
    stand_ins: Option<Box<[u16]>>,
    /// The number of rows.
    variants: u32,
    /// 2^64 / variants, rounded up (and 0 for one).
    inverse: u64,
}

impl Table {
    /// A table of `members`. In the order of members times variants, and that of sorting them.
    ///
    /// # Errors
    /// When there are more than [`PlacementOptions::most_members`].
    pub fn build(members: &[Member], options: PlacementOptions) -> Result<Table, TooManyServers> {
        Table::made(members, options, Rows::of)
    }

    /// The same as [`Table::build`], of members that are nearly those of this table: sooner.
    ///
    /// # Errors
    /// As there.
    pub fn rebuilt(&self, members: &[Member]) -> Result<Table, TooManyServers> {
        Table::made(members, self.options, |members, placed, variants| {
            self.rows.followed_by(&self.members, members, placed, variants)
        })
    }

    fn made(
        members: &[Member],
        options: PlacementOptions,
        rows: impl FnOnce(&[Member], &[u16], u16) -> Rows,
    ) -> Result<Table, TooManyServers> {
        let limit = options.most_members();
        if members.len() > limit {
            return Err(TooManyServers { limit });
        }
        let width = |id: u16| members[usize::from(id)].width(options.sticky);
        let is_live = |id: u16| members[usize::from(id)].is_live();
        let mut placed: Vec<u16> =
            (0..=u16::MAX).zip(members).map(|(id, _)| id).filter(|&id| width(id) > 0).collect();
        if !placed.iter().any(|&id| is_live(id)) {
            placed.clear();
        }
        let rows = rows(members, &placed, options.rows());
        let are_equal = placed.windows(2).all(|pair| width(pair[0]) == width(pair[1]));
        let all_live = placed.iter().all(|&id| is_live(id));
        let stand_ins = (!all_live).then(|| stand_ins(&rows, is_live));
        let owners = stand_ins.as_ref().map_or(&*rows.ids, |ids| ids);
        let widths = rows.ids.iter().map(|&id| width(id));
        let cut = (!are_equal).then(|| Cut::of(widths, owners, rows.len));
        let variants = u32::from(options.rows());
        let inverse = (u64::MAX / u64::from(variants)).wrapping_add(1);
        Ok(Table { options, members: members.into(), rows, cut, stand_ins, variants, inverse })
    }

    /// Whether this is the table of `members`.
    pub fn is_of(&self, members: &[Member]) -> bool {
        *self.members == *members
    }

    /// The members, as they were given.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        let stand_ins = self.stand_ins.as_ref().map_or(0, |ids| size_of_val(&**ids));
        let cut = self.cut.as_ref().map_or(0, Cut::bytes);
        size_of_val(&*self.rows.ids) + size_of_val(&*self.members) + stand_ins + cut
    }

    /// The member that has the key; `None` when none is in service.
    #[inline]
    pub fn owner(&self, hash: u64) -> Option<usize> {
        if self.rows.len == 0 {
            return None;
        }
        let (row, offset) = self.row_and_offset(hash);
        let place = match &self.cut {
            Some(cut) => match cut.owner(row, offset) {
                Ok(owner) => return Some(usize::from(owner)),
                Err(place) => place,
            },
            None => self.place(row, offset),
        };
        let owners = self.stand_ins.as_ref().map_or(&*self.rows.ids, |ids| ids);
        owners.get(place).map(|&owner| usize::from(owner))
    }

    /// The member that has the key if the owner cannot: the next one in the row. `None` when there is
    /// no other in service.
    pub fn replica(&self, hash: u64) -> Option<usize> {
        self.walk(hash).nth(1)
    }

    /// Everyone who is in service, each once: owner, replica, and so on as they stand in the row.
    pub fn walk(&self, hash: u64) -> Walk<'_> {
        if self.rows.len == 0 {
            return Walk { members: &[], row: &[], next: 0, left: 0 };
        }
        let (row, offset) = self.row_and_offset(hash);
        let place = self.place(row, offset);
        let start = row * self.rows.len;
        let row = &self.rows.ids[start..start + self.rows.len];
        Walk { members: &self.members, row, next: place - start, left: row.len() }
    }

    #[inline]
    fn row_and_offset(&self, hash: u64) -> (usize, u32) {
        (self.row((hash >> 32) as u32), hash as u32)
    }

    /// Where in all rows the segment stands that `offset` of the row lies in.
    #[inline]
    fn place(&self, row: usize, offset: u32) -> usize {
        let len = self.rows.len;
        match &self.cut {
            Some(cut) => cut.place(row, offset),
            None => row * len + ((u64::from(offset) * len as u64) >> 32) as usize,
        }
    }

    /// `chunk` modulo the variants, without a division: Lemire, Kaser and Kurz, "Faster remainder by
    /// direct computation", 2019; exact for all 32-bit numbers.
    #[inline]
    pub(super) fn row(&self, chunk: u32) -> usize {
        let fraction = self.inverse.wrapping_mul(u64::from(chunk));
        ((u128::from(fraction) * u128::from(self.variants)) >> 64) as usize
    }
}

/// For each segment the first of its row, from its own member on and round, who is live. There is one.
fn stand_ins(rows: &Rows, is_live: impl Fn(u16) -> bool) -> Box<[u16]> {
    let mut ids: Box<[u16]> = (*rows.ids).into();
    for row in ids.chunks_exact_mut(rows.len.max(1)) {
        let mut next = row.iter().copied().find(|&id| is_live(id));
        for id in row.iter_mut().rev() {
            if is_live(*id) {
                next = Some(*id);
            }
            *id = next.unwrap_or(*id);
        }
    }
    ids
}

/// The members in service from a key's owner on; see [`Table::walk`].
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    members: &'a [Member],
    row: &'a [u16],
    next: usize,
    left: usize,
}

impl Iterator for Walk<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.left > 0 {
            let id = usize::from(self.row[self.next]);
            self.left -= 1;
            self.next = if self.next + 1 == self.row.len() { 0 } else { self.next + 1 };
            if self.members[id].is_live() {
                return Some(id);
            }
        }
        None
    }
}

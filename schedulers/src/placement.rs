//! The distributed hash table's rule: which server a key belongs to, and which ones come next.
//!
//! Knows addresses, weights and 64-bit keys. Must not know lists that change, connections, or what a
//! key was made of. The same members give the same answers on every director and every platform.
//!
//! The space of keys is cut into 2^32 *chunks*. Chunk c uses *row* c mod V of V *variants*; in a row
//! the members stand in ascending order of [`dht_rand`], and each has a *segment* of the chunk as
//! wide as its part of all weight. A key's chunk is its upper half, its place in the chunk its lower
//! half.
//!
//! | form | the chunk is cut by | moves when one of N leaves | its keys go to |
//! |---|---|---|---|
//! | faithful | the members in service | (N + 1) / (3 N) of all keys | anybody |
//! | [sticky](PlacementOptions::sticky) | all members, weight 0 too | 1 / N | their replica |
//!
//! Start at [`Table`]. [`hashes`] has the bytes that are hashed, [`study`] measures what the rule
//! comes to.

mod cut;
pub mod hashes;
mod member;
mod rows;
pub mod study;
mod table;

pub use hashes::{HashBy, NameHasher, dht_rand, name_hash};
pub use member::Member;
pub use table::{Table, Walk};

/// How a [`Table`] is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementOptions {
    /// Rows, 1..=65535; 0 counts as 1. More rows spread a leaver's keys more evenly, and cost as
    /// much more memory.
    pub variants: u16,
    /// Whether members that are out of service keep their segments: the next one in the row stands
    /// in for them, and nobody else's keys move.
    pub sticky: bool,
}

impl Default for PlacementOptions {
    /// 512 variants, not sticky: the table of the paper.
    fn default() -> PlacementOptions {
        PlacementOptions { variants: 512, sticky: false }
    }
}

/// Places of a table, members times variants: 65,535 members with 512 variants.
const MOST_PLACES: usize = 512 * u16::MAX as usize;

impl PlacementOptions {
    /// The most members of a table: 65,535, and fewer with more than 512 variants (512 members with
    /// 65,535), so that memory is bounded.
    ///
    /// ```
    /// use schedulers::placement::PlacementOptions;
    ///
    /// let options = PlacementOptions::default();
    /// assert_eq!(options.most_members(), 65_535);
    /// assert_eq!(PlacementOptions { variants: 65_535, ..options }.most_members(), 512);
    /// ```
    pub fn most_members(self) -> usize {
        (MOST_PLACES / usize::from(self.rows())).min(usize::from(u16::MAX))
    }

    fn rows(self) -> u16 {
        self.variants.max(1)
    }
}

#[cfg(test)]
mod tests;

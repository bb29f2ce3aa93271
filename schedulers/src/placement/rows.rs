//! The order of the members in every row.
//!
//! Knows draws. Must not know weights: who has no place is left out by the caller.

use super::hashes::{dht_rand, octets};
use super::member::Member;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// So many newcomers at most are put into the rows that there are; with more, rows are sorted anew.
const FEW: usize = 8;

/// For each variant the ids of all who have a place, lowest draw first.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// Row after row. Shared with the next table while the order stays.
    pub(super) ids: Arc<[u16]>,
    /// Members of a row.
    pub(super) len: usize,
}

impl Rows {
    /// Rows of those of `members` whose ids are `placed`.
    pub(super) fn of(members: &[Member], placed: &[u16], variants: u16) -> Rows {
        let mut placed = placed.to_vec();
        // In the order that decides between equal draws, so that the place there stands for it.
        placed.sort_by_key(|&id| (rank(&members[usize::from(id)]), id));
        let mut ids = Vec::with_capacity(placed.len() * usize::from(variants));
        let mut draws = Vec::with_capacity(placed.len());
        for variant in 0..variants {
            draws.clear();
            draws.extend(placed.iter().zip(0_u16..).map(|(&id, place)| {
                let member = &members[usize::from(id)];
                (dht_rand(member.address, member.port, variant), place)
            }));
            draws.sort_unstable();
            ids.extend(draws.iter().map(|&(_, place)| placed[usize::from(place)]));
        }
        Rows { ids: ids.into(), len: placed.len() }
    }

    /// The same as [`Rows::of`], made of these rows, which are of the members `before`: those who
    /// stay keep their order, and a few newcomers are cheaply put in.
    pub(super) fn followed_by(
        &self,
        before: &[Member],
        members: &[Member],
        placed: &[u16],
        variants: u16,
    ) -> Rows {
        let Some(moves) = Moves::between(self, before, members, placed) else {
            return Rows::of(members, placed, variants);
        };
        if moves.nobody {
            return self.clone();
        }
        let mut ids = Vec::with_capacity(placed.len() * usize::from(variants));
        for variant in 0..variants {
            let old = &self.ids[usize::from(variant) * self.len..][..self.len];
            let start = ids.len();
            ids.extend(old.iter().filter_map(|&id| moves.now[usize::from(id)]));
            let draw = |id: u16| {
                let member = &members[usize::from(id)];
                (dht_rand(member.address, member.port, variant), rank(member), id)
            };
            for &id in &moves.newcomers {
                let own = draw(id);
                let place = ids[start..].partition_point(|&other| draw(other) < own);
                ids.insert(start + place, id);
            }
        }
        Rows { ids: ids.into(), len: placed.len() }
    }
}

/// Who comes first of equal draws.
fn rank(member: &Member) -> ([u8; 16], u16) {
    (octets(member.address), member.port)
}

/// How the members of rows differ from those to come.
struct Moves {
    /// Of each former id the id that it has now, if it still has a place.
    now: Vec<Option<u16>>,
    /// Ids of those who had no place.
    newcomers: Vec<u16>,
    /// Everybody has the place and the id that they had.
    nobody: bool,
}

impl Moves {
    /// `None` when it is better to begin anew: too many are new, or two are the same.
    fn between(
        rows: &Rows,
        before: &[Member],
        members: &[Member],
        placed: &[u16],
    ) -> Option<Moves> {
        let mut former: HashMap<(IpAddr, u16), u16> = HashMap::with_capacity(rows.len);
        for &id in rows.ids.get(..rows.len)? {
            let Member { address, port, .. } = before[usize::from(id)];
            if former.insert((address.to_canonical(), port), id).is_some() {
                return None;
            }
        }
        let mut moves =
            Moves { now: vec![None; before.len()], newcomers: Vec::new(), nobody: true };
        for &id in placed {
            let Member { address, port, .. } = members[usize::from(id)];
            match former.remove(&(address.to_canonical(), port)) {
                Some(old) => {
                    moves.now[usize::from(old)] = Some(id);
                    moves.nobody &= old == id;
                }
                None if moves.newcomers.len() < FEW => moves.newcomers.push(id),
                None => return None,
            }
        }
        moves.nobody &= moves.newcomers.is_empty() && former.is_empty();
        Some(moves)
    }
}

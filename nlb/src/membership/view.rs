//! The view: who is a member, and a digest of everything that members bring into the maps.

use sha2::{Digest as _, Sha256};

use crate::heartbeat::{Digest, Operator, SlotTerms};
use crate::host::{HostId, Nonce};
use crate::map::Member;

use super::settings::Share;

/// Digest of what one host brings: its boot, the configuration it is heading for, whether it leaves,
/// and its terms for every slot.
pub(super) fn piece(
    nonce: Nonce,
    next: Digest,
    draining: bool,
    terms: impl Iterator<Item = SlotTerms>,
) -> u64 {
    let mut hash = Sha256::new();
    hash.update(nonce.0.to_be_bytes());
    hash.update(next);
    hash.update([u8::from(draining)]);
    for SlotTerms { weight, priority, operator } in terms {
        hash.update([weight, priority, operator as u8]);
    }
    first_eight(hash)
}

/// Digest of all members' pieces.
pub(super) fn roll(pieces: impl Iterator<Item = (HostId, u64)>) -> u64 {
    let mut hash = Sha256::new();
    for (host, piece) in pieces {
        hash.update([host.get()]);
        hash.update(piece.to_be_bytes());
    }
    first_eight(hash)
}

fn first_eight(hash: Sha256) -> u64 {
    let [first, ..] = *hash.finalize().as_chunks().0 else { return 0 };
    u64::from_be_bytes(first)
}

/// The members and weights of a slot's map, of each member's terms. A host that leaves or whose
/// operator took the slot away has weight 0.
pub(super) fn members(
    share: Share,
    offers: impl Iterator<Item = (HostId, bool, SlotTerms)>,
) -> Vec<Member> {
    let willing =
        |draining: bool, terms: &SlotTerms| !draining && terms.operator == Operator::Enabled;
    let mut members: Vec<(HostId, SlotTerms)> = offers
        .filter(|(_, draining, terms)| willing(*draining, terms))
        .map(|(host, _, terms)| (host, terms))
        .collect();
    let best = match share {
        Share::Weighted => return members.iter().map(|&(host, t)| (host, t.weight)).collect(),
        Share::Equal => return members.iter().map(|&(host, _)| (host, 1)).collect(),
        Share::DefaultHost => members.iter().map(|&(host, _)| host).min(),
        Share::Priority => {
            members.retain(|(_, terms)| terms.priority > 0);
            members.iter().min_by_key(|(host, t)| (t.priority, *host)).map(|&(host, _)| host)
        }
    };
    best.map(|host| (host, 1)).into_iter().collect()
}

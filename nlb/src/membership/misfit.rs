//! Who does not fit: configurations compared by their digests.
//!
//! Hosts fit when their configurations in force are equal, or those they are heading for. The
//! champion is the host that fits most others; among equals one that has converged before, then the
//! lowest id. Who does not fit the champion is the misfit: it serves nothing, the others go on.
//!
//! While a new configuration waits until all have it, a host that fits by it alone, since it has it in
//! force already, and one that does not have it at all do not fit each other: with the slots of two
//! configurations they would serve the same clients. Of those two parties the one goes out that has
//! fewer hosts that have converged before, then the smaller one, then the one that is behind.

use crate::heartbeat::{Digest, Heartbeat};
use crate::host::{HostId, HostSet};

use super::settings::Plan;

/// What is compared of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) host: HostId,
    pub(super) digest: Digest,
    pub(super) next: Digest,
    /// It has converged in this boot.
    pub(super) established: bool,
}

impl Candidate {
    fn fits(&self, other: &Candidate) -> bool {
        self.digest == other.digest || self.next == other.next
    }
}

/// The hosts that do not fit, and the champion.
pub(super) fn misfits(candidates: &[Candidate]) -> (HostSet, Option<HostId>) {
    let support = |champion: &Candidate| {
        let with_it = candidates.iter().filter(|other| champion.fits(other));
        let established = with_it.clone().filter(|other| other.established).count();
        (with_it.count(), established)
    };
    let champion = candidates
        .iter()
        .max_by_key(|candidate| (support(candidate), std::cmp::Reverse(candidate.host)));
    let Some(champion) = champion else { return (HostSet::EMPTY, None) };
    let set = |is_in: &dyn Fn(&Candidate) -> bool| -> HostSet {
        candidates.iter().filter(|other| is_in(other)).map(|other| other.host).collect()
    };
    let out = set(&|other| !champion.fits(other));
    let ahead = set(&|other| champion.fits(other) && other.digest != champion.digest);
    let behind = set(&|other| champion.fits(other) && other.next != champion.next);
    let weight = |party: HostSet| {
        let established = |other: &&Candidate| other.established && party.contains(other.host);
        (candidates.iter().filter(established).count(), party.len())
    };
    let out = match (ahead.is_empty(), behind.is_empty()) {
        (false, false) if weight(ahead) < weight(behind) => out.union(ahead),
        (false, false) => out.union(behind),
        _ => out,
    };
    (out, Some(champion.host))
}

/// What differs between this host's plan and another host, in the operator's words.
pub(super) fn difference(plan: &Plan, other: &Heartbeat) -> String {
    let whose = if other.name.is_empty() {
        format!("host {}", other.host)
    } else {
        format!("host {} ({})", other.host, other.name)
    };
    if other.next == plan.digest {
        return format!(
            "{whose} has this file too and waits until all others have it: reload those (query there names them)"
        );
    }
    let differing =
        plan.marks.iter().zip(&other.marks).find(|(mine, theirs)| half(&mine.digest) != **theirs);
    let generations = if plan.generation == other.generation {
        String::new()
    } else {
        format!(" (generation {} here, {} there)", plan.generation, other.generation)
    };
    match differing {
        Some((mine, _)) => format!("{} is not that of {whose}{generations}", mine.name),
        None if plan.marks.len() != usize::from(other.marks_total) => format!(
            "{} parts here, {} at {whose}{generations}",
            plan.marks.len(),
            other.marks_total
        ),
        None => format!("not that of {whose}{generations}"),
    }
}

/// Half digests of a plan's first parts, for the heartbeat.
pub(super) fn marks(plan: &Plan, most: usize) -> Vec<u32> {
    plan.marks.iter().take(most).map(|mark| half(&mark.digest)).collect()
}

fn half(digest: &Digest) -> u32 {
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: u8, digest: u8, next: u8, established: bool) -> Candidate {
        Candidate {
            host: HostId::new(id).unwrap(),
            digest: [digest; 8],
            next: [next; 8],
            established,
        }
    }

    fn out(candidates: &[Candidate]) -> Vec<u8> {
        misfits(candidates).0.iter().map(HostId::get).collect()
    }

    #[test]
    fn the_minority_the_newcomer_or_the_higher_id_is_the_misfit() {
        let old = |id, digest| candidate(id, digest, digest, true);
        let new = |id, digest| candidate(id, digest, digest, false);
        assert!(out(&[old(1, 1), old(2, 1)]).is_empty());
        assert_eq!(out(&[old(1, 2), old(2, 1), old(3, 1)]), [1], "minority");
        assert_eq!(out(&[new(1, 2), old(2, 1)]), [1], "newcomer");
        assert_eq!(out(&[new(1, 2), new(2, 1)]), [2], "higher id");
        assert_eq!(out(&[new(1, 1), new(2, 2), new(3, 3), old(4, 4)]), [1, 2, 3]);
    }

    #[test]
    fn nobody_is_a_misfit_while_a_new_configuration_is_rolled_out() {
        let [x, y] = [1, 2];
        let waits = |id| candidate(id, x, y, true);
        let old = |id| candidate(id, x, x, true);
        let switched = |id| candidate(id, y, y, true);
        assert!(out(&[waits(1), old(2), old(3)]).is_empty());
        assert!(out(&[waits(1), waits(2), waits(3)]).is_empty());
        assert!(out(&[switched(1), waits(2), waits(3)]).is_empty());
        assert_eq!(out(&[switched(1), old(2), old(3)]), [1]);
        let newcomer = |id, digest| candidate(id, digest, digest, false);
        assert_eq!(out(&[waits(1), old(2), newcomer(3, y)]), [3], "2 does not have it yet");
        assert!(out(&[waits(1), waits(2), newcomer(3, y)]).is_empty());
        assert_eq!(out(&[switched(1), waits(2), waits(3), newcomer(4, x)]), [4], "too late");
        assert_eq!(out(&[switched(1), switched(2), old(3)]), [3]);
    }
}

//! Which host owns which bucket: quota rendezvous.
//!
//! A pure function of key, group, hosts and weights: every host computes the same map whatever
//! happened before, and so does an operator who asks what would be if a host left.
//!
//! 1. *Quotas*: `4096 * weight / sum of weights`, rounded by largest remainder (ties by a keyed
//!    hash of group and host), and at least one bucket where the weight is not 0.
//! 2. *Rendezvous*: every pair of bucket and host has a score, the keyed hash of both. Pairs are
//!    taken in falling order of scores while the bucket is free and the host below its quota.
//!
//! When a host leaves, only little more than its own buckets move: the quotas of the others grow,
//! and what they are short of is what it had. The price of not knowing the past is a few percent
//! more moves than necessary at 10 hosts and some forty at 32; only new flows notice.

use std::cmp::Reverse;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::buckets::{BUCKETS, Bucket, BucketSet};
use crate::host::{HostId, MAX_HOSTS};
use crate::key::MapKey;
use crate::slot::GroupId;

/// A host and its weight: its part of the buckets is weight over the sum of weights; 0 = none.
pub type Member = (HostId, u8);

/// The owner of every bucket. No bucket has an owner when no member has a weight.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Host ids by bucket; 0 = nobody.
    owners: Box<[u8; BUCKETS]>,
}

impl Target {
    /// Nobody owns anything.
    pub fn nobody() -> Target {
        Target { owners: Box::new([0; BUCKETS]) }
    }

    /// One host owns everything: a single-host rule, the default rule.
    pub fn everything(host: HostId) -> Target {
        Target { owners: Box::new([host.get(); BUCKETS]) }
    }

    /// The owner of a bucket.
    pub fn owner(&self, bucket: Bucket) -> Option<HostId> {
        HostId::new(self.owners[bucket.index()]).ok()
    }

    /// The buckets a host owns.
    pub fn of(&self, host: HostId) -> BucketSet {
        Bucket::all().filter(|bucket| self.owners[bucket.index()] == host.get()).collect()
    }

    /// How many buckets a host owns.
    pub fn share(&self, host: HostId) -> usize {
        self.owners.iter().filter(|&&owner| owner == host.get()).count()
    }

    /// How many buckets have another owner in `other`.
    pub fn moved(&self, other: &Target) -> usize {
        self.owners.iter().zip(&*other.owners).filter(|(mine, theirs)| mine != theirs).count()
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(HostId::all().map(|host| (host, self.share(host))).filter(|&(_, n)| n > 0))
            .finish()
    }
}

/// The map of a group: who owns which bucket. The order of members does not matter; of a host that
/// is named twice the larger weight counts.
///
/// ```
/// use nlb::buckets::Bucket;
/// use nlb::host::HostId;
/// use nlb::key::ClusterKey;
/// use nlb::map;
/// use nlb::slot::GroupId;
///
/// let key = ClusterKey::new(b"correct horse battery staple").unwrap();
/// let [a, b] = [1, 2].map(|id| HostId::new(id).unwrap());
/// let map = map::target(key.map(), GroupId(7), &[(a, 30), (b, 10)]);
/// assert_eq!((map.share(a), map.share(b)), (3072, 1024));
/// assert!(Bucket::all().all(|bucket| map.owner(bucket).is_some()));
/// ```
pub fn target(key: MapKey, group: GroupId, members: &[Member]) -> Target {
    let mut left = quotas(key, group, members);
    let mut target = Target::nobody();
    let mut pairs: Vec<(u64, Bucket, HostId)> = HostId::all()
        .filter(|host| left[host.index()] > 0)
        .flat_map(|host| {
            Bucket::all().map(move |bucket| (score(key, group, bucket, host), bucket, host))
        })
        .collect();
    // Equal scores of different pairs, should they ever occur, are in order of bucket and host.
    pairs.sort_unstable_by_key(|&(score, bucket, host)| (Reverse(score), bucket, host));
    for (_, bucket, host) in pairs {
        let owner = &mut target.owners[bucket.index()];
        let quota = &mut left[host.index()];
        if *owner == 0 && *quota > 0 {
            *owner = host.get();
            *quota -= 1;
        }
    }
    target
}

/// How many buckets each host gets, by [`HostId::index`]. Their sum is 4096, or 0 when no member
/// has a weight.
pub fn quotas(key: MapKey, group: GroupId, members: &[Member]) -> [u16; MAX_HOSTS] {
    let mut weights = [0; MAX_HOSTS];
    for &(host, weight) in members {
        let known: &mut usize = &mut weights[host.index()];
        *known = usize::from(weight).max(*known);
    }
    let sum: usize = weights.iter().sum();
    if sum == 0 {
        return [0; MAX_HOSTS];
    }
    let mut quotas = weights.map(|weight| BUCKETS * weight / sum);
    let mut by_remainder: Vec<HostId> = HostId::all().collect();
    by_remainder.sort_by_key(|&host| {
        (Reverse(BUCKETS * weights[host.index()] % sum), tie(key, group, host), host)
    });
    let missing = BUCKETS - quotas.iter().sum::<usize>();
    for host in by_remainder.into_iter().take(missing) {
        quotas[host.index()] += 1;
    }
    give_everyone_one(&mut quotas, &weights);
    quotas.map(|quota| quota as u16)
}

/// A weight that is not 0 never vanishes: the host with the most gives one. (With weights up to
/// 100 and 32 hosts nobody is ever without.)
fn give_everyone_one(quotas: &mut [usize; MAX_HOSTS], weights: &[usize; MAX_HOSTS]) {
    for host in 0..MAX_HOSTS {
        if weights[host] > 0 && quotas[host] == 0 {
            let richest = (0..MAX_HOSTS).rev().max_by_key(|&host| quotas[host]).unwrap_or(host);
            quotas[richest] -= 1;
            quotas[host] += 1;
        }
    }
}

/// SipHash-1-3 of group, bucket and host as one word: `group << 32 | bucket << 8 | host`.
fn score(key: MapKey, group: GroupId, bucket: Bucket, host: HostId) -> u64 {
    keyed(key, u64::from(group.0) << 32 | u64::from(bucket.get()) << 8 | u64::from(host.get()))
}

/// Which of equal remainders is rounded up: a word no pair of bucket and host has.
fn tie(key: MapKey, group: GroupId, host: HostId) -> u64 {
    keyed(key, u64::from(group.0) << 32 | 1 << 31 | u64::from(host.get()))
}

fn keyed(key: MapKey, word: u64) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(key.k0, key.k1);
    hasher.write(&word.to_le_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests;

//! Buckets: the shares a cluster hands out. A hash puts every client into one of 4096, and a host
//! owns a set of them.

use std::fmt;

/// Number of buckets. Fixed when a cluster is made: another number would move every client.
pub const BUCKETS: usize = 4096;

const WORDS: usize = BUCKETS / 64;

/// Bytes of a set of buckets written bit by bit.
pub const BUCKET_BYTES: usize = BUCKETS / 8;

/// One bucket, 0 to 4095.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(u16);

impl Bucket {
    /// The bucket of a hash: its low 12 bits.
    #[inline]
    pub const fn of_hash(hash: u64) -> Bucket {
        Bucket((hash % BUCKETS as u64) as u16)
    }

    /// The bucket with this number; `None` above 4095.
    pub const fn new(number: u16) -> Option<Bucket> {
        if (number as usize) < BUCKETS { Some(Bucket(number)) } else { None }
    }

    /// Its number, 0 to 4095.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Its place in an array by bucket.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All buckets, in order.
    pub fn all() -> impl Iterator<Item = Bucket> {
        (0..BUCKETS as u16).map(Bucket)
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of buckets.
///
/// ```
/// use nlb::buckets::{Bucket, BucketSet};
///
/// let mut mine = BucketSet::EMPTY;
/// mine.insert(Bucket::new(9).unwrap());
/// assert!(mine.contains(Bucket::of_hash(4096 + 9)));
/// assert_eq!(BucketSet::ALL.minus(&mine).len(), 4095);
/// assert_eq!(BucketSet::from_bytes(&mine.to_bytes()), mine);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BucketSet([u64; WORDS]);

impl BucketSet {
    /// No bucket.
    pub const EMPTY: BucketSet = BucketSet([0; WORDS]);
    /// All buckets.
    pub const ALL: BucketSet = BucketSet([u64::MAX; WORDS]);

    /// Whether a bucket is in it.
    #[inline]
    pub const fn contains(&self, bucket: Bucket) -> bool {
        self.0[bucket.index() / 64] >> (bucket.index() % 64) & 1 == 1
    }

    /// Adds a bucket; whether it is new.
    pub fn insert(&mut self, bucket: Bucket) -> bool {
        let new = !self.contains(bucket);
        self.0[bucket.index() / 64] |= 1 << (bucket.index() % 64);
        new
    }

    /// Takes a bucket out; whether it was there.
    pub fn remove(&mut self, bucket: Bucket) -> bool {
        let there = self.contains(bucket);
        self.0[bucket.index() / 64] &= !(1 << (bucket.index() % 64));
        there
    }

    /// Number of buckets, 0 to 4096.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no bucket is in it.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The buckets, in order.
    pub fn iter(&self) -> impl Iterator<Item = Bucket> {
        Bucket::all().filter(|&bucket| self.contains(bucket))
    }

    /// The buckets in either.
    #[must_use]
    pub fn union(&self, other: &BucketSet) -> BucketSet {
        self.with(other, |mine, theirs| mine | theirs)
    }

    /// The buckets in both.
    #[must_use]
    pub fn intersection(&self, other: &BucketSet) -> BucketSet {
        self.with(other, |mine, theirs| mine & theirs)
    }

    /// The buckets that are not in `other`.
    #[must_use]
    pub fn minus(&self, other: &BucketSet) -> BucketSet {
        self.with(other, |mine, theirs| mine & !theirs)
    }

    /// Whether no bucket is in both.
    pub fn is_disjoint(&self, other: &BucketSet) -> bool {
        self.intersection(other).is_empty()
    }

    /// Whether every bucket of it is in `other`.
    pub fn is_subset(&self, other: &BucketSet) -> bool {
        self.minus(other).is_empty()
    }

    fn with(&self, other: &BucketSet, join: impl Fn(u64, u64) -> u64) -> BucketSet {
        BucketSet(std::array::from_fn(|word| join(self.0[word], other.0[word])))
    }

    /// Its 64 words: bucket `b` is bit `b % 64` of word `b / 64`.
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// Its bytes, little endian: bucket `b` is bit `b % 8` of byte `b / 8`.
    pub fn to_bytes(&self) -> [u8; BUCKET_BYTES] {
        let mut bytes = [0; BUCKET_BYTES];
        for (eight, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            eight.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The set that [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8; BUCKET_BYTES]) -> BucketSet {
        let mut set = BucketSet::EMPTY;
        for (word, eight) in set.0.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*eight);
        }
        set
    }
}

impl Default for BucketSet {
    fn default() -> BucketSet {
        BucketSet::EMPTY
    }
}

impl FromIterator<Bucket> for BucketSet {
    fn from_iter<I: IntoIterator<Item = Bucket>>(buckets: I) -> BucketSet {
        let mut set = BucketSet::EMPTY;
        set.extend(buckets);
        set
    }
}

impl Extend<Bucket> for BucketSet {
    fn extend<I: IntoIterator<Item = Bucket>>(&mut self, buckets: I) {
        for bucket in buckets {
            self.insert(bucket);
        }
    }
}

impl fmt::Debug for BucketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BucketSet({} of {BUCKETS})", self.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    use super::*;

    fn model() -> impl Strategy<Value = BTreeSet<u16>> {
        prop::collection::btree_set(0..BUCKETS as u16, 0..200)
    }

    fn set(model: &BTreeSet<u16>) -> BucketSet {
        model.iter().filter_map(|&number| Bucket::new(number)).collect()
    }

    fn numbers(set: &BucketSet) -> BTreeSet<u16> {
        set.iter().map(Bucket::get).collect()
    }

    proptest! {
        #[test]
        fn sets_are_those_of_the_standard_library(a in model(), b in model()) {
            let (left, right) = (set(&a), set(&b));
            prop_assert_eq!(numbers(&left.union(&right)), &a | &b);
            prop_assert_eq!(numbers(&left.intersection(&right)), &a & &b);
            prop_assert_eq!(numbers(&left.minus(&right)), &a - &b);
            prop_assert_eq!(left.is_disjoint(&right), a.is_disjoint(&b));
            prop_assert_eq!(left.is_subset(&right), a.is_subset(&b));
            prop_assert_eq!(left.len(), a.len());
            prop_assert_eq!(left.is_empty(), a.is_empty());
            prop_assert_eq!(&BucketSet::from_bytes(&left.to_bytes()), &left);
        }
    }

    #[test]
    fn a_bucket_is_the_same_bit_in_words_and_in_bytes() {
        for bucket in Bucket::all() {
            let mut set = BucketSet::EMPTY;
            assert!(set.insert(bucket) && !set.insert(bucket));
            assert_eq!(set.words()[bucket.index() / 64], 1 << (bucket.index() % 64));
            assert_eq!(set.to_bytes()[bucket.index() / 8], 1 << (bucket.index() % 8));
            assert!(set.remove(bucket) && !set.remove(bucket) && set.is_empty());
        }
        assert_eq!(Bucket::new(4096), None);
        assert_eq!(Bucket::of_hash(u64::MAX).get(), 4095);
    }
}

//! The cluster's key and the four keys that come of it.
//!
//! All hosts of a cluster have one key in their configuration. Each use has a key of its own,
//! derived by HMAC-SHA256 of a label, so that what one use gives away (a program that can be read
//! out of the kernel holds the hash key) says nothing about the others.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Least bytes of a cluster key.
pub const MIN_KEY: usize = 16;

/// The key of a cluster. Its [`Debug`](fmt::Debug) does not show it, nor does that of any key here.
///
/// ```
/// use nlb::key::ClusterKey;
///
/// let key = ClusterKey::new(b"correct horse battery staple").unwrap();
/// let tag = key.seal().sign(&[b"heartbeat"]);
/// assert!(key.seal().verify(&[b"heart", b"beat"], &tag[..16]));
/// assert!(!key.control().verify(&[b"heartbeat"], &tag[..16]));
/// assert!(ClusterKey::new(b"short").is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey {
    hash: HashKey,
    map: MapKey,
    seal: SealKey,
    control: SealKey,
}

/// The key of a cluster is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cluster key has {given} bytes: give at least {MIN_KEY}, for example of `openssl rand -base64 24`"
)]
pub struct KeyTooShort {
    /// Bytes that were given.
    pub given: usize,
}

/// SipHash key that puts packets into buckets. The two halves as SipHash reads them, little endian.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey {
    /// First half.
    pub k0: u64,
    /// Second half.
    pub k1: u64,
}

/// SipHash key that puts buckets onto hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MapKey {
    /// First half.
    pub k0: u64,
    /// Second half.
    pub k1: u64,
}

/// HMAC-SHA256 key of messages: heartbeats, or remote control.
#[derive(Clone, PartialEq, Eq)]
pub struct SealKey([u8; 32]);

impl ClusterKey {
    /// The keys of a cluster, from the secret that all its hosts are given.
    ///
    /// # Errors
    ///
    /// When `secret` has fewer than 16 bytes.
    pub fn new(secret: &[u8]) -> Result<ClusterKey, KeyTooShort> {
        if secret.len() < MIN_KEY {
            return Err(KeyTooShort { given: secret.len() });
        }
        let derive = |label: &str| mac(secret, &[b"switchyard nlb ", label.as_bytes()]);
        let [hash0, hash1] = halves(&derive("hash"));
        let [map0, map1] = halves(&derive("map"));
        Ok(ClusterKey {
            hash: HashKey { k0: hash0, k1: hash1 },
            map: MapKey { k0: map0, k1: map1 },
            seal: SealKey(derive("heartbeat")),
            control: SealKey(derive("control")),
        })
    }

    /// Puts packets into buckets ([`hash`](crate::hash)).
    pub fn hash(&self) -> HashKey {
        self.hash
    }

    /// Puts buckets onto hosts ([`map`](crate::map)).
    pub fn map(&self) -> MapKey {
        self.map
    }

    /// Seals heartbeats.
    pub fn seal(&self) -> &SealKey {
        &self.seal
    }

    /// Seals remote control.
    pub fn control(&self) -> &SealKey {
        &self.control
    }
}

impl SealKey {
    /// A key as it is, not derived: for tests of what it seals.
    #[cfg(test)]
    pub(crate) fn from_bytes(key: &[u8]) -> SealKey {
        let mut bytes = [0; 32];
        bytes[..key.len()].copy_from_slice(key);
        SealKey(bytes)
    }

    /// The HMAC of `parts`, as of one message.
    pub fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        mac(&self.0, parts)
    }

    /// Whether `tag` is the beginning of the HMAC of `parts`. It takes the same time for every
    /// wrong tag. A tag shorter than 16 bytes is always wrong.
    #[must_use]
    pub fn verify(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        tag.len() >= 16 && keyed(&self.0, parts).verify_truncated_left(tag).is_ok()
    }
}

fn keyed(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        hmac.update(part);
    }
    hmac
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    keyed(key, parts).finalize().into_bytes().into()
}

fn halves(bytes: &[u8; 32]) -> [u64; 2] {
    let [first, second, ..] = *bytes.as_chunks().0 else { return [0; 2] };
    [u64::from_le_bytes(first), u64::from_le_bytes(second)]
}

macro_rules! secret {
    ($($Key:ident),+) => {$(
        impl fmt::Debug for $Key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($Key), "(secret)"))
            }
        }
    )+};
}

secret!(ClusterKey, HashKey, MapKey, SealKey);

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"sixteen bytes ok";

    #[test]
    fn a_short_key_is_refused_with_its_length() {
        for given in 0..MIN_KEY {
            assert_eq!(ClusterKey::new(&SECRET[..given]), Err(KeyTooShort { given }));
        }
        assert!(ClusterKey::new(SECRET).is_ok());
    }

    /// Computed with Python's `hmac`. Whoever changes the derivation splits a cluster during its upgrade.
    #[test]
    fn derived_keys_are_the_same_in_every_version() {
        let key = ClusterKey::new(SECRET).unwrap();
        assert_eq!((key.hash.k0, key.hash.k1), (0x330c_0964_e2f1_1363, 0x71f6_5653_644c_aa68));
        assert_eq!((key.map.k0, key.map.k1), (0xbd9f_e6f6_3bb4_65aa, 0xf37e_157b_8911_0bb1));
        assert_eq!(key.seal.0[..4], [0xc3, 0xea, 0xfd, 0x28]);
        assert_eq!(key.control.0[..4], [0x32, 0x8d, 0x9a, 0xa9]);
    }

    /// RFC 4231, test case 2.
    #[test]
    fn the_seal_is_hmac_sha256() {
        let key = SealKey::from_bytes(b"Jefe");
        let tag = key.sign(&[b"what do ya want ", b"for nothing?"]);
        assert_eq!(tag[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    }

    #[test]
    fn a_wrong_short_or_foreign_tag_is_refused() {
        let key = ClusterKey::new(SECRET).unwrap();
        let tag = key.seal().sign(&[b"message"]);
        for len in 0..=32 {
            assert_eq!(key.seal().verify(&[b"message"], &tag[..len]), len >= 16, "{len}");
        }
        for byte in 0..32 {
            let mut wrong = tag;
            wrong[byte] ^= 1;
            assert!(!key.seal().verify(&[b"message"], &wrong));
        }
        assert!(!key.seal().verify(&[b"message"], &[&tag[..], &[0]].concat()));
        let other = ClusterKey::new(b"sixteen bytes no").unwrap();
        assert!(!other.seal().verify(&[b"message"], &tag));
    }

    #[test]
    fn no_key_shows_itself_in_debug_output() {
        let key = ClusterKey::new(SECRET).unwrap();
        let shown = format!("{key:?} {:?} {:?} {:?}", key.hash(), key.map(), key.seal());
        assert!(!shown.contains(char::is_numeric), "{shown}");
    }
}

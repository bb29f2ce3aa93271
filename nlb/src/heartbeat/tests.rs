use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::buckets::Bucket;
use crate::key::ClusterKey;
use crate::slot::SLOTS;

const CLUSTER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 10));

fn key() -> ClusterKey {
    ClusterKey::new(b"a key of a cluster").unwrap()
}

fn host(id: u8) -> HostId {
    HostId::new(id).unwrap()
}

fn plain() -> Heartbeat {
    let mut heard = Heard::NOBODY;
    heard.insert(host(2), Nonce(0x1_2345_6789));
    Heartbeat {
        cluster: CLUSTER,
        host: host(3),
        nonce: Nonce(77),
        sequence: 5,
        phase: Phase::Converging,
        agreed: true,
        draining: false,
        epoch: 4,
        view: View { hosts: HostSet::from_bits(0b110), roll: 99 },
        heard,
        lost: HostSet::EMPTY,
        digest: [1; 8],
        next: [2; 8],
        generation: 8,
        interval: Duration::from_millis(500),
        revision: 6,
        addresses: vec!["10.0.0.3".parse().unwrap(), "2001:db8::3".parse().unwrap()],
        name: "node-3".into(),
        marks_total: 9,
        marks: vec![1, 2, 3],
        slots: vec![(terms(50, 1, Operator::Enabled), report(Extent::Some, Extent::None)); 3],
        details: vec![
            Detail { slot: Slot::ECHO, subject: Subject::Claim, buckets: every(2) },
            Detail { slot: Slot::DEFAULT, subject: Subject::Pins, buckets: every(100) },
        ],
    }
}

fn terms(weight: u8, priority: u8, operator: Operator) -> SlotTerms {
    SlotTerms { weight, priority, operator }
}

fn report(claim: Extent, pins: Extent) -> SlotReport {
    SlotReport { opened: 10, flows: 20, claim, pins }
}

fn every(step: usize) -> BucketSet {
    Bucket::all().step_by(step).collect()
}

/// All lists as long as they may be.
fn longest() -> Heartbeat {
    let mut heard = Heard::NOBODY;
    for host in HostId::all() {
        heard.insert(host, Nonce(u64::MAX));
    }
    Heartbeat {
        heard,
        addresses: vec!["2001:db8::3".parse().unwrap(); MAX_ADDRESSES + 1],
        name: "ä".repeat(40),
        marks_total: 255,
        marks: vec![7; MAX_MARKS + 5],
        slots: vec![(terms(100, 32, Operator::Draining), report(Extent::All, Extent::Some)); SLOTS],
        details: Vec::new(),
        ..plain()
    }
}

#[test]
fn what_is_written_is_read_back() {
    let bytes = plain().encode(key().seal());
    assert_eq!(decode(&bytes, CLUSTER, key().seal()), Ok(plain()));
}

#[test]
fn the_longest_heartbeat_fits_a_frame_and_still_carries_a_bitmap() {
    let mut heartbeat = longest();
    let detail = Detail { slot: Slot::ECHO, subject: Subject::Pins, buckets: every(2) };
    let mut room = Room::of(&heartbeat);
    while room.take(&detail) {
        heartbeat.details.push(detail.clone());
    }
    assert!(!heartbeat.details.is_empty());
    let count = heartbeat.details.len();
    heartbeat.details.push(detail);
    let bytes = heartbeat.encode(key().seal());
    assert!(bytes.len() <= MAX_PAYLOAD, "{}", bytes.len());
    let read = decode(&bytes, CLUSTER, key().seal()).unwrap();
    assert_eq!(read.details.len(), count, "what has no room is left out as a whole");
    assert_eq!((read.addresses.len(), read.marks.len()), (MAX_ADDRESSES, MAX_MARKS));
    assert!(read.name.chars().all(|letter| letter == 'ä') && read.name.len() == 62);
}

#[test]
fn a_heartbeat_of_another_cluster_version_or_key_is_refused_by_its_reason() {
    let seal = key();
    let bytes = plain().encode(seal.seal());
    let refused = |bytes: &[u8]| decode(bytes, CLUSTER, seal.seal()).unwrap_err();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        bytes
    };
    assert_eq!(refused(&with(0, 0xc0)), Refusal::Foreign);
    assert_eq!(refused(&with(4, 2)), Refusal::Version);
    assert_eq!(refused(&with(7, 1)), Refusal::Truncated);
    assert_eq!(refused(&with(11, 11)), Refusal::OtherCluster);
    assert_eq!(refused(&[bytes.clone(), vec![0]].concat()), Refusal::Truncated);
    let other = ClusterKey::new(b"the key of another cluster").unwrap();
    assert_eq!(refused(&plain().encode(other.seal())), Refusal::Seal);
    assert_eq!(refused(&plain().encode(seal.control())), Refusal::Seal);
}

#[test]
fn one_wrong_bit_anywhere_or_a_cut_is_refused() {
    let seal = key();
    let bytes = plain().encode(seal.seal());
    for at in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[at] ^= 1 << (at % 8);
        assert!(decode(&wrong, CLUSTER, seal.seal()).is_err(), "bit in byte {at}");
        assert!(decode(&bytes[..at], CLUSTER, seal.seal()).is_err(), "{at} bytes");
    }
}

/// A wrong field under a right seal: a host with an error, or an owner of the key.
#[test]
fn fields_out_of_their_ranges_are_refused_under_a_right_seal() {
    let seal = key();
    let good = plain().encode(seal.seal());
    let sealed = |at: usize, bytes: &[u8]| {
        let mut wrong = good[..good.len() - SEAL].to_vec();
        wrong[at..at + bytes.len()].copy_from_slice(bytes);
        let tag = seal.seal().sign(&[&wrong]);
        decode(&[&wrong, &tag[..SEAL]].concat(), CLUSTER, seal.seal())
    };
    assert!(sealed(24, &[3]).is_ok());
    let name_at = FIXED + 4 + 1 + 5 + 17;
    let slots_at = name_at + 1 + 6 + 2 + 12;
    for (at, bytes, field) in [
        (24, &[0][..], "host 0"),
        (24, &[33], "host 33"),
        (25, &[0], "phase 0"),
        (25, &[5], "phase 5"),
        (26, &[4], "unknown flag"),
        (27, &[1], "reserved"),
        (28, &[0; 8], "nonce 0"),
        (64, &[0xff; 4], "more hosts heard than tags"),
        (96, &[0, 0], "interval 0"),
        (FIXED + 4, &[5], "too many addresses"),
        (FIXED + 5, &[5], "address family 5"),
        (name_at, &[64], "long name"),
        (name_at + 1, &[0xff], "name not UTF-8"),
        (name_at + 1, &[0x1b], "control character in name"),
        (name_at + 7, &[2], "more marks than there are"),
        (slots_at, &[35], "too many slots"),
        (slots_at + 1, &[101], "weight 101"),
        (slots_at + 2, &[3], "operator state 3"),
        (slots_at + 2, &[33 << 2], "priority 33"),
        (slots_at + 11, &[3], "extent 3"),
        (slots_at + 11, &[16], "unknown bits of extents"),
        (slots_at + 34, &[69], "too many details"),
        (slots_at + 35, &[3], "detail of a slot that is not there"),
        (slots_at + 36, &[2], "detail of an unknown subject"),
        (slots_at + 37, &[2], "unknown form of buckets"),
    ] {
        assert_eq!(sealed(at, bytes), Err(Refusal::Malformed), "{field}");
    }
}

#[test]
fn buckets_are_read_only_in_the_form_they_are_written_in() {
    let read = |bytes: &[u8]| buckets::read(&mut reader::Reader(bytes));
    assert!(read(&[0, 2, 0, 1, 0, 2]).is_some());
    for (bytes, wrong) in [
        (&[0, 2, 0, 2, 0, 1][..], "falling"),
        (&[0, 2, 0, 1, 0, 1], "twice"),
        (&[0, 1, 0x10, 0], "bucket 4096"),
        (&[0, 2, 0, 1, 0], "cut"),
        (&[1, 0xff], "bitmap cut"),
        (&[], "empty"),
    ] {
        assert!(read(bytes).is_none(), "{wrong}");
    }
    let short = [&[1][..], &every(32).to_bytes()].concat();
    assert!(read(&short).is_none(), "a bitmap where a list is shorter");
}

proptest! {
    #[test]
    fn sets_of_buckets_survive_the_wire(numbers in prop::collection::btree_set(0..4096u16, 0..600)) {
        let set: BucketSet = numbers.iter().filter_map(|&number| Bucket::new(number)).collect();
        let mut bytes = Vec::new();
        buckets::write(&mut bytes, &set);
        prop_assert_eq!(bytes.len(), buckets::size(&set));
        let mut reader = reader::Reader(&bytes);
        prop_assert_eq!(buckets::read(&mut reader), Some(set));
        prop_assert!(reader.0.is_empty());
    }

    /// Garbage behind a right head and a right seal: the parser alone stands between it and us.
    #[test]
    fn sealed_garbage_never_panics(body in prop::collection::vec(any::<u8>(), 0..1476)) {
        let seal = key();
        let mut bytes = plain().encode(seal.seal())[..24].to_vec();
        bytes.extend(body);
        bytes.truncate(MAX_PAYLOAD - SEAL);
        let length = (bytes.len() + SEAL) as u16;
        bytes[6..8].copy_from_slice(&length.to_be_bytes());
        let tag = seal.seal().sign(&[&bytes]);
        bytes.extend(&tag[..SEAL]);
        let _ = decode(&bytes, CLUSTER, seal.seal());
        let _ = decode(&bytes[..bytes.len() / 2], CLUSTER, seal.seal());
    }

    /// A right heartbeat with a few bytes changed and sealed anew reaches deep into the parser.
    #[test]
    fn sealed_mutations_never_panic_and_read_back_what_they_say(
        changes in prop::collection::vec((24..400usize, any::<u8>()), 1..4),
    ) {
        let seal = key();
        let mut bytes = plain().encode(seal.seal());
        bytes.truncate(bytes.len() - SEAL);
        for (at, byte) in changes {
            let at = at.min(bytes.len() - 1);
            bytes[at] = byte;
        }
        let tag = seal.seal().sign(&[&bytes]);
        bytes.extend(&tag[..SEAL]);
        if let Ok(heartbeat) = decode(&bytes, CLUSTER, seal.seal()) {
            prop_assert_eq!(heartbeat.encode(seal.seal()), bytes);
        }
    }
}

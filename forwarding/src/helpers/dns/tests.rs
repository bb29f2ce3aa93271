//! Questions that are read, and everything that is not.

use super::*;
use proptest::prelude::*;

/// Keeps what it is given.
#[derive(Default)]
struct Kept<'a>(Option<&'a mut Vec<u8>>);

impl Hasher for Kept<'_> {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(kept) = &mut self.0 {
            kept.extend_from_slice(bytes);
        }
    }

    fn finish(&self) -> u64 {
        7
    }
}

/// What is hashed of a datagram.
fn hashed(payload: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let hash = question_name_hash(payload, Kept(Some(&mut bytes)))?;
    assert_eq!(hash, 7, "the hasher's own");
    Some(bytes)
}

/// A question for the name, type A and class IN.
fn query(name: &[u8]) -> Vec<u8> {
    const PLAIN: [u8; HEADER] = [0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [&PLAIN, name, &[0, 1, 0, 1]].concat()
}

/// The same with EDNS, and a cookie of 8 bytes in it.
fn extended(name: &[u8]) -> Vec<u8> {
    let mut packet = query(name);
    packet[11] = 1;
    packet.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
    packet
}

/// With one byte of the datagram set.
fn with(mut packet: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    packet[at] = byte;
    packet
}

const NAME: &[u8] = b"\x03www\x07example\x03com\0";

#[test]
fn the_name_is_hashed_in_lower_case_with_its_lengths() {
    assert_eq!(hashed(&query(NAME)).unwrap(), NAME);
    assert_eq!(hashed(&query(b"\x03wWw\x07EXAMPLE\x03cOm\0")).unwrap(), NAME);
    assert_eq!(hashed(&extended(NAME)).unwrap(), NAME);
    assert_eq!(hashed(&query(b"\0")).unwrap(), b"\0", "the root is a name");
    assert_eq!(question_name(&query(b"\x01A\0")), Some(&b"\x01A\0"[..]), "as it is spelt");
}

#[test]
fn letters_only_are_folded() {
    let odd = b"\x0b@[`{A\x00.\xc3\x84_Z\0";
    assert_eq!(hashed(&query(odd)).unwrap(), b"\x0b@[`{a\x00.\xc3\x84_z\0");
}

#[test]
fn type_class_id_and_the_other_flags_do_not_matter() {
    for (at, byte) in [(0, 0), (2, 0x07), (3, 0xff)] {
        assert_eq!(hashed(&with(query(NAME), at, byte)).unwrap(), NAME, "byte {at}");
    }
    let last = HEADER + NAME.len() + 1;
    assert_eq!(hashed(&with(query(NAME), last, 28)).unwrap(), NAME);
    assert_eq!(hashed(&with(query(NAME), last + 2, 3)).unwrap(), NAME);
}

#[test]
fn cut_off_at_any_byte_it_is_no_query() {
    for whole in [query(NAME), extended(NAME), query(b"\0")] {
        for len in 0..whole.len() {
            assert_eq!(hashed(&whole[..len]), None, "{len} of {} bytes", whole.len());
        }
        assert!(hashed(&whole).is_some());
    }
}

#[test]
fn a_pointer_is_not_followed_wherever_it_leads() {
    // To itself, to the one after it that leads back, into the header, beyond the end.
    for name in
        [&b"\xc0\x0c"[..], b"\xc0\x0e\xc0\x0c", b"\x03www\xc0\x0c", b"\xc0\0", b"\x01a\xff\xff"]
    {
        assert_eq!(hashed(&query(name)), None, "{name:?}");
    }
    // Nor is it a long label, where everything else is as if it were.
    assert_eq!(hashed(&query(&[&b"\xc0\x0c"[..], &[b'a'; 191], &[0]].concat())), None);
}

#[test]
fn a_response_is_no_query() {
    assert_eq!(hashed(&with(query(NAME), 2, 0x81)), None);
}

#[test]
fn other_operations_are_no_query() {
    // Inverse query, status, notify, update.
    for opcode in [1, 2, 4, 5, 15] {
        assert_eq!(hashed(&with(query(NAME), 2, opcode << 3)), None, "opcode {opcode}");
    }
}

#[test]
fn several_questions_are_none() {
    let mut two = with(query(NAME), 5, 2);
    two.extend_from_slice(NAME);
    two.extend([0, 1, 0, 1]);
    assert_eq!(hashed(&two), None);
    for (at, byte) in [(5, 0), (4, 1), (4, 255)] {
        assert_eq!(hashed(&with(query(NAME), at, byte)), None, "byte {at} is {byte}");
    }
}

#[test]
fn answers_and_authorities_in_a_question_are_not_plain() {
    for at in [6, 7, 8, 9, 10] {
        assert_eq!(hashed(&with(query(NAME), at, 1)), None, "byte {at}");
    }
    assert_eq!(hashed(&with(extended(NAME), 11, 2)), None, "two additional records");
}

#[test]
fn an_additional_record_that_is_not_edns_is_not_plain() {
    let record = query(NAME).len();
    assert_eq!(hashed(&with(extended(NAME), record, 1)), None, "of a name");
    // Transaction signature.
    assert_eq!(hashed(&with(extended(NAME), record + 2, 250)), None);
    assert_eq!(hashed(&with(query(NAME), 11, 1)), None, "announced, and not there");
    assert_eq!(hashed(&with(extended(NAME), 11, 0)), None, "there, and not announced");
}

#[test]
fn bytes_behind_the_last_record_are_not_plain() {
    for mut packet in [query(NAME), extended(NAME)] {
        packet.push(0);
        assert_eq!(hashed(&packet), None);
    }
}

#[test]
fn a_label_has_63_bytes_at_most() {
    let of = |length: u8| [&[length][..], &vec![b'a'; length.into()], &[0]].concat();
    assert!(hashed(&query(&of(63))).is_some());
    for length in [64, 65, 127, 128, 191, 192, 255] {
        assert_eq!(hashed(&query(&of(length))), None, "{length}");
    }
}

#[test]
fn a_name_has_255_bytes_at_most() {
    let label = [&[63][..], &[b'a'; 63]].concat();
    let of = |last: u8| {
        let last = [&[last][..], &vec![b'z'; last.into()]].concat();
        [&*label, &label, &label, &last, &[0]].concat()
    };
    assert_eq!(of(61).len(), 255);
    assert_eq!(hashed(&query(&of(61))), Some(of(61)));
    assert_eq!(hashed(&query(&of(62))), None);
    let many = [b"\x01a".repeat(127), vec![0]].concat();
    assert_eq!(hashed(&query(&many)).unwrap().len(), 255, "as many labels as there can be");
    assert_eq!(hashed(&query(&[b"\x01a".repeat(128), vec![0]].concat())), None);
    assert_eq!(hashed(&query(&b"\x01a".repeat(30_000))), None, "a long datagram without an end");
}

#[test]
fn nothing_is_no_query() {
    assert_eq!(hashed(&[]), None);
    assert_eq!(hashed(&[0; HEADER]), None);
    assert_eq!(hashed(&[0; 512]), None);
    assert_eq!(hashed(&[0xff; 512]), None);
}

proptest! {
    #[test]
    fn random_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = hashed(&bytes);
    }

    #[test]
    fn a_query_in_which_anything_was_changed_is_read_as_its_bytes_say(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
        edns: bool,
    ) {
        let mut packet = if edns { extended(NAME) } else { query(NAME) };
        for (at, byte) in changes {
            let at = at.index(packet.len());
            packet[at] = byte;
        }
        if let Some(cut) = cut {
            packet.truncate(cut.index(packet.len()));
        }
        if let Some(name) = hashed(&packet) {
            let on_the_wire = &packet[HEADER..HEADER + name.len()];
            prop_assert_eq!(&name, &on_the_wire.to_ascii_lowercase());
            prop_assert!(name.len() <= MAX_NAME && name.ends_with(&[0]));
            prop_assert!(packet.len() >= HEADER + name.len() + TYPE_AND_CLASS);
            prop_assert_eq!(packet[2] & 0xf8, 0, "a query");
            prop_assert_eq!(&packet[4..11], &[0, 1, 0, 0, 0, 0, 0]);
        }
    }

    #[test]
    fn every_name_is_found_in_its_question(
        labels in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=63), 0..=3),
        edns: bool,
    ) {
        let mut name = Vec::new();
        for label in &labels {
            name.push(label.len() as u8);
            name.extend_from_slice(label);
        }
        name.push(0);
        let packet = if edns { extended(&name) } else { query(&name) };
        let mut expected = Vec::new();
        for label in &labels {
            expected.push(label.len() as u8);
            expected.extend(label.to_ascii_lowercase());
        }
        expected.push(0);
        prop_assert_eq!(hashed(&packet), Some(expected));
    }
}

use proptest::prelude::*;

use super::*;

fn piece(family: Family, begin: usize, end: usize, more: bool) -> Piece {
    Piece { family, begin, end, most: 65_515, more }
}

/// What becomes of these fragments, one after the other.
fn fates(family: Family, pieces: &[(usize, usize, bool)]) -> (Vec<Option<Misfit>>, Cover) {
    let mut cover = Cover::default();
    let fates = pieces
        .iter()
        .map(|&(begin, end, more)| cover.add(&piece(family, begin, end, more)).err())
        .collect();
    (fates, cover)
}

use Misfit::{Duplicate, End, Overlap, Scattered, Uneven};

#[test]
fn in_any_order_the_last_one_completes_a_datagram() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
        let mut cover = Cover::default();
        for (turn, place) in order.into_iter().enumerate() {
            assert!(!cover.is_complete(), "{order:?} after {turn}");
            let piece = piece(Family::V4, place * 16, place * 16 + 16, place < 3);
            assert_eq!(cover.add(&piece), Ok(()));
        }
        assert!(cover.is_complete(), "{order:?}");
    }
}

#[test]
fn what_lies_within_a_part_is_a_duplicate_and_spoils_nothing() {
    for family in [Family::V4, Family::V6] {
        let (fates, cover) = fates(
            family,
            &[(0, 16, true), (16, 32, true), (0, 16, true), (8, 24, true), (32, 40, false)],
        );
        assert_eq!(fates, [None, None, Some(Duplicate), Some(Duplicate), None]);
        assert!(cover.is_complete());
    }
}

#[test]
fn an_overlap_spoils_the_rest_of_the_datagram() {
    for family in [Family::V4, Family::V6] {
        for (begin, end) in [(8, 24), (24, 40), (16, 40), (40, 56), (0, 64)] {
            let pieces = [(16, 32, true), (48, 64, true), (begin, end, true), (0, 8, true)];
            let (fates, cover) = fates(family, &pieces);
            assert_eq!(fates[2..], [Some(Overlap), Some(Overlap)], "{begin} to {end}");
            assert!(cover.is_spoilt());
        }
    }
}

#[test]
fn parts_that_touch_but_came_out_of_order_are_two_as_in_the_kernel() {
    let (fates, _) = fates(Family::V4, &[(16, 32, true), (0, 16, true), (8, 24, true)]);
    assert_eq!(fates[2], Some(Overlap));
}

#[test]
fn a_wrong_end_spoils_an_ipv4_datagram_and_is_only_dropped_over_ipv6() {
    let known = [(0, 16, true), (32, 48, false)];
    for wrong in [(48, 56, true), (48, 56, false), (16, 32, false), (16, 16, true)] {
        let pieces = [known[0], known[1], wrong, (16, 32, true)];
        let (v4, cover) = fates(Family::V4, &pieces);
        assert_eq!((v4[2], v4[3], cover.is_complete()), (Some(End), Some(End), false), "{wrong:?}");
        let (v6, cover) = fates(Family::V6, &pieces);
        assert_eq!((v6[2], v6[3], cover.is_complete()), (Some(End), None, true), "{wrong:?}");
    }
}

#[test]
fn nothing_but_the_last_fragment_ends_among_eight_bytes() {
    for family in [Family::V4, Family::V6] {
        let (fates, _) = fates(family, &[(0, 16, true), (16, 21, true), (16, 24, false)]);
        assert_eq!(fates, [None, Some(Uneven), Some(Uneven)]);
    }
}

#[test]
fn a_fragment_past_the_longest_datagram_does_not_fit() {
    let mut cover = Cover::default();
    assert_eq!(cover.add(&piece(Family::V4, 65_504, 65_516, false)), Err(End));
    assert_eq!(Cover::default().add(&piece(Family::V4, 65_504, 65_515, false)), Ok(()));
}

#[test]
fn more_separate_parts_than_there_is_room_for_spoil_a_datagram() {
    let mut cover = Cover::default();
    for place in 0..PARTS {
        assert_eq!(cover.add(&piece(Family::V4, place * 16, place * 16 + 8, true)), Ok(()));
    }
    let past = PARTS * 16;
    assert_eq!(cover.add(&piece(Family::V4, past, past + 8, true)), Err(Scattered));
    assert_eq!(cover.add(&piece(Family::V4, 8, 16, true)), Err(Scattered));
}

#[test]
fn any_number_of_fragments_fits_from_last_to_first() {
    let mut cover = Cover::default();
    for place in (0..1000).rev() {
        assert_eq!(cover.add(&piece(Family::V6, place * 64, place * 64 + 64, place < 999)), Ok(()));
    }
    assert!(cover.is_complete());
}

proptest! {
    /// A map of bytes knows the same.
    #[test]
    fn no_byte_goes_on_twice(
        v4 in any::<bool>(),
        pieces in prop::collection::vec((0usize..12, 0usize..5, any::<bool>()), 0..40),
    ) {
        let family = if v4 { Family::V4 } else { Family::V6 };
        let mut cover = Cover::default();
        let (mut gone, mut end) = ([false; 20], None);
        for (begin, length, more) in pieces {
            let fits = cover.add(&piece(family, begin * 8, (begin + length) * 8, more));
            let part = begin..begin + length;
            if fits.is_ok() {
                prop_assert!(!gone[part.clone()].contains(&true), "{:?} again", part);
                gone[part.clone()].fill(true);
                if !more {
                    prop_assert!(end.is_none_or(|end| end == part.end));
                    end = Some(part.end);
                }
            }
            if fits == Err(Duplicate) {
                prop_assert!(gone[part.clone()].iter().all(|gone| *gone) && !part.is_empty());
            }
            let whole = end.is_some_and(|end| gone[..end].iter().all(|gone| *gone));
            // The end may be known from a duplicate, which then says no other.
            prop_assert!(cover.is_complete() == whole || end.is_none());
        }
    }
}

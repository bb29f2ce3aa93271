//! A sender and a receiver who never notice that lines between them change their length.

use proptest::prelude::*;

use super::{Place, SequenceAdjustment};
use world::{Line, World};

mod world;

/// Lines of 13 bytes (`229 (|||1|)` and its end) to 60; some of them become others. Every line has
/// bytes of its own.
fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (13usize..60, prop::option::of(13usize..60));
    prop::collection::vec(line, 1..24).prop_map(|lengths| {
        (0u8..)
            .zip(lengths)
            .map(|(number, (old, new))| Line {
                old: (0..old).map(|at| number.wrapping_mul(67).wrapping_add(at as u8)).collect(),
                new: new.map(|new| {
                    (0..new).map(|at| number.wrapping_mul(41).wrapping_sub(at as u8)).collect()
                }),
            })
            .collect()
    })
}

/// First numbers, most of them short before the wrap-around or its half.
fn first_numbers() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        (0u32..1000).prop_map(u32::wrapping_neg),
        (0u32..1000).prop_map(|below| (1 << 31) - below),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_ends_see_one_consistent_stream_whatever_is_altered_lost_repeated_or_reordered(
        lines in lines(),
        first in first_numbers(),
        steps in prop::collection::vec(any::<(u8, u8)>(), 0..400),
    ) {
        let mut world = World::new(lines, first);
        for (action, choice) in steps {
            world.step(action, choice);
        }
        world.finish();
    }

    #[test]
    fn in_order_every_line_that_should_be_altered_is(lines in lines(), first in first_numbers()) {
        let mut world = World::new(lines, first);
        world.finish();
        for (line, altered) in world.lines.iter().zip(&world.altered) {
            prop_assert_eq!(Some(line.new.is_some()), *altered);
        }
    }

    #[test]
    fn no_numbers_panic(
        calls in prop::collection::vec(any::<(u8, u32, u16, u16)>(), 0..60),
    ) {
        let mut adjustment = SequenceAdjustment::default();
        for (call, number, old_len, new_len) in calls {
            match call % 5 {
                0 => { let _ = adjustment.alter(number, old_len, new_len); }
                1 => adjustment.passed(number, usize::from(old_len) << (new_len % 40)),
                2 => { let _ = adjustment.place(number, usize::from(old_len)); }
                3 => adjustment.acknowledged(number),
                _ => {
                    let _ = adjustment.sequence(number);
                    let (left, right) = adjustment.selective(number, number.wrapping_add(9));
                    prop_assert!(right.wrapping_sub(left) < 1 << 31, "a block is not inverted");
                }
            }
        }
    }
}

#[test]
fn a_retransmission_of_the_altered_line_keeps_its_number_and_is_known_again() {
    let mut replies = SequenceAdjustment::default();
    assert_eq!(replies.place(1000, 48), Place::Next { offset: 0 });
    assert!(replies.alter(1000, 48, 51));
    replies.passed(1000, 48);
    assert_eq!(replies.place(1000, 48), Place::Altered { offset: 0 });
    assert!(replies.alter(1000, 48, 51), "the same again");
    assert_eq!(replies.sequence(1000), 1000);
    // With what came before it, and with what comes behind it.
    assert_eq!(replies.place(980, 68), Place::Altered { offset: 20 });
    assert_eq!(replies.place(1000, 60), Place::Altered { offset: 0 });
    // In pieces it would be one half old and one half new.
    assert_eq!(replies.place(1000, 20), Place::Torn);
    assert_eq!(replies.place(1020, 28), Place::Torn);
    assert!(!replies.alter(1000, 48, 52), "it has passed with another length");
}

#[test]
fn a_line_that_has_passed_unaltered_stays_so() {
    let mut replies = SequenceAdjustment::default();
    replies.passed(1000, 48);
    assert_eq!(replies.place(1000, 48), Place::Old);
    assert!(!replies.alter(1000, 48, 51));
    assert!(replies.is_idle());
}

#[test]
fn each_of_several_alterations_counts_from_its_place_on() {
    let mut replies = SequenceAdjustment::default();
    let mut number = 0u32.wrapping_sub(100);
    let mut expected = number;
    for (old_len, new_len) in [(48, 51), (50, 40), (13, 13), (40, 50)] {
        assert!(replies.alter(number, old_len, new_len));
        replies.passed(number, usize::from(old_len) + 10);
        number = number.wrapping_add(u32::from(old_len) + 10);
        expected = expected.wrapping_add(u32::from(new_len) + 10);
        assert_eq!(replies.sequence(number), expected);
        assert_eq!(replies.acknowledgement(expected), number);
    }
    // The first of them, still.
    let first = 0u32.wrapping_sub(100);
    assert_eq!(replies.sequence(first), first);
    assert_eq!(replies.sequence(first.wrapping_add(48)), first.wrapping_add(51));
}

#[test]
fn an_acknowledgement_inside_an_altered_line_asks_for_the_whole_line() {
    let mut replies = SequenceAdjustment::default();
    assert!(replies.alter(1000, 48, 51));
    assert_eq!(replies.acknowledgement(1000), 1000);
    assert_eq!(replies.acknowledgement(1001), 1000);
    assert_eq!(replies.acknowledgement(1050), 1000);
    assert_eq!(replies.acknowledgement(1051), 1048);
    assert_eq!(replies.selective(1010, 1100), (1048, 1097));
    assert_eq!(replies.selective(900, 1010), (900, 1000));
    let (left, right) = replies.selective(1010, 1020);
    assert_eq!(left, right, "part of a line is no block");
}

#[test]
fn a_keepalive_is_numbered_one_before_the_next_byte() {
    let mut replies = SequenceAdjustment::default();
    assert!(replies.alter(1000, 48, 51));
    replies.passed(1000, 48);
    for len in [0, 1] {
        assert_eq!(replies.place(1047, len), Place::Old);
        assert_eq!(replies.sequence(1047), 1050);
    }
}

#[test]
fn a_gap_is_noticed_until_the_receiver_says_that_it_has_been_filled_another_way() {
    let mut replies = SequenceAdjustment::default();
    replies.passed(1000, 100);
    assert_eq!(replies.place(1150, 10), Place::Ahead);
    assert_eq!(replies.place(1150, 0), Place::Old, "a bare acknowledgement waits for nothing");
    replies.acknowledged(1150);
    assert_eq!(replies.place(1150, 10), Place::Next { offset: 0 });
}

#[test]
fn alterations_from_long_ago_become_a_plain_offset_before_the_numbers_come_round() {
    let mut replies = SequenceAdjustment::default();
    assert!(replies.alter(0, 48, 51));
    let mut number = 0u32;
    for _ in 0..5u64 << 32 >> 20 {
        replies.passed(number, 1 << 20);
        number = number.wrapping_add(1 << 20);
        assert_eq!(replies.sequence(number), number.wrapping_add(3));
        assert_eq!(replies.acknowledgement(number.wrapping_add(3)), number);
    }
}

//! The table against the rule written down plainly, and against fixed numbers.
//!
//! The numbers come from a separate program with a SipHash of its own (checked with the published
//! vector of SipHash-2-4).

use super::study::{self, Scheme};
use super::*;
use crate::testing::client;
use crate::{Key, TooManyServers};
use proptest::prelude::*;
use std::collections::HashSet;
use std::net::Ipv4Addr;

fn member(host: u32, weight: i32) -> Member {
    Member::new(Ipv4Addr::from_bits(0xC000_0200 + host).into(), 53, weight)
}

fn members(weights: &[i32]) -> Vec<Member> {
    weights.iter().zip(1..).map(|(&weight, host)| member(host, weight)).collect()
}

fn faithful(variants: u16) -> PlacementOptions {
    PlacementOptions { variants, sticky: false }
}

fn sticky(variants: u16) -> PlacementOptions {
    PlacementOptions { variants, sticky: true }
}

/// Keys that are spread all over the space, the same each time.
fn keys(count: usize) -> Vec<u64> {
    study::names(count, 99)
}

/// The row of the key and the walk through it, by the words of the specification.
fn plainly(members: &[Member], options: PlacementOptions, hash: u64) -> Vec<usize> {
    let variant = ((hash >> 32) % u64::from(options.variants)) as u16;
    let width = |id: &usize| u128::from(members[*id].width(options.sticky));
    let mut row: Vec<usize> = (0..members.len()).filter(|id| width(id) > 0).collect();
    row.sort_by_key(|&id| {
        let Member { address, port, .. } = members[id];
        (dht_rand(address, port, variant), hashes::octets(address), port)
    });
    let all: u128 = row.iter().map(width).sum();
    let target = (u128::from(hash & 0xffff_ffff) * all) >> 32;
    let mut sum = 0;
    let home = row.iter().position(|id| {
        sum += width(id);
        target < sum
    });
    row.rotate_left(home.unwrap_or(0));
    row.retain(|&id| members[id].is_live());
    row
}

fn assert_is_plain(table: &Table, members: &[Member], options: PlacementOptions, hash: u64) {
    let expected = plainly(members, options, hash);
    assert_eq!(table.walk(hash).collect::<Vec<_>>(), expected, "{hash:#x}");
    assert_eq!(table.owner(hash), expected.first().copied(), "{hash:#x}");
    assert_eq!(table.replica(hash), expected.get(1).copied(), "{hash:#x}");
}

#[test]
fn draws_and_keys_are_those_of_the_specification() {
    let draw = |address: &str, port, variant| dht_rand(address.parse().unwrap(), port, variant);
    assert_eq!(draw("192.0.2.1", 53, 0), 0x8894_ce85_c900_a413);
    assert_eq!(draw("192.0.2.1", 53, 511), 0xebbe_507d_8085_eda3);
    assert_eq!(draw("2001:db8::53", 853, 65_534), 0xbab6_630a_a749_d38d);
    let four = Key { protocol: 17, destination_port: 53, ..client("198.51.100.7", 40_000) };
    let six = Key { destination: "2001:db8::1".parse().unwrap(), ..client("2001:db8::7", 443) };
    for (key, by, expected) in [
        (four, HashBy::Source, 0x8a14_77a9_839d_a799),
        (four, HashBy::OfScheduler, 0x8a14_77a9_839d_a799),
        (four, HashBy::Name, 0x8a14_77a9_839d_a799),
        (four, HashBy::SourcePort, 0x1654_28f4_506a_d4f9),
        (four, HashBy::Destination, 0x963a_c16b_b37e_099d),
        (four, HashBy::Tuple, 0xe0b2_fb2e_27ff_b0fb),
        (six, HashBy::Tuple, 0x68f6_9e90_d343_6642),
        (Key { name: Some(7), ..four }, HashBy::Name, 7),
    ] {
        assert_eq!(key.hash_by(by), expected, "{by:?} of {key:?}");
    }
    assert_eq!(name_hash("www.example.com"), Some(0x0b69_e802_162d_e140));
    assert_eq!(name_hash("WwW.eXample.COM."), name_hash("www.example.com"));
    assert_eq!(name_hash("."), Some(0x840f_1df3_0c1d_f243));
    assert_eq!(name_hash(""), name_hash("."));
}

#[test]
fn ports_of_a_protocol_without_ports_do_not_count() {
    let key = Key { protocol: 50, ..client("198.51.100.7", 40_000) };
    let other = Key { source_port: 0, destination_port: 0, ..key };
    for by in [HashBy::SourcePort, HashBy::Tuple] {
        assert_eq!(key.hash_by(by), other.hash_by(by), "{by:?}");
    }
}

#[test]
fn what_is_no_name_has_no_hash() {
    let long = "a".repeat(63);
    let full = [&*long, &long, &long, &long[..61]].join(".");
    assert!(name_hash(&full).is_some(), "255 bytes on the wire");
    let label = "a".repeat(64);
    for name in ["..", "a..b", ".a", &label, &format!("{full}a")] {
        assert_eq!(name_hash(name), None, "{name:?}");
    }
}

#[test]
fn keys_fall_where_a_program_of_another_hand_puts_them() {
    // 192.0.2.1 port 53 and so on, and the plain names host0.example, host1.example ...
    for (weights, options, expected) in VECTORS {
        let table = Table::build(&members(weights), options).unwrap();
        let owners = (0..24).map(|number| {
            let hash = name_hash(&format!("host{number}.example")).unwrap();
            table.owner(hash).unwrap().to_string()
        });
        assert_eq!(owners.collect::<String>(), expected, "{weights:?} {options:?}");
    }
}

const VECTORS: [(&[i32], PlacementOptions, &str); 4] = [
    (&[1, 1, 1], PlacementOptions { variants: 512, sticky: false }, "102101210222021020121112"),
    (&[1, 1, 1, 1, 1], PlacementOptions { variants: 7, sticky: false }, "210222344214401010441200"),
    (&[5, 1, 3], PlacementOptions { variants: 512, sticky: false }, "102101200202021020001102"),
    (
        &[i32::MAX, 1, 1_000_000_000],
        PlacementOptions { variants: 512, sticky: true },
        "202200200002020020000000",
    ),
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn every_table_is_the_rule_and_so_is_every_table_made_of_another(
        first in prop::collection::vec((0..40_u32, weight(), weight()), 0..30),
        second in prop::collection::vec((0..40_u32, weight(), weight()), 0..30),
        keeps in 0..30_usize,
        variants in prop_oneof![Just(1_u16), Just(512), 2..30_u16],
        sticky in any::<bool>(),
        hashes in prop::collection::vec(any::<u64>(), 40),
    ) {
        let options = PlacementOptions { variants, sticky };
        let before = distinct(&first);
        // Some stay, maybe with other weights and in other places, some go, some are new.
        let kept = before.iter().rev().take(keeps).map(|member| member.weighing(3)).take(keeps / 2);
        let mut after: Vec<_> = distinct(&second);
        after.extend(before.iter().take(keeps).copied());
        after.extend(kept);
        let mut seen = HashSet::new();
        after.retain(|member| seen.insert(member.address));
        let table = Table::build(&before, options).unwrap();
        let next = table.rebuilt(&after).unwrap();
        for hash in hashes {
            assert_is_plain(&table, &before, options, hash);
            assert_is_plain(&next, &after, options, hash);
        }
    }

    #[test]
    fn the_row_is_the_remainder_for_every_chunk(chunk: u32, variants in 1..=u16::MAX) {
        let table = Table::build(&[], faithful(variants)).unwrap();
        prop_assert_eq!(table.row(chunk), (chunk % u32::from(variants)) as usize);
    }
}

fn weight() -> impl Strategy<Value = i32> {
    prop_oneof![2 => Just(0), 4 => Just(1), 3 => 1..100_i32, 1 => Just(i32::MAX)]
}

fn distinct(drawn: &[(u32, i32, i32)]) -> Vec<Member> {
    let mut seen = HashSet::new();
    let drawn = drawn.iter().filter(|(host, _, _)| seen.insert(*host));
    drawn.map(|&(host, first, weight)| member(host, first).weighing(weight)).collect()
}

#[test]
fn the_first_and_the_last_offset_of_every_segment_are_exact() {
    // The usual weights have one end in a cell and sometimes a few. With 30 of weight 1 beside a huge one there
    // are cells with more than are looked at one by one.
    let crowd = [vec![1; 30], vec![i32::MAX, 5]].concat();
    let usual = (1..40).collect();
    for weights in [vec![1, 2, 3, 1000, i32::MAX, 7, 7], vec![5, 1, 3], usual, crowd] {
        assert_borders_are_exact(&weights);
    }
}

fn assert_borders_are_exact(weights: &[i32]) {
    let list = members(weights);
    let options = faithful(3);
    let table = Table::build(&list, options).unwrap();
    let all: u128 = weights.iter().map(|&weight| weight as u128).sum();
    for row in 0..3_u64 {
        let mut sum = 0_u128;
        for id in plainly(&list, options, row << 32) {
            sum += weights[id] as u128;
            let border = (sum << 32).div_ceil(all) as i64;
            for offset in [border - 2, border - 1, border, border + 1] {
                let Ok(offset) = u32::try_from(offset) else { continue };
                assert_is_plain(&table, &list, options, row << 32 | u64::from(offset));
            }
        }
        assert_is_plain(&table, &list, options, row << 32 | 0xffff_ffff);
    }
}

#[test]
fn without_anybody_in_service_nobody_has_a_key() {
    for options in [faithful(512), sticky(512)] {
        for list in [vec![], members(&[0]), vec![member(1, 5).weighing(0), member(2, 0)]] {
            let table = Table::build(&list, options).unwrap();
            for hash in [0, u64::MAX, 1 << 40] {
                assert_eq!((table.owner(hash), table.replica(hash)), (None, None));
                assert_eq!(table.walk(hash).next(), None);
            }
        }
    }
}

#[test]
fn one_server_has_every_key_and_no_replica() {
    for options in [faithful(512), sticky(1)] {
        let table = Table::build(&members(&[0, i32::MAX]), options).unwrap();
        for hash in [0, u64::MAX, 1 << 40, 0xffff_ffff] {
            assert_eq!((table.owner(hash), table.replica(hash)), (Some(1), None));
        }
    }
}

#[test]
fn keys_go_by_weight_and_a_huge_one_leaves_some_room() {
    let keys = keys(60_000);
    let shares = |weights: &[i32]| {
        let table = Table::build(&members(weights), faithful(512)).unwrap();
        let mut shares = vec![0_u32; weights.len()];
        keys.iter().for_each(|&key| shares[table.owner(key).unwrap()] += 1);
        shares
    };
    let part = shares(&[3, 1, 0, 2]);
    for (share, expected) in part.iter().zip([30_000_u32, 10_000, 0, 20_000]) {
        // Five sigma of the binomial distribution.
        assert!(share.abs_diff(expected) < 620, "{part:?}");
    }
    assert_eq!(part[2], 0);
    let one = shares(&[i32::MAX, 1]);
    assert_eq!(one, [60_000, 0]);
    let half = shares(&[i32::MAX, i32::MAX]);
    assert!(half[0].abs_diff(30_000) < 620, "{half:?}");
}

#[test]
fn ten_thousand_servers_fit_and_each_gets_its_part() {
    let list: Vec<_> = (1..=10_000).map(|host| member(host, 1 + (host % 3) as i32)).collect();
    let table = Table::build(&list, faithful(64)).unwrap();
    let mut found = HashSet::new();
    for key in keys(200_000) {
        found.insert(table.owner(key).unwrap());
    }
    assert!(found.len() > 9_990, "{}", found.len());
    for key in keys(20) {
        assert_is_plain(&table, &list, faithful(64), key);
    }
    let rows = 64 * (10_000 * (2 + 4 + 16) + 16 * 8);
    assert!(table.bytes() < rows + 10_000 * 40, "{}", table.bytes());
}

#[test]
fn more_than_fit_are_refused_with_the_number_that_does() {
    let list = vec![member(1, 1); 65_536];
    let error = Table::build(&list, faithful(1)).unwrap_err();
    assert_eq!(error, TooManyServers { limit: 65_535 });
    let error = Table::build(&list[..2000], faithful(65_535)).unwrap_err();
    assert_eq!(error, TooManyServers { limit: 512 });
    assert!(Table::build(&list[..65_535], faithful(1)).is_ok());
}

#[test]
fn zero_variants_are_one() {
    let list = members(&[1, 2, 3]);
    let (none, one) = (faithful(0), faithful(1));
    let (none, one) = (Table::build(&list, none).unwrap(), Table::build(&list, one).unwrap());
    keys(100).iter().for_each(|&key| assert_eq!(none.owner(key), one.owner(key)));
}

#[test]
fn the_order_of_the_list_does_not_matter() {
    let list = members(&[4, 1, 1, 9, 2]);
    let backwards: Vec<_> = list.iter().rev().copied().collect();
    for options in [faithful(512), sticky(512)] {
        let one = Table::build(&list, options).unwrap();
        let other = Table::build(&backwards, options).unwrap();
        for key in keys(500) {
            assert_eq!(one.owner(key), other.owner(key).map(|id| 4 - id));
        }
    }
}

#[test]
fn another_weight_of_a_server_in_service_sorts_nothing_anew() {
    let list = members(&[1, 1, 1]);
    let table = Table::build(&list, faithful(512)).unwrap();
    let mut heavier = list.clone();
    heavier[1] = heavier[1].weighing(7);
    let next = table.rebuilt(&heavier).unwrap();
    assert!(std::sync::Arc::ptr_eq(&table.rows.ids, &next.rows.ids));
}

#[test]
fn sticky_moves_the_leavers_keys_only_and_each_to_its_replica() {
    let list = members(&[3, 1, 2, 2, 5]);
    let table = Table::build(&list, sticky(512)).unwrap();
    for leaver in 0..list.len() {
        let mut without = list.clone();
        without[leaver] = without[leaver].weighing(0);
        let next = table.rebuilt(&without).unwrap();
        for key in keys(2_000) {
            let owner = table.owner(key).unwrap();
            let heir = if owner == leaver { table.replica(key).unwrap() } else { owner };
            assert_eq!(next.owner(key), Some(heir));
        }
        let back = next.rebuilt(&list).unwrap();
        keys(2_000).iter().for_each(|&key| assert_eq!(back.owner(key), table.owner(key)));
    }
}

#[test]
fn deviation_is_the_noise_of_the_draw_and_no_more() {
    const KEYS: usize = 200_000;
    const SETS: u32 = 6;
    for scheme in [Scheme::Dht, Scheme::StickyDht, Scheme::Rendezvous] {
        for nodes in [2, 3, 5, 10] {
            let sum: f64 = (0..SETS)
                .map(|set| study::balance(scheme, nodes, &study::names(KEYS, set), &[KEYS])[0])
                .map(|balance| balance.deviation)
                .sum();
            let noise = study::noise(nodes, KEYS);
            let off = (sum / f64::from(SETS) - noise.floor) / noise.sigma * f64::from(SETS).sqrt();
            assert!(off.abs() < 4.0, "{scheme:?}, {nodes} nodes: {off} sigma");
        }
    }
}

#[test]
fn on_leave_moves_what_the_formula_says_and_on_return_all_is_as_before() {
    let keys = keys(100_000);
    for nodes in [2, 3, 5, 10] {
        for (scheme, to_replica) in [(Scheme::Dht, 0.5), (Scheme::StickyDht, 1.0)] {
            let moves = study::moves(scheme, nodes, &keys);
            let expected = scheme.expected_moves(nodes).unwrap();
            // The mean over who leaves: every key is lost once, so that the sticky form is exact.
            let off = (moves.on_leave - expected).abs();
            assert!(off < 0.003, "{scheme:?}, {nodes} nodes: {moves:?}");
            assert!(scheme == Scheme::Dht || off < 1e-12, "{moves:?}");
            assert_eq!(moves.after_return, 0.0, "{scheme:?}, {nodes} nodes");
            let replica = moves.to_replica.unwrap();
            let expected = if nodes == 2 { 1.0 } else { to_replica };
            assert!((replica - expected).abs() < 0.02, "{scheme:?}, {nodes} nodes: {moves:?}");
        }
    }
}

#[test]
fn noise_of_two_nodes_is_that_of_one_coin() {
    // Both are equally far from the average, so that it is the distribution of |x|, x normal.
    let noise = study::noise(2, 1_000_000);
    assert!((noise.floor - 0.000_797_9).abs() < 1e-7, "{noise:?}");
    assert!((noise.sigma - 0.000_602_8).abs() < 1e-7, "{noise:?}");
}

use proptest::prelude::*;

use super::*;
use crate::host::HostSet;
use crate::key::ClusterKey;

fn host(id: u8) -> HostId {
    HostId::new(id).unwrap()
}

fn members(numbers: &[u8]) -> Vec<Member> {
    numbers.iter().zip(1..).map(|(&number, id)| (host(id), number)).collect()
}

fn vip(last: u8) -> Scope {
    Scope::Vip(IpAddr::from([198, 51, 100, last]))
}

fn shared(affinity: Affinity, weights: &[u8]) -> Mode {
    Mode::Multiple { affinity, weights: members(weights) }
}

fn rule(scope: Scope, protocol: Protocol, first_port: u16, last_port: u16, mode: Mode) -> Rule {
    Rule { scope, protocol, first_port, last_port, mode }
}

fn tcp(port: u16, mode: Mode) -> Rule {
    rule(vip(10), Protocol::Tcp, port, port, mode)
}

fn equal() -> Mode {
    shared(Affinity::SINGLE, &[50, 50])
}

#[test]
fn overlapping_rules_are_refused_naming_both() {
    let web = rule(vip(10), Protocol::Both, 80, 90, equal());
    let cases = [
        (rule(vip(10), Protocol::Tcp, 90, 90, equal()), true),
        (rule(vip(10), Protocol::Udp, 1, 80, Mode::Disabled), true),
        (rule(vip(10), Protocol::Both, 0, 65535, equal()), true),
        (rule(vip(10), Protocol::Both, 85, 86, equal()), true),
        (rule(vip(10), Protocol::Tcp, 91, 99, equal()), false),
        (rule(vip(10), Protocol::Tcp, 0, 79, equal()), false),
        (rule(vip(11), Protocol::Tcp, 80, 90, equal()), false),
        (rule(Scope::All, Protocol::Tcp, 80, 90, equal()), false),
    ];
    for (other, overlaps) in cases {
        for rules in [vec![web.clone(), other.clone()], vec![other.clone(), web.clone()]] {
            let refused = Rules::new(rules).err();
            assert_eq!(refused.is_some(), overlaps, "{other}");
            if let Some(refused) = refused {
                let message = refused.to_string();
                assert!(message.contains(&web.to_string()), "{message}");
                assert!(message.contains(&other.to_string()), "{message}");
                assert_eq!(refused.rules(), [0, 1]);
            }
        }
    }
    let tcp_and_udp = [Protocol::Tcp, Protocol::Udp].map(|p| rule(vip(10), p, 80, 90, equal()));
    assert!(Rules::new(tcp_and_udp.to_vec()).is_ok(), "other protocols do not overlap");
}

#[test]
fn wrong_numbers_are_refused_with_the_rule_and_the_remedy() {
    let twice = Mode::Single { priorities: vec![(host(1), 1), (host(1), 2)] };
    let cases = [
        (rule(vip(1), Protocol::Tcp, 9, 8, equal()), "rule 2: ports 9-8 run backwards: write 8-9"),
        (
            tcp(1, shared(Affinity::Prefix { ipv4: 0, ipv6: 64 }, &[1])),
            "rule 2: affinity by 0 bits of IPv4 and 64 of IPv6: give 1 to 32 and 1 to 128",
        ),
        (
            tcp(1, shared(Affinity::Prefix { ipv4: 32, ipv6: 129 }, &[1])),
            "rule 2: affinity by 32 bits of IPv4 and 129 of IPv6: give 1 to 32 and 1 to 128",
        ),
        (tcp(1, shared(Affinity::None, &[1, 101])), "rule 2: weight 101 of host 2: give 0 to 100"),
        (
            tcp(1, Mode::Single { priorities: members(&[0]) }),
            "rule 2: handling priority 0 of host 1: give 1 to 32",
        ),
        (
            tcp(1, Mode::Single { priorities: members(&[33]) }),
            "rule 2: handling priority 33 of host 1: give 1 to 32",
        ),
        (tcp(1, twice), "rule 2: host 1 is named twice: name it once"),
        (tcp(1, shared(Affinity::None, &[])), "rule 2 has no host: name one, or disable the rule"),
    ];
    for (wrong, message) in cases {
        let refused = Rules::new(vec![tcp(7, equal()), wrong]).unwrap_err();
        assert_eq!(refused.to_string(), message);
        assert_eq!(refused.rules(), [1]);
    }
}

#[test]
fn too_many_groups_ranges_and_ports_are_refused() {
    let groups = |n: u8| (0..n).map(|n| rule(vip(n), Protocol::Tcp, 1, 1, equal())).collect();
    assert_eq!(Rules::new(groups(32)).unwrap().slots().count(), 34);
    assert_eq!(Rules::new(groups(33)), Err(Refused::Groups { given: 33 }));
    let ranges = |n: u16, protocol| {
        Rules::new((0..n).map(|n| rule(vip(1), protocol, 4 * n, 4 * n + 1, equal())).collect())
    };
    assert!(ranges(32, Protocol::Tcp).is_ok());
    assert_eq!(ranges(33, Protocol::Tcp), Err(Refused::Ranges { given: 33 }));
    assert_eq!(ranges(17, Protocol::Both), Err(Refused::Ranges { given: 34 }));
}

#[test]
fn rules_that_differ_only_in_ports_share_a_slot() {
    let rules = Rules::new(vec![tcp(80, equal()), tcp(443, equal())]).unwrap();
    let web = rules.lookup([198, 51, 100, 10].into(), 6, 80);
    assert_eq!(web, rules.lookup([198, 51, 100, 10].into(), 6, 443));
    assert!(matches!(web, Found::Choice(choice) if choice.slot.get() == 2));
    let different = [
        tcp(443, shared(Affinity::NETWORK, &[50, 50])),
        tcp(443, shared(Affinity::SINGLE, &[50, 51])),
        tcp(443, shared(Affinity::SINGLE, &[50, 50, 50])),
        tcp(443, Mode::Single { priorities: members(&[1, 2]) }),
        rule(vip(11), Protocol::Tcp, 443, 443, equal()),
        rule(Scope::All, Protocol::Tcp, 443, 443, equal()),
    ];
    for other in different {
        let rules = Rules::new(vec![tcp(80, equal()), other.clone()]).unwrap();
        assert_eq!(rules.groups().len(), 2, "{other:?}");
    }
}

/// UDP does not show where a flow begins, so it must not wait for TCP's flows to end; but a client
/// stays with one host for both.
#[test]
fn without_affinity_protocols_have_their_own_slot_with_the_same_owners() {
    let rules = |mode: Mode| Rules::new(vec![rule(vip(10), Protocol::Both, 53, 53, mode)]).unwrap();
    let apart = rules(shared(Affinity::None, &[50, 50]));
    let [tcp, udp] = apart.groups() else { panic!("two groups") };
    assert_eq!(tcp.id, udp.id);
    let key = ClusterKey::new(b"a key of the tests").unwrap().map();
    let target = |group: &Group| apart.target(key, group.slot, &group.members);
    assert_eq!(target(tcp), target(udp));
    assert_eq!(rules(equal()).groups().len(), 1, "with affinity both are one");
}

/// The price of a host that is added is its part of the clients, and what quotas cost beyond that.
#[test]
fn a_host_that_is_added_to_the_rules_takes_its_part_and_moves_hardly_anybody_else() {
    let key = ClusterKey::new(b"a key of the tests").unwrap().map();
    for hosts in 1..8u8 {
        let target = |hosts: u8| {
            let rules =
                Rules::new(vec![tcp(80, shared(Affinity::SINGLE, &vec![50; hosts.into()]))]);
            let rules = rules.unwrap();
            let group = &rules.groups()[0];
            (group.id, rules.target(key, group.slot, &group.members))
        };
        let ((before, old), (after, new)) = (target(hosts), target(hosts + 1));
        assert_eq!(before, after, "clients keep their buckets");
        let part = 4096 / (usize::from(hosts) + 1);
        let moved = old.moved(&new);
        assert!(moved >= part - 1 && moved <= part + part / 10, "{hosts}: {moved} of {part}");
    }
}

#[test]
fn a_client_has_one_host_for_rules_with_other_hosts_as_far_as_their_weights_let_it() {
    let key = ClusterKey::new(b"a key of the tests").unwrap().map();
    let rules = Rules::new(vec![
        tcp(80, shared(Affinity::SINGLE, &[50, 50, 50])),
        tcp(443, shared(Affinity::SINGLE, &[50, 50, 40])),
    ]);
    let rules = rules.unwrap();
    let [web, tls] = rules.groups() else { panic!("two groups") };
    let target = |group: &Group| rules.target(key, group.slot, &group.members);
    let apart = target(web).moved(&target(tls));
    assert!(apart < 400, "{apart} of 4096 buckets have two hosts");
}

#[test]
fn a_rule_of_the_address_comes_before_one_of_all_and_the_default_last() {
    let rules = Rules::new(vec![
        rule(Scope::All, Protocol::Both, 0, 1023, equal()),
        rule(vip(10), Protocol::Tcp, 80, 80, Mode::Disabled),
        rule(vip(10), Protocol::Tcp, 81, 90, Mode::Single { priorities: members(&[1]) }),
    ])
    .unwrap();
    let kind =
        |last, protocol, port| match rules.lookup([198, 51, 100, last].into(), protocol, port) {
            Found::Choice(choice) => Some(choice.kind),
            Found::Blocked => None,
        };
    assert_eq!(kind(10, 6, 80), None);
    assert_eq!(kind(10, 17, 80), Some(Kind::Multiple));
    assert_eq!(kind(11, 6, 80), Some(Kind::Multiple));
    assert_eq!(kind(10, 6, 81), Some(Kind::Single));
    assert_eq!(kind(10, 6, 90), Some(Kind::Single));
    assert_eq!(kind(10, 6, 91), Some(Kind::Multiple));
    assert_eq!(kind(10, 6, 1024), Some(Kind::Default));
    assert_eq!(kind(10, 132, 80), Some(Kind::Default));
}

#[test]
fn one_host_has_all_buckets_of_the_default_slot_and_of_a_single_host_rule() {
    let single = Mode::Single { priorities: vec![(host(4), 9), (host(2), 7), (host(3), 7)] };
    let rules = Rules::new(vec![tcp(80, single)]).unwrap();
    let key = ClusterKey::new(b"a key of the tests").unwrap().map();
    let slot = rules.groups()[0].slot;
    let owner = |slot, members: &[Member]| {
        let target = rules.target(key, slot, members);
        HostId::all().find(|&host| target.share(host) == 4096).map(HostId::get)
    };
    let all = rules.members(slot).unwrap();
    assert_eq!(owner(slot, all), Some(2), "the best priority, then the lower id");
    assert_eq!(owner(slot, &all[1..]), Some(3));
    assert_eq!(owner(slot, &[(host(4), 9), (host(2), 0)]), Some(4), "0 takes nothing");
    assert_eq!(owner(slot, &[]), None);
    assert_eq!(owner(Slot::DEFAULT, &[(host(9), 50), (host(5), 1), (host(1), 0)]), Some(5));
    let echo = rules.target(key, Slot::ECHO, &members(&[100, 1, 0]));
    assert_eq!([1, 2, 3].map(|id| echo.share(host(id))), [2048, 2048, 0], "equal parts");
    assert_eq!(rules.target(key, Slot::of_group(1).unwrap(), all), Target::nobody());
}

#[test]
fn digests_differ_in_everything_hosts_must_agree_on_and_in_nothing_else() {
    let base = Rules::new(vec![tcp(80, equal())]).unwrap().digest();
    let of = |rule: Rule| Rules::new(vec![rule]).unwrap().digest();
    let different = [
        tcp(81, equal()),
        rule(vip(10), Protocol::Tcp, 80, 81, equal()),
        rule(vip(10), Protocol::Both, 80, 80, equal()),
        rule(vip(11), Protocol::Tcp, 80, 80, equal()),
        rule(Scope::All, Protocol::Tcp, 80, 80, equal()),
        tcp(80, shared(Affinity::NETWORK, &[50, 50])),
        tcp(80, shared(Affinity::None, &[50, 50])),
        tcp(80, shared(Affinity::SINGLE, &[50])),
        tcp(80, Mode::Single { priorities: members(&[1, 2]) }),
        tcp(80, Mode::Disabled),
    ];
    let mut digests: Vec<Digest> = different.into_iter().map(of).collect();
    digests.extend([base, Rules::none().digest()]);
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 12);
    assert_eq!(of(tcp(80, shared(Affinity::SINGLE, &[30, 1]))), base, "weights may differ");
    // Computed from the table of the encoding in another language. Whoever changes it quarantines
    // hosts during an upgrade.
    assert_eq!(base.to_string(), "a94f1d2b57bde739");
}

/// Weights may differ from host to host, but not so that hosts number the slots differently.
#[test]
fn weights_that_group_rules_differently_show_in_the_digest() {
    let rules = |a: &[u8], b: &[u8]| {
        let mode = |weights| shared(Affinity::SINGLE, weights);
        Rules::new(vec![tcp(80, mode(a)), tcp(443, mode(b))]).unwrap()
    };
    let together = rules(&[50, 50], &[50, 50]);
    let apart = rules(&[50, 50], &[50, 60]);
    assert_ne!(together.digest(), apart.digest());
    assert_eq!(apart.digest(), rules(&[70, 50], &[1, 2]).digest());
}

fn any_rules() -> impl Strategy<Value = Vec<Rule>> {
    let mode = prop_oneof![
        Just(shared(Affinity::None, &[1, 2, 3])),
        Just(shared(Affinity::NETWORK, &[9, 9])),
        Just(Mode::Single { priorities: members(&[3, 1]) }),
        Just(Mode::Disabled),
    ];
    let protocol = prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp), Just(Protocol::Both)];
    let scope = prop_oneof![Just(Scope::All), Just(vip(1)), Just(vip(2))];
    let rule = (scope, protocol, 0u16..40, 0u16..4, mode).prop_map(
        |(scope, protocol, port, more, mode)| rule(scope, protocol, port, port + more, mode),
    );
    prop::collection::vec(rule, 0..12)
}

proptest! {
    #[test]
    fn the_order_of_rules_changes_neither_slots_nor_digest(
        rules in any_rules(),
        turn in 0usize..12,
    ) {
        let mut turned = rules.clone();
        turned.rotate_left(turn.min(rules.len()));
        let (one, other) = (Rules::new(rules), Rules::new(turned));
        prop_assert_eq!(one.is_ok(), other.is_ok());
        let (Ok(one), Ok(other)) = (one, other) else { return Ok(()) };
        prop_assert_eq!(one.digest(), other.digest());
        for last in 1..4 {
            for (protocol, port) in [6, 17].into_iter().flat_map(|p| (0..45).map(move |q| (p, q))) {
                let vip = [198, 51, 100, last].into();
                let found = one.lookup(vip, protocol, port);
                prop_assert_eq!(found, other.lookup(vip, protocol, port));
            }
        }
        for (one, other) in one.groups().iter().zip(other.groups()) {
            prop_assert_eq!((&one.members, one.id), (&other.members, other.id));
            let hosts: HostSet = one.members.iter().map(|&(host, _)| host).collect();
            prop_assert_eq!(hosts.len(), one.members.len());
        }
    }
}

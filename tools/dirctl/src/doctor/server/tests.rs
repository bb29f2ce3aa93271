//! Literal facts, and what must be said of them.

use director::network::{Address, Change, Hop, KernelRoute, RouteKind};
use realserver_agent::settings::Protocol;
use realserver_agent::status::Status;

use super::*;
use crate::doctor::facts::settings::key;
use crate::doctor::finding::Severity;

const FILE: &str = r#"
    interfaces = ["eth0"]
    [[service]]
    listen = "192.0.2.10:80/tcp"
    forwarding = "METHOD"
    MORE
    [[service.server]]
    address = "10.0.0.11:80"
"#;
const OWN: &str = "10.0.0.11";

fn interface(index: u32, name: &str, mtu: u32) -> Change {
    let is_card = name.starts_with("eth");
    let mac = if is_card { [2, 0, 0, 0, 0, index as u8] } else { [0; 6] };
    let name = name.to_owned();
    Change::Interface(Interface { index, name, mac, mtu, up: true, carrier: true, vlan: None })
}

fn at(interface: u32, prefix: &str) -> Address {
    let (address, _) = prefix.split_once('/').unwrap();
    Address {
        interface,
        address: address.parse().unwrap(),
        subnet: prefix.parse().unwrap(),
        scope: 0,
        secondary: false,
        deprecated: false,
        tentative: false,
        protocol: 0,
    }
}

fn default_route(gateway: &str) -> KernelRoute {
    KernelRoute {
        table: 254,
        destination: "0.0.0.0/0".parse().unwrap(),
        priority: 0,
        kind: RouteKind::Unicast,
        hops: vec![Hop {
            interface: 2,
            gateway: Some(gateway.parse().unwrap()),
            weight: 1,
            dead: false,
        }],
        source: None,
        mtu: None,
        scope: 0,
    }
}

/// A server with its VIP, all well, without an agent.
fn facts(method: &str, more: &str) -> Facts {
    let text = FILE.replace("METHOD", method).replace("MORE", more);
    let settings = realserver_agent::settings::parse(&text).unwrap();
    let role = Role::find(&settings, &[OWN.parse().unwrap()]).unwrap();
    let mut network = Network::default();
    network.apply(interface(1, "lo", 65536));
    network.apply(interface(2, "eth0", 1520));
    network.apply(Change::Address(at(2, "10.0.0.11/24")));
    if method != "nat" {
        network.apply(Change::Address(at(1, "192.0.2.10/32")));
    }
    network.apply(Change::Route { route: default_route("10.0.0.1"), replaces: false });
    let quiet = [("arp_ignore", 1), ("arp_announce", 2), ("rp_filter", 0)];
    let listener = Listener { protocol: Protocol::Tcp, address: "0.0.0.0:80".parse().unwrap() };
    Facts {
        machine: Machine { clock: Some(true), ..Machine::default() },
        file: PathBuf::from("/test.toml"),
        config: director::config::parse(&text, "test.toml").map_err(|error| error.to_string()),
        role,
        entries: settings.entries,
        network,
        types: BTreeMap::new(),
        settings: Settings(quiet.map(|(name, value)| (key("ipv4", "all", name), value)).into()),
        agent: Agent::Absent,
        agent_port: 6086,
        key: None,
        directors_key: None,
        probes: Vec::new(),
        listeners: vec![listener],
        directors: vec!["10.0.0.1".parse().unwrap()],
    }
}

fn status() -> Status {
    Status {
        state: "up".to_owned(),
        reason: String::new(),
        role: String::new(),
        config: None,
        uptime: 1,
        boot: String::new(),
        load: None,
        parts: Default::default(),
        command: String::new(),
        connections: 0,
        queue: 0,
        checks: Vec::new(),
        prepared: Default::default(),
        tunnel: Default::default(),
        answers: Default::default(),
    }
}

fn of(facts: &Facts, check: Check) -> Vec<Finding> {
    let mut findings = facts.examine();
    findings.retain(|it| it.check == check && it.severity < Severity::Ok);
    findings
}

/// The only one of a check that somebody has to look at, which says all of these words.
#[track_caller]
fn only(facts: &Facts, check: Check, words: &[&str]) -> Finding {
    let findings = of(facts, check);
    let [finding] = findings.as_slice() else { panic!("{findings:#?} of {:#?}", facts.examine()) };
    for word in words {
        assert!(finding.found.contains(word), "{word:?} is not said: {finding:#?}");
    }
    finding.clone()
}

#[test]
fn where_all_is_well_there_is_nothing_to_act_on() {
    let by_itself = |method| {
        let mut facts = facts(method, "");
        if method != "nat" {
            // Its answers leave by another router.
            facts.directors = vec!["10.0.0.2".parse().unwrap()];
        }
        facts
    };
    for method in ["nat", "direct"] {
        let found = by_itself(method).examine();
        assert!(found.iter().all(|it| it.severity > Severity::Warning), "{method}: {found:#?}");
    }
}

#[test]
fn a_vip_that_is_missing_on_a_card_or_too_wide_is_told() {
    let mut facts = facts("direct", "");
    facts.network.apply(Change::AddressGone(at(1, "192.0.2.10/32")));
    let finding = only(&facts, Check::ServerVip, &["192.0.2.10 is on no interface"]);
    assert_eq!(finding.remedy, ["ip address add 192.0.2.10/32 dev lo"]);

    facts.network.apply(Change::Address(at(2, "192.0.2.10/24")));
    let finding = only(&facts, Check::ServerVip, &["192.0.2.10 is on eth0"]);
    let wanted = ["ip address del 192.0.2.10/24 dev eth0", "ip address add 192.0.2.10/32 dev lo"];
    assert_eq!(finding.remedy, wanted);

    facts.network.apply(Change::AddressGone(at(2, "192.0.2.10/24")));
    facts.network.apply(Change::Address(at(1, "192.0.2.10/24")));
    let finding = only(&facts, Check::ServerVip, &["192.0.2.10/24 is on lo"]);
    assert_eq!(finding.remedy[0], "ip address del 192.0.2.10/24 dev lo");
}

#[test]
fn arp_settings_count_by_the_larger_of_all_and_the_card() {
    let mut facts = facts("direct", "");
    facts.settings.0.insert(key("ipv4", "all", "arp_ignore"), 0);
    facts.settings.0.insert(key("ipv4", "eth0", "arp_ignore"), 1);
    assert!(of(&facts, Check::ServerArp).is_empty(), "the card keeps quiet by itself");
    facts.settings.0.insert(key("ipv4", "eth0", "arp_ignore"), 0);
    let finding = only(&facts, Check::ServerArp, &["arp_ignore is 0 on eth0"]);
    assert_eq!(finding.remedy, ["sysctl -w net.ipv4.conf.all.arp_ignore=1"]);
    assert!(!facts.examine().iter().any(|it| it.found.contains("on lo: the")), "lo is not asked");
}

#[test]
fn nat_answers_must_leave_by_the_director_and_others_must_not() {
    let mut nat = facts("nat", "");
    nat.directors = vec!["10.0.0.2".parse().unwrap()];
    let finding = only(&nat, Check::ServerRoute, &["leads to 10.0.0.1", "the director, 10.0.0.2"]);
    assert_eq!(finding.remedy, ["ip route replace default via 10.0.0.2"]);
    nat.directors.clear();
    assert_eq!(only(&nat, Check::ServerRoute, &["10.0.0.1"]).severity, Severity::Note);
    nat.network.apply(Change::RouteGone(default_route("10.0.0.1")));
    let finding = only(&nat, Check::ServerRoute, &["no default route for IPv4"]);
    assert_eq!(finding.severity, Severity::Fault);

    only(&facts("direct", ""), Check::ServerRoute, &["leads to the director 10.0.0.1"]);
}

#[test]
fn a_tunnel_needs_somebody_who_unpacks_an_open_filter_and_room() {
    let mut bare = facts("tunnel", "");
    only(&bare, Check::ServerTunnel, &["nothing unpacks ipip"]);
    assert!(of(&bare, Check::ServerMtu).is_empty(), "1520 is enough");
    bare.network.apply(interface(2, "eth0", 1519));
    let finding = only(&bare, Check::ServerMtu, &["needs 1520", "eth0 (MTU 1519)"]);
    assert_eq!(finding.remedy, ["ip link set dev eth0 mtu 1520"]);
    let mut clamped = facts("tunnel", "mss_clamp = true");
    clamped.network.apply(interface(2, "eth0", 1500));
    assert!(of(&clamped, Check::ServerMtu).is_empty());

    bare.network.apply(interface(3, "tunl0", 1480));
    bare.types.insert("tunl0".to_owned(), 768);
    assert!(of(&bare, Check::ServerTunnel).is_empty(), "the kernel unpacks");
    bare.settings.0.insert(key("ipv4", "tunl0", "rp_filter"), 1);
    let finding = only(&bare, Check::ServerReversePath, &["strict on tunl0"]);
    let wanted = "sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.tunl0.rp_filter=0";
    assert_eq!(finding.remedy, [wanted]);
}

#[test]
fn a_missing_agent_is_a_fault_only_where_a_director_asks_for_it() {
    let mut watched = facts("direct", "agent = true");
    assert_eq!(only(&watched, Check::ServerAgent, &["agent = true"]).severity, Severity::Fault);
    let unwatched = facts("direct", "");
    assert_eq!(only(&unwatched, Check::ServerAgent, &["no agent"]).severity, Severity::Note);
    assert!(of(&facts("nat", ""), Check::ServerAgent).is_empty());

    watched.agent = Agent::Running(Box::new(status()));
    assert!(of(&watched, Check::ServerAgent).is_empty());
    watched.probes = vec![(OWN.parse().unwrap(), Err("no answer".to_owned()))];
    only(&watched, Check::ServerAgent, &["does not answer at 10.0.0.11, port 6086"]);
}

#[test]
fn keys_that_differ_are_told_by_what_the_agent_refuses() {
    let mut facts = facts("direct", "agent = true");
    for (reason, words) in [
        ("forged", "3 were signed with another key"),
        ("unsigned", "3 were not signed"),
        ("no_key", "3 were signed, and no key is set here"),
    ] {
        let mut status = status();
        status.answers.refused.insert(reason.to_owned(), 3);
        facts.agent = Agent::Running(Box::new(status));
        let finding = only(&facts, Check::ServerKey, &[words]);
        assert!(finding.remedy[0].starts_with("scp -p root@10.0.0.1:"), "{finding:?}");
    }
    facts.agent = Agent::Absent;
    let path = PathBuf::from("/agent.key");
    facts.key = Some(Guarded { path, mode: Ok(0o644), fault: None, denied: false });
    facts.directors_key = Some(PathBuf::from("/agent.key"));
    let finding = only(&facts, Check::ServerKey, &["everybody may read"]);
    assert_eq!(finding.remedy, ["chmod 600 /agent.key"]);
}

#[test]
fn where_nobody_listens_is_told_and_where_instead() {
    let mut facts = facts("direct", "");
    facts.listeners[0].address = "10.0.0.11:80".parse().unwrap();
    only(&facts, Check::ServerListener, &["192.0.2.10:80/tcp", "only on 10.0.0.11"]);
    facts.listeners.clear();
    only(&facts, Check::ServerListener, &["or on all addresses"]);
}

use director::control::api::Protocol;
use director::control::health::CheckView;

use super::*;

fn key(address: &str) -> ServiceKey {
    ServiceKey::Address { protocol: Protocol::Tcp, address: address.parse().unwrap() }
}

fn server(service: ServiceKey, address: &str, state: HealthState) -> ServerHealth {
    ServerHealth {
        service,
        address: address.parse().unwrap(),
        weight: 100,
        effective_weight: if state == HealthState::Up { 60 } else { 0 },
        state,
        since: 11_520,
        reason: String::new(),
        kept: false,
        active: 1200,
        inactive: 34,
        checks: vec![],
        direction: None,
    }
}

fn direction(mode: &str, load: Option<u16>) -> Option<DirectionView> {
    Some(DirectionView {
        mode: mode.to_owned(),
        incarnation: 1,
        boot: None,
        round_trip: 0.26,
        lost: 0.0,
        refused: 0,
        agent_state: "up".to_owned(),
        load,
        connections: 0,
        queue: 0,
    })
}

fn sample() -> Vec<ServerHealth> {
    let (web, dns) = (key("192.0.2.10:80"), ServiceKey::Fwmark { fwmark: 7, ipv6: false });
    let up = ServerHealth {
        direction: direction("udp", Some(2550)),
        ..server(web, "10.0.0.11:80", HealthState::Up)
    };
    let down = ServerHealth {
        reason: "http: connect: connection refused\u{1b}[2J".to_owned(),
        kept: true,
        direction: direction("lost", None),
        checks: vec![CheckView {
            kind: "tcp".to_owned(),
            state: HealthState::Down,
            in_a_row: 3,
            last: "no answer within 1 s".to_owned(),
            took: 1000.0,
            made: 9,
            failed: 3,
        }],
        ..server(web, "10.0.0.12:80", HealthState::Down)
    };
    let unchecked = ServerHealth {
        effective_weight: 100,
        ..server(dns, "10.0.0.21:53", HealthState::Unchecked)
    };
    vec![up, down, unchecked]
}

#[test]
fn servers_stand_under_their_service_with_both_weights_and_why_they_are_down() {
    let expected = "\
192.0.2.10:80/tcp
  server        state     weight  active  inactive       since  agent
  10.0.0.11:80  up     100 -> 60    1200        34  3 h 12 min  udp 0.3 ms, load 26%
  10.0.0.12:80  down    100 -> 0    1200        34  3 h 12 min  lost
      http: connect: connection refused [2J
      gets connections all the same: every server of the service has failed
      tcp: no answer within 1 s

fwmark 7
  server        state      weight  active  inactive       since  agent
  10.0.0.21:53  unchecked     100    1200        34  3 h 12 min
";
    assert_eq!(text(&sample(), Paint::default()), expected);
    assert_eq!(text(&[], Paint::default()), "no servers\n");
}

#[test]
fn the_table_fits_100_columns_also_with_the_longest_addresses() {
    let longest = "[2001:db8:1111:2222:3333:4444:5555:6666]:65535";
    let busy = ServerHealth {
        weight: 65_535,
        effective_weight: 32_768,
        active: 1_000_000,
        inactive: 2_000_000,
        direction: direction("udp", Some(10_000)),
        ..server(key(longest), longest, HealthState::Draining)
    };
    let text = text(&[busy], Paint::default());
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    let expected = format!("\n  {longest}\n");
    assert!(text.contains(&expected), "{text}");
    assert!(text.contains("65535 -> 32768"), "{text}");
}

#[test]
fn colour_marks_servers_that_do_not_serve() {
    let text = text(&sample(), Paint::new(true, None, None));
    assert!(text.contains("\u{1b}[31m  10.0.0.12:80"), "{text}");
    assert!(text.contains("\n  10.0.0.11:80"), "{text}");
}

#[test]
fn a_service_is_meant_by_its_name_its_address_or_its_mark() {
    let web = key("192.0.2.10:80");
    for word in ["192.0.2.10:80/tcp", "192.0.2.10:80", "192.0.2.10"] {
        assert!(is_meant(&web, word), "{word}");
    }
    for word in ["192.0.2.10:80/udp", "192.0.2.10:8", "192.0.2.1", "", "80"] {
        assert!(!is_meant(&web, word), "{word}");
    }
    assert!(is_meant(&key("[2001:db8::10]:80"), "2001:db8::10"));
    let mark = ServiceKey::Fwmark { fwmark: 7, ipv6: true };
    assert!(
        is_meant(&mark, "7") && is_meant(&mark, "fwmark 7 (IPv6)") && !is_meant(&mark, "fwmark 7")
    );
}

#[test]
fn one_that_drains_is_enough_not_to_be_all_up() {
    let state = |state| server(key("192.0.2.10:80"), "10.0.0.11:80", state);
    assert!(are_all_up(&[state(HealthState::Up), state(HealthState::Unchecked)]));
    assert!(!are_all_up(&[state(HealthState::Up), state(HealthState::Draining)]));
    assert!(!are_all_up(&[state(HealthState::Down)]));
}

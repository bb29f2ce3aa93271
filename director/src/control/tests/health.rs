//! How servers are and what has happened to them, over the wire.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::fake::{Fake, Served};
use crate::control::api::{HealthSummary, Protocol, ServiceKey};
use crate::control::client::Client;
use crate::control::events::{Event, EventKind, Told};
use crate::control::health::{CheckView, DirectionView, HealthState, ServerHealth};
use crate::control::server::Limits;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn server(last: u8, state: HealthState) -> ServerHealth {
    ServerHealth {
        service: ServiceKey::Address { protocol: Protocol::Tcp, address: address("192.0.2.10:80") },
        address: SocketAddr::from(([10, 0, 0, last], 80)),
        weight: 100,
        effective_weight: 60,
        state,
        since: 5,
        reason: "connect: connection refused".to_owned(),
        kept: false,
        active: 1,
        inactive: 2,
        checks: vec![],
        direction: None,
    }
}

fn check(kind: &str, made: u64, failed: u64) -> CheckView {
    CheckView {
        kind: kind.to_owned(),
        state: HealthState::Up,
        in_a_row: 1,
        last: String::new(),
        took: 0.5,
        made,
        failed,
    }
}

fn note(served: &Served, count: usize) {
    let service = server(11, HealthState::Up).service;
    for _ in 0..count {
        let event = Event::of(service, address("10.0.0.11:80"), "timeout");
        served.fake.journal.note(EventKind::ServerDown, event);
    }
}

/// A request whose answer goes on, and the lines of that answer's body.
fn follow(served: &Served, path: &str) -> impl Iterator<Item = String> + use<> {
    let mut stream = UnixStream::connect(&served.path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    // Behind the head; the sizes of chunks stand on lines of their own.
    lines.skip_while(|line| !line.trim_end().is_empty()).skip(1)
}

#[test]
fn servers_are_told_with_their_state_and_counted_in_the_status() {
    let states = [HealthState::Up, HealthState::Up, HealthState::Down, HealthState::Unchecked];
    let servers: Vec<_> = (11..).zip(states).map(|(last, state)| server(last, state)).collect();
    let fake = Fake { servers: servers.clone(), ..Fake::default() };
    let served = Served::new(Limits::default(), fake);
    let mut client = Client::connect(&served.path).unwrap();
    assert_eq!(client.servers().unwrap(), servers);
    let summary = HealthSummary { up: 2, draining: 0, down: 1, unchecked: 1 };
    assert_eq!(client.status().unwrap().health, Some(summary));
    assert_eq!(HealthSummary::of(&servers[3..]), None);
    let bare = served.request("GET", "/v1/servers", "");
    assert!(bare.contains(r#""state":"down","since":5,"reason":"connect"#), "{bare}");
}

#[test]
fn metrics_tell_states_weights_checks_and_directions_and_no_sample_twice() {
    let direction = DirectionView {
        mode: "udp".to_owned(),
        incarnation: 1,
        boot: None,
        round_trip: 0.25,
        lost: 2.0,
        refused: 0,
        agent_state: "up".to_owned(),
        load: Some(2500),
        connections: 7,
        queue: 0,
    };
    let checks = vec![check("http", 10, 1), check("http", 10, 2), check("tcp", 5, 0)];
    let up = ServerHealth { checks, direction: Some(direction), ..server(11, HealthState::Up) };
    let servers = vec![up, server(12, HealthState::Draining), server(13, HealthState::Unchecked)];
    let served = Served::new(Limits::default(), Fake { servers, ..Fake::default() });
    let page = served.request("GET", "/metrics", "");
    let at = |last| format!("service=\"192.0.2.10:80/tcp\",server=\"10.0.0.{last}:80\"");
    for line in [
        format!("switchyard_server_up{{{}}} 1", at(11)),
        format!("switchyard_server_up{{{}}} 0", at(12)),
        format!("switchyard_server_state{{{},state=\"draining\"}} 1", at(12)),
        format!("switchyard_server_state{{{},state=\"up\"}} 0", at(12)),
        format!("switchyard_server_checks_total{{{},check=\"http\",result=\"passed\"}} 17", at(11)),
        format!("switchyard_server_checks_total{{{},check=\"http\",result=\"failed\"}} 3", at(11)),
        format!("switchyard_direction_round_trip_seconds{{{}}} 0.00025", at(11)),
        format!("switchyard_direction_lost_ratio{{{}}} 0.02", at(11)),
        format!("switchyard_direction_load_ratio{{{}}} 0.25", at(11)),
    ] {
        assert!(page.contains(&format!("\n{line}\n")), "{line} is not in\n{page}");
    }
    assert!(!page.contains(&format!("switchyard_server_up{{{}}}", at(13))), "{page}");
    let mut samples: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("switchyard"))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(sample, _)| sample)
        .collect();
    let count = samples.len();
    samples.sort_unstable();
    samples.dedup();
    assert_eq!(samples.len(), count, "{page}");
}

#[test]
fn events_are_told_from_a_number_on_and_what_is_forgotten_is_counted() {
    let served = Served::new(Limits::default(), Fake::default());
    let mut client = Client::connect(&served.path).unwrap();
    let mut told = |after| {
        let mut told = Vec::new();
        let listing = client.events(after, false, |line| {
            told.push(line);
            ControlFlow::Continue(())
        });
        listing.map(|()| told).unwrap()
    };
    assert_eq!(told(0), []);
    note(&served, 300);
    let numbers: Vec<u64> = told(0).iter().map(number).collect();
    assert_eq!(numbers, (1..=300).collect::<Vec<_>>());
    assert_eq!(told(299).iter().map(number).collect::<Vec<_>>(), [300]);
    assert_eq!(told(300), []);
    // A number from an earlier run: all of this one is new.
    assert_eq!(told(301).len(), 300);
    note(&served, 4096);
    let all = told(100);
    assert_eq!(all[0], Told::Lost { lost: 200 });
    assert_eq!((number(&all[1]), all.len()), (301, 4097));
    for (query, word) in [("after=x", "number of an event"), ("since=1", "since")] {
        let answer = served.request("GET", &format!("/v1/events?{query}"), "");
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains(word), "{answer}");
    }
}

fn number(told: &Told) -> u64 {
    match told {
        Told::Event(event) => event.number,
        Told::Lost { lost } => panic!("{lost} lost"),
    }
}

#[test]
fn who_follows_is_told_of_events_as_they_come_and_hears_that_the_director_lives() {
    let limits = Limits { keep_alive: Duration::from_millis(50), ..Limits::default() };
    let served = Served::new(limits, Fake::default());
    note(&served, 2);
    let mut lines = follow(&served, "/v1/events?after=1&follow=true");
    let mut next = |start: &str| {
        let line = lines.by_ref().take(1000).find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("no {start}"))
    };
    next(r#"{"number":2,"#);
    // Nothing happens: a chunk of one byte, which is an empty line.
    assert_eq!([next("1"), next("")], ["1", ""]);
    note(&served, 1);
    let event = next(r#"{"number":3,"#);
    assert!(event.contains(r#""kind":"server_down""#), "{event}");
    // The end of the director is the end of the answer.
    drop(served);
    assert!(lines.count() < 1000);
}

/// Whether there is a place among the followers: then the answer begins with the size of a chunk.
fn may_follow(served: &Served) -> bool {
    let answer = follow(served, "/v1/events?follow=true").next();
    answer.is_some_and(|line| !line.starts_with("{\"error\""))
}

#[test]
fn followers_have_a_limit_of_their_own_and_give_their_place_back() {
    let limits =
        Limits { followers: 1, keep_alive: Duration::from_millis(20), ..Limits::default() };
    let served = Served::new(limits, Fake::default());
    note(&served, 1);
    let mut first = follow(&served, "/v1/events?follow=true");
    assert!(first.any(|line| line.starts_with(r#"{"number":1,"#)));
    let refused = served.request("GET", "/v1/events?follow=true", "");
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("1 clients follow events"), "{refused}");
    // Others are served all the same.
    assert!(served.request("GET", "/v1/events", "").starts_with("HTTP/1.1 200 "));
    drop(first);
    let patience = Instant::now() + Duration::from_secs(10);
    while !may_follow(&served) {
        assert!(Instant::now() < patience, "the place is still taken");
    }
}

#[test]
fn who_follows_and_does_not_read_loses_its_place() {
    let limits =
        Limits { followers: 1, write_time: Duration::from_millis(200), ..Limits::default() };
    let served = Served::new(limits, Fake::default());
    let mut deaf = UnixStream::connect(&served.path).unwrap();
    deaf.write_all(b"GET /v1/events?follow=true HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        // More than the socket holds.
        note(&served, 1000);
        if may_follow(&served) {
            break;
        }
        assert!(Instant::now() < patience, "the place is still taken");
    }
}

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::time::Duration;

use proptest::prelude::*;

use super::super::tests::{check, loopbacks, run};
use super::*;
use crate::health::plan::{Check, CheckKind};

fn asks(send: Option<&str>, timeout: u64) -> Check {
    let send = send.map(str::to_owned);
    let kind = CheckKind::AgentCheck(AgentCheck { send });
    Check { timeout: Duration::from_millis(timeout), ..check(kind) }
}

/// What comes of an agent that does this with its connection.
fn served(check: &Check, serve: impl Fn(std::net::TcpStream) + Send + Copy) -> [Outcome; 2] {
    loopbacks().map(|loopback| {
        let listener = TcpListener::bind(loopback).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || serve(listener.accept().unwrap().0));
            run(check, address)
        })
    })
}

#[test]
fn every_word_means_what_haproxy_says() {
    let passed = |percent| Outcome::Passed(Advice { percent });
    for (line, outcome) in [
        ("up", passed(None)),
        ("ready", passed(None)),
        ("READY, Up", passed(None)),
        ("75%", passed(Some(75))),
        ("up 200%\tmaxconn:30", passed(Some(200))),
        ("0%", Outcome::Soft("the agent says 0%".to_owned())),
        ("drain", Outcome::Soft("the agent says drain".to_owned())),
        ("drain 50% # backup", Outcome::Soft("the agent says drain: backup".to_owned())),
        ("maint", Outcome::Failed("the agent says maint".to_owned())),
        ("down#disk full", Outcome::Failed("the agent says down: disk full".to_owned())),
        ("up,stopped", Outcome::Failed("the agent says stopped".to_owned())),
        ("failed", Outcome::Failed("the agent says failed".to_owned())),
    ] {
        assert_eq!(verdict(line.as_bytes()), outcome, "{line}");
    }
}

#[test]
fn nonsense_changes_nothing() {
    for line in [
        "",
        "  ,",
        "# up",
        "up please",
        "HTTP/1.1 400 Bad Request",
        "-5%",
        "1001%",
        "99999999999%",
        "%",
        "5 %",
        "maxconn:",
        "maxconn:-1",
        "maxconn:x",
        "downn",
        "\u{fc}p",
    ] {
        assert!(matches!(verdict(line.as_bytes()), Outcome::Unable(_)), "{line:?}");
    }
    assert!(matches!(verdict(b"up \xff"), Outcome::Unable(_)));
}

#[test]
fn the_line_may_come_in_pieces_and_end_with_cr_lf_or_the_connection() {
    let drained = Outcome::Soft("the agent says drain".to_owned());
    for ending in ["\n", "\r\n", "\r", ""] {
        for loopback in loopbacks() {
            let listener = TcpListener::bind(loopback).unwrap();
            let address = listener.local_addr().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut asked = [0; 6];
                    stream.read_exact(&mut asked).unwrap();
                    assert_eq!(&asked, b"hello\n");
                    stream.write_all(b"dra").unwrap();
                    std::thread::yield_now();
                    stream.write_all(b"in").unwrap();
                    stream.write_all(ending.as_bytes()).unwrap();
                });
                assert_eq!(run(&asks(Some("hello\n"), 10_000), address), drained);
            });
        }
    }
}

#[test]
fn who_is_silent_or_drips_fails_when_the_time_is_up() {
    let failed = Outcome::Failed("answer: timed out".to_owned());
    let silent = |mut stream: std::net::TcpStream| {
        let _ = stream.read(&mut [0; 1]);
    };
    assert_eq!(served(&asks(None, 50), silent), [failed.clone(), failed.clone()]);
    let drips = |mut stream: std::net::TcpStream| {
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    assert_eq!(served(&asks(None, 100), drips), [failed.clone(), failed]);
}

#[test]
fn megabytes_without_end_are_cut_off_and_a_half_closed_line_counts() {
    let floods = |mut stream: std::net::TcpStream| {
        let _ = stream.write_all(&vec![b'u'; 8 << 20]);
    };
    for outcome in served(&asks(None, 10_000), floods) {
        assert_eq!(
            outcome,
            Outcome::Unable("the agent's line is longer than 256 bytes".to_owned())
        );
    }
    let half_closes = |mut stream: std::net::TcpStream| {
        stream.write_all(b"up").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read(&mut [0; 1]);
    };
    assert_eq!(served(&asks(None, 10_000), half_closes), [Outcome::PASSED, Outcome::PASSED]);
}

proptest! {
    #[test]
    fn no_line_panics_or_asks_for_more_than_there_is(line in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Outcome::Passed(Advice { percent: Some(share) }) = verdict(&line) {
            prop_assert!(share <= MOST);
        }
    }
}

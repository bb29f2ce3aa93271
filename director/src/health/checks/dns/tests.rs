use std::net::UdpSocket;
use std::time::Duration;

use super::super::tests::{check, loopbacks, run};
use super::*;
use crate::health::plan::{Check, CheckKind};

fn asks(timeout: u64) -> Check {
    let dns = Dns { name: "example.org".to_owned(), record: 1 };
    Check { timeout: Duration::from_millis(timeout), ..check(CheckKind::Dns(dns)) }
}

/// What comes of a question that a server answers with all that `answers` makes of it.
fn answered(check: &Check, answers: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + Copy) -> [Outcome; 2] {
    loopbacks().map(|loopback| {
        let server = UdpSocket::bind(loopback).unwrap();
        let address = server.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut buffer = [0; 512];
                let (length, client) = server.recv_from(&mut buffer).unwrap();
                for answer in answers(&buffer[..length]) {
                    server.send_to(&answer, client).unwrap();
                }
            });
            run(check, address)
        })
    })
}

fn with_code(question: &[u8], code: u8) -> Vec<u8> {
    let mut answer = question.to_vec();
    (answer[2], answer[3]) = (0x81, code);
    answer
}

#[test]
fn a_server_that_answers_passes_and_one_that_cannot_fails_by_name() {
    let outcome = |code: u8| {
        let [v4, v6] = match code {
            0 => answered(&asks(10_000), |question| vec![with_code(question, 0)]),
            2 => answered(&asks(10_000), |question| vec![with_code(question, 2)]),
            3 => answered(&asks(10_000), |question| vec![with_code(question, 3)]),
            _ => answered(&asks(10_000), |question| vec![with_code(question, 5)]),
        };
        assert_eq!(v4, v6);
        v4
    };
    assert_eq!((outcome(0), outcome(3)), (Outcome::PASSED, Outcome::PASSED));
    let refused = Outcome::Failed("the server refuses to answer (REFUSED)".to_owned());
    assert_eq!(outcome(5), refused);
    let failed = Outcome::Failed("the server could not find out (SERVFAIL)".to_owned());
    assert_eq!(outcome(2), failed);
}

#[test]
fn what_answers_something_else_is_passed_over_until_the_answer_comes() {
    let outcomes = answered(&asks(10_000), |question| {
        let mut other_id = with_code(question, 5);
        other_id[0] ^= 1;
        let mut other_name = with_code(question, 5);
        other_name[14] ^= 1;
        let mut cut_off = with_code(question, 5);
        cut_off[2] |= 2;
        let garbage = vec![0xff; 400];
        vec![
            other_id,
            other_name,
            cut_off,
            garbage,
            vec![],
            question.to_vec(),
            with_code(question, 0),
        ]
    });
    assert_eq!(outcomes, [Outcome::PASSED, Outcome::PASSED]);
}

#[test]
fn garbage_alone_is_no_answer() {
    let failed = Outcome::Failed("no answer: timed out".to_owned());
    let outcomes = answered(&asks(100), |question| vec![question.to_vec(), vec![0; 12]]);
    assert_eq!(outcomes, [failed.clone(), failed]);
}

#[test]
fn a_name_that_is_none_is_the_plans_fault() {
    let dns = Dns { name: "a..b".to_owned(), record: 1 };
    let outcome = run(&check(CheckKind::Dns(dns)), loopbacks()[0]);
    assert!(matches!(outcome, Outcome::Unable(why) if why.contains("a..b")));
}

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::host::HostId;
use crate::key::ClusterKey;
use crate::membership::{Answer, State};

const NOW: Duration = Duration::from_secs(100);

fn key() -> ClusterKey {
    ClusterKey::new(b"a key of a cluster").unwrap()
}

fn host(id: u8) -> HostId {
    HostId::new(id).unwrap()
}

fn message(kind: Kind, to: Option<HostId>, nonce: [u8; 16], sequence: u32, text: &str) -> Vec<u8> {
    let code = Code::Answer(Answer::Done);
    let text = text.as_bytes().to_vec();
    Message { kind, host: to, code, nonce, sequence, text }.encode(key().control())
}

fn node() -> Challenges {
    Challenges::new(host(3), key().control().clone())
}

/// A node that has given the challenge `nonce`.
fn challenged(nonce: [u8; 16]) -> Challenges {
    let mut node = node();
    let hello = message(Kind::Hello, None, [9; 16], 0, "");
    let Ok(Request::Reply(reply)) = node.receive(&hello, nonce, NOW) else { panic!("no reply") };
    let challenge = decode(&reply, key().control()).unwrap();
    assert_eq!(
        (challenge.kind, challenge.host, challenge.nonce),
        (Kind::Challenge, Some(host(3)), nonce)
    );
    assert_eq!(challenge.text, [9; 16], "the controller knows its hello");
    node
}

#[test]
fn a_command_under_a_challenge_is_obeyed_once_and_answered() {
    let mut node = challenged([1; 16]);
    let stop = message(Kind::Command, Some(host(3)), [1; 16], 1, "drainstop 5m");
    let Ok(Request::Obey(command)) = node.receive(&stop, [0; 16], NOW) else {
        panic!("not obeyed")
    };
    assert_eq!(command.text, b"drainstop 5m");
    let text = b"draining, 3 flows left".to_vec();
    let reply = node.answer(&command, Code::Answer(Answer::Already), text);
    let answer = decode(&reply, key().control()).unwrap();
    assert_eq!((answer.kind, answer.nonce, answer.sequence), (Kind::Answer, [1; 16], 1));
    assert_eq!(answer.code.to_string(), "already");
    assert_eq!(answer.readable(), "draining, 3 flows left");

    assert_eq!(node.receive(&stop, [0; 16], NOW), Err(Refused::Replay));
    let next = message(Kind::Command, None, [1; 16], 2, "query");
    assert!(matches!(node.receive(&next, [0; 16], NOW), Ok(Request::Obey(_))));
    assert_eq!(node.receive(&stop, [0; 16], NOW), Err(Refused::Replay));
    assert_eq!(node.refused(Refused::Replay), 2);
}

#[test]
fn a_command_without_an_open_challenge_is_refused() {
    let command = |nonce| message(Kind::Command, None, nonce, 1, "stop");
    assert_eq!(node().receive(&command([1; 16]), [0; 16], NOW), Err(Refused::NoChallenge));
    let mut node = challenged([1; 16]);
    assert_eq!(node.receive(&command([2; 16]), [0; 16], NOW), Err(Refused::NoChallenge));
    let late = NOW + Duration::from_secs(31);
    assert_eq!(node.receive(&command([1; 16]), [0; 16], late), Err(Refused::NoChallenge));
}

#[test]
fn open_challenges_are_few_and_the_oldest_is_forgotten() {
    let mut node = challenged([1; 16]);
    for number in 2..=33u8 {
        let hello = message(Kind::Hello, None, [9; 16], 0, "");
        node.receive(&hello, [number; 16], NOW).unwrap();
    }
    let command = |nonce| message(Kind::Command, None, [nonce; 16], 1, "query");
    assert_eq!(node.receive(&command(1), [0; 16], NOW), Err(Refused::NoChallenge));
    assert!(node.receive(&command(2), [0; 16], NOW).is_ok());
}

#[test]
fn what_is_for_others_or_not_sealed_gets_no_answer() {
    let mut node = challenged([1; 16]);
    let other = message(Kind::Command, Some(host(4)), [1; 16], 1, "stop");
    assert_eq!(node.receive(&other, [0; 16], NOW), Err(Refused::NotForUs));
    for kind in [Kind::Challenge, Kind::Answer] {
        let strange = message(kind, Some(host(3)), [1; 16], 1, "");
        assert_eq!(node.receive(&strange, [0; 16], NOW), Err(Refused::NotForUs));
    }
    let good = message(Kind::Command, None, [1; 16], 1, "stop");
    for at in 0..good.len() {
        let mut wrong = good.clone();
        wrong[at] ^= 1;
        assert_eq!(node.receive(&wrong, [0; 16], NOW), Err(Refused::Seal), "byte {at}");
        assert_eq!(node.receive(&good[..at], [0; 16], NOW), Err(Refused::Seal), "{at} bytes");
    }
    let heartbeat_key = Message {
        kind: Kind::Command,
        host: None,
        code: Code::Failed,
        nonce: [1; 16],
        sequence: 1,
        text: b"stop".to_vec(),
    };
    let wrong = heartbeat_key.encode(key().seal());
    assert_eq!(node.receive(&wrong, [0; 16], NOW), Err(Refused::Seal));
    assert!(matches!(node.receive(&good, [0; 16], NOW), Ok(Request::Obey(_))));
}

#[test]
fn every_code_survives_the_wire_and_has_its_word() {
    let mut words = std::collections::BTreeSet::new();
    let states = [
        State::Suspended,
        State::Stopped,
        State::Disconnected,
        State::Converging,
        State::Converged,
        State::ConvergedDefault,
        State::Draining,
        State::Quarantined,
    ];
    let answers = Answer::ALL.into_iter().map(Code::Answer);
    let states = states.into_iter().map(Code::State);
    for code in answers.chain(states).chain([Code::NotUnderstood, Code::Failed]) {
        let command = decode(&message(Kind::Command, None, [1; 16], 1, "query"), key().control());
        let answer = node().answer(&command.unwrap(), code, vec![]);
        assert_eq!(decode(&answer, key().control()).unwrap().code, code);
        words.insert(code.to_string());
    }
    assert!(words.len() >= 15, "{words:?}");
}

#[test]
fn a_text_cannot_steer_the_reader_s_terminal() {
    let command =
        decode(&message(Kind::Command, None, [1; 16], 1, "query"), key().control()).unwrap();
    let answer = node().answer(&command, Code::Failed, b"a\x1b[2Jb\nc\x7f".to_vec());
    let shown = decode(&answer, key().control()).unwrap().readable();
    assert_eq!(shown, "a\u{fffd}[2Jb\nc\u{fffd}");
}

proptest! {
    #[test]
    fn sealed_garbage_never_panics(head in prop::array::uniform24(any::<u8>()), text in prop::collection::vec(any::<u8>(), 0..1300)) {
        let mut bytes = [&MAGIC[..], &[VERSION], &head, &[0], &text].concat();
        if let [.., high, low] = &mut bytes[..HEAD.min(29)] { [*high, *low] = [0, 0]; }
        let length = bytes.len().saturating_sub(HEAD) as u16;
        if bytes.len() >= HEAD { bytes[28..30].copy_from_slice(&length.to_be_bytes()); }
        let tag = key().control().sign(&[&bytes]);
        bytes.extend(&tag[..SEAL]);
        let mut node = challenged([1; 16]);
        let _ = node.receive(&bytes, [2; 16], NOW);
        let _ = node.receive(&text, [2; 16], NOW);
    }
}

//! Agents of another version, forged and senseless answers, checks that hang or never stop talking.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use director::control::events::EventKind;
use director::control::health::HealthState;
use integration::topology::Kind;
use realserver_agent::protocol::{Answer, Key, LEN, PORT, Probe, State};

use crate::bed::{Bed, Wanted, server};
use crate::can_run;

const AGENT: &str = r#"agent = { period = "100ms", timeout = "500ms" }"#;
const SOON: Duration = Duration::from_secs(5);

/// What a liar answers to a probe; `None`: nothing.
type Lie = fn(&[u8], u64) -> Option<Vec<u8>>;

/// Answers probes on server `number` in place of an agent, until the end of the test.
fn lie(bed: &Bed, number: usize, lie: Lie) -> Arc<AtomicBool> {
    let socket = bed.topology.servers[number - 1]
        .run(|| UdpSocket::bind((server(number).ip(), PORT)))
        .unwrap()
        .unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let (end, count) = (over.clone(), AtomicU64::new(0));
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while !end.load(Relaxed) {
            let Ok((len, from)) = socket.recv_from(&mut buffer) else { continue };
            if let Some(answer) = lie(&buffer[..len], count.fetch_add(1, Relaxed)) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    over
}

fn answer(probe: &[u8], state: State, key: Option<&Key>) -> Option<Vec<u8>> {
    let challenge = Probe::decode(probe, None).ok()?.challenge;
    let answer = Answer { challenge, boot: 1, state, load: Some(5000), connections: 0, queue: 0 };
    Some(answer.encode(key).to_vec())
}

fn of_another_version(probe: &[u8], _: u64) -> Option<Vec<u8>> {
    let mut answer = answer(probe, State::Down, None)?;
    answer[4] = 9;
    Some(answer)
}

fn senseless(probe: &[u8], _: u64) -> Option<Vec<u8>> {
    let mut answer = answer(probe, State::Up, None)?;
    // A load of 65280.
    answer[26] = 0xff;
    Some(answer)
}

/// Down, in answer to a question that nobody asked.
fn replayed(probe: &[u8], _: u64) -> Option<Vec<u8>> {
    let mut answer = answer(probe, State::Down, None)?;
    answer[8..16].copy_from_slice(&7_u64.to_be_bytes());
    Some(answer)
}

fn noise(probe: &[u8], count: u64) -> Option<Vec<u8>> {
    Some(vec![count as u8; probe.len().max(LEN) * 20])
}

#[test]
fn what_does_not_count_is_named_and_changes_no_weight() {
    if !can_run() {
        return;
    }
    for (name, word, lying) in [
        ("another version", "version 9", of_another_version as Lie),
        ("senseless", "out of range", senseless),
        ("replayed", "question", replayed),
        ("noise", "protocol", noise),
    ] {
        let wanted = Wanted { weight: 100, ..Wanted::new(Kind::Nat, AGENT) };
        let bed = Bed::build(wanted).unwrap();
        // TCP answers: the host lives.
        let tcp = bed.topology.servers[0]
            .run(|| std::net::TcpListener::bind((server(1).ip(), PORT)))
            .unwrap()
            .unwrap();
        let over = lie(&bed, 1, lying);
        bed.wait_until(1, "refused", SOON, |health| {
            health.direction.as_ref().is_some_and(|direction| direction.refused > 5)
        })
        .unwrap();
        let events = bed.events().unwrap();
        let refused: Vec<_> =
            events.iter().filter(|event| event.kind == EventKind::AgentRefused).collect();
        let names = refused.iter().any(|event| event.reason.contains(word));
        assert!(names && refused.len() < 4, "{name}: {events:#?}");
        assert!(!events.iter().any(|event| event.kind == EventKind::WeightChanged), "{name}");
        over.store(true, Relaxed);
        drop(tcp);
        bed.director.stop().unwrap();
    }
}

#[test]
fn answers_without_the_right_signature_do_not_count() {
    if !can_run() {
        return;
    }
    let mut bed = None;
    let lines = |lab: &std::path::Path| {
        let key = lab.join("agent.key");
        std::fs::write(&key, "of this site").unwrap();
        format!("agent = {{ period = \"100ms\", timeout = \"500ms\", key_file = {key:?} }}")
    };
    let folder = std::env::temp_dir().join(format!("sy-health-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let service = lines(&folder);
    let key_line = format!("key_file = {:?}", folder.join("agent.key"));
    let built =
        bed.insert(Bed::build(Wanted::new(Kind::Nat, &service).with_agents(&key_line)).unwrap());
    // The real agents have the key: they are heard.
    built
        .wait_until(2, "heard", SOON, |health| {
            health.direction.as_ref().is_some_and(|direction| direction.mode == "udp")
        })
        .unwrap();
    // One that has not says that it is down.
    built.agents[0].stop().unwrap();
    let over = lie(built, 1, |probe, _| {
        let challenge = u64::from_be_bytes(probe.get(8..16)?.try_into().ok()?);
        let answer = Answer {
            challenge,
            boot: 1,
            state: State::Draining,
            load: None,
            connections: 0,
            queue: 0,
        };
        Some(answer.encode(Key::new(b"of somebody else").as_ref()).to_vec())
    });
    built
        .wait_until(1, "refused", SOON, |health| {
            health.direction.as_ref().is_some_and(|direction| direction.refused > 2)
        })
        .unwrap();
    assert_ne!(built.health(1).unwrap().state, HealthState::Draining);
    over.store(true, Relaxed);
    let _ = std::fs::remove_dir_all(&folder);
    bed.unwrap().director.stop().unwrap();
}

#[test]
fn checks_that_hang_or_talk_without_end_are_ended_and_leave_nothing_behind() {
    if !can_run() {
        return;
    }
    let check = r#"check = { type = "exec", command = ["/bin/sh", "-c", "if [ $SWITCHYARD_SERVER = 10.77.0.11 ]; then sleep 4242; elif [ $SWITCHYARD_SERVER = 10.77.0.12 ]; then exec yes; fi"], interval = "400ms", timeout = "200ms", rise = 1, fall = 2 }"#;
    let bed = Bed::build(Wanted::new(Kind::Nat, check)).unwrap();
    for number in [1, 2] {
        let health = bed.wait_for(number, HealthState::Down, SOON).unwrap();
        assert!(!health.reason.is_empty());
    }
    assert_eq!(bed.health(3).unwrap().state, HealthState::Up);
    let before = resident(&bed);
    bed.served_by(60, &[3]);
    std::thread::sleep(Duration::from_secs(3));
    let grown = resident(&bed).saturating_sub(before);
    assert!(grown < 8 << 20, "the director has grown by {grown} bytes");
    let left = children(&bed);
    assert!(left <= 4, "{left} processes of checks are left");
    bed.director.stop().unwrap();
}

fn resident(bed: &Bed) -> u64 {
    let path = format!("/proc/{}/statm", bed.director.process().id());
    let text = std::fs::read_to_string(path).unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Processes whose parent is the director.
fn children(bed: &Bed) -> usize {
    let id = bed.director.process().id();
    let text = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    text.split_whitespace().count()
}

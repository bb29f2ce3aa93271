//! Answers over real sockets on this host, to peers of every kind.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};

use super::listening::Pair;
use super::tcp::Limits;
use super::*;
use crate::protocol::{Answer, State};

const LONG: Duration = Duration::from_secs(20);
const BOOT: u64 = 0x0123_4567_89ab_cdef;

/// Short enough for a test, long enough for a machine that is busy.
const LIMITS: Limits = Limits {
    connections: 256,
    of_one: 256,
    idle: Duration::from_secs(10),
    patience: Duration::from_millis(150),
};

fn answering(policy: Policy) -> Answering {
    Answering::new(BOOT, Rc::new(Standing::default()), policy)
}

/// Serves while `peer` talks.
async fn with<F: Future>(
    answering: &Answering,
    limits: Limits,
    peer: impl FnOnce(SocketAddr) -> F,
) -> F::Output {
    let pair = Pair::open("127.0.0.1:0".parse().unwrap()).unwrap();
    let at = pair.address().unwrap();
    tokio::select! {
        broken = udp::serve(&pair.udp, answering) => panic!("{broken:?}"),
        broken = tcp::serve(&pair.tcp, answering, limits, false) => panic!("{broken:?}"),
        outcome = timeout(LONG, peer(at)) => outcome.expect("the peer was left waiting"),
    }
}

async fn ask_udp(at: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(at).await.unwrap();
    socket.send(bytes).await.unwrap();
    let mut answer = vec![0; 2000];
    let length = timeout(Duration::from_millis(200), socket.recv(&mut answer)).await.ok()?.unwrap();
    answer.truncate(length);
    Some(answer)
}

async fn ask_tcp(stream: &mut TcpStream, challenge: u64) -> std::io::Result<Answer> {
    stream.write_all(&Probe { challenge }.encode(None)).await?;
    let mut answer = [0; LEN];
    stream.read_exact(&mut answer).await?;
    Ok(Answer::decode(&answer, None).unwrap())
}

/// All that the peer hears until the connection is closed.
async fn hear(at: SocketAddr, say: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(say).await.unwrap();
    let mut heard = Vec::new();
    // A reset is a way of closing, too.
    let _ = stream.read_to_end(&mut heard).await;
    String::from_utf8(heard).unwrap()
}

#[tokio::test]
async fn a_probe_is_answered_over_udp_and_many_over_one_connection() {
    let answering = answering(Policy::default());
    with(&answering, LIMITS, async |at| {
        let answer = ask_udp(at, &Probe { challenge: 7 }.encode(None)).await.unwrap();
        let answer = Answer::decode(&answer, None).unwrap();
        assert_eq!((answer.challenge, answer.boot, answer.state), (7, BOOT, State::Up));
        let mut stream = TcpStream::connect(at).await.unwrap();
        for challenge in 0..1000 {
            assert_eq!(ask_tcp(&mut stream, challenge).await.unwrap().challenge, challenge);
        }
        // Two at once, the second in pieces.
        let both = [Probe { challenge: 1 }.encode(None), Probe { challenge: 2 }.encode(None)];
        let both = both.concat();
        stream.write_all(&both[..70]).await.unwrap();
        sleep(Duration::from_millis(20)).await;
        stream.write_all(&both[70..]).await.unwrap();
        let mut answers = [0; 2 * LEN];
        stream.read_exact(&mut answers).await.unwrap();
        assert_eq!(Answer::decode(&answers[LEN..], None).unwrap().challenge, 2);
    })
    .await;
    assert_eq!(answering.answered(), 1003);
    let askers = answering.askers();
    assert_eq!((askers.len(), askers[0].answers, askers[0].over), (1, 1003, Over::Tcp));
}

#[tokio::test]
async fn what_is_not_a_probe_gets_no_datagram_and_is_counted_by_reason() {
    let answering = answering(Policy { text: true, ..Policy::default() });
    let good = Probe { challenge: 7 }.encode(None);
    let answer =
        Answer { challenge: 7, boot: 1, state: State::Up, load: None, connections: 0, queue: 0 };
    let mut newer = good;
    newer[4] = 9;
    let long = [&good[..], &[0]].concat();
    let signed = Probe { challenge: 7 }.encode(Key::new(b"secret").as_ref());
    with(&answering, LIMITS, async |at| {
        let wrong: [&[u8]; 7] =
            [b"", b"x", &good[..LEN - 1], &long, &newer, &answer.encode(None), &signed];
        for bytes in wrong {
            assert_eq!(ask_udp(at, bytes).await, None, "{bytes:?}");
        }
    })
    .await;
    let expected = [("foreign", 4), ("kind", 1), ("no_key", 1), ("version", 1)];
    assert_eq!(answering.refused(), expected.into());
    assert_eq!(answering.answered(), 0);
}

#[tokio::test]
async fn with_a_key_only_who_has_it_is_answered() {
    let key = Key::new(b"of the cluster");
    let answering = answering(Policy { key: key.clone(), ..Policy::default() });
    with(&answering, LIMITS, async |at| {
        let probe = Probe { challenge: 7 };
        assert_eq!(ask_udp(at, &probe.encode(None)).await, None);
        assert_eq!(ask_udp(at, &probe.encode(Key::new(b"another").as_ref())).await, None);
        let answer = ask_udp(at, &probe.encode(key.as_ref())).await.unwrap();
        assert_eq!(Answer::decode(&answer, key.as_ref()).unwrap().challenge, 7);
    })
    .await;
    assert_eq!(answering.refused(), [("forged", 1), ("unsigned", 1)].into());
}

#[tokio::test]
async fn strangers_hear_nothing() {
    let from = vec!["10.0.0.0/8".parse().unwrap()];
    let answering = answering(Policy { from, text: true, key: None });
    with(&answering, LIMITS, async |at| {
        assert_eq!(ask_udp(at, &Probe { challenge: 7 }.encode(None)).await, None);
        assert_eq!(hear(at, b"").await, "");
    })
    .await;
    assert_eq!(answering.refused(), [("stranger", 2)].into());
}

#[tokio::test]
async fn silence_and_text_get_the_line_of_haproxy() {
    let standing = Rc::new(Standing::default());
    let answering =
        Answering::new(BOOT, standing.clone(), Policy { text: true, ..Policy::default() });
    with(&answering, LIMITS, async |at| {
        assert_eq!(hear(at, b"").await, "up ready\n");
        assert_eq!(hear(at, b"state of web1?\n").await, "up ready\n");
        standing.drained.set(true);
        assert_eq!(hear(at, &[b'x'; 3000]).await, "drain\n");
    })
    .await;
}

#[tokio::test]
async fn a_port_of_its_own_gives_the_line_at_once() {
    let answering = answering(Policy::default());
    let listener = listening::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
    let at = listener.local_addr().unwrap();
    // Were it patient, this would be for ever.
    let limits = Limits { patience: LONG * 10, ..LIMITS };
    tokio::select! {
        broken = tcp::serve(&listener, &answering, limits, true) => panic!("{broken:?}"),
        line = timeout(LONG, hear(at, b"")) => assert_eq!(line.unwrap(), "up ready\n"),
    }
}

#[tokio::test]
async fn without_agent_check_text_closes_the_connection() {
    let answering = answering(Policy::default());
    with(&answering, LIMITS, async |at| assert_eq!(hear(at, &[b'x'; LEN]).await, "")).await;
    assert_eq!(answering.refused(), [("foreign", 1)].into());
}

#[tokio::test]
async fn who_dawdles_over_a_message_is_left() {
    let answering = answering(Policy { text: true, ..Policy::default() });
    let limits = Limits { idle: Duration::from_millis(300), ..LIMITS };
    with(&answering, limits, async |at| {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let started = Instant::now();
        for byte in (Probe { challenge: 7 }).encode(None) {
            // One byte, and again: to come nearer must not be to stay.
            if stream.write_all(&[byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
        assert!(stream.read_exact(&mut [0; LEN]).await.is_err(), "answered all the same");
        assert!(started.elapsed() < LONG / 2);
    })
    .await;
}

#[tokio::test]
async fn who_does_not_read_its_answers_is_left_and_others_are_answered() {
    let answering = answering(Policy::default());
    with(&answering, LIMITS, async |at| {
        let mut deaf = TcpStream::connect(at).await.unwrap();
        let probes = Probe { challenge: 7 }.encode(None).repeat(1000);
        let flood = async { while deaf.write_all(&probes).await.is_ok() {} };
        let other = async {
            let mut stream = TcpStream::connect(at).await.unwrap();
            for challenge in 0..20 {
                // The deaf one may have used up the answers of this tenth of a second.
                if ask_tcp(&mut stream, challenge).await.is_err() {
                    sleep(Duration::from_millis(100)).await;
                    stream = TcpStream::connect(at).await.unwrap();
                }
            }
        };
        tokio::join!(flood, other);
    })
    .await;
}

#[tokio::test]
async fn a_thousand_silent_connections_keep_nobody_out() {
    let answering = answering(Policy::default());
    let limits = Limits { connections: 50, ..LIMITS };
    with(&answering, limits, async |at| {
        let mut director = TcpStream::connect(at).await.unwrap();
        let mut silent = Vec::new();
        for number in 0..1000 {
            silent.push(TcpStream::connect(at).await.unwrap());
            if number % 10 == 0 {
                assert_eq!(ask_tcp(&mut director, number).await.unwrap().challenge, number);
            }
        }
        // One that comes now is answered, too, and most of the silent are gone.
        let mut late = TcpStream::connect(at).await.unwrap();
        assert_eq!(ask_tcp(&mut late, 1).await.unwrap().challenge, 1);
        let mut nothing = [0; 1];
        let closed = timeout(LIMITS.idle / 2, silent[0].read(&mut nothing)).await;
        assert_eq!(closed.expect("it has not been closed for the others").unwrap(), 0);
    })
    .await;
    let many = answering.refused()["too_many"];
    assert!((900..=1002).contains(&many), "{many}");
}

#[tokio::test]
async fn one_address_has_its_share_of_the_connections() {
    let answering = answering(Policy::default());
    let limits = Limits { of_one: 3, ..LIMITS };
    with(&answering, limits, async |at| {
        let mut first = TcpStream::connect(at).await.unwrap();
        ask_tcp(&mut first, 1).await.unwrap();
        let _others =
            [TcpStream::connect(at).await.unwrap(), TcpStream::connect(at).await.unwrap()];
        assert_eq!(hear(at, b"").await, "", "the fourth is closed");
        ask_tcp(&mut first, 2).await.unwrap();
    })
    .await;
    assert_eq!(answering.refused(), [("too_many", 1)].into());
}

#[tokio::test]
async fn an_answer_comes_from_the_address_that_was_asked() {
    let answering = answering(Policy::default());
    for (bind, asked) in [("0.0.0.0:0", "127.0.0.77"), ("[::]:0", "::1")] {
        let Ok(pair) = Pair::open(bind.parse().unwrap()) else { continue };
        let at = SocketAddr::new(asked.parse().unwrap(), pair.address().unwrap().port());
        let client = if at.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
        let socket = UdpSocket::bind(client).await.unwrap();
        // Not connected: a socket that is would not show an answer from elsewhere.
        socket.send_to(&Probe { challenge: 7 }.encode(None), at).await.unwrap();
        let mut answer = [0; LEN];
        tokio::select! {
            broken = udp::serve(&pair.udp, &answering) => panic!("{broken:?}"),
            heard = timeout(LONG, socket.recv_from(&mut answer)) => {
                assert_eq!(heard.unwrap().unwrap(), (LEN, at));
            }
        }
    }
}

#[test]
fn only_so_many_askers_are_remembered_and_the_silent_are_forgotten_first() {
    let answering = answering(Policy::default());
    let probe = Probe { challenge: 1 }.encode(None);
    for last in 0..200u8 {
        answering.message(&probe, IpAddr::from([10, 0, 0, last]), Over::Udp).unwrap();
        answering.message(&probe, IpAddr::from([10, 0, 0, 0]), Over::Udp).unwrap();
    }
    let askers = answering.askers();
    assert_eq!(askers.len(), REMEMBERED);
    let first = askers.iter().find(|it| it.address == IpAddr::from([10, 0, 0, 0])).unwrap();
    assert_eq!(first.answers, 201);
}

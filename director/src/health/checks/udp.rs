//! A datagram is answered, or at least not refused by ICMP.

use super::datagram::exchange;
use super::{Deadline, Outcome, Way};
use crate::health::plan::Udp;

pub(super) async fn run(way: &Way<'_>, udp: &Udp, deadline: Deadline) -> Result<Outcome, Outcome> {
    let expected = udp.expect.as_deref();
    let exchanged = exchange(way, &udp.send, deadline, |datagram| {
        datagram.starts_with(expected.unwrap_or_default()).then_some(())
    });
    match (exchanged.await?, expected) {
        // Most services say nothing to what they do not understand.
        (Some(()), _) | (None, None) => Ok(Outcome::PASSED),
        (None, Some(_)) => Ok(Outcome::Failed("no answer as expected: timed out".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::super::tests::{check, loopbacks, run};
    use super::*;
    use crate::health::plan::{Check, CheckKind};

    fn asks(expect: Option<&[u8]>, timeout: u64) -> Check {
        let expect = expect.map(<[u8]>::to_vec);
        let udp = Udp { send: b"ping".to_vec(), expect };
        Check { timeout: Duration::from_millis(timeout), ..check(CheckKind::Udp(udp)) }
    }

    #[test]
    fn the_expected_answer_passes_whatever_comes_before_it() {
        for loopback in loopbacks() {
            let server = UdpSocket::bind(loopback).unwrap();
            let address = server.local_addr().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let mut buffer = [0; 16];
                    let (length, client) = server.recv_from(&mut buffer).unwrap();
                    assert_eq!(&buffer[..length], b"ping");
                    server.send_to(b"", client).unwrap();
                    server.send_to(&[0; 60_000], client).unwrap();
                    server.send_to(b"pong!", client).unwrap();
                });
                assert_eq!(run(&asks(Some(b"pong"), 10_000), address), Outcome::PASSED);
            });
        }
    }

    #[test]
    fn silence_passes_where_nothing_is_expected_and_a_closed_port_never_does() {
        for loopback in loopbacks() {
            let server = UdpSocket::bind(loopback).unwrap();
            let address = server.local_addr().unwrap();
            assert_eq!(run(&asks(None, 50), address), Outcome::PASSED);
            let silent = Outcome::Failed("no answer as expected: timed out".to_owned());
            assert_eq!(run(&asks(Some(b"pong"), 50), address), silent);
            drop(server);
            let closed = Outcome::Failed("answer: connection refused".to_owned());
            assert_eq!(run(&asks(None, 10_000), address), closed);
            assert_eq!(run(&asks(Some(b"pong"), 10_000), address), closed);
        }
    }
}

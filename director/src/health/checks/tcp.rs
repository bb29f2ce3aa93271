//! A TCP connection can be opened.
//!
//! It is taken back with RST, as HAProxy does, before its handshake is complete: most of the time
//! the server's program does not even hear of it. An orderly end would be one more connection that
//! says nothing for each program to accept and to log, some of which bar a client after a few of
//! these, and would leave the director with one more connection in TIME_WAIT per check.

use super::{Deadline, Way, stream};
use crate::health::outcome::Outcome;

pub(super) async fn run(way: &Way<'_>, deadline: Deadline) -> Result<Outcome, Outcome> {
    stream::connect(way, true, deadline).await?;
    Ok(Outcome::PASSED)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use super::super::tests::{check, loopbacks, run};
    use super::*;
    use crate::health::plan::CheckKind;

    #[test]
    fn a_listening_server_passes_and_its_program_hears_nothing_of_it() {
        for loopback in loopbacks() {
            let listener = TcpListener::bind(loopback).unwrap();
            listener.set_nonblocking(true).unwrap();
            let address = listener.local_addr().unwrap();
            let mut heard = 0;
            for _ in 0..5 {
                assert_eq!(run(&check(CheckKind::Tcp), address), Outcome::PASSED);
                heard += u32::from(listener.accept().is_ok());
            }
            // Each, without what is done about it; one that this machine was slow with may be.
            assert!(heard < 5);
        }
    }

    #[test]
    fn who_refuses_or_is_silent_fails_in_words() {
        for loopback in loopbacks() {
            let listener = TcpListener::bind(loopback).unwrap();
            let address = listener.local_addr().unwrap();
            netio::silence::silence(&listener).unwrap();
            let mut check = check(CheckKind::Tcp);
            check.timeout = Duration::from_millis(50);
            let failed = |why: &str| Outcome::Failed(format!("connect: {why}"));
            assert_eq!(run(&check, address), failed("timed out"));
            drop(listener);
            assert_eq!(run(&check, address), failed("connection refused"));
        }
    }
}

//! Checks against real listeners on this host.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use super::*;
use crate::protocol::State;
use crate::settings::Protocol;

const MOMENT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(20);

fn check(kind: CheckKind, rise: u32, fall: u32) -> Check {
    Check { kind, interval: MOMENT, timeout: 10 * MOMENT, rise, fall }
}

fn served(at: SocketAddr) -> Served {
    Served { address: at.ip(), port: Some(at.port()), protocol: Some(Protocol::Tcp) }
}

/// Checks until the state is the wanted one.
async fn until(checks: &Checks, standing: &Standing, wanted: State) -> String {
    let seen = async {
        while standing.state().0 != wanted {
            sleep(MOMENT / 4).await;
        }
        standing.state().1
    };
    let seen = timeout(LONG, seen);
    tokio::select! {
        () = checks.run(standing) => String::new(),
        seen = seen => seen.unwrap_or_else(|_| panic!("never {wanted:?}: {:?}", checks.views())),
    }
}

#[test]
fn outcomes_count_only_in_a_row() {
    let runner = Runner::new(check(CheckKind::Tcp { port: None }, 2, 3), None);
    let (good, bad) = (|| Ok(String::new()), || Err("refused".to_owned()));
    for outcome in [bad(), bad(), good(), bad(), bad()] {
        assert!(!runner.note(outcome));
    }
    assert!(runner.note(bad()), "the third in a row");
    assert!(!runner.view.borrow().passes);
    for outcome in [good(), bad(), good()] {
        runner.note(outcome);
        assert!(!runner.view.borrow().passes);
    }
    assert!(runner.note(good()), "the second in a row");
    assert!(runner.view.borrow().passes);
}

#[tokio::test]
async fn a_service_that_stops_listening_takes_the_state_down_and_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let checks = Checks::new(&[check(CheckKind::Tcp { port: None }, 2, 2)], &[served(at)]);
    let standing = Standing::default();
    drop(listener);
    let reason = until(&checks, &standing, State::Down).await;
    assert!(reason.starts_with(&format!("tcp {at}: ")) && reason.contains("refused"), "{reason}");
    assert!(checks.views()[0].made >= 2);
    // A file that is read again does not make it good.
    let again = Checks::new(&[check(CheckKind::Tcp { port: None }, 2, 2)], &[served(at)]);
    again.inherit(&checks);
    assert!(!again.views()[0].passes);
    let _listener = TcpListener::bind(at).await.unwrap();
    until(&again, &standing, State::Up).await;
}

#[tokio::test]
async fn http_goes_by_the_status_and_silence_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let server = async {
        // What is answered, one connection after the other; the last for ever.
        for answer in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 500 Oh\r\n\r\n", "\u{1}\u{2}\n", ""] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 1000];
            let length = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            assert!(request.starts_with("GET /ready HTTP/1.1\r\nHost: www\r\n"), "{request}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            if answer.is_empty() {
                sleep(LONG).await;
            }
        }
    };
    let kind = CheckKind::Http {
        port: None,
        path: "/ready".to_owned(),
        host: Some("www".to_owned()),
        expect: 200..=399,
    };
    let runner = Runner::new(check(kind, 1, 1), Some(at));
    let checked = async {
        assert_eq!(runner.once().await, Ok("status 200".to_owned()));
        assert_eq!(runner.once().await, Err("status 500".to_owned()));
        assert!(runner.once().await.unwrap_err().contains("not HTTP"));
        assert!(runner.once().await.unwrap_err().contains("no answer within"));
    };
    tokio::select! {
        () = server => panic!("the server ended"),
        () = checked => {}
    }
}

#[tokio::test]
async fn a_command_decides_and_one_that_hangs_fails() {
    let shell = |script: &str| CheckKind::Exec(["/bin/sh", "-c", script].map(str::to_owned).into());
    let standing = Standing::default();
    let checks = Checks::new(&[check(shell("echo no database; exit 1"), 1, 2)], &[]);
    let reason = until(&checks, &standing, State::Down).await;
    assert!(reason.contains("no database"), "{reason}");
    let hangs = Checks::new(&[check(shell("sleep 1000"), 1, 1)], &[]);
    let reason = until(&hangs, &Standing::default(), State::Down).await;
    assert!(reason.contains("killed"), "{reason}");
}

#[test]
fn a_check_without_a_port_looks_at_every_tcp_service_once() {
    let web = served("192.0.2.10:80".parse().unwrap());
    let dns = Served { port: Some(53), protocol: Some(Protocol::Udp), ..web };
    let any = Served { port: None, ..web };
    let all = [web, dns, any, web];
    assert_eq!(targets(&CheckKind::Tcp { port: None }, &all), [web.tcp()]);
    let own = CheckKind::Tcp { port: Some(8080) };
    assert_eq!(targets(&own, &all), [Some("192.0.2.10:8080".parse().unwrap())]);
    assert_eq!(targets(&CheckKind::Exec(Vec::new()), &all), [None]);
}

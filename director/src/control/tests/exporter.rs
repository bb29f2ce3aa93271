//! Metrics over TCP: what is served there, and what is not.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::fake::Fake;
use crate::control::exporter;
use crate::control::server::{Limits, shared};

/// An exporter on a thread of its own, which ends with the test.
fn served() -> SocketAddr {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(exporter::bind("127.0.0.1:0".parse().unwrap())).unwrap();
    let address = listener.local_addr().unwrap();
    let shared = shared(Limits::default(), Arc::new(Fake::default()));
    std::thread::spawn(move || runtime.block_on(exporter::serve(listener, shared)));
    address
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_address_for_metrics_gives_out_metrics_and_nothing_of_the_control_api() {
    let address = served();
    let get = |path: &str| ask(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let page = get("/metrics");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("\nswitchyard_info{"), "{page}");
    assert!(get("/healthz").ends_with("\r\n\r\nok\n"));
    for path in ["/v1/status", "/v1/services", "/v1/commands", "/"] {
        assert!(get(path).starts_with("HTTP/1.1 404 "), "{path}");
    }
    let body = "[{\"op\":\"flush\"}]";
    let length = body.len();
    for path in ["/metrics", "/v1/commands"] {
        let request =
            format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
        let answer = ask(address, &request);
        assert!(answer.starts_with("HTTP/1.1 40"), "{path}: {answer}");
    }
}

#[test]
fn clients_of_the_metrics_that_say_nothing_do_not_keep_others_out_for_ever() {
    let address = served();
    let ask = || {
        let page = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    };
    let silent = || TcpStream::connect(address).unwrap();
    let few: Vec<TcpStream> = (0..100).map(|_| silent()).collect();
    ask();
    let last = few.last().unwrap();
    last.set_nonblocking(true).unwrap();
    assert_eq!(last.peek(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "still there");
    let many: Vec<TcpStream> = (0..300).map(|_| silent()).collect();
    ask();
    drop((few, many));
}

#[test]
fn an_address_that_is_taken_is_named_with_the_key() {
    let taken = served();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(exporter::bind(taken)).unwrap_err().to_string();
    assert!(error.contains(&taken.to_string()) && error.contains("`metrics`"), "{error}");
}

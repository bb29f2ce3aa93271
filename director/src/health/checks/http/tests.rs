use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::super::tests::{check, loopbacks, run};
use super::*;
use crate::health::plan::{Check, CheckKind};

fn asks(http: Http, timeout: u64) -> Check {
    Check { timeout: Duration::from_millis(timeout), ..check(CheckKind::Http(http)) }
}

/// Reads a request to its end.
fn request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0; 1];
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

/// What comes of a server that does this with its connection.
fn served(check: &Check, serve: impl Fn(TcpStream) + Send + Copy) -> Outcome {
    let [v4, v6] = loopbacks().map(|loopback| {
        let listener = TcpListener::bind(loopback).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || serve(listener.accept().unwrap().0));
            run(check, address)
        })
    });
    assert_eq!(v4, v6);
    v4
}

/// What comes of this answer, after which the server closes the connection.
fn answered(http: Http, answer: &[u8]) -> Outcome {
    served(&asks(http, 10_000), |mut stream| {
        request(&mut stream);
        let _ = stream.write_all(answer);
    })
}

fn wants(text: &str) -> Http {
    Http { contains: Some(text.to_owned()), ..Http::default() }
}

#[test]
fn the_status_decides() {
    let status = |line: &str| answered(Http::default(), format!("{line}\r\n\r\n").as_bytes());
    assert_eq!(status("HTTP/1.1 200 OK"), Outcome::PASSED);
    assert_eq!(status("HTTP/1.0 399 Moved"), Outcome::PASSED);
    assert_eq!(status("HTTP/1.1 500 Error"), Outcome::Failed("status 500".to_owned()));
    assert_eq!(status("HTTP/1.1 404 Not Found"), Outcome::Failed("status 404".to_owned()));
    assert_eq!(status("HTTP/1.1 503 Later"), Outcome::Soft("status 503".to_owned()));
    let other = Http { expect: vec![401..=401], soft: vec![200..=299], ..Http::default() };
    let unauthorised = b"HTTP/1.1 401 Unauthorized\r\n\r\n";
    assert_eq!(answered(other.clone(), unauthorised), Outcome::PASSED);
    let drained = Outcome::Soft("status 204".to_owned());
    assert_eq!(answered(other, b"HTTP/1.1 204 Nothing\r\n\r\n"), drained);
}

#[test]
fn the_request_says_what_the_plan_says_and_who_asks() {
    let http = Http {
        path: "/health?deep=1".to_owned(),
        host: Some("www.example.org:8080".to_owned()),
        ..Http::default()
    };
    let outcome = served(&asks(http, 10_000), |mut stream| {
        let request = request(&mut stream).to_lowercase();
        for line in [
            "get /health?deep=1 http/1.1\r\n",
            "\r\nhost: www.example.org:8080\r\n",
            "\r\nuser-agent: switchyard\r\n",
            "\r\nconnection: close\r\n",
        ] {
            assert!(request.contains(line), "{line:?} in {request:?}");
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    });
    assert_eq!(outcome, Outcome::PASSED);
}

#[test]
fn without_a_host_it_is_the_address() {
    let host = |address: &str, usual| host(&Http::default(), address.parse().unwrap(), usual);
    assert_eq!(host("10.0.0.1:80", 80), "10.0.0.1");
    assert_eq!(host("10.0.0.1:8080", 80), "10.0.0.1:8080");
    assert_eq!(host("[2001:db8::1]:443", 443), "[2001:db8::1]");
    assert_eq!(host("[2001:db8::1]:80", 443), "[2001:db8::1]:80");
}

#[test]
fn what_the_body_must_contain_is_found_across_pieces_and_not_past_64_kib() {
    let chunked = |body: &[u8], size: usize| {
        let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for piece in body.chunks(size) {
            answer.extend(format!("{:x}\r\n", piece.len()).bytes());
            answer.extend(piece);
            answer.extend(b"\r\n");
        }
        [answer.as_slice(), b"0\r\n\r\n"].concat()
    };
    assert_eq!(answered(wants("all is well"), &chunked(b"yes, all is well", 3)), Outcome::PASSED);
    let missing = |text: &str| Outcome::Failed(format!("the body does not contain {text:?}"));
    assert_eq!(answered(wants("well!"), &chunked(b"yes, all is well", 3)), missing("well!"));
    let mut long = vec![b'x'; MOST - 3];
    long.extend(b"end");
    assert_eq!(answered(wants("end"), &chunked(&long, 1000)), Outcome::PASSED);
    long.insert(0, b'x');
    assert_eq!(answered(wants("end"), &chunked(&long, 1000)), missing("end"));
}

#[test]
fn endless_headers_and_bodies_are_bounded() {
    let floods = |begin: &'static str, piece: &'static str| {
        move |mut stream: TcpStream| {
            request(&mut stream);
            let mut piece = piece.repeat(1000);
            piece.insert_str(0, begin);
            while stream.write_all(piece.as_bytes()).is_ok() {
                piece.drain(..piece.len() - piece.len() / 1000 * 1000);
            }
        }
    };
    let check = asks(wants("never"), 10_000);
    let headers = served(&check, floods("HTTP/1.1 200 OK\r\n", "X-A: bbbbbbbbbbbbb\r\n"));
    assert!(matches!(&headers, Outcome::Failed(why) if why.starts_with("answer: ")), "{headers:?}");
    let one_header = served(&check, floods("HTTP/1.1 200 OK\r\nX: ", "yyyyyyyy"));
    assert!(matches!(&one_header, Outcome::Failed(why) if why.starts_with("answer: ")));
    let body = served(&check, floods("HTTP/1.1 200 OK\r\n\r\n", "yyyyyyyy"));
    assert_eq!(body, Outcome::Failed("the body does not contain \"never\"".to_owned()));
    // Skipped without a pause: it is not the time limit that ends this.
    let start = std::time::Instant::now();
    let informed = served(&check, floods("", "HTTP/1.1 100 Continue\r\n\r\n"));
    assert!(
        matches!(&informed, Outcome::Failed(why) if why.contains("never ends")),
        "{informed:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn headers_of_more_than_64_kib_fail() {
    let with = |length: usize| {
        let answer = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(length));
        answered(Http::default(), answer.as_bytes())
    };
    assert_eq!(with(MOST / 2), Outcome::PASSED);
    assert!(matches!(with(2 * MOST), Outcome::Failed(_)));
}

#[test]
fn who_drips_is_silent_or_speaks_something_else_fails() {
    let timed_out = Outcome::Failed("answer: timed out".to_owned());
    let drips = |mut stream: TcpStream| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
        while stream.write_all(b"y").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    assert_eq!(served(&asks(Http::default(), 100), drips), timed_out);
    let drips_body = |mut stream: TcpStream| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b"y").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    assert_eq!(served(&asks(wants("x"), 100), drips_body), timed_out);
    let says_continue = |mut stream: TcpStream| {
        request(&mut stream);
        while stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {}
    };
    // What ends this one is how much was said, however slow the machine is.
    let never_ends = served(&asks(Http::default(), 10_000), says_continue);
    assert!(matches!(&never_ends, Outcome::Failed(why) if why.contains("never ends")));
    for answer in [b"SSH-2.0-x\r\n\r\n".as_slice(), b"", b"HTTP/1.1 20", b"\0\0\0\0\0\0"] {
        let outcome = answered(Http::default(), answer);
        assert!(matches!(&outcome, Outcome::Failed(why) if why.starts_with("answer: ")));
    }
}

#[test]
fn a_half_closed_answer_counts() {
    let outcome = served(&asks(wants("ok"), 10_000), |mut stream| {
        request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nok").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = stream.read(&mut [0; 1]);
    });
    assert_eq!(outcome, Outcome::PASSED);
}

#[test]
fn what_does_not_fit_into_a_request_is_the_plans_fault() {
    let address = loopbacks()[0];
    for (path, host) in [("no-slash", None), ("/a b", None), ("/", Some("a\r\nX: y"))] {
        let http = Http { path: path.to_owned(), host: host.map(str::to_owned), ..Http::default() };
        assert!(matches!(request_of(&http, address), Err(Outcome::Unable(_))), "{path} {host:?}");
    }
}

fn request_of(http: &Http, address: SocketAddr) -> Result<(), Outcome> {
    super::request(http, address, 80).map(drop)
}

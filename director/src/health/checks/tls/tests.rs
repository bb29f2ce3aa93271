use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};

use super::super::tests::{check, loopbacks, run};
use super::*;
use crate::health::plan::{Check, CheckKind, Http};

// Valid until 2120; the server's is for www.example.org, 127.0.0.1 and ::1. Keys of authorities are
// not kept.
const SERVER: &[u8] = include_bytes!("certificates/server.pem");
const SERVER_KEY: &[u8] = include_bytes!("certificates/server.key");
const AUTHORITY: &str = "authority.pem";
const ANOTHER_AUTHORITY: &str = "another_authority.pem";

fn file(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/health/checks/tls/certificates");
    Path::new(folder).join(name)
}

fn asks(tls: Tls, host: Option<&str>) -> Check {
    let http = Http {
        host: host.map(str::to_owned),
        contains: Some("well".to_owned()),
        ..Http::default()
    };
    check(CheckKind::Https(http, tls))
}

/// Answers one request over TLS.
fn serve(listener: &TcpListener) {
    let certificates = CertificateDer::pem_slice_iter(SERVER).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(SERVER_KEY).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
    let mut tls = rustls::Stream::new(&mut connection, &mut stream);
    let mut buffer = [0; 1024];
    if tls.read(&mut buffer).is_ok_and(|count| count > 0) {
        tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nall is well").unwrap();
        let _ = stream.read(&mut buffer);
    }
}

fn served(check: &Check) -> [Outcome; 2] {
    loopbacks().map(|loopback| {
        let listener = TcpListener::bind(loopback).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener));
            run(check, address)
        })
    })
}

fn by(authority: &str, name: Option<&str>) -> Tls {
    Tls { name: name.map(str::to_owned), authority: Some(file(authority)) }
}

#[test]
fn without_an_authority_any_certificate_passes_whatever_name_is_asked_for() {
    assert_eq!(served(&asks(Tls::default(), None)), [Outcome::PASSED, Outcome::PASSED]);
    let other = Tls { name: Some("other.example".to_owned()), authority: None };
    assert_eq!(served(&asks(other, None)), [Outcome::PASSED, Outcome::PASSED]);
}

#[test]
fn with_an_authority_signature_and_name_must_be_right() {
    let passed = [Outcome::PASSED, Outcome::PASSED];
    assert_eq!(served(&asks(by(AUTHORITY, Some("www.example.org")), None)), passed);
    assert_eq!(served(&asks(by(AUTHORITY, None), Some("www.example.org:8443"))), passed);
    assert_eq!(served(&asks(by(AUTHORITY, None), None)), passed, "by address");
    for (tls, why) in [
        (by(AUTHORITY, Some("other.example")), "NotValidForName"),
        (by(ANOTHER_AUTHORITY, Some("www.example.org")), "UnknownIssuer"),
    ] {
        for outcome in served(&asks(tls, None)) {
            let Outcome::Failed(text) = &outcome else { panic!("{outcome:?}") };
            let is_named = text.contains(why) || text.contains("not valid for name");
            assert!(text.starts_with("TLS: ") && is_named, "{text}");
        }
    }
}

#[test]
fn an_authority_that_cannot_be_read_says_nothing_of_the_server() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let garbage = tempfile::NamedTempFile::new().unwrap();
    let begin = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    garbage.as_file().write_all(begin).unwrap();
    let files = [
        file("no-such-file.pem"),
        file(""),
        PathBuf::from("/dev/zero"),
        empty.path().to_owned(),
        garbage.path().to_owned(),
    ];
    for authority in files {
        let name = authority.display().to_string();
        let Err(outcome) = verifying(&authority) else { panic!("{name}") };
        assert!(matches!(&outcome, Outcome::Unable(why) if why.contains(&name)), "{outcome:?}");
    }
}

#[test]
fn who_speaks_no_tls_or_nothing_fails() {
    let served = |answer: &'static [u8], timeout| {
        let listener = TcpListener::bind(loopbacks()[0]).unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let check = Check { timeout: Duration::from_millis(timeout), ..asks(Tls::default(), None) };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream: TcpStream = listener.accept().unwrap().0;
                stream.write_all(answer).unwrap();
                let mut buffer = [0; 1024];
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
            });
            run(&check, address)
        })
    };
    let plain = served(b"HTTP/1.1 400 Bad Request\r\n\r\n", 10_000);
    assert!(matches!(&plain, Outcome::Failed(why) if why.starts_with("TLS: ")), "{plain:?}");
    assert_eq!(served(b"", 50), Outcome::Failed("TLS: timed out".to_owned()));
}

#[test]
fn the_name_is_that_of_host_without_its_port() {
    for (host, name) in [
        ("www.example.org", "www.example.org"),
        ("www.example.org:8443", "www.example.org"),
        ("10.0.0.1:443", "10.0.0.1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
    ] {
        assert_eq!(without_port(host), name, "{host}");
    }
}

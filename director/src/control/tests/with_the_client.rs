//! What tools get through `Client`.

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use super::fake::{Fake, Served};
use crate::control::ClientError;
use crate::control::api::*;
use crate::control::client::Client;
use crate::control::filter::ConnectionFilter;
use crate::control::operations::{Command, Operations};
use crate::control::server::Limits;

fn key() -> ServiceKey {
    ServiceKey::Fwmark { fwmark: 7, ipv6: true }
}

fn add() -> Command {
    let persistence = Some(Persistence { timeout: 360, prefix: 64, engine: None });
    let scheduler = "mh".to_owned();
    let service = ServiceSpec {
        key: key(),
        scheduler,
        flags: 0x10,
        persistence,
        one_packet: false,
        extras: None,
    };
    Command::AddService { service }
}

fn add_server() -> Command {
    let server = ServerSpec {
        address: "[2001:db8::11]:80".parse().unwrap(),
        forwarding: Forwarding::Tunnel,
        tunnel: Tunnel::Gue { port: 6080, checksum: TunnelChecksum::Remcsum },
        weight: 1,
        upper_threshold: 100,
        lower_threshold: 0,
    };
    Command::AddServer { service: key(), server }
}

#[test]
fn what_is_added_through_the_client_comes_back_unchanged() {
    let server = Served::new(Limits::default(), Fake::default());
    let mut client = Client::connect(&server.path).unwrap();
    assert_eq!(client.apply(&[add(), add_server()]).unwrap(), 2);
    let services = client.services().unwrap();
    assert_eq!(services, server.fake.services());
    assert_eq!(services[0].servers[0].spec.address.to_string(), "[2001:db8::11]:80");
    assert_eq!(client.timeouts().unwrap().udp, 300);
    assert_eq!(client.settings().unwrap()["sloppy_tcp"], 1);
    assert_eq!(client.status().unwrap().table_size, 4096);
    assert!(client.metrics().unwrap().contains("service=\"fwmark 7/ipv6\""));
}

#[test]
fn refusal_keeps_its_kind_and_its_place() {
    let server = Served::new(Limits::default(), Fake::default());
    let mut client = Client::connect(&server.path).unwrap();
    match client.apply(&[add(), add()]) {
        Err(ClientError::Refused { refusal, index: Some(1) }) => {
            assert_eq!(refusal.error, RefusalKind::ServiceExists);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_batch_stops_or_goes_on_at_a_refusal_as_asked() {
    for (on_refusal, applied, refused) in
        [(OnRefusal::Stop, 1, &[1][..]), (OnRefusal::Continue, 2, &[1, 3])]
    {
        let server = Served::new(Limits::default(), Fake::default());
        let mut client = Client::connect(&server.path).unwrap();
        let outcome = client.batch(&[add(), add(), add_server(), add()], on_refusal).unwrap();
        assert_eq!(outcome.applied, applied);
        let places: Vec<_> = outcome.refused.iter().map(|refused| refused.index).collect();
        assert_eq!(places, refused);
        assert_eq!(outcome.refused[0].refusal.error, RefusalKind::ServiceExists);
        assert_eq!(server.fake.services()[0].servers.len(), applied - 1);
    }
}

#[test]
fn services_can_be_read_one_by_one_and_left_off() {
    let server = Served::new(Limits::default(), Fake::default());
    let mut client = Client::connect(&server.path).unwrap();
    let read = |client: &mut Client, most: usize| {
        let mut services = Vec::new();
        let listing = client.each_service(|service| {
            services.push(service);
            if services.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        listing.map(|()| services).unwrap()
    };
    assert_eq!(read(&mut client, 9), []);
    client.apply(&[add(), add_server()]).unwrap();
    let mut another = add();
    let Command::AddService { service } = &mut another else { unreachable!() };
    service.key = ServiceKey::Fwmark { fwmark: 8, ipv6: true };
    client.apply(&[another]).unwrap();
    assert_eq!(read(&mut client, 9), server.fake.services());
    assert_eq!(read(&mut client, 1), server.fake.services()[..1]);
}

#[test]
fn client_outlives_the_servers_patience_with_idle_connections() {
    let limits = Limits { head_time: Duration::from_millis(50), ..Limits::default() };
    let server = Served::new(limits, Fake::default());
    let mut client = Client::connect(&server.path).unwrap();
    client.timeouts().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    client.timeouts().unwrap();
}

#[test]
fn all_connections_arrive_once_and_the_listing_may_be_left_early() {
    let fake = Fake { shards: 5, per_shard: 3000, ..Fake::default() };
    let server = Served::new(Limits::default(), fake);
    let mut client = Client::connect(&server.path).unwrap();
    let mut seen = std::collections::HashSet::new();
    client
        .connections(|connection| {
            assert!(seen.insert(connection.client), "twice: {}", connection.client);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(seen.len(), 15_000);
    let mut count = 0;
    client
        .connections(|_| {
            count += 1;
            if count == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(count, 10);
    client.timeouts().unwrap();
}

#[test]
fn connections_are_looked_through_by_the_director() {
    let fake = Fake { shards: 3, per_shard: 600, ..Fake::default() };
    let server = Served::new(Limits::default(), fake);
    let mut client = Client::connect(&server.path).unwrap();
    let mut count = |query: &str| {
        let filter = ConnectionFilter::from_query(query).unwrap();
        let mut count = 0;
        let listing = client.connections_where(&filter, |connection| {
            assert!(filter.admits(&connection));
            count += 1;
            ControlFlow::Continue(())
        });
        listing.map(|()| count).unwrap()
    };
    // The clients of a shard are 10.0.0.0 and on, 600 of them.
    assert_eq!(count("client=10.0.1.0/24"), 3 * 256);
    assert_eq!(count("client=10.0.0.7&state=ESTABLISHED"), 3);
    assert_eq!(count("server=10.0.0.12"), 0);
    assert_eq!(count("service=192.0.2.10:80/tcp"), 1800);
}

#[test]
fn absent_socket_and_stale_socket_both_mean_not_running() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control.sock");
    let absent = Client::connect(&path);
    assert!(matches!(absent, Err(ClientError::NotRunning { .. })), "{absent:?}");
    drop(UnixListener::bind(&path).unwrap());
    let stale = Client::connect(&path);
    assert!(matches!(stale, Err(ClientError::NotRunning { .. })), "{stale:?}");
    let remedy = stale.err().and_then(|error| error.remedy()).unwrap();
    assert!(remedy.contains(path.to_str().unwrap()), "{remedy}");
}

/// Answers every request on a socket with fixed bytes.
fn impostor(answer: &'static [u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // The client that only looks whether somebody is there sends nothing and has gone.
            if stream.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {
                stream.write_all(answer).unwrap();
            }
        }
    });
    (directory, path)
}

#[test]
fn another_program_or_version_on_the_socket_is_told_from_a_director() {
    let (_directory, path) = impostor(b"SSH-2.0-OpenSSH_9.2\r\n");
    let error = Client::connect(&path).unwrap().timeouts().unwrap_err();
    assert!(matches!(error, ClientError::Protocol { director: None, .. }), "{error:?}");

    let (_directory, path) = impostor(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
    let error = Client::connect(&path).unwrap().timeouts().unwrap_err();
    assert!(matches!(error, ClientError::Protocol { director: None, .. }), "{error:?}");

    let (_directory, path) = impostor(
        b"HTTP/1.1 404 Not Found\r\nswitchyard-version: 9.0.0\r\ncontent-length: 53\r\n\r\n\
          {\"error\":\"bad_request\",\"message\":\"no such path, sorry\"}",
    );
    let error = Client::connect(&path).unwrap().timeouts().unwrap_err();
    let ClientError::Protocol { director, .. } = &error else { panic!("{error:?}") };
    assert_eq!(director.as_deref(), Some("9.0.0"));
    assert!(error.remedy().unwrap().contains("9.0.0"));
}

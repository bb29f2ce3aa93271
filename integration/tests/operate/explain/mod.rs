//! What `dirctl explain` says of a packet, and what then happens to the real one: on healthy services
//! and on the faults that operators meet.

mod fates;
mod faults;
mod nlb;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use integration::lab::Host;
use integration::topology::{CLIENT, Kind, server_addresses};
use integration::written::top;
use serde_json::Value;

use crate::bed::{Bed, Said};

const SOON: Duration = Duration::from_secs(30);
const VIP: &str = "192.0.2.10:80";

/// An explanation, for a script and for a person.
struct Told {
    said: Said,
    json: Value,
}

impl Told {
    fn outcome(&self) -> &str {
        self.json["outcome"].as_str().unwrap()
    }

    fn reason(&self) -> &str {
        self.json["reason"].as_str().unwrap()
    }

    /// A field of the packet as it would leave.
    fn becomes(&self, field: &str) -> Option<&str> {
        let changes = self.json["changes"].as_array().unwrap();
        changes.iter().find(|change| change["field"] == field)?["after"].as_str()
    }

    /// The server that the packet would go to.
    fn server(&self) -> String {
        let to = self.becomes("destination").unwrap_or_else(|| panic!("{:?}", self.said));
        server_name(to)
    }
}

/// `server1` of 10.77.0.11, with its port or without.
fn server_name(address: &str) -> String {
    let address = address.trim_end_matches(":80");
    let number = (1..=9).find(|&number| server_addresses(number)[0].to_string() == address);
    format!("server{}", number.unwrap_or_else(|| panic!("{address} is no server")))
}

/// Asks twice, and fails when the two do not agree: the first has changed something.
#[track_caller]
fn explain(bed: &Bed, words: &[&str]) -> Told {
    let of = |more: &[&str]| bed.dirctl(&[&["explain"], words, more].concat());
    let (json, said) = (of(&["--json"]), of(&[]));
    assert_eq!(json.code, said.code, "{json:?}\n{said:?}");
    let json: Value = serde_json::from_str(&json.out).unwrap_or_else(|_| panic!("{json:?}"));
    said.names(&[json["meaning"].as_str().unwrap(), json["reason"].as_str().unwrap()]);
    let code = match json["outcome"].as_str().unwrap() {
        "forwarded" => 0,
        "dropped" => 1,
        "passed" => 4,
        "answered" => 5,
        other => panic!("{other}"),
    };
    assert_eq!(said.code, Some(code), "{said:?}");
    Told { said, json }
}

fn client(port: u16) -> SocketAddr {
    SocketAddr::new(CLIENT[0], port)
}

/// Of a packet of the client from this port to the web service.
#[track_caller]
fn of_client(bed: &Bed, port: u16, more: &[&str]) -> Told {
    let from = client(port).to_string();
    explain(bed, &[&["tcp", &from, VIP], more].concat())
}

/// A connection from this port.
fn connect(host: &Host, from: SocketAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let attempt = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind(from)?;
            let connect = tokio::time::timeout(Duration::from_secs(3), socket.connect(to));
            let stream = connect.await.map_err(|_| std::io::ErrorKind::TimedOut)??.into_std()?;
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(SOON))?;
            Ok(stream)
        })
    };
    host.run(attempt).unwrap()
}

fn connect_to_vip(bed: &Bed, port: u16) -> std::io::Result<TcpStream> {
    connect(&bed.topology.client, client(port), VIP.parse().unwrap())
}

/// Who answers on a connection, which is used up by that.
fn who(mut stream: TcpStream) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).to_lowercase();
    let name = answer.lines().find_map(|line| line.strip_prefix("x-server: "));
    name.unwrap_or_else(|| panic!("{answer}")).trim().to_owned()
}

/// A director without services, for `ipvsadm`.
fn empty(kind: Kind) -> Bed {
    Bed::with(kind, &top("copy"))
}

fn ipvsadm(bed: &Bed, words: &[&str]) {
    bed.director.ipvsadm(words).unwrap();
}

/// The web service over servers of these weights.
fn add(bed: &Bed, more: &[&str], weights: &[&str]) {
    ipvsadm(bed, &[&["-A", "-t", VIP], more].concat());
    for (number, weight) in (1..).zip(weights) {
        let server = SocketAddr::new(server_addresses(number)[0], 80).to_string();
        ipvsadm(bed, &["-a", "-t", VIP, "-r", &server, "-m", "-w", weight]);
    }
}

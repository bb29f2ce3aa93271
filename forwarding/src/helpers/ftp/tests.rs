//! Announcements read and rewritten, numbers written, and whole control connections.

use std::net::{IpAddr, SocketAddr};

use etherparse::{IpNumber, PacketBuilder, TcpHeader};
use proptest::prelude::*;

use super::read::{active, is_passive, reply};
use super::{
    Control, Expected, Form, NotRewritten, Outcome, SequenceAdjustment, adjust_acknowledgement,
    adjust_sequence, rewrite,
};
use crate::checksum::{complete, partial};
use crate::tests::frames::{CLIENT_MAC, DIRECTOR_MAC, Spec, Transport, between, endpoints};
use crate::tests::oracle::assert_checksums;
use crate::{Family, Headers, Packet, parse};

mod control;
mod reading;
mod rewriting;

const VIP: &str = "192.0.2.100:21";
const CLIENT: &str = "198.51.100.7:40000";
const SERVER: &str = "10.0.0.11:21";
const CLIENT6: &str = "[2001:db8::7]:40000";
const SERVER6: &str = "[fd00::11]:21";
const VIP6: &str = "[2001:db8::100]:21";

/// A segment with this header between these ends, which are of one family.
fn segment(source: &str, destination: &str, mut tcp: TcpHeader, data: &[u8]) -> Vec<u8> {
    let (source, destination): (SocketAddr, SocketAddr) =
        (source.parse().unwrap(), destination.parse().unwrap());
    (tcp.source_port, tcp.destination_port) = (source.port(), destination.port());
    let link = PacketBuilder::ethernet2(CLIENT_MAC, DIRECTOR_MAC);
    let network = match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            link.ipv4(source.octets(), destination.octets(), 64)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            link.ipv6(source.octets(), destination.octets(), 64)
        }
        _ => unreachable!("both are of one family"),
    };
    let mut frame = Vec::new();
    network.tcp_header(tcp).write(&mut frame, data).unwrap();
    frame
}

/// The TCP header of a data segment.
fn tcp(sequence: u32, acknowledgement: u32) -> TcpHeader {
    let mut tcp = TcpHeader::new(0, 0, sequence, 1000);
    (tcp.ack, tcp.acknowledgment_number) = (true, acknowledgement);
    tcp
}

fn ip(endpoint: &str) -> IpAddr {
    endpoint.parse::<SocketAddr>().unwrap().ip()
}

/// Sequence number, acknowledgement number and data of a frame whose checksums are right.
fn contents(frame: &[u8]) -> (u32, u32, String) {
    assert_checksums(frame);
    let headers = parse(frame).unwrap();
    let (tcp, data) = TcpHeader::from_slice(&frame[headers.l4..headers.end]).unwrap();
    let text = String::from_utf8(data.to_vec()).unwrap();
    (tcp.sequence_number, tcp.acknowledgment_number, text)
}

//! SCTP through the pipeline: associations come, stand and go, by every method.

use etherparse::IpNumber;
use forwarding::checksum;
use forwarding::wire::sctp::chunk;

use super::bed::*;
use crate::control::api::{Extras, Forwarding, GoneServer, Protocol, ServiceSpec};
use crate::control::operations::Command;
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};

const CLIENT: &str = "198.51.100.7:4000";
const VIP: &str = "192.0.2.10:2905";
/// On the VIP's port, and on another one.
const SAME: &str = "10.77.0.11:2905";
const OTHER: &str = "10.77.0.12:9002";

/// A packet with one chunk of this type, and some bytes in it, or none at all.
pub(super) fn packet(source: &str, destination: &str, kind: Option<u8>) -> Vec<u8> {
    let (source, destination) = (at(source), at(destination));
    let mut sctp = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
    sctp.extend([0, 0, 0, 1, 0, 0, 0, 0]);
    if let Some(kind) = kind {
        sctp.extend([kind, 0, 0, 8, 1, 2, 3, 4]);
    }
    let sum = checksum::sctp(&sctp).to_le_bytes();
    sctp[8..12].copy_from_slice(&sum);
    let mut frame = Vec::new();
    network(source, destination).write(&mut frame, IpNumber::SCTP, &sctp).unwrap();
    frame
}

fn bed(servers: &[(&str, Forwarding)]) -> Bed {
    Bed::with(key(Protocol::Sctp, VIP), servers)
}

impl Bed {
    fn sctp(&mut self, source: &str, destination: &str, kind: u8) -> Out {
        self.handle(&packet(source, destination, Some(kind)))
    }

    fn states(&self) -> Vec<String> {
        let views = (0..).map_while(|part| self.table.connection_views(part, self.now));
        views.flatten().map(|view| format!("{} {}", view.state, view.expires)).collect()
    }
}

/// Ports of what was sent, its checksum verified: IPv4 without options.
fn ports(out: &Out) -> (u16, u16) {
    assert!(out.is_sent(), "{:?}", out.verdict);
    let sctp = &out.frame[34..];
    assert_eq!(sctp[8..12], checksum::sctp(sctp).to_le_bytes(), "checksum");
    (u16::from_be_bytes([sctp[0], sctp[1]]), u16::from_be_bytes([sctp[2], sctp[3]]))
}

#[test]
fn an_association_is_translated_both_ways_and_followed_through_its_states() {
    for server in [SAME, OTHER] {
        let mut bed = bed(&[(server, Forwarding::Nat)]);
        let port = at(server).port();
        assert_eq!(ports(&bed.sctp(CLIENT, VIP, chunk::INIT)), (4000, port));
        assert_eq!(bed.states(), ["INIT1 4"]);
        assert_eq!(bed.counts(), [(0, 1)]);
        assert_eq!(ports(&bed.sctp(server, CLIENT, chunk::INIT_ACK)), (2905, 4000));
        bed.sctp(CLIENT, VIP, chunk::COOKIE_ECHO);
        assert_eq!(bed.states(), ["C-REPLIED 61"]);
        bed.sctp(server, CLIENT, chunk::COOKIE_ACK);
        assert_eq!(bed.states(), ["ESTABLISHED 900"]);
        assert_eq!(bed.counts(), [(1, 0)]);
        assert_eq!(ports(&bed.sctp(CLIENT, VIP, chunk::DATA)), (4000, port));
        bed.sctp(CLIENT, VIP, chunk::ABORT);
        assert_eq!(bed.states(), ["CLOSED 61"]);
        assert_eq!(bed.counts(), [(0, 1)]);
    }
}

#[test]
fn only_an_init_is_scheduled_and_only_a_closed_association_makes_way_for_a_new_one() {
    let servers = [(SAME, Forwarding::Direct), ("10.77.0.13:2905", Forwarding::Direct)];
    let mut bed = bed(&servers);
    let verdict = bed.sctp(CLIENT, VIP, chunk::DATA).verdict;
    assert_eq!(verdict, Verdict::Pass(PassReason::NoConnection));
    let verdict = bed.handle(&packet(CLIENT, VIP, None)).verdict;
    assert_eq!(verdict, Verdict::Drop(DropReason::NoChunk));
    bed.sctp(CLIENT, VIP, chunk::INIT);
    bed.sctp(CLIENT, VIP, chunk::INIT);
    assert_eq!(bed.states(), ["INIT 61"], "the same association");
    bed.sctp(CLIENT, VIP, chunk::ABORT);
    assert!(bed.handle(&packet(CLIENT, VIP, None)).is_sent());
    assert_eq!(bed.states(), ["CLOSED 61"], "nothing is said without a chunk");
    bed.sctp(CLIENT, VIP, chunk::INIT);
    assert_eq!(bed.states(), ["INIT1 4"]);
    let connections = bed.table.service_views()[0].stats.connections;
    assert_eq!(connections, 2);
}

#[test]
fn a_checksum_left_to_hardware_is_completed_whatever_the_method() {
    let methods = [Forwarding::Nat, Forwarding::Direct, Forwarding::Tunnel];
    for method in methods {
        let mut bed = bed(&[(SAME, method)]);
        let whole = packet(CLIENT, VIP, Some(chunk::INIT));
        let mut frame = whole.clone();
        frame[42..46].fill(0);
        let out = bed.handle(&frame);
        assert!(out.is_sent(), "{method:?}");
        let sctp = &out.frame[out.frame.len() - (whole.len() - 34)..];
        assert_eq!(sctp, &whole[34..], "{method:?}");
    }
}

#[test]
fn a_fragment_whose_port_would_change_is_dropped_and_others_go_on() {
    for (server, method, expected) in [
        (OTHER, Forwarding::Nat, Some(DropReason::SctpFragment)),
        (SAME, Forwarding::Nat, None),
        (SAME, Forwarding::Direct, None),
        (SAME, Forwarding::Tunnel, None),
    ] {
        let mut bed = bed(&[(server, method)]);
        bed.sctp(CLIENT, VIP, chunk::INIT);
        let whole = packet(CLIENT, VIP, Some(chunk::DATA));
        let mut frame = whole.clone();
        // Ports and the beginning of a chunk; "more fragments" in place of "don't fragment", and the
        // header's sum with it.
        frame[16..18].copy_from_slice(&[0, 20 + 16]);
        frame[20..22].copy_from_slice(&[0x20, 0]);
        let header: [u8; 20] = frame[14..34].try_into().unwrap();
        let sum = etherparse::Ipv4HeaderSlice::from_slice(&header).unwrap().to_header();
        frame[24..26].copy_from_slice(&sum.calc_header_checksum().to_be_bytes());
        let out = bed.handle(&frame);
        match expected {
            Some(reason) => assert_eq!(out.verdict, Verdict::Drop(reason)),
            None => assert!(out.is_sent(), "{method:?}: {:?}", out.verdict),
        }
    }
}

#[test]
fn a_quoted_packet_leads_an_error_to_its_association() {
    let mut bed = bed(&[(OTHER, Forwarding::Nat)]);
    bed.sctp(CLIENT, VIP, chunk::INIT);
    // The client cannot be reached: the error quotes what the VIP has sent.
    let quoted = &packet(VIP, CLIENT, Some(chunk::INIT_ACK))[14..];
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([198, 51, 100, 1], [192, 0, 2, 10], 64)
        .icmpv4_raw(3, 1, [0; 4])
        .write(&mut frame, quoted)
        .unwrap();
    let out = bed.handle(&frame);
    assert!(out.is_sent(), "{:?}", out.verdict);
    assert_eq!(out.frame[30..34], [10, 77, 0, 12]);
    // In the quote: the server's address and port.
    assert_eq!(out.frame[42 + 12..42 + 16], [10, 77, 0, 12]);
    assert_eq!(out.frame[62..64], 9002u16.to_be_bytes());
}

#[test]
fn a_removed_server_keeps_its_associations_waiting() {
    let mut bed = bed(&[(SAME, Forwarding::Nat)]);
    bed.sctp(CLIENT, VIP, chunk::INIT);
    bed.apply(Command::DeleteServer { service: key(Protocol::Sctp, VIP), server: at(SAME) });
    let verdict = bed.sctp(CLIENT, VIP, chunk::COOKIE_ECHO).verdict;
    assert_eq!(verdict, Verdict::Drop(DropReason::ServerRemoved));
}

#[test]
fn where_the_service_says_so_an_init_leaves_a_removed_server_and_nothing_else_does() {
    let mut bed = bed(&[(SAME, Forwarding::Nat), (OTHER, Forwarding::Nat)]);
    let gone_server = GoneServer::Reschedule;
    let extras = Some(Extras { gone_server, ..Extras::default() });
    let service = ServiceSpec { extras, ..service(key(Protocol::Sctp, VIP), "rr") };
    let key = service.key;
    bed.apply(Command::EditService { service });
    assert_eq!(ports(&bed.sctp(CLIENT, VIP, chunk::INIT)).1, at(OTHER).port());
    bed.apply(Command::DeleteServer { service: key, server: at(OTHER) });
    assert_eq!(ports(&bed.sctp(CLIENT, VIP, chunk::INIT)).1, at(SAME).port());
    bed.apply(Command::DeleteServer { service: key, server: at(SAME) });
    let verdict = bed.sctp(CLIENT, VIP, chunk::DATA).verdict;
    assert_eq!(verdict, Verdict::Answer { reason: DropReason::ServerGone });
    assert!(bed.dispatcher.reply().unwrap().1.is_icmp());
    assert!(bed.states().is_empty());
}

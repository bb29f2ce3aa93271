//! FTP through the pipeline: control connections that announce, and the data connections that come.

use std::time::Duration;

use etherparse::SlicedPacket;

use super::bed::*;
use crate::control::api::{Forwarding, Protocol};
use crate::control::operations::Command;
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};

/// Who takes part: client's control connection, VIP, server.
pub(super) struct Cast {
    client: &'static str,
    vip: &'static str,
    real: &'static str,
}

pub(super) const V4: Cast =
    Cast { client: "198.51.100.7:4000", vip: "192.0.2.100:21", real: "10.77.0.11:2121" };
const V6: Cast =
    Cast { client: "[2001:db8:9::7]:4000", vip: "[2001:db8:1::10]:21", real: "[fd77::11]:2121" };

/// A control connection, and where both sides are in it.
pub(super) struct Dialogue {
    pub(super) bed: Bed,
    cast: Cast,
    /// Next number of the client, and of the server as it counts itself.
    client: u32,
    server: u32,
    /// What the client has of the server's, as it counts.
    seen: u32,
}

impl Dialogue {
    pub(super) fn open(cast: Cast) -> Dialogue {
        let mut bed = Bed::with(key(Protocol::Tcp, cast.vip), &[(cast.real, Forwarding::Nat)]);
        bed.establish(cast.client, cast.vip);
        Dialogue { bed, cast, client: 2000, server: 7000, seen: 7000 }
    }

    /// The client says something; returns the text and the acknowledgement that the server gets.
    pub(super) fn says(&mut self, text: &str) -> (String, u32) {
        let frame = segment(self.cast.client, self.cast.vip, self.client, self.seen, text);
        let out = self.bed.handle(&frame);
        assert_eq!(out.destination(), at(self.cast.real));
        self.client = self.client.wrapping_add(text.len() as u32);
        let (text, _, acknowledgement) = contents(&out.frame);
        assert_eq!(acknowledgement, self.server, "the server is told in its own numbers");
        (text, acknowledgement)
    }

    /// The server answers; returns the text that the client gets.
    pub(super) fn answers(&mut self, text: &str) -> String {
        let frame = segment(self.cast.real, self.cast.client, self.server, self.client, text);
        let out = self.bed.handle(&frame);
        assert_eq!(out.source(), at(self.cast.vip));
        self.server = self.server.wrapping_add(text.len() as u32);
        let (text, sequence, _) = contents(&out.frame);
        assert_eq!(sequence, self.seen, "what the client gets goes on where it was");
        self.seen = self.seen.wrapping_add(text.len() as u32);
        text
    }

    /// All connections but the control connection: client, virtual address, server, state, seconds.
    fn data(&self) -> Vec<(String, String, String, String, u32)> {
        let mut all: Vec<_> = (0..)
            .map_while(|part| self.bed.table.connection_views(part, self.bed.now))
            .flatten()
            .filter(|view| view.client != at(self.cast.client))
            .map(|view| {
                let ends = [view.client, view.virtual_address, view.server];
                let [client, vip, server] = ends.map(|end| end.to_string());
                (client, vip, server, view.state, view.expires)
            })
            .collect();
        all.sort();
        all
    }

    fn states(&self) -> Vec<String> {
        self.data().into_iter().map(|(.., state, _)| state).collect()
    }
}

fn segment(from: &str, to: &str, sequence: u32, acknowledgement: u32, text: &str) -> Vec<u8> {
    let (from, to) = (at(from), at(to));
    let builder =
        network(from, to).tcp(from.port(), to.port(), sequence, 64_000).ack(acknowledgement).psh();
    let mut frame = Vec::new();
    builder.write(&mut frame, text.as_bytes()).unwrap();
    frame
}

/// Text, sequence and acknowledgement number; checksums are verified.
fn contents(frame: &[u8]) -> (String, u32, u32) {
    ends(frame);
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(etherparse::TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("no TCP") };
    let text = String::from_utf8(tcp.payload().to_vec()).unwrap();
    (text, tcp.sequence_number(), tcp.acknowledgment_number())
}

#[test]
fn a_passive_transfer_over_ipv4_reaches_the_server_that_announced_it() {
    let mut ftp = Dialogue::open(V4);
    ftp.says("PASV\r\n");
    let reply = ftp.answers("227 Entering Passive Mode (10,77,0,11,195,80).\r\n");
    assert_eq!(reply, "227 Entering Passive Mode (192,0,2,100,195,80).\r\n");
    let listening = |client: &str, state: &str, seconds| {
        let ends = [client, "192.0.2.100:50000", "10.77.0.11:50000"].map(str::to_owned);
        let [client, vip, server] = ends;
        vec![(client, vip, server, state.to_owned(), seconds)]
    };
    assert_eq!(ftp.data(), listening("198.51.100.7:0", "LISTEN", 120));
    assert_eq!(ftp.bed.counts(), [(1, 1)]);
    let (client, vip) = ("198.51.100.7:41234", "192.0.2.100:50000");
    let out = ftp.bed.tcp(client, vip, SYN);
    assert_eq!(out.destination(), at("10.77.0.11:50000"));
    assert_eq!(ftp.data(), listening(client, "SYN_RECV", 60));
    assert_eq!(ftp.bed.tcp("10.77.0.11:50000", client, SYN_ACK).source(), at(vip));
    ftp.bed.tcp(client, vip, ACK);
    assert_eq!(ftp.data(), listening(client, "ESTABLISHED", 900));
    assert_eq!(ftp.bed.counts(), [(2, 0)]);
    // The control connection goes on in the numbers that the longer line has made.
    ftp.says("LIST\r\n");
    assert_eq!(ftp.answers("150 Here it comes.\r\n"), "150 Here it comes.\r\n");
    ftp.says("QUIT\r\n");
}

#[test]
fn a_data_connection_counts_packets_but_not_as_a_connection() {
    let mut ftp = Dialogue::open(V4);
    ftp.says("PASV\r\n");
    ftp.answers("227 =10,77,0,11,195,80\r\n");
    let before = ftp.bed.table.service_views()[0].stats;
    ftp.bed.tcp("198.51.100.7:41234", "192.0.2.100:50000", SYN);
    let after = ftp.bed.table.service_views()[0].stats;
    assert_eq!((after.connections, after.in_packets), (1, before.in_packets + 1));
}

#[test]
fn a_rewritten_reply_counts_as_it_reaches_the_client_and_a_dropped_one_not_at_all() {
    let mut ftp = Dialogue::open(V4);
    ftp.says("PASV\r\n");
    let before = ftp.bed.table.service_views()[0].stats;
    let reply = ftp.answers("227 =10,77,0,11,195,80\r\n");
    let counted = ftp.bed.table.service_views()[0].stats;
    assert_eq!(counted.out_bytes - before.out_bytes, 40 + reply.len() as u64);
    assert_eq!(counted.out_packets - before.out_packets, 1);
    let part = segment(ftp.cast.real, ftp.cast.client, 7010, 2006, "7,0,11");
    let out = ftp.bed.handle(&part);
    assert_eq!(out.verdict, Verdict::Drop(DropReason::FtpHeld));
    assert_eq!(ftp.bed.table.service_views()[0].stats, counted);
}

#[test]
fn an_active_transfer_over_ipv4_comes_from_the_virtual_address() {
    let mut ftp = Dialogue::open(V4);
    let command = "PORT 198,51,100,7,160,1\r\n";
    assert_eq!(ftp.says(command).0, command);
    let (client, vip, real) = ("198.51.100.7:40961", "192.0.2.100:20", "10.77.0.11:2120");
    let ends = [client, vip, real].map(str::to_owned);
    let [c, v, r] = ends;
    assert_eq!(ftp.data(), [(c, v, r, "LISTEN".to_owned(), 120)]);
    assert_eq!(ftp.bed.tcp(real, client, SYN).source(), at(vip));
    assert_eq!(ftp.states(), ["LISTEN"]);
    assert_eq!(ftp.bed.tcp(client, vip, SYN_ACK).destination(), at(real));
    assert_eq!(ftp.states(), ["SYN_RECV"]);
    ftp.bed.tcp(real, client, ACK);
    assert_eq!(ftp.states(), ["ESTABLISHED"]);
}

#[test]
fn transfers_over_ipv6_work_both_ways() {
    let mut ftp = Dialogue::open(V6);
    ftp.says("EPSV\r\n");
    let reply = "229 Entering Extended Passive Mode (|||50000|)\r\n";
    assert_eq!(ftp.answers(reply), reply);
    let (client, vip) = ("[2001:db8:9::7]:41234", "[2001:db8:1::10]:50000");
    let out = ftp.bed.tcp(client, vip, SYN);
    assert_eq!(out.destination(), at("[fd77::11]:50000"));
    assert_eq!(ftp.bed.tcp("[fd77::11]:50000", client, SYN_ACK).source(), at(vip));
    ftp.says("EPRT |2|2001:db8:9::7|5000|\r\n");
    let out = ftp.bed.tcp("[fd77::11]:2120", "[2001:db8:9::7]:5000", SYN);
    assert_eq!(out.source(), at("[2001:db8:1::10]:20"));
}

#[test]
fn an_extended_reply_over_ipv4_is_answered_on_the_announced_port() {
    let mut ftp = Dialogue::open(V4);
    ftp.says("EPSV 1\r\n");
    ftp.answers("229 Extended (|||50001|)\r\n");
    let out = ftp.bed.tcp("198.51.100.7:41234", "192.0.2.100:50001", SYN);
    assert_eq!(out.destination(), at("10.77.0.11:50001"));
    ftp.says("EPRT |1|198.51.100.7|5001|\r\n");
    assert_eq!(
        ftp.bed.tcp("10.77.0.11:2120", "198.51.100.7:5001", SYN).source(),
        at("192.0.2.100:20")
    );
}

#[test]
fn what_nobody_announced_is_left_to_the_kernel() {
    let mut ftp = Dialogue::open(V4);
    ftp.answers("227 Entering Passive Mode (10,77,0,11,195,80).\r\n");
    let out = ftp.bed.tcp("198.51.100.7:41234", "192.0.2.100:50000", SYN);
    assert_eq!(out.verdict, Verdict::Pass(PassReason::FtpData));
    let out = ftp.bed.tcp("10.77.0.11:2120", "198.51.100.7:5001", SYN);
    assert_eq!(out.verdict, Verdict::Pass(PassReason::NoService));
    // From the port of FTP's data nothing is ever scheduled.
    let out = ftp.bed.tcp("198.51.100.7:20", "192.0.2.100:21", SYN);
    assert_eq!(out.verdict, Verdict::Pass(PassReason::FtpData));
    assert!(ftp.data().is_empty());
}

#[test]
fn the_first_packet_takes_the_port_and_another_client_does_not() {
    let mut ftp = Dialogue::open(V4);
    ftp.says("PASV\r\n");
    ftp.answers("227 Entering Passive Mode (10,77,0,11,195,80).\r\n");
    let vip = "192.0.2.100:50000";
    let out = ftp.bed.tcp("198.51.100.8:41234", vip, SYN);
    assert_eq!(out.verdict, Verdict::Pass(PassReason::FtpData), "a stranger");
    assert!(ftp.bed.tcp("198.51.100.7:41234", vip, SYN).is_sent());
    assert!(ftp.bed.tcp("198.51.100.7:41234", vip, SYN).is_sent(), "repeated");
    let out = ftp.bed.tcp("198.51.100.7:41235", vip, SYN);
    assert_eq!(out.verdict, Verdict::Pass(PassReason::FtpData), "it was for one connection");
}

#[test]
fn an_announced_connection_that_does_not_come_is_forgotten() {
    let mut ftp = Dialogue::open(V4);
    ftp.says("PORT 198,51,100,7,160,1\r\n");
    ftp.bed.wait(Duration::from_secs(119));
    assert_eq!(ftp.states(), ["LISTEN"]);
    ftp.bed.wait(Duration::from_secs(2));
    assert!(ftp.data().is_empty());
    assert_eq!(ftp.bed.counts(), [(1, 0)]);
}

#[test]
fn a_control_connection_outlives_its_data_connections() {
    let mut ftp = Dialogue::open(V4);
    ftp.says("PASV\r\n");
    ftp.answers("227 Entering Passive Mode (10,77,0,11,195,80).\r\n");
    let (client, vip) = ("198.51.100.7:41234", "192.0.2.100:50000");
    ftp.bed.tcp(client, vip, SYN);
    ftp.bed.tcp("10.77.0.11:50000", client, SYN_ACK);
    // An hour of transfer, and not a word on the control connection.
    for _ in 0..60 {
        ftp.bed.tcp(client, vip, ACK);
        ftp.bed.wait(Duration::from_secs(60));
    }
    assert_eq!(ftp.bed.counts(), [(2, 0)]);
    ftp.answers("226 Transfer complete.\r\n");
    ftp.bed.tcp(client, vip, RST);
    ftp.bed.wait(Duration::from_secs(901));
    assert!(ftp.bed.table.shared().connections.is_empty(), "without them it ends in its time");
}

#[test]
fn a_client_that_announces_without_end_has_a_few_connections_awaited() {
    let mut ftp = Dialogue::open(V4);
    for port in 1..=100 {
        ftp.says(&format!("PORT 198,51,100,7,200,{port}\r\n"));
    }
    let ports: Vec<_> = ftp.data().into_iter().map(|(client, ..)| at(&client).port()).collect();
    assert_eq!(ports, (200 * 256 + 93..=200 * 256 + 100).collect::<Vec<u16>>());
    assert_eq!(ftp.bed.counts(), [(1, 8)]);
    // One that has come is not taken back.
    let oldest = "198.51.100.7:51293";
    assert!(ftp.bed.tcp("10.77.0.11:2120", oldest, SYN).is_sent());
    assert!(ftp.bed.tcp(oldest, "192.0.2.100:20", SYN_ACK).is_sent());
    for port in 101..=120 {
        ftp.says(&format!("PORT 198,51,100,7,200,{port}\r\n"));
    }
    assert!(ftp.bed.tcp(oldest, "192.0.2.100:20", ACK).is_sent());
    assert_eq!(ftp.data().len(), 9);
}

#[test]
fn an_announcement_repeated_is_awaited_anew() {
    let mut ftp = Dialogue::open(V4);
    ftp.says("PORT 198,51,100,7,160,1\r\n");
    ftp.bed.wait(Duration::from_secs(100));
    ftp.says("PORT 198,51,100,7,160,1\r\n");
    assert_eq!(ftp.states(), ["LISTEN"]);
    ftp.bed.wait(Duration::from_secs(100));
    assert_eq!(ftp.states(), ["LISTEN"]);
}

#[test]
fn two_servers_that_announce_the_same_port_to_a_client_do_not_meet() {
    let mut ftp = Dialogue::open(V4);
    let service = key(Protocol::Tcp, ftp.cast.vip);
    let other = "10.77.0.12:2121";
    ftp.bed.apply(Command::AddServer { service, server: server(other, Forwarding::Nat) });
    assert_eq!(ftp.bed.establish("198.51.100.7:4001", ftp.cast.vip), at(other));
    ftp.says("PASV\r\n");
    ftp.answers("227 Entering Passive Mode (10,77,0,11,195,80).\r\n");
    ftp.bed.handle(&segment("198.51.100.7:4001", ftp.cast.vip, 2000, 7000, "PASV\r\n"));
    let reply = "227 Entering Passive Mode (10,77,0,12,195,80).\r\n";
    ftp.bed.handle(&segment(other, "198.51.100.7:4001", 7000, 2006, reply));
    // The later one holds.
    let out = ftp.bed.tcp("198.51.100.7:41234", "192.0.2.100:50000", SYN);
    assert_eq!(out.destination(), at("10.77.0.12:50000"));
}

#[test]
fn after_its_end_a_control_connection_announces_nothing() {
    let mut ftp = Dialogue::open(V4);
    ftp.says("PASV\r\n");
    ftp.bed.tcp(ftp.cast.client, ftp.cast.vip, FIN_ACK);
    let reply = "227 Entering Passive Mode (10,77,0,11,195,80).\r\n";
    assert_eq!(ftp.answers(reply), reply);
    assert_eq!(ftp.says("PORT 198,51,100,7,160,1\r\n").0, "PORT 198,51,100,7,160,1\r\n");
    assert!(ftp.data().is_empty());
}

#[test]
fn a_damaged_segment_of_a_control_connection_is_not_made_whole() {
    let mut ftp = Dialogue::open(V4);
    let mut frame = segment(ftp.cast.client, ftp.cast.vip, 2000, 7000, "PASV\r\n");
    *frame.last_mut().unwrap() ^= 1;
    assert_eq!(ftp.bed.handle(&frame).verdict, Verdict::Drop(DropReason::FtpChecksum));
}

#[test]
fn the_helper_listens_on_its_ports_alone_and_to_nat_alone() {
    for (vip, forwarding) in
        [("192.0.2.100:2121", Forwarding::Nat), ("192.0.2.100:21", Forwarding::Direct)]
    {
        let mut bed = Bed::with(key(Protocol::Tcp, vip), &[("10.77.0.11:21", forwarding)]);
        bed.establish("198.51.100.7:4000", vip);
        let text = "PORT 198,51,100,7,160,1\r\n";
        assert!(bed.handle(&segment("198.51.100.7:4000", vip, 1, 1, text)).is_sent());
        assert_eq!(bed.table.shared().connections.len(), 1, "{vip} {forwarding:?}");
    }
}

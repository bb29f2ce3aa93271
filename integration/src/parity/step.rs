//! What a scenario is made of: commands and packets, as data.

use std::net::SocketAddr;
use std::time::Duration;

use super::chunks::Chunks;

/// What happens, in order, on both sides.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name on the command line: `cargo xtask parity NAME`.
    pub name: String,
    /// What it shows, in a few words.
    pub title: String,
    /// New connections that have to reach a server on both sides: a scenario in which nothing
    /// arrives compares nothing.
    pub connections: usize,
    /// What happens.
    pub steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// An `ipvsadm` command, with its arguments as a shell would split them. Exit code and output
    /// are compared.
    Ipvsadm(String),
    /// Rules for `ipvsadm -R`, one per line.
    Restore(Vec<String>),
    /// Packets, one after the other. All that comes out is compared.
    Send(Vec<Packet>),
    /// A listing, with its arguments: `-L -n --stats`. Compared line by line.
    Show(String),
    /// Real time passes.
    Wait(Duration),
}

/// The transport of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// IP protocol number.
    pub fn number(self) -> u8 {
        match self {
            Protocol::Tcp => 6,
            Protocol::Udp => 17,
            Protocol::Sctp => 132,
        }
    }
}

/// A client's conversation with a virtual service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// TCP, UDP or SCTP.
    pub protocol: Protocol,
    /// Who speaks.
    pub client: SocketAddr,
    /// The virtual service.
    pub service: SocketAddr,
}

/// Who sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The client.
    Client,
    /// The server that the flow's first packet went to, by NAT, as it answers.
    Server,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP: opens.
    Syn,
    /// TCP: the answer to it.
    SynAck,
    /// TCP: nothing but an acknowledgement.
    Ack,
    /// TCP: this many bytes.
    Data(usize),
    /// TCP: no more from this side.
    Fin,
    /// TCP: the end.
    Rst,
    /// UDP: this many bytes.
    Datagram(usize),
    /// UDP: this many bytes, and no checksum.
    Unsummed(usize),
    /// UDP: this many bytes, in two fragments.
    Fragmented(usize),
    /// SCTP: these chunks.
    Sctp(Chunks),
}

/// A packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The flow.
    pub flow: Flow,
    /// Who sends it.
    pub from: From,
    /// What it is.
    pub kind: Kind,
    /// TTL or hop limit.
    pub ttl: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// IPv4: the bit.
    pub dont_fragment: bool,
}

impl Packet {
    /// An ordinary packet from the client.
    pub fn new(flow: Flow, kind: Kind) -> Packet {
        Packet { flow, from: From::Client, kind, ttl: 64, traffic_class: 0, dont_fragment: true }
    }

    /// An ordinary packet from the server.
    pub fn answer(flow: Flow, kind: Kind) -> Packet {
        Packet { from: From::Server, ..Packet::new(flow, kind) }
    }
}

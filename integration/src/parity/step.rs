//! What a scenario is made of: commands and packets, as data.

use std::net::SocketAddr;
use std::time::Duration;

use super::chunks::Chunks;
use director::fwmark::Rule;

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
    /// A setting of IPVS, `net.ipv4.vs.NAME` of the kernel, gets a value.
    Setting(&'static str, u32),
    /// These rules set firewall marks from now on, and no others.
    Marks(Vec<Rule>),
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
    /// The server of another flow, which opens this one from another port.
    Opener {
        /// The flow whose server it is.
        of: Flow,
        /// The port.
        port: u16,
    },
    /// The server of this number, of its own accord, from the port of the service.
    Caller(usize),
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
    /// TCP: a segment with everything that makes it part of a stream.
    Segment(Segment),
    /// UDP: this many bytes.
    Datagram(usize),
    /// UDP: this many bytes, and no checksum.
    Unsummed(usize),
    /// UDP: a SIP message of the call of this number; 0 is none: it has no Call-ID.
    Sip(u16),
    /// SCTP: these chunks.
    Sctp(Chunks),
    /// UDP: a fragment of a datagram. Those of a flow are of the same datagram.
    Piece(Piece),
    /// ICMP: an error about what the sender has received of the flow.
    Error(IcmpError),
}

/// A fragment of a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Payload bytes of the whole datagram. Fragments that agree in it have one identification.
    pub datagram: usize,
    /// Where the fragment begins, in bytes from the UDP header on; a multiple of 8.
    pub offset: usize,
    /// How many bytes it has; a multiple of 8 unless it is the last one. May reach past the end.
    pub length: usize,
    /// Whether it says that it is not the last one.
    pub more: bool,
    /// Whether its bytes behind the UDP header are others than those of the datagram.
    pub forged: bool,
}

impl Piece {
    /// A fragment as its sender cuts it.
    pub fn new(datagram: usize, offset: usize, length: usize) -> Piece {
        Piece { datagram, offset, length, more: offset + length < datagram + 8, forged: false }
    }
}

/// An ICMP error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// What is wrong.
    pub problem: Problem,
    /// Whether a router on the way says it, and not the addressee.
    pub router: bool,
    /// How many bytes of the packet it quotes, from the IP header on.
    pub quoted: usize,
    /// What is wrong with the error itself.
    pub flaw: Option<Flaw>,
}

/// What can be wrong with an ICMP error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Its checksum.
    Sum,
    /// IPv4: the checksum of the quoted header.
    QuotedSum,
    /// IPv4: the quoted header claims to have so many words of four bytes.
    QuotedWords(u8),
}

/// What an ICMP error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Nobody there: no port, or no host.
    Unreachable {
        /// It is the port and not the host.
        port: bool,
    },
    /// The TTL has run out on the way.
    TimeExceeded,
    /// Too big for the next link, of this MTU.
    TooBig(u16),
    /// There is something wrong with the header.
    Parameter,
}

/// A TCP segment, for what looks at numbers and contents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// As in the header.
    pub flags: u8,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Its data.
    pub text: &'static str,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text: String = self.text.chars().take(24).collect();
        write!(f, "{:02x} {text:?}", self.flags)
    }
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

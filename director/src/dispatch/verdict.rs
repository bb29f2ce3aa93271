//! What becomes of a packet, and why. Each reason is a counter label with one line that explains it.

use std::net::IpAddr;

use forwarding::Headers;
use forwarding::checksum::Partial;

/// Where a packet leaves: found in the kernel's routing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Index of the egress interface.
    pub interface: u32,
    /// The gateway, or the destination itself when it is on the link.
    pub next_hop: IpAddr,
    /// Source address the kernel would use towards the destination.
    pub source: Option<IpAddr>,
    /// MTU of the path, bytes of IP packet.
    pub mtu: u32,
}

/// What shall be done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet has been rewritten; it goes out on `path`.
    Transmit {
        /// How it got there, for counters.
        method: Method,
        /// Where it leaves.
        path: Path,
        /// The transport checksum, when it is still to be completed.
        partial: Option<Partial>,
        /// Its headers as they now are.
        headers: Headers,
    },
    /// The packet is dropped and the dispatcher's reply buffer holds the ICMP error or TCP reset for
    /// its sender.
    Answer {
        /// Why.
        reason: DropReason,
    },
    /// Not ours: the kernel's stack shall have it, unchanged.
    Pass(PassReason),
    /// Dropped.
    Drop(DropReason),
}

/// Why a packet is not forwarded: the small half of [`Verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Answer(DropReason),
    Pass(PassReason),
    Drop(DropReason),
}

impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Verdict {
        match stop {
            Stop::Answer(reason) => Verdict::Answer { reason },
            Stop::Pass(reason) => Verdict::Pass(reason),
            Stop::Drop(reason) => Verdict::Drop(reason),
        }
    }
}

/// How a packet was forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Client to server by NAT.
    Nat,
    /// Server to client, translated back.
    NatReply,
    /// Client to server through a tunnel.
    Tunnel,
    /// Client to server by direct routing.
    Direct,
    /// Client to where it asks for, past all servers.
    Bypass,
}

impl Method {
    /// All of them.
    pub const ALL: &'static [Method] =
        &[Method::Nat, Method::NatReply, Method::Tunnel, Method::Direct, Method::Bypass];

    /// Short name.
    pub fn label(self) -> &'static str {
        match self {
            Method::Nat => "nat",
            Method::NatReply => "nat_reply",
            Method::Tunnel => "tunnel",
            Method::Direct => "direct",
            Method::Bypass => "bypass",
        }
    }
}

/// Names, meanings and an index for each variant: one table per enum.
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $label:literal, $meaning:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $meaning] $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// Short name: the metrics label.
            pub fn label(self) -> &'static str {
                match self { $($name::$variant => $label),* }
            }

            /// One line for people.
            pub fn meaning(self) -> &'static str {
                match self { $($name::$variant => $meaning),* }
            }
        }
    };
}

reasons! {
    /// Why a packet was dropped.
    DropReason {
        Truncated = "truncated", "A header, or the length it announces, reaches past the frame.";
        BadHeader = "bad_header", "A header field has a value that no sender may write.";
        BadChecksum = "bad_ip_checksum", "The IPv4 header checksum is wrong.";
        FragmentOverlap = "fragment_overlap", "A fragment has bytes of another one of its datagram, which has been forwarded, or of the transport header; also every fragment that follows.";
        FragmentDuplicate = "fragment_duplicate", "A fragment whose bytes have all been forwarded: the first ones count.";
        BadFragment = "bad_fragment", "A fragment that is empty, past the end of its datagram or of any, says another end, or has no multiple of 8 bytes and is not the last; also those that follow where that leaves doubt.";
        FragmentScattered = "fragment_scattered", "A fragment that would leave more than 16 separate parts of its datagram; also every fragment that follows.";
        NoChunk = "no_chunk", "SCTP without a chunk for a service, and no connection that it belongs to.";
        NoServer = "no_server", "The service has no server that may take a new connection; ICMP port unreachable was sent.";
        NoServerReset = "no_server_reset", "The service has no server that may take a new connection; RST was sent (`no_destination`).";
        ServerGone = "server_gone", "The connection's server has been removed; the client was told with RST or ICMP (`gone_server`).";
        ServerRemoved = "server_removed", "The connection's server has been removed; the client's packets wait for its return or the timeout, as in the kernel.";
        ServerLost = "server_lost", "The connection's server has failed, so the connection is over; who sent the packet was told with RST, or ICMP over SCTP (`teardown`).";
        DropPacket = "drop_packet", "It would have opened a connection, and `drop_packet` is there to drop some of those.";
        NoConnection = "no_connection", "A NAT server's packet that belongs to no connection; with `nat_icmp_send`, ICMP port unreachable was sent.";
        NoCallId = "no_call_id", "A datagram without a usable Call-ID for a service that goes by it (persistence engine sip).";
        TtlExceeded = "ttl_exceeded", "TTL or hop limit ran out; ICMP time exceeded was sent.";
        TooBig = "too_big", "Larger than the path's MTU and not to be fragmented; ICMP with the MTU was sent, unless the packet is ICMP itself.";
        NoRoute = "no_route", "The kernel's routing table has no way to the destination.";
        NoPort = "no_port", "The route leaves by an interface that is not in `interfaces` of the configuration.";
        NoNeighbour = "no_neighbour", "The next hop did not answer ARP or neighbour discovery within three seconds.";
        NoRoom = "no_room", "No headroom left in the frame for the tunnel header.";
        FamilyMismatch = "family_mismatch", "NAT or direct routing cannot reach a server of the other address family.";
        SctpFragment = "sctp_fragment", "A fragment of SCTP whose port NAT changes: the checksum covers the port, and cannot be made anew from a part.";
        TableFull = "table_full", "The connection table is full of connections in use (`max_connections`).";
        NoFrames = "no_frames", "No free frame in packet memory (`frames`).";
        IcmpUnknown = "icmp_unknown", "An ICMP error about a connection that we do not have, or malformed.";
        IcmpChecksum = "bad_icmp_checksum", "An ICMP error about one of our connections with a wrong checksum.";
        TunnelError = "tunnel_error", "An ICMP error about a packet that we have put into a tunnel; what concerns its client has been told to it.";
        FtpHeld = "ftp_held", "Part of an FTP control connection that repeats part of a rewritten line, or overtakes one: its sender repeats it.";
        FtpRefused = "ftp_refused", "A line of an FTP control connection that could not be rewritten for want of room.";
        FtpChecksum = "ftp_checksum", "A segment of an FTP control connection has a wrong checksum.";
        PassFailed = "pass_failed", "Meant for the kernel's stack, which could not be given it.";
    }
}

reasons! {
    /// Why a packet went up to the kernel's stack.
    PassReason {
        NotIp = "passed_not_ip", "Neither IPv4 nor IPv6.";
        NoService = "passed_no_service", "No virtual service has this address, port and protocol.";
        NoConnection = "passed_no_connection", "A TCP or SCTP packet for a service that opens no connection and belongs to none.";
        Fragment = "passed_fragment", "A later fragment whose first fragment is none of ours, or has not been seen in time.";
        Icmp = "passed_icmp", "ICMP about none of our connections.";
        IcmpUnreadable = "passed_icmp_unreadable", "An ICMP error that quotes nothing which could be a packet: too little of one, another IP version, lengths that cannot be.";
        FtpData = "passed_ftp_data", "Would open an FTP data connection that no control connection has announced.";
        Local = "passed_local", "The server is the director itself.";
    }
}

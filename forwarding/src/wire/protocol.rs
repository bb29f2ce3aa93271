//! IP protocol numbers (IANA "Assigned Internet Protocol Numbers"), as in IPv4's protocol field and
//! IPv6's next header.

/// IPv6 hop-by-hop options.
pub const HOP_BY_HOP: u8 = 0;
/// ICMP for IPv4.
pub const ICMP: u8 = 1;
/// IPv4 in IP: the tunnel of an IPv4 packet.
pub const IPIP: u8 = 4;
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// IPv6 in IP: the tunnel of an IPv6 packet.
pub const IPV6: u8 = 41;
/// IPv6 routing header.
pub const ROUTING: u8 = 43;
/// IPv6 fragment header.
pub const FRAGMENT: u8 = 44;
/// Generic routing encapsulation.
pub const GRE: u8 = 47;
/// Encapsulating security payload; never stepped over.
pub const ESP: u8 = 50;
/// Authentication header; never stepped over.
pub const AH: u8 = 51;
/// ICMP for IPv6.
pub const ICMPV6: u8 = 58;
/// Nothing follows an IPv6 header.
pub const NO_NEXT_HEADER: u8 = 59;
/// IPv6 destination options.
pub const DESTINATION_OPTIONS: u8 = 60;
/// SCTP.
pub const SCTP: u8 = 132;

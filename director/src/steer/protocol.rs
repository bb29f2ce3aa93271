//! The numbers on the wire that steering tells apart, shared by the program and its twin.
//!
//! Numbers only: the twins parse each in its own language, and are held together by a test.

/// Ethernet types.
pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q.
pub(super) const ETHERTYPE_VLAN: u16 = 0x8100;
/// 802.1ad; only a single tag is looked through.
pub(super) const ETHERTYPE_QINQ: u16 = 0x88a8;

/// IP protocol numbers, and IPv6 extension headers.
pub(super) const ICMP: u8 = 1;
pub(super) const ICMPV6: u8 = 58;
pub(super) const HOP_BY_HOP: u8 = 0;
pub(super) const ROUTING: u8 = 43;
pub(super) const FRAGMENT: u8 = 44;
pub(super) const DESTINATION_OPTIONS: u8 = 60;

/// TCP by itself: FTP speaks nothing else.
pub(super) const TCP: u8 = 6;

/// The first byte of ports from 1024 on, from which passive FTP servers take theirs, is at least
/// this.
pub(super) const DATA_PORTS: u8 = 4;

/// What services are made of: TCP, UDP, SCTP. All begin with source and destination port.
pub(super) const TRANSPORTS: &[u8] = &[6, 17, 132];

/// Protocols whose later fragments may belong to a service: the transports, and the extension
/// headers that an IPv6 sender may have put between fragment header and transport. Not ICMP: a
/// ping of the VIP, however long, is the kernel's in all its parts.
pub(super) const LATER_FRAGMENTS: &[u8] = &[6, 17, 132, ROUTING, DESTINATION_OPTIONS];

/// How a tunnel server's packets are encapsulated: IPv4 or IPv6 in IP, or GRE. GUE is UDP, to a
/// port that is a key of its own.
pub(super) const TUNNELS: &[u8] = &[4, 41, 47];

/// ICMP: destination unreachable, source quench, time exceeded, parameter problem.
pub(super) const ICMP_ERRORS: &[u8] = &[3, 4, 11, 12];

/// ICMPv6: destination unreachable, packet too big, time exceeded, parameter problem.
pub(super) const ICMPV6_ERRORS: &[u8] = &[1, 2, 3, 4];

/// IPv6 extension headers that are followed; a longer chain is left to the kernel.
pub(super) const MAX_EXTENSIONS: usize = 4;

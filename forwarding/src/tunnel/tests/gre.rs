//! The GRE header, made and opened.

use pnet::packet::util;
use proptest::prelude::*;

use super::*;
use crate::tests::frames::specs;

proptest! {
    #[test]
    fn the_gre_header_says_what_follows(spec in specs(), v6: bool) {
        let outer = if v6 { SERVER_V6 } else { SERVER_V4 };
        let (frame, made) = wrap(&spec.build(), Encapsulation::Gre { checksum: false }, &outer);
        let gre = &frame[made.headers.l4..made.headers.end];
        let ether_type = if spec.source.is_ipv4() { [0x08, 0x00] } else { [0x86, 0xdd] };
        prop_assert_eq!(&gre[..4], [&[0, 0][..], &ether_type].concat());
        prop_assert_eq!(&gre[4..], inner(&spec));
        prop_assert_eq!(made.headers.protocol, 47);
    }

    #[test]
    fn the_gre_checksum_is_what_pnet_computes(spec in specs(), v6: bool) {
        let outer = if v6 { SERVER_V6 } else { SERVER_V4 };
        let (frame, made) = wrap(&spec.build(), Encapsulation::Gre { checksum: true }, &outer);
        let gre = &frame[made.headers.l4..made.headers.end];
        let ether_type = if spec.source.is_ipv4() { [0x08, 0x00] } else { [0x86, 0xdd] };
        prop_assert_eq!(&gre[..4], [&[0x80, 0][..], &ether_type].concat());
        // Word 2 is the checksum itself.
        prop_assert_eq!(&gre[4..6], util::checksum(gre, 2).to_be_bytes());
        prop_assert_eq!(&gre[6..8], [0, 0]);
        prop_assert_eq!(&gre[8..], inner(&spec));
    }

    /// Whole, or with a checksum that hardware was to complete, which between machines of one host
    /// nobody has: the sum is over what it will be.
    #[test]
    fn a_summed_packet_that_is_not_finished_inside_is_opened_and_its_headers_are_held_to_the_sum(
        spec in specs().prop_map(tcp_or_udp),
        v6: bool,
        bit in 0u8..8,
    ) {
        let outer = if v6 { SERVER_V6 } else { SERVER_V4 };
        let frame = left_to_hardware(&spec);
        let (frame, made) = wrap(&frame, Encapsulation::Gre { checksum: true }, &outer);
        let mut ip = frame[made.headers.l3..].to_vec();
        let inside = decapsulate(&ip);
        prop_assert!(inside.is_some());
        // The last octet of the inner source address, in which the field's sum is as well.
        let at = inside.unwrap().start + if spec.source.is_ipv4() { 15 } else { 23 };
        ip[at] ^= 1 << bit;
        prop_assert_eq!(decapsulate(&ip), None);
    }

    #[test]
    fn damage_under_the_gre_checksum_is_found(
        spec in specs(),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let (frame, made) =
            wrap(&spec.build(), Encapsulation::Gre { checksum: true }, &SERVER_V4);
        let mut ip = frame[made.headers.l3..].to_vec();
        prop_assert!(decapsulate(&ip).is_some());
        // Not the flag that says there is a checksum.
        let at = 21 + at.index(ip.len() - 21);
        ip[at] ^= 1 << bit;
        prop_assert_eq!(decapsulate(&ip), None);
    }
}

#[test]
fn only_gre_headers_that_are_understood_are_opened() {
    let spec = Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2");
    let (frame, made) = wrap(&spec.build(), Encapsulation::Gre { checksum: false }, &SERVER_V4);
    let ip = frame[made.headers.l3..].to_vec();
    assert_eq!(decapsulate(&ip), Some(24..ip.len()));
    let with = |header: [u8; 4]| {
        let mut changed = ip.clone();
        changed[20..24].copy_from_slice(&header);
        decapsulate(&changed)
    };
    for (flag, name) in [
        (0x40, "routing"),
        (0x20, "key"),
        (0x10, "sequence"),
        (0x08, "strict"),
        (0x04, "recursion"),
    ] {
        assert_eq!(with([flag, 0, 8, 0]), None, "{name}");
    }
    for version in 1..8 {
        assert_eq!(with([0, version, 8, 0]), None, "version {version}");
    }
    assert_eq!(with([0x03, 0xf8, 8, 0]), Some(24..ip.len()), "reserved bits are not looked at");
    assert_eq!(with([0, 0, 0x86, 0xdd]), None, "announces IPv6, carries IPv4");
    assert_eq!(with([0, 0, 0x65, 0x58]), None, "Ethernet");
    assert_eq!(with([0x80, 0, 8, 0]), None, "no checksum where one is announced");
    for length in 20..ip.len() {
        let mut cut = ip[..length].to_vec();
        let mut header = ipv4::Header::at_mut(&mut cut, 0).unwrap();
        header.set_total_length(length as u16);
        header.fill_checksum();
        assert_eq!(decapsulate(&cut), None, "cut to {length} bytes");
    }
}

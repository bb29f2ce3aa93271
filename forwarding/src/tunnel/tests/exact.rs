//! Outer headers byte by byte. The bytes were computed from the RFCs, the GUE draft and the kernel's
//! option layout by a program that shares nothing with this crate: one's complement sums over the
//! packet as it is on the last wire, when every checksum left to hardware has been completed.

use super::*;

/// From a client to a VIP, 5 bytes of UDP data, the checksum left to hardware.
const INNER_V4: &str = "45000021 42424000 3f110d45 c6336407 c000020a 14e90035 000dec63 68656c6c 6f";
/// The same over IPv6.
const INNER_V6: &str = "60000000 000d113f 20010db8000900000000000000000007 \
    20010db8000100000000000000000010 14e90035 000d5bb1 68656c6c 6f";

/// A type of tunnel, the outer IP header (of IPv6 without its addresses), and what is between it
/// and the inner packet.
type Row = (Encapsulation, &'static str, &'static str);

fn v4_in_v4() -> [Row; 5] {
    [
        (
            gue(GueChecksum::Nocsum),
            "45000041 77884000 3f114020 c0000201 c0000202",
            "9d6c17c0 002d0000 00040000",
        ),
        (
            gue(GueChecksum::Csum),
            "45000041 77884000 3f114020 c0000201 c0000202",
            "9d6c17c0 002db2c3 00040000",
        ),
        (
            gue(GueChecksum::Remcsum),
            "45000049 77884000 3f114018 c0000201 c0000202",
            "9d6c17c0 0035febe 02040001 80000000 0014001a",
        ),
        (
            Encapsulation::Gre { checksum: false },
            "45000039 77884000 3f2f400a c0000201 c0000202",
            "00000800",
        ),
        (
            Encapsulation::Gre { checksum: true },
            "4500003d 77884000 3f2f4006 c0000201 c0000202",
            "80000800 64630000",
        ),
    ]
}

fn v4_in_v6() -> [Row; 5] {
    [
        (gue(GueChecksum::Nocsum), "60000000 002d113f", "9d6c17c0 002d0000 00040000"),
        (gue(GueChecksum::Csum), "60000000 002d113f", "9d6c17c0 002ddb52 00040000"),
        (
            gue(GueChecksum::Remcsum),
            "60000000 0035113f",
            "9d6c17c0 0035274e 02040001 80000000 0014001a",
        ),
        (Encapsulation::Gre { checksum: false }, "60000000 00252f3f", "00000800"),
        (Encapsulation::Gre { checksum: true }, "60000000 00292f3f", "80000800 64630000"),
    ]
}

fn v6_in_v4() -> [Row; 5] {
    [
        (
            gue(GueChecksum::Nocsum),
            "45000055 77880000 3f11800c c0000201 c0000202",
            "9d6c17c0 00410000 00290000",
        ),
        (
            gue(GueChecksum::Csum),
            "45000055 77880000 3f11800c c0000201 c0000202",
            "9d6c17c0 004154e4 00290000",
        ),
        (
            gue(GueChecksum::Remcsum),
            "4500005d 77880000 3f118004 c0000201 c0000202",
            "9d6c17c0 0049c21c 02290001 80000000 0028002e",
        ),
        (
            Encapsulation::Gre { checksum: false },
            "4500004d 77880000 3f2f7ff6 c0000201 c0000202",
            "000086dd",
        ),
        (
            Encapsulation::Gre { checksum: true },
            "45000051 77880000 3f2f7ff2 c0000201 c0000202",
            "800086dd 87f30000",
        ),
    ]
}

fn v6_in_v6() -> [Row; 5] {
    [
        (gue(GueChecksum::Nocsum), "60000000 0041113f", "9d6c17c0 00410000 00290000"),
        (gue(GueChecksum::Csum), "60000000 0041113f", "9d6c17c0 00417d73 00290000"),
        (
            gue(GueChecksum::Remcsum),
            "60000000 0049113f",
            "9d6c17c0 0049eaab 02290001 80000000 0028002e",
        ),
        (Encapsulation::Gre { checksum: false }, "60000000 00392f3f", "000086dd"),
        (Encapsulation::Gre { checksum: true }, "60000000 003d2f3f", "800086dd 87f30000"),
    ]
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn assert_exact(inner: &str, ether_type: [u8; 2], outer: &Outer, rows: [Row; 5]) {
    let inner = bytes(inner);
    let link = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let frame = [&link[..], &ether_type, &inner].concat();
    for (encapsulation, ip, shim) in rows {
        let (made, _) = wrap(&frame, encapsulation, outer);
        let (ether_type, addresses) = match (outer.source, outer.destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                ([0x86, 0xdd], [source.octets(), destination.octets()].concat())
            }
            _ => ([0x08, 0x00], Vec::new()),
        };
        let expected =
            [&link[..], &ether_type, &bytes(ip), &addresses, &bytes(shim), &inner].concat();
        assert_eq!(made, expected, "{encapsulation:?}");
    }
}

#[test]
fn ipv4_in_ipv4() {
    assert_exact(INNER_V4, [0x08, 0x00], &SERVER_V4, v4_in_v4());
}

#[test]
fn ipv4_in_ipv6() {
    assert_exact(INNER_V4, [0x08, 0x00], &SERVER_V6, v4_in_v6());
}

#[test]
fn ipv6_in_ipv4() {
    assert_exact(INNER_V6, [0x86, 0xdd], &SERVER_V4, v6_in_v4());
}

#[test]
fn ipv6_in_ipv6() {
    assert_exact(INNER_V6, [0x86, 0xdd], &SERVER_V6, v6_in_v6());
}

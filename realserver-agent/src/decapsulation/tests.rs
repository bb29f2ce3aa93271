//! Packets are written by hand here: the test must not believe the code that it tests.

use super::*;

const VIP: [u8; 4] = [192, 0, 2, 10];
const CLIENT: [u8; 4] = [192, 0, 2, 100];
const VIP_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10];
const CLIENT_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];

fn policy() -> Policy {
    Policy { vips: vec![VIP.into(), VIP_V6.into()], from: Vec::new() }
}

/// RFC 1071 over big-endian words, not complemented.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut total = 0u32;
    for part in parts {
        for word in part.chunks(2) {
            total += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
        }
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

fn ipv4(protocol: u8, source: [u8; 4], destination: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend(source);
    packet.extend(destination);
    let check = !sum(&[&packet]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    packet.extend(payload);
    packet
}

fn ipv6(next: u8, source: [u8; 16], destination: [u8; 16], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
    packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    packet.extend(source);
    packet.extend(destination);
    packet.extend(payload);
    packet
}

/// A UDP datagram and its pseudo-header sum.
fn udp(source: &[u8], destination: &[u8]) -> (Vec<u8>, u16) {
    let mut datagram = vec![0x30, 0x39, 0, 53, 0, 13, 0, 0];
    datagram.extend(b"hello");
    let pseudo = sum(&[source, destination, &[0, 17, 0, datagram.len() as u8]]);
    (datagram, pseudo)
}

/// The datagram with a complete checksum.
fn finished(mut datagram: Vec<u8>, pseudo: u16) -> Vec<u8> {
    let check = !sum(&[&datagram, &pseudo.to_be_bytes()]);
    datagram[6..8].copy_from_slice(&check.to_be_bytes());
    datagram
}

/// The datagram with a checksum that its sender left to hardware.
fn left_to_hardware(mut datagram: Vec<u8>, pseudo: u16) -> Vec<u8> {
    datagram[6..8].copy_from_slice(&pseudo.to_be_bytes());
    datagram
}

/// Gives an inner packet to the buffer as a raw socket of `family` would.
fn unpack<'a>(
    buffer: &'a mut Buffer,
    family: RawFamily,
    protocol: u8,
    inner: &[u8],
    policy: &Policy,
) -> Result<&'a [u8], Refusal> {
    let (received, source): (Vec<u8>, IpAddr) = match family {
        RawFamily::V4 => {
            (ipv4(protocol, [10, 77, 0, 1], [10, 77, 0, 11], inner), [10, 77, 0, 1].into())
        }
        RawFamily::V6 => (inner.to_vec(), "fd77::1".parse().unwrap()),
    };
    receive(buffer, Carrier::Raw { family, protocol }, &received, source, policy)
}

/// Gives what a socket has received to the buffer.
fn receive<'a>(
    buffer: &'a mut Buffer,
    carrier: Carrier,
    received: &[u8],
    source: IpAddr,
    policy: &Policy,
) -> Result<&'a [u8], Refusal> {
    buffer.space(carrier)[..received.len()].copy_from_slice(received);
    buffer.unpack(carrier, received.len(), source, policy)
}

/// Gives a GUE header and packet to the buffer as a UDP socket would.
fn unpack_gue<'a>(
    buffer: &'a mut Buffer,
    header: &[u8],
    inner: &[u8],
) -> Result<&'a [u8], Refusal> {
    let received = [header, inner].concat();
    receive(buffer, Carrier::Gue, &received, [10, 77, 0, 1].into(), &policy())
}

/// The inner packets of both families, each with a checksum made by `check`.
fn inners(check: fn(Vec<u8>, u16) -> Vec<u8>) -> [(u8, Vec<u8>); 2] {
    let (v4, v4_pseudo) = udp(&CLIENT, &VIP);
    let (v6, v6_pseudo) = udp(&CLIENT_V6, &VIP_V6);
    [
        (IPIP, ipv4(17, CLIENT, VIP, &check(v4, v4_pseudo))),
        (IPV6, ipv6(17, CLIENT_V6, VIP_V6, &check(v6, v6_pseudo))),
    ]
}

#[test]
fn the_inner_packet_comes_out_unchanged_of_all_four_encapsulations() {
    let mut buffer = Buffer::new();
    for family in [RawFamily::V4, RawFamily::V6] {
        for (protocol, inner) in inners(finished) {
            let out = unpack(&mut buffer, family, protocol, &inner, &policy());
            assert_eq!(out, Ok(inner.as_slice()), "protocol {protocol} in {family:?}");
        }
    }
}

#[test]
fn a_checksum_left_to_hardware_is_completed_before_the_host_sees_it() {
    let mut buffer = Buffer::new();
    for family in [RawFamily::V4, RawFamily::V6] {
        for ((protocol, partial), (_, whole)) in
            inners(left_to_hardware).into_iter().zip(inners(finished))
        {
            assert_ne!(partial, whole);
            let out = unpack(&mut buffer, family, protocol, &partial, &policy());
            assert_eq!(out, Ok(whole.as_slice()), "protocol {protocol} in {family:?}");
        }
    }
}

#[test]
fn an_sctp_checksum_left_to_hardware_is_completed() {
    let mut sctp = vec![0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 14, 0, 0, 4];
    let inner = ipv4(132, CLIENT, VIP, &sctp);
    let mut buffer = Buffer::new();
    let out = unpack(&mut buffer, RawFamily::V4, IPIP, &inner, &policy()).unwrap();
    // CRC32c (RFC 9260, appendix A), a bit at a time.
    let mut remainder = !0u32;
    for byte in &sctp {
        remainder ^= u32::from(*byte);
        for _ in 0..8 {
            let low = remainder & 1;
            remainder = (remainder >> 1) ^ (low * 0x82f6_3b78);
        }
    }
    sctp[8..12].copy_from_slice(&(!remainder).to_le_bytes());
    assert_eq!(out[20..], sctp);
}

#[test]
fn a_packet_for_another_address_is_not_let_into_the_host() {
    let (datagram, pseudo) = udp(&CLIENT, &[127, 0, 0, 1]);
    let inner = ipv4(17, CLIENT, [127, 0, 0, 1], &finished(datagram, pseudo));
    let mut buffer = Buffer::new();
    let out = unpack(&mut buffer, RawFamily::V4, IPIP, &inner, &policy());
    assert_eq!(out, Err(Refusal::NotServed));
}

#[test]
fn only_the_networks_named_may_send() {
    let mut only_director = policy();
    only_director.from = vec!["10.77.0.1/32".parse().unwrap()];
    let [(protocol, inner), _] = inners(finished);
    let mut buffer = Buffer::new();
    let out = unpack(&mut buffer, RawFamily::V4, protocol, &inner, &only_director);
    assert_eq!(out, Ok(inner.as_slice()));
    let out = unpack(&mut buffer, RawFamily::V6, protocol, &inner, &only_director);
    assert_eq!(out, Err(Refusal::Stranger));
}

#[test]
fn no_cut_or_mislabelled_packet_is_delivered() {
    let mut buffer = Buffer::new();
    for family in [RawFamily::V4, RawFamily::V6] {
        for (protocol, inner) in inners(finished) {
            let other = IPIP + IPV6 - protocol;
            let out = unpack(&mut buffer, family, other, &inner, &policy());
            assert_eq!(out, Err(Refusal::Malformed));
            for length in 0..inner.len() {
                let out = unpack(&mut buffer, family, protocol, &inner[..length], &policy());
                assert!(out.is_err(), "{length} bytes of protocol {protocol} in {family:?}");
            }
        }
    }
}

#[test]
fn an_outer_header_shorter_than_it_says_is_refused() {
    let mut buffer = Buffer::new();
    let source = [10, 77, 0, 1].into();
    for length in 0..20 {
        let carrier = Carrier::Raw { family: RawFamily::V4, protocol: IPIP };
        buffer.space(carrier)[..20].fill(0x4f);
        let out = buffer.unpack(carrier, length, source, &policy());
        assert_eq!(out, Err(Refusal::Malformed));
    }
}

#[test]
fn the_inner_packet_comes_out_of_gue_with_its_checksum_complete() {
    let mut buffer = Buffer::new();
    for ((protocol, partial), (_, whole)) in
        inners(left_to_hardware).into_iter().zip(inners(finished))
    {
        let plain = [0, protocol, 0, 0];
        assert_eq!(unpack_gue(&mut buffer, &plain, &whole), Ok(whole.as_slice()));
        assert_eq!(unpack_gue(&mut buffer, &plain, &partial), Ok(whole.as_slice()));
        // remcsum: private flags, the UDP header of the inner packet, its checksum.
        let start = whole.len() as u8 - 13;
        let remote = [2, protocol, 0, 1, 0x80, 0, 0, 0, 0, start, 0, start + 6];
        assert_eq!(unpack_gue(&mut buffer, &remote, &partial), Ok(whole.as_slice()));
    }
}

#[test]
fn the_inner_packet_comes_out_of_gre_with_its_checksum_complete() {
    let mut buffer = Buffer::new();
    for family in [RawFamily::V4, RawFamily::V6] {
        for ((protocol, partial), (_, whole)) in
            inners(left_to_hardware).into_iter().zip(inners(finished))
        {
            let [high, low] = if protocol == IPIP { [0x08, 0x00] } else { [0x86, 0xdd] };
            for inner in [&partial, &whole] {
                let plain = [&[0, 0, high, low][..], inner].concat();
                let out = unpack(&mut buffer, family, GRE, &plain, &policy());
                assert_eq!(out, Ok(whole.as_slice()));
                let [a, b] = (!sum(&[&[0x80, 0, high, low], inner])).to_be_bytes();
                let summed = [&[0x80, 0, high, low, a, b, 0, 0][..], inner].concat();
                let out = unpack(&mut buffer, family, GRE, &summed, &policy());
                assert_eq!(out, Ok(whole.as_slice()));
                let wrong = [&[0x80, 0, high, low, a, b ^ 1, 0, 0][..], inner].concat();
                let out = unpack(&mut buffer, family, GRE, &wrong, &policy());
                assert_eq!(out, Err(Refusal::Malformed), "wrong GRE checksum");
            }
        }
    }
}

#[test]
fn gue_and_gre_let_nothing_in_that_ipip_would_not() {
    let (datagram, pseudo) = udp(&CLIENT, &[127, 0, 0, 1]);
    let foreign = ipv4(17, CLIENT, [127, 0, 0, 1], &finished(datagram, pseudo));
    let mut buffer = Buffer::new();
    let out = unpack_gue(&mut buffer, &[0, IPIP, 0, 0], &foreign);
    assert_eq!(out, Err(Refusal::NotServed));
    let gre = [&[0, 0, 0x08, 0x00][..], &foreign].concat();
    let out = unpack(&mut buffer, RawFamily::V4, GRE, &gre, &policy());
    assert_eq!(out, Err(Refusal::NotServed));

    let [(_, inner), _] = inners(finished);
    // A remote checksum that is to be written over the inner destination.
    let rewrite = [2, IPIP, 0, 1, 0x80, 0, 0, 0, 0, 16, 0, 16];
    assert_eq!(unpack_gue(&mut buffer, &rewrite, &inner), Err(Refusal::Malformed));
    let mut strangers = policy();
    strangers.from = vec!["10.77.0.9/32".parse().unwrap()];
    let received = [&[0, IPIP, 0, 0][..], &inner].concat();
    let source = [10, 77, 0, 1].into();
    let out = receive(&mut buffer, Carrier::Gue, &received, source, &strangers);
    assert_eq!(out, Err(Refusal::Stranger));
    for length in 0..received.len() {
        let out = receive(&mut buffer, Carrier::Gue, &received[..length], source, &policy());
        assert_eq!(out, Err(Refusal::Malformed), "{length} bytes");
    }
}

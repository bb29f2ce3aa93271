//! Who has this address? The question, and who answers it. Pure: frames in, frames out.
//!
//! The question names no address of ours as its sender where it need not (RFC 5227 §1.1, an ARP
//! probe), so that nobody learns anything from it; a neighbour solicitation needs one, and takes a
//! link-local one.

use std::net::{IpAddr, Ipv6Addr};

use super::announce::{BROADCAST, ETHERTYPE_ARP, ETHERTYPE_IPV6, ICMPV6, LEAST_PAYLOAD, checksum};

/// Length of an Ethernet header without tags.
const ETHERNET: usize = 14;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;

/// The ethertype of question and answer about `target`.
pub fn ethertype(target: IpAddr) -> u16 {
    if target.is_ipv4() { ETHERTYPE_ARP } else { ETHERTYPE_IPV6 }
}

/// The frame that asks the segment, from the interface with the Ethernet address `mac`, who has
/// `target`. `link_local` is an IPv6 address of that interface; without one there is no question
/// about an IPv6 address.
pub fn question(mac: [u8; 6], target: IpAddr, link_local: Option<Ipv6Addr>) -> Option<Vec<u8>> {
    let (to, body) = match target {
        IpAddr::V4(target) => {
            let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1]; // Ethernet, IPv4, lengths, request
            arp.extend_from_slice(&mac);
            arp.extend_from_slice(&[0; 10]); // no sender, and nobody's Ethernet address
            arp.extend_from_slice(&target.octets());
            (BROADCAST, arp)
        }
        IpAddr::V6(target) => {
            let [.., a, b, c] = target.octets();
            let group = Ipv6Addr::new(
                0xff02,
                0,
                0,
                0,
                0,
                1,
                0xff00 | u16::from(a),
                u16::from_be_bytes([b, c]),
            );
            ([0x33, 0x33, 0xff, a, b, c], solicitation(mac, target, link_local?, group))
        }
    };
    let mut frame = Vec::with_capacity(ETHERNET + body.len().max(LEAST_PAYLOAD));
    frame.extend_from_slice(&to);
    frame.extend_from_slice(&mac);
    frame.extend_from_slice(&ethertype(target).to_be_bytes());
    frame.extend_from_slice(&body);
    frame.resize(frame.len().max(ETHERNET + LEAST_PAYLOAD), 0);
    Some(frame)
}

/// The Ethernet address that `frame` says `target` has, when it is an answer about it. Anything
/// else, whatever is in it, is `None`.
pub fn owner(frame: &[u8], target: IpAddr) -> Option<[u8; 6]> {
    let (header, body) = frame.split_at_checked(ETHERNET)?;
    if header[12..14] != ethertype(target).to_be_bytes() {
        return None;
    }
    match target {
        IpAddr::V4(target) => {
            let reply: &[u8; 18] = body.first_chunk()?;
            let is_reply = reply[..8] == [0, 1, 8, 0, 6, 4, 0, 2];
            (is_reply && reply[14..18] == target.octets())
                .then(|| std::array::from_fn(|byte| reply[8 + byte]))
        }
        IpAddr::V6(target) => {
            let (ip, icmp) = body.split_at_checked(40)?;
            let icmp = icmp.get(..usize::from(u16::from_be_bytes([ip[4], ip[5]])))?;
            let is_advertisement = ip[0] >> 4 == 6
                && ip[6] == ICMPV6
                && ip[7] == 255
                && icmp.len() >= 24
                && icmp[0] == NEIGHBOUR_ADVERTISEMENT
                && icmp[8..24] == target.octets();
            if !is_advertisement {
                return None;
            }
            option(&icmp[24..]).or_else(|| header[6..12].try_into().ok())
        }
    }
}

/// The target's Ethernet address among the options of an advertisement.
fn option(mut options: &[u8]) -> Option<[u8; 6]> {
    while let [kind, units, ..] = *options {
        let (option, rest) = options.split_at_checked(usize::from(units) * 8)?;
        if kind == TARGET_LINK_LAYER_ADDRESS {
            return option.get(2..8)?.try_into().ok();
        }
        if option.is_empty() {
            return None;
        }
        options = rest;
    }
    None
}

/// A neighbour solicitation (RFC 4861 §4.3) with its IPv6 header.
fn solicitation(mac: [u8; 6], target: Ipv6Addr, source: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    let mut icmp = vec![NEIGHBOUR_SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    icmp.extend_from_slice(&target.octets());
    icmp.extend_from_slice(&[SOURCE_LINK_LAYER_ADDRESS, 1]);
    icmp.extend_from_slice(&mac);
    let sum = checksum(source, to, &icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut packet = vec![0x60, 0, 0, 0, 0, icmp.len() as u8, ICMPV6, 255];
    packet.extend_from_slice(&source.octets());
    packet.extend_from_slice(&to.octets());
    packet.extend_from_slice(&icmp);
    packet
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::network::answer;

    const OURS: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const THEIRS: [u8; 6] = [2, 0, 0, 0, 0, 9];
    const CLUSTERS: [u8; 6] = [2, 0xbf, 0, 0, 0, 1];
    const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

    fn vip6() -> IpAddr {
        "2001:db8::10".parse().unwrap()
    }

    #[test]
    fn a_solicitation_is_answered_and_the_answer_names_the_owner() {
        let asked = question(OURS, vip6(), Some(LINK_LOCAL)).unwrap();
        let answered = answer(&asked, THEIRS, CLUSTERS, |target| target == vip6()).unwrap();
        assert_eq!(owner(&answered, vip6()), Some(CLUSTERS));
        assert_eq!(owner(&answered, "2001:db8::11".parse().unwrap()), None);
        assert_eq!(owner(&asked, vip6()), None, "a question is no answer");
    }

    #[test]
    fn without_an_address_to_ask_from_there_is_no_solicitation() {
        assert_eq!(question(OURS, vip6(), None), None);
    }

    #[test]
    fn an_arp_reply_names_the_owner_and_a_request_does_not() {
        let vip = [192, 0, 2, 10].into();
        let mut frame = question(OURS, vip, None).unwrap();
        assert_eq!(frame.len(), 60);
        assert_eq!(&frame[28..32], &[0; 4], "an ARP probe tells nobody of us");
        assert_eq!(owner(&frame, vip), None);
        frame[ETHERNET + 7] = 2;
        frame[ETHERNET + 8..ETHERNET + 14].copy_from_slice(&THEIRS);
        frame[ETHERNET + 14..ETHERNET + 18].copy_from_slice(&[192, 0, 2, 10]);
        assert_eq!(owner(&frame, vip), Some(THEIRS));
        assert_eq!(owner(&frame, [192, 0, 2, 11].into()), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_frame_makes_it_panic(noise in prop::collection::vec(any::<u8>(), 0..100), cut in 0..100usize) {
            let asked = question(OURS, vip6(), Some(LINK_LOCAL)).unwrap();
            let mut frame = answer(&asked, THEIRS, CLUSTERS, |_| true).unwrap();
            for (to, from) in frame.iter_mut().zip(&noise) {
                *to = if *from & 7 == 0 { *from } else { *to };
            }
            frame.truncate(cut);
            let _ = owner(&frame, vip6());
            let _ = owner(&noise, [192, 0, 2, 10].into());
        }
    }
}

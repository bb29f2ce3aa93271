//! Who has this address? The question, and who answers it. Pure: frames in, frames out.
//!
//! The question names no address of ours as its sender where it need not (RFC 5227 §1.1, an ARP
//! probe), so that nobody learns anything from it; a neighbour solicitation needs one, and takes a
//! link-local one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::frames::{
    ARP_HEAD, BROADCAST, ETHERNET, ETHERTYPE_ARP, ETHERTYPE_IPV6, ICMPV6, NEIGHBOUR_ADVERTISEMENT,
    NEIGHBOUR_SOLICITATION, NO_MAC, REPLY, REQUEST, SOURCE_LINK_LAYER_ADDRESS,
    TARGET_LINK_LAYER_ADDRESS, arp, framed, link_layer_address, neighbour_message,
};

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
            let nobody = Ipv4Addr::UNSPECIFIED;
            (BROADCAST, arp(REQUEST, (mac, nobody), (NO_MAC, target)))
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
            let ours = (SOURCE_LINK_LAYER_ADDRESS, mac);
            let kind = (NEIGHBOUR_SOLICITATION, 0);
            let body = neighbour_message(kind, target, ours, link_local?, group);
            ([0x33, 0x33, 0xff, a, b, c], body)
        }
    };
    Some(framed(to, mac, None, ethertype(target), &body))
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
            let is_reply = reply[..6] == ARP_HEAD && reply[6..8] == REPLY.to_be_bytes();
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
            link_layer_address(TARGET_LINK_LAYER_ADDRESS, &icmp[24..])
                .or_else(|| header[6..12].try_into().ok())
        }
    }
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

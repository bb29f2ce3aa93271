use std::net::IpAddr;

use etherparse::SlicedPacket;
use etherparse::defrag::IpDefragPool;
use proptest::prelude::*;

use super::*;
use crate::tests::frames::{Spec, Transport, specs};
use crate::{Packet, parse, tunnel};

/// All fragments of a frame.
fn cut(frame: &[u8], headers: &Headers, mtu: usize) -> Option<Vec<Vec<u8>>> {
    let mut cut = Cut::new(frame, headers, mtu, 0x1234_5678)?;
    let mut out = vec![0xaa; 4096];
    let mut fragments = Vec::new();
    while let Some(len) = cut.next(frame, &mut out) {
        fragments.push(out[..len].to_vec());
    }
    Some(fragments)
}

/// What etherparse puts together from the fragments.
fn reassembled(fragments: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut pool = IpDefragPool::<(), ()>::new();
    let mut whole = None;
    for fragment in fragments {
        let sliced = SlicedPacket::from_ethernet(fragment).unwrap();
        whole = pool.process_sliced_packet(&sliced, (), ()).unwrap();
    }
    whole.map(|whole| whole.payload)
}

fn large(spec: Spec) -> Spec {
    Spec { dont_fragment: false, payload: (0..2600_u32).map(|at| at as u8).collect(), ..spec }
}

proptest! {
    #[test]
    fn fragments_make_the_datagram_again(spec in specs(), mtu in 576_usize..1500) {
        prop_assume!(spec.source.is_ipv4());
        let spec = large(spec);
        let frame = spec.build();
        let headers = parse(&frame).unwrap();
        let fragments = cut(&frame, &headers, mtu).unwrap();
        for fragment in &fragments {
            // That the header's checksum is right, parse() says.
            let part = parse(fragment).unwrap();
            prop_assert!(part.ip_len() <= mtu);
            prop_assert_eq!(part.end, fragment.len());
            prop_assert_eq!((part.vlan, part.source, part.ttl), (headers.vlan, headers.source, headers.ttl));
        }
        prop_assert_eq!(reassembled(&fragments).unwrap(), &frame[headers.l4..headers.end]);
    }

    #[test]
    fn fragments_of_a_tunnel_make_the_inner_packet_again(spec in specs(), v6: bool, mtu in 1280_usize..1500) {
        prop_assume!(spec.source.is_ipv4());
        let inner = large(spec).build();
        let addresses = if v6 { ["fd00::1", "fd00::2"] } else { ["10.0.0.1", "10.0.0.2"] };
        let [source, destination] = addresses.map(|address| address.parse::<IpAddr>().unwrap());
        let mut chunk = vec![0; 64];
        chunk.extend_from_slice(&inner);
        let mut packet = Packet::new(&mut chunk, 64, inner.len());
        let headers = parse(packet.bytes()).unwrap();
        let outer = tunnel::Outer { source, destination, id: 7 };
        let (outer, _) = tunnel::encapsulate(&mut packet, &headers, &outer).unwrap();
        let fragments = cut(packet.bytes(), &outer, mtu).unwrap();
        for fragment in &fragments {
            prop_assert!(parse(fragment).unwrap().ip_len() <= mtu);
        }
        prop_assert_eq!(reassembled(&fragments).unwrap(), &inner[headers.l3..headers.end]);
    }

    #[test]
    fn fragments_of_fragments_make_the_datagram_again(mtu in 600_usize..1400) {
        let frame = large(Spec::new(Transport::Udp, "10.0.0.1:7", "10.0.0.2:7")).build();
        let headers = parse(&frame).unwrap();
        let mut all = Vec::new();
        for fragment in cut(&frame, &headers, 1500).unwrap() {
            let headers = parse(&fragment).unwrap();
            all.extend(cut(&fragment, &headers, mtu).unwrap());
        }
        prop_assert_eq!(reassembled(&all).unwrap(), &frame[headers.l4..headers.end]);
    }

    #[test]
    fn any_options_and_any_length_are_cut_without_a_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 14..200),
        l4 in 34_usize..75,
        end in 75_usize..300,
        done in 0_usize..70_000,
    ) {
        let frame = large(Spec::new(Transport::Udp, "10.0.0.1:7", "10.0.0.2:7")).build();
        let headers = Headers { l4, end, ..parse(&frame).unwrap() };
        let mut out = [0; 300];
        if let Some(mut cut) = Cut::new(&bytes, &headers, 600, 0) {
            cut.done = done;
            let _ = cut.next(&bytes, &mut out);
        }
        keep_copied_options(&mut bytes);
    }
}

#[test]
fn what_may_not_be_fragmented_is_not() {
    for source in ["10.0.0.1:1", "[fd00::1]:1"] {
        let spec = large(Spec::new(Transport::Udp, source, source));
        let frame = Spec { dont_fragment: true, ..spec }.build();
        assert!(Cut::new(&frame, &parse(&frame).unwrap(), 1280, 0).is_none());
    }
    let frame = large(Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:1")).build();
    assert!(Cut::new(&frame, &parse(&frame).unwrap(), 27, 0).is_none(), "no room for 8 bytes");
}

#[test]
fn only_copied_options_are_in_later_fragments() {
    // Record route (7) stays behind, stream id (0x88) is copied.
    let mut options = [7, 3, 4, 1, 0x88, 4, 1, 2];
    keep_copied_options(&mut options);
    assert_eq!(options, [1, 1, 1, 1, 0x88, 4, 1, 2]);
    let mut malformed = [0x88, 0, 9, 9];
    keep_copied_options(&mut malformed);
    assert_eq!(malformed, [1, 1, 1, 1]);
}

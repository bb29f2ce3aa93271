use forwarding::checksum::Sum;
use proptest::prelude::*;

use super::*;

/// A UDP packet of IPv4 behind room for an Ethernet header, with only the sum of its pseudo header
/// in its checksum: as one arrives that has never left this host.
fn unfinished(vip: [u8; 4], port: u16) -> Vec<u8> {
    let mut frame = vec![0; ethernet::LEN];
    frame.extend([0x45, 0, 0, 33, 0, 1, 0, 0, 64, 17, 0, 0]);
    frame.extend(vip);
    frame.extend([127, 0, 0, 1]);
    let header = Sum::default().bytes(&frame[ethernet::LEN..]).checksum();
    frame[ethernet::LEN + 10..][..2].copy_from_slice(&header.to_be_bytes());
    frame.extend([0, 80]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 13, 0, 0]);
    let pseudo = Sum::default().bytes(&vip).bytes(&[127, 0, 0, 1, 0, 17, 0, 13]).checksum();
    let at = frame.len() - 2;
    frame[at..].copy_from_slice(&(!pseudo).to_be_bytes());
    frame.extend(b"hello");
    // Padding of a short frame.
    frame.extend([0xee; 20]);
    frame
}

#[test]
fn a_packet_from_the_same_host_gets_its_checksum_and_loses_its_padding() {
    let waiting = Waiting::default();
    let vip = [192, 0, 2, 10];
    let own = IpAddr::from([127, 0, 0, 1]);
    let mut taken = waiting.reserve(own, (vip, 80).into(), Transport::Udp).unwrap();
    sort(&mut unfinished(vip, taken.address().port()), &waiting);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let Arrival::Packet(packet) = runtime.block_on(taken.receive()) else { panic!() };
    assert_eq!(packet.len(), 33);
    let pseudo = Sum::default().bytes(&packet[12..20]).bytes(&[0, 17, 0, 13]);
    assert_eq!(pseudo.bytes(&packet[20..]).checksum(), 0);
}

proptest! {
    #[test]
    fn no_packet_panics(mut frame in prop::collection::vec(any::<u8>(), 0..200), version in 0..16u8) {
        if let Some(first) = frame.get_mut(ethernet::LEN) {
            *first = version << 4 | 5;
        }
        sort(&mut frame, &Waiting::default());
    }
}

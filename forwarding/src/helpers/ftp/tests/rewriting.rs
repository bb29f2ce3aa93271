//! What becomes of the packet when its text changes.

use super::*;

/// A frame from the middle of a chunk with this much room before and behind.
fn chunk(frame: &[u8], before: usize, behind: usize) -> Vec<u8> {
    let mut chunk = vec![0xaa; before];
    chunk.extend_from_slice(frame);
    chunk.resize(chunk.len() + behind, 0xbb);
    chunk
}

/// Rewrites the announcement in `frame`, a packet with this much room.
fn rewritten(
    frame: &[u8],
    (before, behind): (usize, usize),
    to: SocketAddr,
) -> Result<(Vec<u8>, isize), NotRewritten> {
    let mut chunk = chunk(frame, before, behind);
    let mut packet = Packet::new(&mut chunk, before, frame.len());
    let mut headers = parse(frame).unwrap();
    let partial = partial(frame, &headers);
    let data = &frame[headers.l4 + 20..headers.end];
    let found = active(data).or_else(|| reply(data)).expect("an announcement");
    let result = rewrite(&mut packet, &mut headers, &found, to.ip(), to.port(), partial);
    match result {
        Ok(change) => {
            assert_eq!(parse(packet.bytes()), Ok(headers), "headers must follow the frame");
            assert_eq!(packet.len(), headers.end);
            Ok((packet.bytes().to_vec(), change))
        }
        Err(error) => {
            assert_eq!(packet.bytes(), frame, "refused must be unchanged");
            Err(error)
        }
    }
}

/// A line that announces `at`, in a form that goes with its family.
fn announcement(at: SocketAddr, kind: u8, begin: &str, end: &str) -> Vec<u8> {
    let port = at.port();
    let text = match (at.ip(), kind % 3) {
        (IpAddr::V4(address), 0) => {
            let [a, b, c, d] = address.octets();
            let text = format!("{a},{b},{c},{d},{},{}", port >> 8, port & 255);
            format!("227 {begin}({text}){end}\r\n")
        }
        (address, 1) => {
            let family = if address.is_ipv4() { 1 } else { 2 };
            format!("EPRT |{family}|{address}|{port}|\r\n")
        }
        (_, _) => format!("229 {begin}(|||{port}|){end}\r\n"),
    };
    text.into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_rewritten_packet_is_the_one_that_would_have_been_sent_with_the_new_text(
        (spec, [old, new]) in endpoints::<4>().prop_flat_map(|[source, destination, old, new]| {
            (between(source, destination), Just([old, new]))
        }),
        kind in any::<u8>(),
        begin in "[a-zA-Z ]{0,20}",
        end in "[a-zA-Z. ]{0,20}",
        more in prop::collection::vec(any::<u8>(), 0..40),
        room in (0usize..80, 0usize..80),
        is_partial in any::<bool>(),
    ) {
        prop_assume!(old.port() != 0 && new.port() != 0);
        let with = |at: SocketAddr, padding| {
            let mut payload = announcement(at, kind, &begin, &end);
            payload.extend_from_slice(&more);
            Spec { transport: Transport::Tcp, payload, padding, ..spec.clone() }.build()
        };
        let expected = with(new, 0);
        let mut frame = with(old, spec.padding);
        let headers = parse(&frame).unwrap();
        if is_partial {
            let sum = headers.pseudo_header().folded();
            frame[headers.l4 + 16..headers.l4 + 18].copy_from_slice(&sum.to_be_bytes());
        }
        let growth = expected.len() as isize - headers.end as isize;
        match rewritten(&frame, room, new) {
            Ok((mut found, change)) => {
                prop_assert_eq!(change, growth);
                if is_partial {
                    let headers = parse(&found).unwrap();
                    let partial = partial(&found, &headers).expect("still partial");
                    complete(&mut found, partial, headers.end);
                }
                prop_assert_eq!(&found, &expected);
                assert_checksums(&found);
            }
            Err(error) => {
                prop_assert_eq!(error, NotRewritten::NoRoom);
                let behind = (frame.len() - headers.end + room.1) as isize;
                prop_assert!(growth > behind && growth > room.0 as isize);
            }
        }
    }
}

fn passive_reply() -> Vec<u8> {
    let line = b"227 Entering Passive Mode (10,0,0,11,195,80)\r\n";
    segment(SERVER, CLIENT, tcp(1, 1), line)
}

#[test]
fn a_damaged_segment_is_not_given_a_right_checksum() {
    let mut frame = passive_reply();
    // In the port: `80` becomes `81`.
    let at = frame.len() - 4;
    frame[at] ^= 1;
    assert_eq!(rewritten(&frame, (64, 64), VIP.parse().unwrap()), Err(NotRewritten::Checksum));
}

#[test]
fn an_address_of_the_other_family_is_refused_where_the_form_has_none() {
    let result = rewritten(&passive_reply(), (64, 64), VIP6.parse().unwrap());
    assert_eq!(result, Err(NotRewritten::Family));
    let line = b"EPRT |1|198.51.100.7|40001|\r\n";
    let frame = segment(CLIENT, VIP, tcp(1, 1), line);
    let (found, _) = rewritten(&frame, (64, 64), "[2001:db8::1]:9".parse().unwrap()).unwrap();
    assert_eq!(contents(&found).2, "EPRT |2|2001:db8::1|9|\r\n");
}

#[test]
fn a_packet_that_ip_cannot_make_longer_is_refused() {
    let mut data = b"227 Entering Passive Mode (10,0,0,11,195,80)\r\n".to_vec();
    data.resize(65535 - 20 - 20, b'x');
    let frame = segment(SERVER, CLIENT, tcp(1, 1), &data);
    let result = rewritten(&frame, (64, 64), "192.0.2.100:50000".parse().unwrap());
    assert_eq!(result.map(|_| ()), Err(NotRewritten::NoRoom));
}

#[test]
fn an_announcement_of_another_packet_is_refused() {
    let mut chunk = chunk(&segment(SERVER, CLIENT, tcp(1, 1), b"short"), 0, 64);
    let len = chunk.len() - 64;
    let mut packet = Packet::new(&mut chunk, 0, len);
    let mut headers = parse(packet.bytes()).unwrap();
    let found = reply(b"227 Entering Passive Mode (10,0,0,11,195,80)\r\n").unwrap();
    let result = rewrite(&mut packet, &mut headers, &found, ip(VIP), 1, None);
    assert_eq!(result, Err(NotRewritten::Outside));
    let spec = Spec::new(Transport::Udp, SERVER, CLIENT);
    let mut frame = spec.build();
    let len = frame.len();
    let mut headers: Headers = parse(&frame).unwrap();
    let mut packet = Packet::new(&mut frame, 0, len);
    let result = rewrite(&mut packet, &mut headers, &found, ip(VIP), 1, None);
    assert_eq!(result, Err(NotRewritten::Outside));
}

/// Options of a TCP header: SACK blocks at an odd or even place, among others.
fn sack(before: &[u8], blocks: &[(u32, u32)]) -> Vec<u8> {
    let mut options = before.to_vec();
    options.extend([5, 2 + 8 * blocks.len() as u8]);
    for (left, right) in blocks {
        options.extend(left.to_be_bytes());
        options.extend(right.to_be_bytes());
    }
    options
}

#[test]
fn acknowledgement_and_sack_become_the_senders_wherever_the_option_stands() {
    let mut replies = SequenceAdjustment::default();
    assert!(replies.alter(1000, 48, 51));
    let timestamp = [8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
    for before in [&[1, 1][..], &[1], &[], &timestamp, &[1, 8, 10, 5, 10, 0, 0, 0, 0, 0, 0]] {
        for (from, to) in [(CLIENT, VIP), (CLIENT6, VIP6)] {
            let make = |acknowledgement, blocks: &[(u32, u32)]| {
                let mut header = tcp(77, acknowledgement);
                header.set_options_raw(&sack(before, blocks)).unwrap();
                segment(from, to, header, b"data")
            };
            let mut frame = make(1051, &[(1151, 1251), (2051, 2052)]);
            let headers = parse(&frame).unwrap();
            adjust_acknowledgement(&mut frame, &headers, &replies, None);
            assert_eq!(frame, make(1048, &[(1148, 1248), (2048, 2049)]), "{before:?}");
        }
    }
}

#[test]
fn a_sequence_number_is_adjusted_with_its_checksum_or_without_a_partial_one() {
    let mut replies = SequenceAdjustment::default();
    assert!(replies.alter(1000, 48, 51));
    let mut frame = segment(SERVER, CLIENT, tcp(1048, 5), b"226 done\r\n");
    let headers = parse(&frame).unwrap();
    adjust_sequence(&mut frame, &headers, &replies, None);
    assert_eq!(frame, segment(SERVER, CLIENT, tcp(1051, 5), b"226 done\r\n"));

    let mut frame = segment(SERVER, CLIENT, tcp(1048, 5), b"226 done\r\n");
    let sum = headers.pseudo_header().folded();
    frame[headers.l4 + 16..headers.l4 + 18].copy_from_slice(&sum.to_be_bytes());
    let left = partial(&frame, &headers);
    adjust_sequence(&mut frame, &headers, &replies, left);
    complete(&mut frame, left.expect("partial"), headers.end);
    assert_eq!(contents(&frame), (1051, 5, "226 done\r\n".to_owned()));
}

#[test]
fn a_number_that_does_not_count_is_left_alone() {
    let mut replies = SequenceAdjustment::default();
    assert!(replies.alter(0, 48, 51));
    let mut header = tcp(1, 1051);
    header.ack = false;
    let before = segment(CLIENT, VIP, header, b"");
    let mut frame = before.clone();
    adjust_acknowledgement(&mut frame, &parse(&before).unwrap(), &replies, None);
    assert_eq!(frame, before, "without ACK");
    let before = Spec::new(Transport::Udp, SERVER, CLIENT).build();
    let mut frame = before.clone();
    adjust_sequence(&mut frame, &parse(&before).unwrap(), &replies, None);
    assert_eq!(frame, before, "not TCP");
}

proptest! {
    #[test]
    fn any_options_are_walked_without_panic_and_the_checksum_stays_right(
        options in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(vec![0, 1, 2, 5, 10, 18, 34])],
            0..=40,
        ),
        numbers in any::<(u32, u32)>(),
        position in any::<u32>(),
    ) {
        let mut replies = SequenceAdjustment::default();
        prop_assert!(replies.alter(position, 48, 51));
        let mut header = tcp(numbers.0, numbers.1);
        header.set_options_raw(&options).unwrap();
        let mut frame = segment(CLIENT, VIP, header, b"x");
        let headers = parse(&frame).unwrap();
        adjust_acknowledgement(&mut frame, &headers, &replies, None);
        adjust_sequence(&mut frame, &headers, &replies, None);
        assert_checksums(&frame);
        // Partial or damaged: never more than numbers change.
        frame.truncate(frame.len() - 1);
        adjust_acknowledgement(&mut frame, &headers, &replies, None);
    }
}

//! Control connections as a director would see them.

use super::*;

/// A director's view of one control connection: `Control`, and packets in chunks with some room.
struct Bed {
    control: Control,
    client: &'static str,
    server: &'static str,
    vip: &'static str,
}

impl Bed {
    fn v4() -> Bed {
        Bed { control: Control::default(), client: CLIENT, server: SERVER, vip: VIP }
    }

    fn v6() -> Bed {
        Bed { control: Control::default(), client: CLIENT6, server: SERVER6, vip: VIP6 }
    }

    /// A segment from the client: what it announces, and as what it goes to the server.
    fn client(&mut self, header: TcpHeader, data: &str) -> (Option<Expected>, (u32, u32, String)) {
        let mut frame = segment(self.client, self.vip, header, data.as_bytes());
        let headers = parse(&frame).unwrap();
        let expected = self.control.from_client(&mut frame, &headers, None);
        (expected, contents(&frame))
    }

    /// A segment from the server: what becomes of it, and as what it goes to the client.
    fn server(&mut self, header: TcpHeader, data: &str) -> (Outcome, (u32, u32, String)) {
        let mut frame = segment(self.server, self.client, header, data.as_bytes());
        let len = frame.len();
        frame.resize(len + 32, 0);
        let mut packet = Packet::new(&mut frame, 0, len);
        let mut headers = parse(packet.bytes()).unwrap();
        let (server, vip) = (ip(self.server), ip(self.vip));
        let outcome = self.control.from_server(&mut packet, &mut headers, server, vip, None);
        assert_eq!(parse(packet.bytes()), Ok(headers), "headers must follow the frame");
        (outcome, contents(packet.bytes()))
    }
}

const REPLY: &str = "227 Entering Passive Mode (10,0,0,11,195,80)\r\n";
const REWRITTEN: &str = "227 Entering Passive Mode (192,0,2,100,195,80)\r\n";
const LONGER: u32 = 2;

fn passive() -> Outcome {
    Outcome::Forward(Some(Expected::Passive { server: (ip(SERVER), 50000) }))
}

fn after(text: &str) -> u32 {
    text.len() as u32
}

#[test]
fn a_passive_reply_is_rewritten_and_both_sides_count_on() {
    let mut bed = Bed::v4();
    bed.server(tcp(100, 0), "220 ready\r\n");
    let (expected, _) = bed.client(tcp(500, 111), "PASV\r\n");
    assert_eq!(expected, None);
    let (outcome, sent) = bed.server(tcp(111, 506), REPLY);
    assert_eq!(outcome, passive());
    assert_eq!(sent, (111, 506, REWRITTEN.to_owned()));
    // The client has it all; the server is told so in its own numbers.
    let next = 111 + after(REPLY);
    let (_, (_, acknowledgement, _)) = bed.client(tcp(506, next + LONGER), "LIST\r\n");
    assert_eq!(acknowledgement, next);
    let (outcome, sent) = bed.server(tcp(next, 512), "150 here\r\n");
    assert_eq!(outcome, Outcome::Forward(None));
    assert_eq!(sent, (next + LONGER, 512, "150 here\r\n".to_owned()));
}

#[test]
fn a_repeated_reply_is_rewritten_again_even_with_what_stood_around_it() {
    let mut bed = Bed::v4();
    bed.server(tcp(100, 0), "220 ready\r\n");
    bed.client(tcp(500, 100), "PASV\r\n");
    bed.server(tcp(111, 506), REPLY);
    bed.server(tcp(111 + after(REPLY), 506), "150 a\r\n");
    assert_eq!(bed.server(tcp(111, 506), REPLY), (passive(), (111, 506, REWRITTEN.to_owned())));
    let (outcome, sent) = bed.server(tcp(100, 506), &format!("220 ready\r\n{REPLY}150 a\r\n"));
    assert_eq!(outcome, passive());
    assert_eq!(sent, (100, 506, format!("220 ready\r\n{REWRITTEN}150 a\r\n")));
}

#[test]
fn part_of_a_rewritten_reply_never_passes_nor_does_another_in_its_place() {
    let mut bed = Bed::v4();
    bed.client(tcp(500, 100), "PASV\r\n");
    bed.server(tcp(100, 506), REPLY);
    assert_eq!(bed.server(tcp(100, 506), &REPLY[..20]).0, Outcome::Torn);
    assert_eq!(bed.server(tcp(120, 506), &REPLY[20..]).0, Outcome::Torn);
    let other = REPLY.replace("10,0,0,11", "10,9,9,91");
    assert_eq!(bed.server(tcp(100, 506), &other.replace("227", "226")).0, Outcome::Torn);
    // Of another length when rewritten: the numbers behind it would be wrong.
    let other = REPLY.replace("195,80)", "1,1) .. ");
    assert_eq!(other.len(), REPLY.len() + 1);
    assert_eq!(bed.server(tcp(100, 506), &other).0, Outcome::Torn);
}

#[test]
fn a_segment_ahead_of_an_awaited_reply_waits_for_it() {
    let mut bed = Bed::v4();
    bed.server(tcp(100, 0), "220 ready\r\n");
    bed.client(tcp(500, 111), "PASV\r\n");
    let ahead = 111 + after(REPLY);
    assert_eq!(bed.server(tcp(ahead, 506), "150 a\r\n").0, Outcome::Early);
    assert_eq!(bed.server(tcp(111, 506), REPLY).0, passive());
    let (outcome, (sequence, _, _)) = bed.server(tcp(ahead, 506), "150 a\r\n");
    assert_eq!((outcome, sequence), (Outcome::Forward(None), ahead + LONGER));
}

#[test]
fn without_a_reply_to_wait_for_segments_pass_in_any_order() {
    let mut bed = Bed::v4();
    bed.server(tcp(100, 0), "220-a\r\n");
    assert_eq!(bed.server(tcp(114, 0), "220 c\r\n").0, Outcome::Forward(None));
    assert_eq!(bed.server(tcp(107, 0), "220-b\r\n").0, Outcome::Forward(None));
}

#[test]
fn a_reply_that_nobody_asked_for_is_not_rewritten() {
    let mut bed = Bed::v4();
    let unchanged = (Outcome::Forward(None), (100, 506, REPLY.to_owned()));
    assert_eq!(bed.server(tcp(100, 506), REPLY), unchanged);
    // Nor is one that passed before the client asked.
    bed.client(tcp(500, 100), "PASV\r\n");
    assert_eq!(bed.server(tcp(100, 506), REPLY), unchanged);
}

#[test]
fn a_request_that_is_withdrawn_has_no_reply_rewritten_but_the_former_ones() {
    let mut bed = Bed::v4();
    bed.client(tcp(500, 100), "PASV\r\n");
    bed.server(tcp(100, 506), REPLY);
    bed.client(tcp(506, 100 + after(REWRITTEN)), "PASV\r\n");
    bed.control.withdraw();
    let next = 100 + after(REPLY);
    let (outcome, sent) = bed.server(tcp(next, 512), REPLY);
    assert_eq!(outcome, Outcome::Forward(None));
    assert_eq!(sent, (next + LONGER, 512, REPLY.to_owned()), "numbers are still adjusted");
    assert_eq!(bed.server(tcp(100, 512), REPLY), (passive(), (100, 512, REWRITTEN.to_owned())));
}

#[test]
fn each_of_several_passive_replies_is_rewritten() {
    let mut bed = Bed::v4();
    let mut next = 0u32.wrapping_sub(60);
    let mut seen = next;
    for _ in 0..10 {
        bed.client(tcp(500, seen), "PASV\r\n");
        let (outcome, sent) = bed.server(tcp(next, 1), REPLY);
        assert_eq!(outcome, passive());
        assert_eq!(sent, (seen, 1, REWRITTEN.to_owned()));
        next = next.wrapping_add(after(REPLY));
        seen = seen.wrapping_add(after(REWRITTEN));
        let (_, (_, acknowledgement, _)) = bed.client(tcp(500, seen), "");
        assert_eq!(acknowledgement, next);
    }
}

#[test]
fn an_extended_reply_keeps_its_text_and_announces_the_servers_port() {
    for mut bed in [Bed::v4(), Bed::v6()] {
        let line = "229 Entering Extended Passive Mode (|||50000|)\r\n";
        bed.client(tcp(500, 100), "EPSV\r\n");
        let (outcome, sent) = bed.server(tcp(100, 506), line);
        let server = (ip(bed.server), 50000);
        assert_eq!(outcome, Outcome::Forward(Some(Expected::Passive { server })));
        assert_eq!(sent, (100, 506, line.to_owned()));
        assert_eq!(bed.server(tcp(100, 506), line).0, outcome, "and again when repeated");
    }
}

#[test]
fn an_active_command_announces_the_client_and_goes_on_as_it_is() {
    let line = "PORT 198,51,100,7,195,80\r\n";
    let mut bed = Bed::v4();
    bed.client(tcp(400, 1), "PASV\r\n");
    let (expected, sent) = bed.client(tcp(500, 1), line);
    assert_eq!(expected, Some(Expected::Active { client: (ip(CLIENT), 50000) }));
    assert_eq!(sent, (500, 1, line.to_owned()));
    // It also ends the wait for a passive reply.
    assert_eq!(bed.server(tcp(100, 506), REPLY).0, Outcome::Forward(None));

    let line = "EPRT |2|2001:db8::7|50000|\r\n";
    let (expected, _) = Bed::v6().client(tcp(500, 1), line);
    assert_eq!(expected, Some(Expected::Active { client: (ip(CLIENT6), 50000) }));
    assert_eq!(Bed::v4().client(tcp(500, 1), line).0, None, "of the other family");
}

#[test]
fn a_reply_without_room_is_not_passed_on_and_not_counted() {
    let mut bed = Bed::v4();
    bed.client(tcp(500, 100), "PASV\r\n");
    let mut frame = segment(SERVER, CLIENT, tcp(100, 506), REPLY.as_bytes());
    let len = frame.len();
    let mut packet = Packet::new(&mut frame, 0, len);
    let mut headers = parse(packet.bytes()).unwrap();
    let outcome = bed.control.from_server(&mut packet, &mut headers, ip(SERVER), ip(VIP), None);
    assert_eq!(outcome, Outcome::Refused(NotRewritten::NoRoom));
    assert_eq!(bed.server(tcp(100, 506), REPLY).0, passive(), "the server repeats it");
}

#[test]
fn handshake_and_end_are_counted() {
    let mut bed = Bed::v4();
    let mut syn = tcp(99, 500);
    syn.syn = true;
    assert_eq!(bed.server(syn, "").0, Outcome::Forward(None));
    bed.client(tcp(500, 100), "PASV\r\n");
    assert_eq!(bed.server(tcp(100, 506), REPLY).0, passive());
    let mut fin = tcp(100 + after(REPLY), 506);
    fin.fin = true;
    let (outcome, (sequence, _, _)) = bed.server(fin, "");
    assert_eq!((outcome, sequence), (Outcome::Forward(None), 100 + after(REWRITTEN)));
    let (_, (_, acknowledgement, _)) = bed.client(tcp(506, 101 + after(REWRITTEN)), "");
    assert_eq!(acknowledgement, 101 + after(REPLY));
}

#[test]
fn fragments_and_other_protocols_pass() {
    let mut bed = Bed::v4();
    bed.client(tcp(500, 100), "PASV\r\n");
    let mut spec = Spec::new(Transport::Tcp, SERVER, CLIENT);
    spec.payload = REPLY.as_bytes().to_vec();
    for mut frame in [spec.build_fragment(0, true), spec.build_fragment(24, false)] {
        let before = frame.clone();
        let len = frame.len();
        let mut packet = Packet::new(&mut frame, 0, len);
        let mut headers = parse(packet.bytes()).unwrap();
        let outcome = bed.control.from_server(&mut packet, &mut headers, ip(SERVER), ip(VIP), None);
        assert_eq!(outcome, Outcome::Forward(None));
        assert_eq!(packet.bytes(), before);
    }
    let mut frame = segment(CLIENT, VIP, tcp(1, 1), b"");
    frame[23] = u8::from(IpNumber::UDP);
    let _ = parse(&frame).map(|headers| bed.control.from_client(&mut frame, &headers, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn damaged_segments_are_handled_and_leave_headers_that_follow_the_frame(
        segments in prop::collection::vec(
            (
                any::<bool>(),
                prop::sample::select(vec!["PASV\r\n", REPLY, "PORT 1,2,3,4,5,6\r\n", "229 (|||9|)\n", ""]),
                90u32..200,
                prop::collection::vec((0usize..120, any::<u8>()), 0..4),
            ),
            1..12,
        ),
        mended in any::<bool>(),
    ) {
        let mut bed = Bed::v4();
        for (from_client, data, sequence, damage) in segments {
            let (from, to) = if from_client { (CLIENT, VIP) } else { (SERVER, CLIENT) };
            let mut frame = segment(from, to, tcp(sequence, sequence), data.as_bytes());
            for (at, value) in damage {
                // Behind the IP header, whose checksum would refuse it.
                if let Some(byte) = frame.get_mut(34 + at) {
                    *byte = value;
                }
            }
            let Ok(mut headers) = parse(&frame) else { continue };
            if mended {
                frame[50..52].copy_from_slice(&headers.pseudo_header().folded().to_be_bytes());
            }
            let partial = partial(&frame, &headers);
            let len = frame.len();
            frame.resize(len + 8, 0);
            let mut packet = Packet::new(&mut frame, 0, len);
            if from_client {
                bed.control.from_client(packet.bytes_mut(), &headers, partial);
            } else {
                let (server, vip) = (ip(SERVER), ip(VIP));
                bed.control.from_server(&mut packet, &mut headers, server, vip, partial);
            }
            prop_assert_eq!(parse(packet.bytes()), Ok(headers));
        }
    }
}

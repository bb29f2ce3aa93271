//! The table cell by cell against the reference's, and the reading of chunks.

use super::*;

/// The kernel's table as text: one row per direction and event.
const REFERENCE: &str = "\
| dir | event | NO | I1 | IN | CS | CR | CW | CO | CE | ES | SS | SR | SA | RJ | CL |
| IN | data | ES | I1 | IN | CS | CR | CW | CO | CE | ES | SS | SR | SA | RJ | CL |
| | init | I1 | IN | IN | CS | CR | CW | CO | CE | ES | SS | SR | SA | IN | IN |
| | init-ack | CW | CW | CW | CS | CR | CO | CO | CE | ES | SS | SR | SA | RJ | CL |
| | cookie-echo | CR | IN | IN | CR | CR | CW | CO | CE | ES | SS | SR | SA | RJ | CL |
| | cookie-ack | ES | I1 | IN | CS | CR | CW | CO | ES | ES | SS | SR | SA | RJ | CL |
| | shutdown | SR | I1 | IN | CS | CR | CW | CO | CE | SR | SS | SR | SA | RJ | CL |
| | shutdown-ack | CL | IN | IN | CS | CR | CW | CO | CE | ES | CL | SR | CL | RJ | CL |
| | shutdown-complete | CL | CL | CL | CS | CR | CW | CO | CE | ES | SS | SR | CL | RJ | CL |
| | error | CL | I1 | IN | CS | CR | CW | CO | CL | ES | SS | SR | SA | RJ | CL |
| | abort | CL | CL | CL | CL | CL | RJ | CL | CL | CL | CL | CL | CL | CL | CL |
| OUT | data | ES | I1 | IN | CS | CR | CW | CO | CE | ES | SS | SR | SA | RJ | CL |
| | init | CW | CW | CW | CW | CW | CW | CW | CW | ES | CW | CW | CW | CW | CW |
| | init-ack | CS | CS | CS | CS | CR | CW | CO | CE | ES | SS | SR | SA | RJ | CL |
| | cookie-echo | CE | CE | CE | CE | CE | CE | CE | CE | ES | SS | SR | SA | RJ | CL |
| | cookie-ack | ES | ES | ES | ES | ES | ES | ES | ES | ES | SS | SR | SA | RJ | CL |
| | shutdown | SS | SS | SS | SS | SS | SS | SS | SS | SS | SS | SR | SA | RJ | CL |
| | shutdown-ack | SA | SA | SA | SA | SA | CW | CO | CE | ES | SA | SA | SA | RJ | CL |
| | shutdown-complete | CL | I1 | IN | CS | CR | CW | CO | CE | ES | SS | SR | SA | RJ | CL |
| | error | CL | CL | CL | CL | CL | CW | CO | CE | ES | SS | SR | SA | RJ | CL |
| | abort | CL | RJ | CL | CL | CL | CL | CL | CL | CL | CL | CL | CL | CL | CL |
| IN-ONLY | data | ES | I1 | IN | CS | CR | ES | CO | CE | ES | SS | SR | SA | RJ | CL |
| | init | I1 | IN | IN | IN | IN | IN | CO | CE | ES | SS | SR | SA | IN | IN |
| | init-ack | CE | CE | CE | CE | CE | CE | CO | CE | ES | SS | SR | SA | RJ | CL |
| | cookie-echo | ES | ES | ES | ES | ES | ES | CO | CE | ES | SS | SR | SA | RJ | CL |
| | cookie-ack | ES | I1 | IN | ES | ES | CW | ES | ES | ES | SS | SR | SA | RJ | CL |
| | shutdown | SR | I1 | IN | CS | CR | CW | CO | CE | SR | SS | SR | SA | RJ | CL |
| | shutdown-ack | CL | IN | IN | CS | CR | CW | CO | CE | CL | CL | SR | CL | RJ | CL |
| | shutdown-complete | CL | CL | CL | CL | CL | CW | CO | CE | ES | SS | CL | CL | RJ | CL |
| | error | CL | I1 | IN | CS | CR | CW | CO | CE | ES | SS | SR | SA | RJ | CL |
| | abort | CL | CL | CL | CL | CL | RJ | CL | CL | CL | CL | CL | CL | CL | CL |";

/// The two letters that the reference has for a state.
fn letters(state: SctpState) -> &'static str {
    match state {
        SctpState::None => "NO",
        SctpState::Init1 => "I1",
        SctpState::Init => "IN",
        SctpState::CookieSent => "CS",
        SctpState::CookieReplied => "CR",
        SctpState::CookieWait => "CW",
        SctpState::Cookie => "CO",
        SctpState::CookieEchoed => "CE",
        SctpState::Established => "ES",
        SctpState::ShutdownSent => "SS",
        SctpState::ShutdownReceived => "SR",
        SctpState::ShutdownAckSent => "SA",
        SctpState::Rejected => "RJ",
        SctpState::Closed => "CL",
    }
}

/// A packet that begins with this chunk.
fn packet(kind: u8) -> Vec<u8> {
    let mut packet = vec![0; 12];
    packet.extend([kind, 0, 0, 4]);
    packet
}

/// The event of a packet that has a chunk.
fn event(packet: &[u8]) -> Event {
    Chunks::read(packet).unwrap().event()
}

/// The reference's word for an event, as a packet.
fn packet_of(event: &str) -> Vec<u8> {
    packet(match event {
        "data" => 0,
        "init" => 1,
        "init-ack" => 2,
        "abort" => 6,
        "shutdown" => 7,
        "shutdown-ack" => 8,
        "error" => 9,
        "cookie-echo" => 10,
        "cookie-ack" => 11,
        "shutdown-complete" => 14,
        other => panic!("no event {other}"),
    })
}

#[test]
fn every_cell_of_the_table_is_the_references() {
    let mut rows = REFERENCE
        .lines()
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let columns: Vec<SctpState> = rows.next().unwrap()[2..]
        .iter()
        .map(|head| *SctpState::ALL.iter().find(|state| letters(**state) == *head).unwrap())
        .collect();
    assert_eq!(columns, SctpState::ALL, "the enum's order is the table's");
    let mut direction = None;
    let mut cells = 0;
    for row in rows {
        direction = match row[0] {
            "IN" => Some(Direction::Input),
            "OUT" => Some(Direction::Output),
            "IN-ONLY" => Some(Direction::InputOnly),
            "" => direction,
            other => panic!("no direction {other}"),
        };
        let direction = direction.unwrap();
        let event = event(&packet_of(row[1]));
        assert_eq!(row.len(), 2 + columns.len());
        for (state, expected) in columns.iter().zip(&row[2..]) {
            let found = letters(next(direction, *state, event));
            assert_eq!(found, *expected, "{direction:?} {event:?} in {state:?}");
            cells += 1;
        }
    }
    assert_eq!(cells, 3 * 10 * 14);
}

#[test]
fn names_and_timeouts_are_the_kernels() {
    let expected = "NONE 2, INIT1 4, INIT 61, C-SENT 61, C-REPLIED 61, C-WAIT 61, COOKIE 61, \
                    C-ECHOED 61, ESTABLISHED 900, S-SENT 61, S-RECEIVED 61, S-ACK-SENT 61, \
                    REJECTED 4, CLOSED 61";
    let found =
        SctpState::ALL.map(|state| format!("{} {}", state.name(), state.timeout().as_secs()));
    assert_eq!(found.join(", "), expected);
}

#[test]
fn only_an_established_association_is_active_and_only_a_closed_one_reused() {
    for state in SctpState::ALL {
        assert_eq!(state.is_active(), state == SctpState::Established);
        assert_eq!(state.may_be_reused(), state == SctpState::Closed);
    }
}

#[test]
fn a_nat_association_is_opened_used_and_shut_down_by_the_client() {
    use Direction::{Input, Output};
    let steps = [
        (Input, chunk::INIT, SctpState::Init1),
        (Output, chunk::INIT_ACK, SctpState::CookieSent),
        (Input, chunk::COOKIE_ECHO, SctpState::CookieReplied),
        (Output, chunk::COOKIE_ACK, SctpState::Established),
        (Input, chunk::DATA, SctpState::Established),
        (Output, chunk::SACK, SctpState::Established),
        (Input, chunk::SHUTDOWN, SctpState::ShutdownReceived),
        (Output, chunk::SHUTDOWN_ACK, SctpState::ShutdownAckSent),
        (Input, chunk::SHUTDOWN_COMPLETE, SctpState::Closed),
    ];
    let mut state = SctpState::None;
    for (direction, kind, expected) in steps {
        state = next(direction, state, event(&packet(kind)));
        assert_eq!(state, expected, "after chunk {kind}");
    }
}

#[test]
fn a_half_seen_association_stands_when_the_client_returns_the_cookie() {
    let opened = next(Direction::InputOnly, SctpState::None, Event::Init);
    let state = next(Direction::InputOnly, opened, Event::CookieEcho);
    assert_eq!(state, SctpState::Established);
}

#[test]
fn chunks_without_a_row_of_their_own_count_as_data() {
    for kind in [3, 4, 5, 12, 13, 15, 64, 128, 192, 193, 255] {
        assert_eq!(event(&packet(kind)), Event::Data, "chunk {kind}");
    }
}

#[test]
fn an_abort_right_behind_a_cookie_is_an_abort() {
    for kind in [chunk::COOKIE_ECHO, chunk::COOKIE_ACK] {
        let mut bytes = packet(kind);
        // A length of 5 is padded to 8.
        bytes[15] = 5;
        bytes.extend([0xff, 0, 0, 0]);
        bytes.extend([chunk::ABORT, 0, 0, 4]);
        assert_eq!(event(&bytes), Event::Abort);
        assert_ne!(event(&bytes[..23]), Event::Abort, "the second header is cut");
        bytes[20] = chunk::DATA;
        assert_ne!(event(&bytes), Event::Abort);
        // Shorter than its own header: what follows cannot be found.
        bytes[15] = 3;
        bytes[16] = chunk::ABORT;
        assert_ne!(event(&bytes), Event::Abort);
    }
    let mut bytes = packet(chunk::DATA);
    bytes.extend([chunk::ABORT, 0, 0, 4]);
    assert_eq!(event(&bytes), Event::Data, "an abort may not stand behind data");
}

#[test]
fn only_init_opens_unless_sloppy() {
    for kind in 0..=255 {
        let chunks = Chunks::read(&packet(kind)).unwrap();
        assert_eq!(chunks.opens(), kind == chunk::INIT);
        assert_eq!(chunks.may_be_scheduled(false), kind == chunk::INIT);
        assert_eq!(chunks.may_be_scheduled(true), kind != chunk::ABORT);
    }
}

#[test]
fn a_packet_without_a_whole_chunk_header_does_nothing() {
    for len in 0..16 {
        assert_eq!(Chunks::read(&packet(chunk::INIT)[..len]), None);
    }
    // A chunk that says it is 65535 bytes long.
    let mut bytes = packet(chunk::COOKIE_ACK);
    bytes[14..16].copy_from_slice(&[0xff, 0xff]);
    assert_eq!(event(&bytes), Event::CookieAck);
}

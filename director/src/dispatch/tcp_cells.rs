//! The TCP tables of [`tcp`](super::tcp), cell by cell against the reference's.

use super::state::State;
use super::tcp::{Direction, next};

/// The kernel's usual table as text: one row per direction and event.
const REFERENCE: &str = "\
| direction | event | NO | ES | SS | SR | FW | TW | CL | CW | LA | LI | SA |
| INPUT | syn | SR | ES | ES | SR | SR | SR | SR | SR | SR | SR | SR |
| | fin | CL | CW | SS | TW | TW | TW | CL | CW | LA | LI | TW |
| | ack | ES | ES | SS | ES | FW | TW | CL | CW | CL | LI | ES |
| | rst | CL | CL | CL | SR | CL | CL | CL | CL | LA | LI | SR |
| OUTPUT | syn | SS | ES | SS | SR | SS | SS | SS | SS | SS | LI | SR |
| | fin | TW | FW | SS | TW | FW | TW | CL | TW | LA | LI | TW |
| | ack | ES | ES | SS | ES | FW | TW | CL | CW | LA | ES | ES |
| | rst | CL | CL | SS | CL | CL | TW | CL | CL | CL | CL | CL |
| INPUT-ONLY | syn | SR | ES | ES | SR | SR | SR | SR | SR | SR | SR | SR |
| | fin | CL | FW | SS | TW | FW | TW | CL | CW | LA | LI | TW |
| | ack | ES | ES | SS | ES | FW | TW | CL | CW | CL | LI | ES |
| | rst | CL | CL | CL | SR | CL | CL | CL | CL | LA | LI | CL |";

/// Where the table of `secure_tcp` differs from it: direction, event, before, after.
const SECURE: &str = "\
INPUT syn SA SA
INPUT fin SA SA
INPUT ack SR SR
INPUT ack SA SA
INPUT rst SA CL
OUTPUT syn SR SA
OUTPUT syn SA SA
INPUT-ONLY syn NO SA
INPUT-ONLY syn FW SA
INPUT-ONLY syn TW SA
INPUT-ONLY syn CL SA
INPUT-ONLY syn CW SA
INPUT-ONLY syn LA SA
INPUT-ONLY syn LI SA
INPUT-ONLY syn SA SA";

/// The states of TCP and the two letters that the reference has for them.
const STATES: [(State, &str); 11] = [
    (State::None, "NO"),
    (State::Established, "ES"),
    (State::SynSent, "SS"),
    (State::SynRecv, "SR"),
    (State::FinWait, "FW"),
    (State::TimeWait, "TW"),
    (State::Close, "CL"),
    (State::CloseWait, "CW"),
    (State::LastAck, "LA"),
    (State::Listen, "LI"),
    (State::SynAck, "SA"),
];

fn state(letters: &str) -> State {
    STATES.iter().find(|(_, known)| *known == letters).expect("a state of the reference").0
}

/// Bits of the TCP flags byte (RFC 9293 section 3.1).
fn flag(event: &str) -> u8 {
    match event {
        "fin" => 0x01,
        "syn" => 0x02,
        "rst" => 0x04,
        "ack" => 0x10,
        other => panic!("no event {other}"),
    }
}

/// All flag bytes whose event is `event`: RST > SYN > FIN > ACK; PSH, URG, ECE and CWR are nothing.
fn flags_of(event: &str) -> impl Iterator<Item = u8> {
    const RANKS: [&str; 4] = ["rst", "syn", "fin", "ack"];
    let rank = RANKS.iter().position(|known| *known == event).unwrap();
    let outranking = RANKS[..rank].iter().fold(0, |mask, higher| mask | flag(higher));
    let own = flag(event);
    (0..=255).filter(move |flags| flags & own != 0 && flags & outranking == 0)
}

/// Whether it is a direction's name, and which one.
fn direction(name: &str) -> Option<Direction> {
    match name {
        "INPUT" => Some(Direction::Input),
        "OUTPUT" => Some(Direction::Output),
        "INPUT-ONLY" => Some(Direction::InputOnly),
        _ => None,
    }
}

/// Every row of a table: direction, event, and the states after, by column.
fn rows(secure: bool) -> Vec<(Direction, &'static str, Vec<State>)> {
    let mut rows = usual_rows();
    for line in SECURE.lines().filter(|_| secure) {
        let words: Vec<&str> = line.split(' ').collect();
        let same = |row: &&mut (Direction, &str, Vec<State>)| {
            direction(words[0]) == Some(row.0) && row.1 == words[1]
        };
        let (_, _, after) = rows.iter_mut().find(same).expect("a row of the usual table");
        let column = STATES.iter().position(|(_, letters)| *letters == words[2]);
        after[column.expect("a column")] = state(words[3]);
    }
    rows
}

fn usual_rows() -> Vec<(Direction, &'static str, Vec<State>)> {
    let mut current = None;
    REFERENCE
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            if !cells[0].is_empty() {
                current = direction(cells[0]);
            }
            let after: Vec<State> = cells[2..].iter().map(|letters| state(letters)).collect();
            assert_eq!(after.len(), STATES.len());
            (current.expect("the first row names one"), cells[1], after)
        })
        .collect()
}

#[test]
fn every_cell_of_both_tables_is_the_references() {
    let head = REFERENCE.lines().next().unwrap();
    let columns: Vec<&str> = head.trim_matches('|').split('|').map(str::trim).skip(2).collect();
    assert_eq!(columns, STATES.map(|(_, letters)| letters));
    let mut cells = 0;
    for secure in [false, true] {
        for (direction, event, after) in rows(secure) {
            for ((before, _), expected) in STATES.into_iter().zip(after) {
                let found = next(secure, direction, before, flag(event));
                assert_eq!(found, expected, "{secure} {direction:?} {event} in {before:?}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 2 * 3 * 4 * 11);
}

#[test]
fn reset_outranks_syn_outranks_fin_outranks_ack_in_every_cell() {
    for secure in [false, true] {
        for (direction, event, after) in rows(secure) {
            for flags in flags_of(event) {
                for ((before, _), expected) in STATES.into_iter().zip(&after) {
                    let found = next(secure, direction, before, flags);
                    assert_eq!(
                        found, *expected,
                        "{secure} {direction:?} {flags:#04x} in {before:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_segment_with_none_of_the_four_closes_from_every_state() {
    for direction in [Direction::Input, Direction::Output, Direction::InputOnly] {
        for (before, _) in STATES {
            for secure in [false, true] {
                assert_eq!(next(secure, direction, before, 0), State::Close);
                assert_eq!(
                    next(secure, direction, before, 0x08 | 0x20 | 0x40 | 0x80),
                    State::Close
                );
            }
        }
    }
}

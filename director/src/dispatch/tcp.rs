//! TCP as the kernel's IPVS follows it: a literal table (`ip_vs_proto_tcp.c`'s behaviour,
//! as Debian's 6.1 has it).
//!
//! The director sees both directions only with NAT. With direct routing and tunnels it sees what
//! the client sends and nothing else: the rows `INPUT_ONLY` are for those connections.

use super::state::State;

/// Which way a packet goes, and whether the connection has another direction that we see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client; the server's packets pass here too.
    Input = 0,
    /// From the server.
    Output = 1,
    /// From the client; the server answers around us.
    InputOnly = 2,
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Whether a segment of a connection that has ended begins a new one: any with SYN, as in the
/// kernel, which does not look at ACK here.
pub fn opens(flags: u8) -> bool {
    flags & SYN != 0
}

/// Whether a segment ends its connection at once.
pub fn resets(flags: u8) -> bool {
    flags & RST != 0
}

/// Whether a segment without a connection may be scheduled: it has SYN and no RST; when `sloppy`
/// (`sloppy_tcp` of the kernel), no RST is enough.
pub fn may_be_scheduled(flags: u8, sloppy: bool) -> bool {
    flags & RST == 0 && (sloppy || flags & SYN != 0)
}

use State::{
    Close as CL, CloseWait as CW, Established as ES, FinWait as FW, LastAck as LA, Listen as LI,
    SynAck as SA, SynRecv as SR, SynSent as SS, TimeWait as TW,
};

/// Rows: event (syn, fin, ack, rst) within direction. Columns: the state before.
type Table = [[[State; 11]; 4]; 3];

const USUAL: Table = [
    // INPUT
    //   NO  ES  SS  SR  FW  TW  CL  CW  LA  LI  SA
    [
        [SR, ES, ES, SR, SR, SR, SR, SR, SR, SR, SR], // SYN
        [CL, CW, SS, TW, TW, TW, CL, CW, LA, LI, TW], // FIN
        [ES, ES, SS, ES, FW, TW, CL, CW, CL, LI, ES], // ACK
        [CL, CL, CL, SR, CL, CL, CL, CL, LA, LI, SR], // RST
    ],
    // OUTPUT
    [
        [SS, ES, SS, SR, SS, SS, SS, SS, SS, LI, SR], // SYN
        [TW, FW, SS, TW, FW, TW, CL, TW, LA, LI, TW], // FIN
        [ES, ES, SS, ES, FW, TW, CL, CW, LA, ES, ES], // ACK
        [CL, CL, SS, CL, CL, TW, CL, CL, CL, CL, CL], // RST
    ],
    // INPUT_ONLY
    [
        [SR, ES, ES, SR, SR, SR, SR, SR, SR, SR, SR], // SYN
        [CL, FW, SS, TW, FW, TW, CL, CW, LA, LI, TW], // FIN
        [ES, ES, SS, ES, FW, TW, CL, CW, CL, LI, ES], // ACK
        [CL, CL, CL, SR, CL, CL, CL, CL, LA, LI, CL], // RST
    ],
];

/// The table of `secure_tcp`: half-open connections stay apart from established ones.
const SECURE: Table = [
    // INPUT
    //   NO  ES  SS  SR  FW  TW  CL  CW  LA  LI  SA
    [
        [SR, ES, ES, SR, SR, SR, SR, SR, SR, SR, SA], // SYN
        [CL, CW, SS, TW, TW, TW, CL, CW, LA, LI, SA], // FIN
        [ES, ES, SS, SR, FW, TW, CL, CW, CL, LI, SA], // ACK
        [CL, CL, CL, SR, CL, CL, CL, CL, LA, LI, CL], // RST
    ],
    // OUTPUT
    [
        [SS, ES, SS, SA, SS, SS, SS, SS, SS, LI, SA], // SYN
        [TW, FW, SS, TW, FW, TW, CL, TW, LA, LI, TW], // FIN
        [ES, ES, SS, ES, FW, TW, CL, CW, LA, ES, ES], // ACK
        [CL, CL, SS, CL, CL, TW, CL, CL, CL, CL, CL], // RST
    ],
    // INPUT_ONLY
    [
        [SA, ES, ES, SR, SA, SA, SA, SA, SA, SA, SA], // SYN
        [CL, FW, SS, TW, FW, TW, CL, CW, LA, LI, TW], // FIN
        [ES, ES, SS, ES, FW, TW, CL, CW, CL, LI, ES], // ACK
        [CL, CL, CL, SR, CL, CL, CL, CL, LA, LI, CL], // RST
    ],
];

/// The state after a segment with `flags`; `secure`: by the table of `secure_tcp`. RST outranks SYN, SYN outranks FIN, FIN outranks ACK; a
/// segment with none of them closes.
pub fn next(secure: bool, direction: Direction, state: State, flags: u8) -> State {
    let event = if flags & RST != 0 {
        3
    } else if flags & SYN != 0 {
        0
    } else if flags & FIN != 0 {
        1
    } else if flags & ACK != 0 {
        2
    } else {
        return State::Close;
    };
    let table = if secure { &SECURE } else { &USUAL };
    match column(state) {
        Some(column) => table[direction as usize][event][column],
        // Another protocol's state on a TCP connection: cannot be, and closing is the safe answer.
        None => State::Close,
    }
}

/// The column of a state in the table: they stand in the order of their codes.
fn column(state: State) -> Option<usize> {
    let code = usize::from(state.code());
    (code < USUAL[0][0].len()).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(steps: &[(Direction, u8)]) -> State {
        steps
            .iter()
            .fold(State::None, |state, &(direction, flags)| next(false, direction, state, flags))
    }

    #[test]
    fn a_nat_connection_goes_through_the_handshake_and_both_closes() {
        use Direction::{Input, Output};
        let mut steps = vec![(Input, SYN)];
        assert_eq!(walk(&steps), State::SynRecv);
        steps.push((Output, SYN | ACK));
        assert_eq!(walk(&steps), State::SynRecv);
        steps.push((Input, ACK));
        assert_eq!(walk(&steps), State::Established);
        steps.push((Input, FIN | ACK));
        assert_eq!(walk(&steps), State::CloseWait);
        steps.push((Output, FIN | ACK));
        assert_eq!(walk(&steps), State::TimeWait);
        steps.push((Input, ACK));
        assert_eq!(walk(&steps), State::TimeWait);
    }

    #[test]
    fn a_half_seen_connection_waits_in_fin_wait_after_the_clients_fin() {
        use Direction::InputOnly;
        let steps = [(InputOnly, SYN), (InputOnly, ACK), (InputOnly, FIN | ACK), (InputOnly, ACK)];
        assert_eq!(walk(&steps), State::FinWait);
    }

    #[test]
    fn a_reset_outranks_every_other_flag() {
        assert_eq!(
            next(false, Direction::Input, State::Established, RST | SYN | FIN | ACK),
            State::Close
        );
    }

    #[test]
    fn a_segment_without_any_flag_closes() {
        assert_eq!(next(false, Direction::Input, State::Established, 0), State::Close);
    }

    #[test]
    fn only_a_syn_without_reset_opens_a_connection() {
        assert!(may_be_scheduled(SYN, false));
        assert!(!may_be_scheduled(SYN | RST, false));
        assert!(!may_be_scheduled(ACK, false));
        assert!(may_be_scheduled(ACK, true) && may_be_scheduled(0, true));
        assert!(!may_be_scheduled(SYN | RST, true));
        assert!(opens(SYN) && opens(SYN | ACK) && !opens(FIN | ACK));
    }
}

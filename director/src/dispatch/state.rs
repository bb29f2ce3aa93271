//! The protocol states of a connection, their names and timeouts.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use super::sctp::SctpState;
use crate::control::api::Timeouts as Settable;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Just made.
    None,
    /// TCP: both sides have spoken.
    Established,
    /// TCP: the server side opened.
    SynSent,
    /// TCP: the client's SYN has been seen.
    SynRecv,
    /// TCP: one side has closed.
    FinWait,
    /// TCP: both sides have closed.
    TimeWait,
    /// TCP: reset, or nothing sensible.
    Close,
    /// TCP: the client has closed.
    CloseWait,
    /// TCP: the last acknowledgement is due.
    LastAck,
    /// TCP: an expected connection (FTP data).
    Listen,
    /// TCP under attack: SYN+ACK seen.
    SynAck,
    /// UDP has only this one.
    Udp,
    /// SCTP has its own.
    Sctp(SctpState),
}

impl State {
    /// All but SCTP's.
    pub const PLAIN: [State; 12] = [
        State::None,
        State::Established,
        State::SynSent,
        State::SynRecv,
        State::FinWait,
        State::TimeWait,
        State::Close,
        State::CloseWait,
        State::LastAck,
        State::Listen,
        State::SynAck,
        State::Udp,
    ];

    /// A number below 32 that stands for it.
    pub fn code(self) -> u8 {
        match self {
            State::None => 0,
            State::Established => 1,
            State::SynSent => 2,
            State::SynRecv => 3,
            State::FinWait => 4,
            State::TimeWait => 5,
            State::Close => 6,
            State::CloseWait => 7,
            State::LastAck => 8,
            State::Listen => 9,
            State::SynAck => 10,
            State::Udp => 11,
            State::Sctp(state) => State::PLAIN.len() as u8 + state as u8,
        }
    }

    /// The state that a number stands for; [`State::None`] for one that stands for nothing.
    pub fn of_code(code: u8) -> State {
        let code = usize::from(code);
        match State::PLAIN.get(code) {
            Some(&state) => state,
            None => {
                let sctp = SctpState::ALL.get(code - State::PLAIN.len());
                sctp.map_or(State::None, |&state| State::Sctp(state))
            }
        }
    }

    /// The kernel's name, as `ipvsadm -L -c` prints it.
    pub fn name(self) -> &'static str {
        match self {
            State::None => "NONE",
            State::Established => "ESTABLISHED",
            State::SynSent => "SYN_SENT",
            State::SynRecv => "SYN_RECV",
            State::FinWait => "FIN_WAIT",
            State::TimeWait => "TIME_WAIT",
            State::Close => "CLOSE",
            State::CloseWait => "CLOSE_WAIT",
            State::LastAck => "LAST_ACK",
            State::Listen => "LISTEN",
            State::SynAck => "SYNACK",
            State::Udp => "UDP",
            State::Sctp(state) => state.name(),
        }
    }

    /// Whether `ActiveConn` counts it. UDP connections stay inactive, as in the kernel.
    pub fn is_active(self) -> bool {
        match self {
            State::Established | State::SynSent | State::SynRecv | State::SynAck => true,
            State::Sctp(state) => state.is_active(),
            _ => false,
        }
    }

    /// Whether both ends have shaken hands.
    pub fn is_established(self) -> bool {
        matches!(self, State::Established | State::Sctp(SctpState::Established))
    }

    /// Whether the ends are still shaking hands.
    pub fn is_embryonic(self) -> bool {
        match self {
            State::SynSent | State::SynRecv | State::SynAck => true,
            State::Sctp(state) => state.is_embryonic(),
            _ => false,
        }
    }

    /// Whether a packet that opens starts a new connection in place of one in this state, unless
    /// `conn_reuse_mode` is 0.
    pub fn may_be_reused(self) -> bool {
        match self {
            State::TimeWait | State::Close => true,
            State::Sctp(state) => state.may_be_reused(),
            _ => false,
        }
    }
}

/// What moves connections on: how long one lives after its last packet, by state (`ipvsadm --set`
/// changes three), and which of TCP's tables holds. The kernel too keeps both with the protocol.
#[derive(Debug)]
pub struct Timeouts {
    secure_tcp: AtomicBool,
    established: AtomicU32,
    fin_wait: AtomicU32,
    udp: AtomicU32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            secure_tcp: AtomicBool::new(false),
            established: AtomicU32::new(900),
            fin_wait: AtomicU32::new(120),
            udp: AtomicU32::new(300),
        }
    }
}

impl Timeouts {
    /// The same timeouts, apart from these.
    pub(super) fn fork(&self) -> Timeouts {
        let fork = Timeouts::default();
        fork.set(self.get());
        fork.set_secure_tcp(self.is_tcp_secure());
        fork
    }

    /// The timeout of `state`.
    pub fn of(&self, state: State) -> Duration {
        Duration::from_secs(self.seconds(state).into())
    }

    /// The same in seconds.
    #[inline]
    pub fn seconds(&self, state: State) -> u32 {
        match state {
            State::None => 2,
            State::Established => self.established.load(Relaxed),
            State::FinWait => self.fin_wait.load(Relaxed),
            State::SynSent | State::TimeWait | State::Listen | State::SynAck => 120,
            State::SynRecv | State::CloseWait => 60,
            State::Close => 10,
            State::LastAck => 30,
            State::Udp => self.udp.load(Relaxed),
            State::Sctp(state) => state.timeout().as_secs() as u32,
        }
    }

    /// Whether TCP connections follow the table against attacks.
    pub fn is_tcp_secure(&self) -> bool {
        self.secure_tcp.load(Relaxed)
    }

    /// Chooses TCP's table.
    pub fn set_secure_tcp(&self, secure: bool) {
        self.secure_tcp.store(secure, Relaxed);
    }

    /// Sets the three that can be set; 0 leaves one as it is.
    pub fn set(&self, new: Settable) {
        for (cell, value) in
            [(&self.established, new.tcp), (&self.fin_wait, new.tcp_fin), (&self.udp, new.udp)]
        {
            if value != 0 {
                cell.store(value, Relaxed);
            }
        }
    }

    /// The three that can be set.
    pub fn get(&self) -> Settable {
        Settable {
            tcp: self.established.load(Relaxed),
            tcp_fin: self.fin_wait.load(Relaxed),
            udp: self.udp.load(Relaxed),
        }
    }
}

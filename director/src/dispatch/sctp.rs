//! SCTP as the kernel's IPVS follows it: a literal table (`ip_vs_proto_sctp.c`'s behaviour,
//! as Debian's 6.1 has it).
//!
//! The states are the server's view of the association. As with [`tcp`](super::tcp), the rows
//! `INPUT_ONLY` are for connections whose server answers around us. Knows chunks; must not know
//! connections or services.

use std::time::Duration;

use forwarding::wire::sctp::{chunk, first_chunks};

use super::tcp::Direction;

/// State of an SCTP connection, in the order of the table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SctpState {
    /// Just made.
    None,
    /// The client's first INIT.
    Init1,
    /// The client has repeated its INIT.
    Init,
    /// The server has sent INIT ACK and waits for the cookie.
    CookieSent,
    /// The client has returned the cookie.
    CookieReplied,
    /// The server opens: it has sent INIT.
    CookieWait,
    /// The server opens: the client has sent INIT ACK.
    Cookie,
    /// The server opens: it has returned the cookie.
    CookieEchoed,
    /// The association stands.
    Established,
    /// The server ends it.
    ShutdownSent,
    /// The client ends it.
    ShutdownReceived,
    /// The server has answered the client's SHUTDOWN.
    ShutdownAckSent,
    /// INIT was answered with ABORT.
    Rejected,
    /// It is over.
    Closed,
}

impl SctpState {
    /// Every state, in the order of the table's columns.
    pub const ALL: [SctpState; 14] = [
        SctpState::None,
        SctpState::Init1,
        SctpState::Init,
        SctpState::CookieSent,
        SctpState::CookieReplied,
        SctpState::CookieWait,
        SctpState::Cookie,
        SctpState::CookieEchoed,
        SctpState::Established,
        SctpState::ShutdownSent,
        SctpState::ShutdownReceived,
        SctpState::ShutdownAckSent,
        SctpState::Rejected,
        SctpState::Closed,
    ];

    /// The kernel's name, as `ipvsadm -L -c` prints it.
    pub fn name(self) -> &'static str {
        match self {
            SctpState::None => "NONE",
            SctpState::Init1 => "INIT1",
            SctpState::Init => "INIT",
            SctpState::CookieSent => "C-SENT",
            SctpState::CookieReplied => "C-REPLIED",
            SctpState::CookieWait => "C-WAIT",
            SctpState::Cookie => "COOKIE",
            SctpState::CookieEchoed => "C-ECHOED",
            SctpState::Established => "ESTABLISHED",
            SctpState::ShutdownSent => "S-SENT",
            SctpState::ShutdownReceived => "S-RECEIVED",
            SctpState::ShutdownAckSent => "S-ACK-SENT",
            SctpState::Rejected => "REJECTED",
            SctpState::Closed => "CLOSED",
        }
    }

    /// Whether `ActiveConn` counts it: only an association that stands.
    pub fn is_active(self) -> bool {
        self == SctpState::Established
    }

    /// Whether the ends are still shaking hands.
    pub fn is_embryonic(self) -> bool {
        matches!(
            self,
            SctpState::Init1
                | SctpState::Init
                | SctpState::CookieSent
                | SctpState::CookieReplied
                | SctpState::CookieWait
                | SctpState::Cookie
                | SctpState::CookieEchoed
        )
    }

    /// How long a connection in this state lives after its last packet. `ipvsadm --set` changes
    /// none of them.
    pub fn timeout(self) -> Duration {
        Duration::from_secs(match self {
            SctpState::None => 2,
            SctpState::Init1 | SctpState::Rejected => 4,
            SctpState::Established => 900,
            // RTO.Max of RFC 9260 section 16 and a second.
            _ => 61,
        })
    }

    /// Whether a new INIT from the same client port starts a new connection in place of this one
    /// (`conn_reuse_mode` of the kernel).
    pub fn may_be_reused(self) -> bool {
        self == SctpState::Closed
    }
}

/// What a packet does to its association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// DATA, SACK, HEARTBEAT and its answer, ECNE, CWR, and chunks that we do not know.
    Data = 0,
    /// INIT.
    Init = 1,
    /// INIT ACK.
    InitAck = 2,
    /// COOKIE ECHO.
    CookieEcho = 3,
    /// COOKIE ACK.
    CookieAck = 4,
    /// SHUTDOWN.
    Shutdown = 5,
    /// SHUTDOWN ACK.
    ShutdownAck = 6,
    /// SHUTDOWN COMPLETE.
    ShutdownComplete = 7,
    /// ERROR.
    Error = 8,
    /// ABORT, also right behind COOKIE ECHO or COOKIE ACK.
    Abort = 9,
}

use SctpState::{
    Closed as CL, Cookie as CO, CookieEchoed as CE, CookieReplied as CR, CookieSent as CS,
    CookieWait as CW, Established as ES, Init as IN, Init1 as I1, Rejected as RJ,
    ShutdownAckSent as SA, ShutdownReceived as SR, ShutdownSent as SS,
};

/// Rows: [`Event`] within direction. Columns: the state before.
const NEXT: [[[SctpState; 14]; 10]; 3] = [
    // INPUT
    //   NO  I1  IN  CS  CR  CW  CO  CE  ES  SS  SR  SA  RJ  CL
    [
        [ES, I1, IN, CS, CR, CW, CO, CE, ES, SS, SR, SA, RJ, CL], // DATA
        [I1, IN, IN, CS, CR, CW, CO, CE, ES, SS, SR, SA, IN, IN], // INIT
        [CW, CW, CW, CS, CR, CO, CO, CE, ES, SS, SR, SA, RJ, CL], // INIT ACK
        [CR, IN, IN, CR, CR, CW, CO, CE, ES, SS, SR, SA, RJ, CL], // COOKIE ECHO
        [ES, I1, IN, CS, CR, CW, CO, ES, ES, SS, SR, SA, RJ, CL], // COOKIE ACK
        [SR, I1, IN, CS, CR, CW, CO, CE, SR, SS, SR, SA, RJ, CL], // SHUTDOWN
        [CL, IN, IN, CS, CR, CW, CO, CE, ES, CL, SR, CL, RJ, CL], // SHUTDOWN ACK
        [CL, CL, CL, CS, CR, CW, CO, CE, ES, SS, SR, CL, RJ, CL], // SHUTDOWN COMPLETE
        [CL, I1, IN, CS, CR, CW, CO, CL, ES, SS, SR, SA, RJ, CL], // ERROR
        [CL, CL, CL, CL, CL, RJ, CL, CL, CL, CL, CL, CL, CL, CL], // ABORT
    ],
    // OUTPUT
    [
        [ES, I1, IN, CS, CR, CW, CO, CE, ES, SS, SR, SA, RJ, CL], // DATA
        [CW, CW, CW, CW, CW, CW, CW, CW, ES, CW, CW, CW, CW, CW], // INIT
        [CS, CS, CS, CS, CR, CW, CO, CE, ES, SS, SR, SA, RJ, CL], // INIT ACK
        [CE, CE, CE, CE, CE, CE, CE, CE, ES, SS, SR, SA, RJ, CL], // COOKIE ECHO
        [ES, ES, ES, ES, ES, ES, ES, ES, ES, SS, SR, SA, RJ, CL], // COOKIE ACK
        [SS, SS, SS, SS, SS, SS, SS, SS, SS, SS, SR, SA, RJ, CL], // SHUTDOWN
        [SA, SA, SA, SA, SA, CW, CO, CE, ES, SA, SA, SA, RJ, CL], // SHUTDOWN ACK
        [CL, I1, IN, CS, CR, CW, CO, CE, ES, SS, SR, SA, RJ, CL], // SHUTDOWN COMPLETE
        [CL, CL, CL, CL, CL, CW, CO, CE, ES, SS, SR, SA, RJ, CL], // ERROR
        [CL, RJ, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL], // ABORT
    ],
    // INPUT_ONLY
    [
        [ES, I1, IN, CS, CR, ES, CO, CE, ES, SS, SR, SA, RJ, CL], // DATA
        [I1, IN, IN, IN, IN, IN, CO, CE, ES, SS, SR, SA, IN, IN], // INIT
        [CE, CE, CE, CE, CE, CE, CO, CE, ES, SS, SR, SA, RJ, CL], // INIT ACK
        [ES, ES, ES, ES, ES, ES, CO, CE, ES, SS, SR, SA, RJ, CL], // COOKIE ECHO
        [ES, I1, IN, ES, ES, CW, ES, ES, ES, SS, SR, SA, RJ, CL], // COOKIE ACK
        [SR, I1, IN, CS, CR, CW, CO, CE, SR, SS, SR, SA, RJ, CL], // SHUTDOWN
        [CL, IN, IN, CS, CR, CW, CO, CE, CL, CL, SR, CL, RJ, CL], // SHUTDOWN ACK
        [CL, CL, CL, CL, CL, CW, CO, CE, ES, SS, CL, CL, RJ, CL], // SHUTDOWN COMPLETE
        [CL, I1, IN, CS, CR, CW, CO, CE, ES, SS, SR, SA, RJ, CL], // ERROR
        [CL, CL, CL, CL, CL, RJ, CL, CL, CL, CL, CL, CL, CL, CL], // ABORT
    ],
];

/// The state after `event`.
pub fn next(direction: Direction, state: SctpState, event: Event) -> SctpState {
    NEXT[direction as usize][event as usize][state as usize]
}

/// Types of a packet's first two chunks: all that the state of its connection hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    first: u8,
    second: Option<u8>,
}

impl Chunks {
    /// Reads them from a packet (common header and chunks). `None` when there is no chunk; such a
    /// packet changes no state.
    pub fn read(packet: &[u8]) -> Option<Chunks> {
        let [first, second] = first_chunks(packet);
        Some(Chunks { first: first?, second })
    }

    /// The first chunk's event.
    pub fn event(self) -> Event {
        match self.first {
            chunk::COOKIE_ECHO | chunk::COOKIE_ACK if self.second == Some(chunk::ABORT) => {
                Event::Abort
            }
            chunk::INIT => Event::Init,
            chunk::INIT_ACK => Event::InitAck,
            chunk::COOKIE_ECHO => Event::CookieEcho,
            chunk::COOKIE_ACK => Event::CookieAck,
            chunk::SHUTDOWN => Event::Shutdown,
            chunk::SHUTDOWN_ACK => Event::ShutdownAck,
            chunk::SHUTDOWN_COMPLETE => Event::ShutdownComplete,
            chunk::ERROR => Event::Error,
            chunk::ABORT => Event::Abort,
            _ => Event::Data,
        }
    }

    /// Whether the packet opens an association: its first chunk is INIT.
    pub fn opens(self) -> bool {
        self.first == chunk::INIT
    }

    /// Whether the packet may be scheduled when it has no connection: it begins with INIT, or, when
    /// `sloppy` (`sloppy_sctp` of the kernel), with anything but ABORT.
    pub fn may_be_scheduled(self, sloppy: bool) -> bool {
        self.opens() || (sloppy && self.first != chunk::ABORT)
    }
}

#[cfg(test)]
mod tests;

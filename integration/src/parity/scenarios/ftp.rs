//! FTP through NAT: what control connections announce, how it reaches the other side, and the data
//! connections that follow. Virtual addresses are longer as text than the server's, so lines grow.

use std::net::SocketAddr;

use super::ftp_cases::{Case, V4, V6};
use super::rules::server;
use crate::parity::step::{Flow, From, Kind, Packet, Protocol, Scenario, Segment, Step};

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// Both families.
pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario("ftp-v4", "203.0.113.200:21", "198.18.21.1", V4),
        scenario("ftp-v6", "[2001:db8:5::2121]:21", "2001:db8:2::21", V6),
    ]
}

/// Who takes part in all cases of a scenario; each case has a port of the client of its own.
#[derive(Clone, Copy)]
pub(super) struct Cast {
    pub(super) service: SocketAddr,
    client: std::net::IpAddr,
    /// The server's port for control connections.
    server_port: u16,
}

impl Cast {
    /// The client's conversation from `port` with `virtual_port`.
    fn flow(&self, port: u16, virtual_port: u16) -> Flow {
        let client = SocketAddr::new(self.client, port);
        let service = SocketAddr::new(self.service.ip(), virtual_port);
        Flow { protocol: Protocol::Tcp, client, service }
    }
}

/// A TCP connection with its numbers, and what has been said so far.
pub(super) struct Talk {
    cast: Cast,
    flow: Flow,
    /// Next numbers of client and server, and the server's as the client counts.
    client: u32,
    server: u32,
    seen: u32,
    packets: Vec<Packet>,
}

impl Talk {
    fn begin(cast: Cast, flow: Flow) -> Talk {
        Talk { cast, flow, client: 1000, server: 5000, seen: 5000, packets: Vec::new() }
    }

    /// A control connection that is established.
    fn control(cast: Cast, port: u16) -> Talk {
        let mut talk = Talk::begin(cast, cast.flow(port, cast.service.port()));
        talk.client_sends(SYN, "");
        talk.server_sends(SYN | ACK, "", 0);
        talk.client_sends(ACK, "");
        talk
    }

    /// A passive data connection: the client, at `port`, opens it.
    pub(super) fn passive(&mut self, port: u16, virtual_port: u16) {
        let mut talk = Talk::begin(self.cast, self.cast.flow(port, virtual_port));
        talk.client_sends(SYN, "");
        talk.server_sends(SYN | ACK, "", 0);
        talk.client_sends(ACK, "");
        talk.transfer();
        self.packets.append(&mut talk.packets);
    }

    /// An active data connection: the server opens it, to `port` of the client.
    pub(super) fn active(&mut self, port: u16) {
        let flow = self.cast.flow(port, self.cast.service.port() - 1);
        let mut talk = Talk::begin(self.cast, flow);
        let from = From::Opener { of: self.flow, port: self.cast.server_port - 1 };
        talk.push(from, SYN, talk.server, 0, "");
        talk.server += 1;
        talk.seen += 1;
        talk.client_sends(SYN | ACK, "");
        talk.server_sends(ACK, "", 0);
        talk.transfer();
        self.packets.append(&mut talk.packets);
    }

    /// Some data each way; the server ends it, the client does not yet.
    fn transfer(&mut self) {
        self.server_sends(PSH | ACK, "-rw-r--r-- 1 ftp ftp 5 file\r\n", 0);
        self.client_sends(ACK, "");
        self.client_sends(PSH | ACK, "data");
        self.server_sends(ACK, "", 0);
        self.server_sends(FIN | ACK, "", 0);
        self.client_sends(ACK, "");
    }

    /// The client says something.
    pub(super) fn says(&mut self, text: &'static str) {
        self.client_sends(PSH | ACK, text);
    }

    /// The server says something that reaches the client `longer` by so many bytes, and the client
    /// acknowledges it.
    pub(super) fn answers(&mut self, text: &'static str, longer: i32) {
        self.server_sends(PSH | ACK, text, longer);
        self.client_sends(ACK, "");
    }

    /// The client says that it will say no more.
    pub(super) fn ends(&mut self) {
        self.client_sends(FIN | ACK, "");
    }

    fn client_sends(&mut self, flags: u8, text: &'static str) {
        let acknowledgement = if flags & ACK == 0 { 0 } else { self.seen };
        self.push(From::Client, flags, self.client, acknowledgement, text);
        self.client += text.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
    }

    fn server_sends(&mut self, flags: u8, text: &'static str, longer: i32) {
        self.push(From::Server, flags, self.server, self.client, text);
        let len = text.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        self.server += len;
        self.seen = self.seen.wrapping_add(len).wrapping_add_signed(longer);
    }

    fn push(
        &mut self,
        from: From,
        flags: u8,
        sequence: u32,
        acknowledgement: u32,
        text: &'static str,
    ) {
        let segment = Segment { flags, sequence, acknowledgement, text };
        self.packets.push(Packet { from, ..Packet::new(self.flow, Kind::Segment(segment)) });
    }
}

fn scenario(name: &str, service: &str, client: &str, cases: &[Case]) -> Scenario {
    let (Ok(at), Ok(client)) = (service.parse(), client.parse()) else {
        unreachable!("{service} and {client} are addresses");
    };
    let at: SocketAddr = at;
    let cast = Cast { service: at, client, server_port: 2121 };
    let real = SocketAddr::new(server(1, at).ip(), cast.server_port);
    let mut steps =
        vec![Step::Restore(vec![format!("-A -t {at} -s rr"), format!("-a -t {at} -r {real} -m")])];
    for (case, port) in cases.iter().zip(4000..) {
        let mut talk = Talk::control(cast, port);
        case(&mut talk);
        steps.push(Step::Send(talk.packets));
        steps.push(Step::Show("-L -n -c".to_owned()));
    }
    steps.push(Step::Show("-L -n".to_owned()));
    steps.push(super::settle());
    steps.push(Step::Show("-L -n --stats".to_owned()));
    Scenario {
        name: name.to_owned(),
        title: "what FTP's control connections announce, and the data connections".to_owned(),
        connections: cases.len(),
        steps,
    }
}

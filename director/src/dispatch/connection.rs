//! One connection: who talks to whom through which server, and how far it has come.

mod sketch;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

pub(super) use sketch::{Controls, Sketch};

use super::connections::{Binding, MANY};
use super::ftp::Helper;
use super::service::{RealServer, Service};
use super::signal::Signal;
use super::sip::Call;
use super::state::{State, Timeouts};
use super::tcp::Direction;
use super::transmitter::Transmitter;

/// An address and a port, host order.
pub type Endpoint = (IpAddr, u16);

/// Names a connection: protocol, client, and the address the client talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// IP protocol number.
    pub protocol: u8,
    /// Whether it names a persistence template and not a connection.
    pub template: bool,
    /// The client; of a template its masked address and port 0.
    pub client: Endpoint,
    /// VIP and port on the way in; server and port on the way back.
    pub peer: Endpoint,
}

impl Tuple {
    /// Whether it is a connection whose client's port is not known yet.
    pub fn is_portless(&self) -> bool {
        self.client.1 == 0 && !self.template
    }
}

/// What a connection that controls others, or a template, shares with them.
#[derive(Debug, Default)]
pub struct Control {
    children: AtomicU32,
    assured: AtomicBool,
    /// Seconds that each use gives the template.
    lifetime: AtomicU32,
    /// Of the template of a call.
    call: Option<Box<Call>>,
}

/// How much longer a template stays that has live connections when its time is up, seconds.
const REPRIEVE: u32 = 60;

/// What few connections have. It is behind the shard's lock, and makes their packets slower.
#[derive(Debug, Default)]
pub(super) struct Extra {
    /// Of a template: shared with its connections. Of a connection: its template's, or its FTP
    /// control connection's, if it has one.
    control: Option<Arc<Control>>,
    /// What an FTP control connection has besides.
    ftp: Option<Helper>,
    /// The server's address, where it is not that of the binding: FTP servers may announce another.
    pub(super) server: Option<IpAddr>,
}

/// A connection or a persistence template, as the pipeline handles it. In the table it is packed
/// into a slot; this is what has been made for it, or comes out of it under the shard's lock.
pub struct Connection {
    /// Protocol, client, VIP.
    pub tuple: Tuple,
    /// The server's address and port.
    pub server_endpoint: Endpoint,
    /// Service, server, and how its packets reach that; as it was when the connection was made.
    pub binding: Arc<Binding>,
    /// Protocol state.
    pub state: State,
    /// Since start: when it expires unless a packet comes.
    pub expires: Duration,
    /// We see only what the client sends; cleared by the first packet from the server.
    no_output: bool,
    active: bool,
    /// Packets from the client, as far as they are counted.
    packets: u8,
    extra: Option<Box<Extra>>,
    /// Whether it is counted on its server by itself, and not by what is in the table.
    is_own: bool,
}

/// What the table knows of a connection.
pub(super) struct Parts {
    pub(super) tuple: Tuple,
    pub(super) server_port: u16,
    pub(super) binding: Arc<Binding>,
    pub(super) state: State,
    pub(super) expires: Duration,
    pub(super) no_output: bool,
    pub(super) active: bool,
    pub(super) packets: u8,
    pub(super) extra: Option<Box<Extra>>,
}

impl Connection {
    /// A new connection, counted on its server.
    pub fn new(tuple: Tuple, binding: Arc<Binding>, now: Duration) -> Connection {
        binding.server.load.connection_opened();
        let port = binding.service.port_at_server(binding.server.load.port(), tuple.peer.1);
        Connection {
            server_endpoint: (binding.address, port),
            no_output: !matches!(binding.transmitter, Transmitter::Nat | Transmitter::Bypass),
            tuple,
            binding,
            state: State::None,
            expires: now + Duration::from_secs(3),
            active: false,
            packets: 0,
            extra: None,
            is_own: true,
        }
    }

    /// What is in the table.
    pub(super) fn from_table(parts: Parts) -> Connection {
        let Parts { tuple, server_port, binding, state, expires, .. } = parts;
        let elsewhere = parts.extra.as_ref().and_then(|extra| extra.server);
        Connection {
            server_endpoint: (elsewhere.unwrap_or(binding.address), server_port),
            tuple,
            binding,
            state,
            expires,
            no_output: parts.no_output,
            active: parts.active,
            packets: parts.packets,
            extra: parts.extra,
            is_own: false,
        }
    }

    /// It is in the table now, and counted as long as it is there.
    pub(super) fn into_table(mut self) {
        self.is_own = false;
    }

    /// It has been taken out of the table, and is counted until it is dropped.
    pub(super) fn out_of_table(&mut self) {
        self.is_own = true;
    }

    /// What the table has no room for in a slot.
    pub(super) fn take_extra(&mut self) -> Option<Box<Extra>> {
        self.extra.take()
    }

    /// Whether there is such.
    pub(super) fn has_extra(&self) -> bool {
        self.extra.is_some()
    }

    /// The server's address, where it is not that of the binding.
    pub(super) fn elsewhere(&self) -> Option<IpAddr> {
        self.extra.as_ref()?.server
    }

    /// Whether its packets may change more than its slot holds.
    pub(super) fn is_slow(&self) -> bool {
        let awaits_answer = || {
            let may_be_assured = self.state == State::Udp && self.transmitter() == Transmitter::Nat;
            may_be_assured && self.control_ref().is_some() && !self.is_assured()
        };
        self.tuple.template
            || self.is_helped()
            || self.elsewhere().is_some()
            || matches!(self.transmitter(), Transmitter::Local | Transmitter::Bypass)
            || awaits_answer()
    }

    /// The service.
    pub fn service(&self) -> &Arc<Service> {
        &self.binding.service
    }

    /// The server.
    pub fn server(&self) -> &Arc<RealServer> {
        &self.binding.server
    }

    /// How its packets reach the server.
    pub fn transmitter(&self) -> Transmitter {
        self.binding.transmitter
    }

    /// Whether `ActiveConn` counts it.
    pub fn is_active(&self) -> bool {
        self.active
    }

    fn control_ref(&self) -> Option<&Arc<Control>> {
        self.extra.as_ref()?.control.as_ref()
    }

    fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// A connection that `control` has announced: it waits for its first packet in state LISTEN.
    pub fn expected(
        tuple: Tuple,
        server_endpoint: Endpoint,
        control: &Arc<Control>,
        binding: Arc<Binding>,
        now: Duration,
        timeouts: &Timeouts,
    ) -> Connection {
        let mut connection =
            Connection::new(tuple, binding, now).controlled_by(Some(control.clone()));
        connection.server_endpoint = server_endpoint;
        if server_endpoint.0 != connection.binding.address {
            connection.extra_mut().server = Some(server_endpoint.0);
        }
        connection.listen(now, timeouts);
        connection
    }

    /// A connection past the servers of a service; `binding` has the unspecified address in place of
    /// one. As in the kernel it moves through the states of connections that are seen from both sides.
    pub fn bypassing(tuple: Tuple, binding: Arc<Binding>, now: Duration) -> Connection {
        let mut connection = Connection::new(tuple, binding, now);
        connection.server_endpoint.1 = 0;
        connection
    }

    /// A template that sends a client's further connections to a server. Each use gives it
    /// `lifetime` seconds; an edit of the service does not change that.
    pub fn template(
        tuple: Tuple,
        binding: Arc<Binding>,
        lifetime: u32,
        now: Duration,
    ) -> Connection {
        binding.server.template_opened();
        let control = Control { lifetime: AtomicU32::new(lifetime), ..Control::default() };
        let port =
            if binding.service.template_port() == 0 { 0 } else { binding.server.load.port() };
        Connection {
            tuple,
            server_endpoint: (binding.address, port),
            binding,
            state: State::None,
            expires: now + Duration::from_secs(lifetime.into()),
            no_output: false,
            active: false,
            packets: 0,
            extra: Some(Box::new(Extra { control: Some(Arc::new(control)), ..Extra::default() })),
            is_own: true,
        }
    }

    /// Makes a new template that of a call.
    pub fn of_call(mut self, call: Call) -> Connection {
        let control = self.extra_mut().control.as_mut();
        if let Some(control) = control.and_then(Arc::get_mut) {
            control.call = Some(Box::new(call));
        }
        self
    }

    /// The call that this is the template of.
    pub fn call(&self) -> Option<&Call> {
        self.control_ref().filter(|_| self.tuple.template)?.call.as_deref()
    }

    /// Whether it is the template of a client's call with this Call-ID.
    pub fn is_of_call(&self, id: &[u8], client: Endpoint) -> bool {
        self.call().is_some_and(|call| *call.id == *id && call.client == client)
    }

    /// Puts the connection under a template's control: the template outlives it.
    pub fn controlled_by(mut self, control: Option<Arc<Control>>) -> Connection {
        if let Some(control) = control {
            control.children.fetch_add(1, Relaxed);
            self.extra_mut().control = Some(control);
        }
        self
    }

    /// Makes it an FTP control connection.
    pub fn helped(mut self) -> Connection {
        self.extra_mut().ftp = Some(Helper::default());
        self
    }

    /// Whether it is an FTP control connection.
    pub fn is_helped(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.ftp.is_some())
    }

    /// What an FTP control connection has besides.
    pub fn helper(&mut self) -> Option<&mut Helper> {
        self.extra.as_mut()?.ftp.as_mut()
    }

    /// The same connection, of a client whose port is now known.
    pub fn of_client(mut self, client: Endpoint) -> Connection {
        self.tuple.client = client;
        self
    }

    /// Waits for a packet (again): state LISTEN. Whether it counts as active is for that packet to
    /// say.
    pub fn listen(&mut self, now: Duration, timeouts: &Timeouts) {
        self.state = State::Listen;
        self.expires = now + timeouts.of(self.state);
    }

    /// Whether `control` is what it shares with its template or control connection.
    pub fn is_controlled_by(&self, control: &Arc<Control>) -> bool {
        self.control_ref().is_some_and(|own| Arc::ptr_eq(own, control))
    }

    /// What connections of this template share with it.
    pub fn control(&self) -> Option<Arc<Control>> {
        self.control_ref().cloned()
    }

    /// A template is used once more.
    pub fn renew(&mut self, now: Duration) {
        if let Some(control) = self.control_ref() {
            self.expires = now + Duration::from_secs(control.lifetime.load(Relaxed).into());
        }
    }

    /// When its time is up: how much longer it has to stay, because it is a template with live
    /// connections, or an FTP control connection with data connections. As in the kernel that is
    /// all that a later use gives a template from then on.
    pub fn reprieve(&self) -> Option<Duration> {
        let extra = self.extra.as_ref()?;
        let control = match &extra.ftp {
            Some(helper) => helper.control(),
            None => extra.control.as_ref().filter(|_| self.tuple.template)?,
        };
        if control.children.load(Relaxed) == 0 {
            return None;
        }
        control.lifetime.store(REPRIEVE, Relaxed);
        Some(Duration::from_secs(REPRIEVE.into()))
    }

    /// Packets from the client so far; 15 is that many or more.
    pub fn packets(&self) -> u8 {
        self.packets
    }

    /// Of a template: whether one of its connections has been established or answered.
    pub fn is_assured(&self) -> bool {
        self.control_ref().is_some_and(|control| control.assured.load(Relaxed))
    }

    /// The state as `ipvsadm -L -c` shows it.
    pub fn state_name(&self) -> &'static str {
        if self.tuple.template && self.is_assured() { "ASSURED" } else { self.state.name() }
    }

    /// Whether a server's packet with this name (client, and the server as peer) belongs to it.
    pub fn is_answered_by(&self, tuple: &Tuple) -> bool {
        self.server_endpoint == tuple.peer
            && self.tuple.client == tuple.client
            && self.tuple.protocol == tuple.protocol
            && self.tuple.template == tuple.template
    }

    /// A packet from the client: state, timer and counters move. `bytes` is the length of the IP
    /// packet.
    pub fn incoming(&mut self, signal: Signal, bytes: usize, now: Duration, timeouts: &Timeouts) {
        let direction = if self.no_output { Direction::InputOnly } else { Direction::Input };
        self.advance(direction, signal, now, timeouts);
        self.packets = (self.packets + 1).min(MANY);
        self.counted(bytes, true);
    }

    /// A packet from the server.
    pub fn outgoing(&mut self, signal: Signal, bytes: usize, now: Duration, timeouts: &Timeouts) {
        self.no_output = false;
        self.advance(Direction::Output, signal, now, timeouts);
        // Of an FTP control connection it is not known yet how many bytes it will have.
        if !self.is_helped() {
            self.counted(bytes, false);
        }
    }

    /// Counts a packet of the connection, or one about it (an ICMP error).
    pub fn counted(&self, bytes: usize, incoming: bool) {
        self.binding.counted(bytes, incoming);
    }

    /// Whether another one controls it: such a one is never scheduled anew for its state.
    pub fn is_controlled(&self) -> bool {
        self.control_ref().is_some()
    }

    /// Whether we see only what the client sends.
    pub fn is_half_seen(&self) -> bool {
        self.no_output
    }

    fn advance(
        &mut self,
        direction: Direction,
        signal: Signal,
        now: Duration,
        timeouts: &Timeouts,
    ) {
        let was_embryonic = self.state.is_embryonic();
        self.state = signal.next(timeouts.is_tcp_secure(), direction, self.state);
        if self.is_own {
            self.server().handshake_moved(was_embryonic, self.state.is_embryonic());
        }
        let active = self.state.is_active();
        if active != self.active {
            self.active = active;
            if self.is_own {
                self.server().load.connection_moved(active);
            }
        }
        self.expires = now + self.service().policy.timeout(self.state, timeouts);
        if let Some(control) = self.control_ref()
            && (self.state.is_established()
                || (self.state == State::Udp && direction == Direction::Output))
        {
            control.assured.store(true, Relaxed);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.is_own {
            return;
        }
        if self.tuple.template {
            self.server().template_closed();
            return;
        }
        self.server().handshake_moved(self.state.is_embryonic(), false);
        self.server().load.connection_closed(self.active);
        if let Some(control) = self.control_ref() {
            control.children.fetch_sub(1, Relaxed);
        }
    }
}

//! All agents are asked from here: two sockets for datagrams, one timer, and what comes back from
//! streams.
//!
//! An answer is told apart by where it comes from and by its challenge; what comes from elsewhere is
//! not looked at.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use realserver_agent::key_file;
use realserver_agent::protocol::{Key, Message, Probe};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use super::super::direction::{Action, Direction, Mode, Refusal, Way};
use super::super::plan::AgentWatch;
use super::roster::State;
use super::stream::{Stream, Told, What};
use super::{Inner, together};
use crate::control::api::ServiceKey;
use crate::control::events::{Event, EventKind};
use crate::control::health::DirectionView;

/// Datagrams taken before others have their turn.
const BATCH: usize = 256;
/// Agents that are due within so long are asked together: it saves waking up for each.
const BEAT: Duration = Duration::from_millis(5);
/// A message has 56 bytes; more than this is cut off, and refused like all that is not 56 bytes long.
const LARGEST: usize = 128;
/// What streams have told and nobody has heard yet, at most; they wait then.
const TOLD: usize = 256;

/// A server of a service.
pub(super) type Place = (ServiceKey, SocketAddr);

/// All links to agents, by number.
#[derive(Default)]
pub(super) struct Agents {
    all: HashMap<u64, Agent>,
    /// By where their answers come from.
    by_address: HashMap<SocketAddr, Vec<u64>>,
    due: BTreeSet<(Duration, u64)>,
    count: u64,
}

/// The link to one agent.
pub(super) struct Agent {
    pub(super) settings: AgentWatch,
    pub(super) direction: Direction,
    address: SocketAddr,
    key: Option<Key>,
    members: BTreeSet<Place>,
    stream: Option<Stream>,
    /// Counts streams, so that nothing of an old one is heard.
    streams: u32,
    due: Duration,
    /// Its load was told to the table.
    is_load_known: bool,
    /// It cannot be asked, and that was told.
    is_unable: bool,
}

/// Where datagrams leave, and what streams hold.
pub(super) struct Wire {
    v4: std::net::UdpSocket,
    v6: Option<std::net::UdpSocket>,
    streams: mpsc::Sender<Told>,
}

/// Where answers arrive.
pub(super) struct Ears {
    v4: UdpSocket,
    v6: Option<UdpSocket>,
    streams: mpsc::Receiver<Told>,
}

impl Wire {
    /// Opens the sockets. A host may do without IPv6.
    pub(super) fn open() -> io::Result<(Wire, Ears)> {
        let open = |ip: IpAddr| -> io::Result<(std::net::UdpSocket, UdpSocket)> {
            let socket = std::net::UdpSocket::bind((ip, 0))?;
            socket.set_nonblocking(true)?;
            Ok((socket.try_clone()?, UdpSocket::from_std(socket)?))
        };
        let (out4, in4) = open(Ipv4Addr::UNSPECIFIED.into())?;
        let (out6, in6) = open(Ipv6Addr::UNSPECIFIED.into()).ok().unzip();
        let (sender, receiver) = mpsc::channel(TOLD);
        let wire = Wire { v4: out4, v6: out6, streams: sender };
        Ok((wire, Ears { v4: in4, v6: in6, streams: receiver }))
    }

    fn send(&self, message: &Message, to: SocketAddr) -> io::Result<()> {
        let socket = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        let socket = socket.ok_or(ErrorKind::Unsupported)?;
        socket.send_to(message, to).map(|_| ())
    }
}

impl Agents {
    /// The link to an agent, and that of another server to the same one if it is asked in the same
    /// way. The error says why it cannot be asked.
    pub(super) fn join(
        &mut self,
        address: SocketAddr,
        settings: &AgentWatch,
        place: Place,
        now: Duration,
    ) -> Result<u64, String> {
        let there = self.by_address.entry(address).or_default();
        for number in there.iter() {
            if let Some(agent) = self.all.get_mut(number)
                && agent.settings == *settings
            {
                agent.members.insert(place);
                return Ok(*number);
            }
        }
        let key = settings.key_file.as_deref().map(read_key).transpose();
        let key = match key {
            Ok(key) => key,
            Err(why) => {
                if there.is_empty() {
                    self.by_address.remove(&address);
                }
                return Err(why);
            }
        };
        self.count += 1;
        there.push(self.count);
        let agent = Agent {
            settings: settings.clone(),
            direction: Direction::new(settings.clone(), now),
            address,
            key,
            members: BTreeSet::from([place]),
            stream: None,
            streams: 0,
            due: now,
            is_load_known: false,
            is_unable: false,
        };
        self.due.insert((now, self.count));
        self.all.insert(self.count, agent);
        Ok(self.count)
    }

    /// A server has no use for the link any more. It ends with the last one.
    pub(super) fn leave(&mut self, number: u64, place: Place) {
        let Some(agent) = self.all.get_mut(&number) else { return };
        agent.members.remove(&place);
        if !agent.members.is_empty() {
            return;
        }
        self.due.remove(&(agent.due, number));
        if let Some(there) = self.by_address.get_mut(&agent.address) {
            there.retain(|other| *other != number);
            if there.is_empty() {
                self.by_address.remove(&agent.address);
            }
        }
        self.all.remove(&number);
    }

    /// Whether this link asks as `settings` say.
    pub(super) fn is(&self, number: u64, settings: &AgentWatch) -> bool {
        self.all.get(&number).is_some_and(|agent| agent.settings == *settings)
    }

    pub(super) fn get(&self, number: u64) -> Option<&Agent> {
        self.all.get(&number)
    }

    pub(super) fn view(&self, number: u64) -> Option<DirectionView> {
        self.all.get(&number).map(|agent| agent.direction.view())
    }

    /// Reads the keys again. One that cannot be read any more stays as it was.
    pub(super) fn read_keys(&mut self) {
        let mut keys: BTreeMap<&Path, Result<Key, String>> = BTreeMap::new();
        for agent in self.all.values_mut() {
            let Some(path) = agent.settings.key_file.as_deref() else { continue };
            match keys.entry(path).or_insert_with(|| read_key(path)) {
                Ok(key) => agent.key = Some(key.clone()),
                Err(why) => tracing::warn!("{why}: going on with the key that was read before"),
            }
        }
    }

    /// Whose answer this may be: the one that has asked so, else anybody's at that address.
    fn whose(&self, from: SocketAddr, bytes: &[u8]) -> Option<u64> {
        let there = self.by_address.get(&from)?;
        let challenge = bytes.get(8..16).and_then(|bytes| bytes.try_into().ok());
        let challenge = challenge.map(u64::from_be_bytes);
        let asked = |number: &&u64| {
            let agent = self.all.get(number);
            agent.zip(challenge).is_some_and(|(agent, c)| agent.direction.is_asked(c))
        };
        there.iter().find(asked).or(there.first()).copied()
    }

    fn reschedule(&mut self, number: u64) {
        if let Some(agent) = self.all.get_mut(&number) {
            self.due.remove(&(agent.due, number));
            agent.due = agent.direction.due();
            self.due.insert((agent.due, number));
        }
    }

    /// Servers whose load is not known any more.
    pub(super) fn forget_old_loads(&mut self, now: Duration) -> Vec<Place> {
        let mut old = Vec::new();
        for agent in self.all.values_mut() {
            if agent.is_load_known && agent.load(now).is_none() {
                agent.is_load_known = false;
                old.extend(agent.members.iter().copied());
            }
        }
        old
    }
}

impl Agent {
    /// The load that it reports, unless that is too old.
    pub(super) fn load(&self, now: Duration) -> Option<u16> {
        let (report, when) = self.direction.report()?;
        report.load.filter(|_| when + self.settings.timeout > now)
    }

    /// The address of its host, as events name it.
    fn host(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.address.ip(), 0))
    }
}

/// Asks and hears, for ever.
pub(super) async fn run(inner: Arc<Inner>, mut ears: Ears) {
    loop {
        let due = inner.lock().agents.due.first().map(|(due, _)| *due);
        // Without any agent it is woken when there is one.
        let due = due.unwrap_or(inner.now() + Duration::from_secs(3600));
        let due = inner.epoch + together(due, BEAT);
        tokio::select! {
            _ = ears.v4.readable() => inner.listen(&ears.v4),
            _ = readable(ears.v6.as_ref()) => if let Some(socket) = &ears.v6 { inner.listen(socket) },
            Some(told) = ears.streams.recv() => inner.stream_told(told),
            () = sleep_until(due) => inner.tick(),
            () = inner.agents_changed.notified() => {}
        }
        tokio::task::yield_now().await;
    }
}

async fn readable(socket: Option<&UdpSocket>) {
    match socket {
        // An error is found when it is read.
        Some(socket) => drop(socket.readable().await),
        None => std::future::pending().await,
    }
}

impl Inner {
    fn listen(&self, socket: &UdpSocket) {
        let mut buffer = [0; LARGEST];
        for _ in 0..BATCH {
            match socket.try_recv_from(&mut buffer) {
                Ok((length, from)) => self.datagram(from, &buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Of an earlier datagram that was refused; the next one is another.
                Err(_) => {}
            }
        }
    }

    fn datagram(&self, from: SocketAddr, bytes: &[u8]) {
        let mut state = self.lock();
        // Without the scope of a link-local address.
        let from = SocketAddr::new(from.ip(), from.port());
        if let Some(number) = state.agents.whose(from, bytes) {
            self.heard(&mut state, number, Way::Udp, bytes);
        }
    }

    fn stream_told(&self, told: Told) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let (number, now) = (told.agent, self.now());
        let Some(agent) = state.agents.all.get_mut(&number) else { return };
        if agent.stream.is_none() || agent.streams != told.stream {
            return;
        }
        let mut actions = Vec::new();
        match told.what {
            What::Answer(message) => return self.heard(state, number, Way::Tcp, &message),
            What::Failed(why) => {
                agent.stream = None;
                agent.direction.stream_failed(&why, now, &mut actions);
            }
            What::Closed(why) => {
                agent.stream = None;
                if let Some(refusal) = agent.direction.stream_closed(&why, now) {
                    self.refused(agent.host(), refusal);
                }
            }
            What::Ended(why) => {
                agent.stream = None;
                agent.direction.stream_ended(&why);
            }
            What::Unable(why) => {
                agent.stream = None;
                agent.direction.stream_ended(&why);
                self.unable(agent, &why);
            }
        }
        self.carry_out(state, number, actions);
    }

    fn tick(&self) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let now = self.now();
        let due = state.agents.due.iter().take_while(|(due, _)| *due <= now);
        let due: Vec<u64> = due.map(|(_, number)| *number).collect();
        for number in due {
            if let Some(agent) = state.agents.all.get_mut(&number) {
                let mut actions = Vec::new();
                agent.direction.tick(now, &mut actions);
                self.carry_out(state, number, actions);
            }
        }
    }

    fn refused(&self, server: Option<SocketAddr>, refusal: Refusal) {
        let reason = format!("an answer of its agent does not count: {refusal}");
        self.journal.note(EventKind::AgentRefused, Event { server, reason, ..Event::default() });
    }

    fn heard(&self, state: &mut State, number: u64, way: Way, bytes: &[u8]) {
        let now = self.now();
        let Some(agent) = state.agents.all.get_mut(&number) else { return };
        let said = |agent: &Agent| agent.direction.report().map(|(report, _)| report.state);
        let before = said(agent);
        let mut actions = Vec::new();
        let heard = agent.direction.heard(way, bytes, agent.key.as_ref(), now, &mut actions);
        if let Err((refusal, is_news)) = heard {
            if is_news {
                self.refused(agent.host(), refusal);
            }
            if way == Way::Tcp {
                // Nobody knows where the next message begins.
                agent.stream = None;
                agent.direction.stream_ended(&refusal.to_string());
            }
            return;
        }
        agent.is_unable = false;
        // The first ones count one by one for who was not up.
        let is_early = agent.direction.answers() <= u64::from(agent.settings.rise);
        let is_other = before != said(agent) || is_early;
        let load = agent.load(now);
        let is_news = load.is_some() || agent.is_load_known;
        agent.is_load_known = load.is_some();
        let members: Vec<Place> =
            if is_news || is_other { agent.members.iter().copied().collect() } else { Vec::new() };
        self.carry_out(state, number, actions);
        for (service, address) in members {
            if is_news {
                self.servers.report(&service, address, load);
                self.weigh(state, service, address);
            }
            if is_other {
                self.rule(state, service, address);
            }
        }
    }

    fn carry_out(&self, state: &mut State, number: u64, actions: Vec<Action>) {
        let Some(agent) = state.agents.all.get_mut(&number) else { return };
        let (mut is_edge, mut is_restart) = (false, false);
        for action in actions {
            let told = match action {
                Action::SendUdp(challenge) => {
                    let probe = Probe { challenge }.encode(agent.key.as_ref());
                    if let Err(error) = self.wire.send(&probe, agent.address)
                        && is_ours(&error)
                    {
                        self.unable(agent, &error.to_string());
                    }
                    continue;
                }
                Action::SendTcp(challenge) => {
                    let probe = Probe { challenge }.encode(agent.key.as_ref());
                    self.ask_by_stream(number, agent, probe);
                    continue;
                }
                Action::CloseTcp => {
                    agent.stream = None;
                    continue;
                }
                Action::Lost => (EventKind::DirectionLost, agent.direction.reason().to_owned()),
                Action::Back => (EventKind::DirectionBack, over(agent.direction.mode())),
                // That the usual way works from the start is no news.
                Action::Mode if agent.direction.answers() == 1 => continue,
                Action::Mode => (EventKind::DirectionMode, over(agent.direction.mode())),
                Action::Restarted => {
                    is_restart = true;
                    let reason = "its agent has another boot nonce: connections are dead";
                    (EventKind::ServerRestarted, reason.to_owned())
                }
            };
            is_edge = true;
            let event = Event { server: agent.host(), reason: told.1, ..Event::default() };
            self.journal.note(told.0, event);
        }
        let members: Vec<Place> =
            if is_edge { agent.members.iter().copied().collect() } else { Vec::new() };
        state.agents.reschedule(number);
        for (service, address) in members {
            if is_restart {
                self.servers.lose(&service, address, true, self.now());
            }
            self.rule(state, service, address);
        }
    }

    fn ask_by_stream(&self, number: u64, agent: &mut Agent, probe: Message) {
        if agent.stream.is_none() {
            agent.streams = agent.streams.wrapping_add(1);
            let whose = (number, agent.streams);
            agent.stream = Some(Stream::open(agent.address, whose, self.wire.streams.clone()));
        }
        if let Some(stream) = &agent.stream {
            // Full only if nothing was sent for long: then it does not matter.
            stream.ask(probe);
        }
    }

    /// The director could not ask: that is told once, and not held against the server.
    fn unable(&self, agent: &mut Agent, why: &str) {
        agent.direction.could_not_ask(self.now());
        if !std::mem::replace(&mut agent.is_unable, true) {
            let reason = format!("its agent cannot be asked: {why}");
            let event = Event { server: agent.host(), reason, ..Event::default() };
            self.journal.note(EventKind::CheckUnable, event);
        }
    }
}

/// Whether it is the director that is in need, and not the server that is gone.
pub(super) fn is_ours(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let ours = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM, Errno::EADDRNOTAVAIL];
    error.kind() == ErrorKind::WouldBlock
        || error.raw_os_error().is_some_and(|code| ours.contains(&Errno::from_raw(code)))
}

fn over(mode: Mode) -> String {
    match mode {
        Mode::Tcp => "over tcp, because nothing comes back over udp".to_owned(),
        mode => format!("over {}", mode.word()),
    }
}

/// The secret, or why there is none.
fn read_key(path: &Path) -> Result<Key, String> {
    key_file::read(path).map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
impl Inner {
    /// Where agents are asked from.
    pub(super) fn wire_port(&self) -> u16 {
        self.wire.v4.local_addr().unwrap().port()
    }
}

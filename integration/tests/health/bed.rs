//! The standard topology with nginx on every server, a director that watches them, and agents where
//! the test wants some.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use director::control::events::{Event, EventKind};
use director::control::health::{HealthState, ServerHealth};
use integration::http::{Plan, Tally};
use integration::lab::Process;
use integration::nginx::{self, Site};
use integration::programs;
use integration::running::Director;
use integration::topology::{Kind, Options, Topology, VIP_V4, server_addresses};

/// The port of every service and server.
pub(crate) const HTTP: u16 = 80;

/// What to build.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) kind: Kind,
    pub(crate) servers: usize,
    /// Further servers, with nginx, of which the file says nothing.
    pub(crate) spare: usize,
    /// Further lines of the service.
    pub(crate) service: String,
    /// Lines of the `[agent]` table; `None`: no agents.
    pub(crate) agent: Option<String>,
    /// The weight of each server.
    pub(crate) weight: u32,
    pub(crate) scheduler: &'static str,
}

impl Wanted {
    /// Three servers, round robin, without agents.
    pub(crate) fn new(kind: Kind, service: &str) -> Wanted {
        Wanted {
            kind,
            servers: 3,
            spare: 0,
            service: service.to_owned(),
            agent: None,
            weight: 1,
            scheduler: "rr",
        }
    }

    /// The same with agents.
    pub(crate) fn with_agents(self, lines: &str) -> Wanted {
        Wanted { agent: Some(lines.to_owned()), ..self }
    }

    /// The file of director and agents.
    pub(crate) fn config(&self) -> String {
        let forwarding = match self.kind {
            Kind::Nat | Kind::NatTwoArmed => "nat",
            Kind::Direct => "direct",
            Kind::Tunnel => "tunnel",
        };
        let (scheduler, lines) = (self.scheduler, &self.service);
        let listen = SocketAddr::new(VIP_V4, HTTP);
        let mut text = format!(
            "mode = \"dispatcher\"\ninterfaces = [\"eth0\"]\nio = \"copy\"\n\n[[service]]\n\
             listen = \"{listen}/tcp\"\nscheduler = \"{scheduler}\"\n\
             forwarding = \"{forwarding}\"\n{lines}\n"
        );
        for number in 1..=self.servers {
            let (address, weight) = (server(number), self.weight);
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n  [[service.server]]\n  address = \"{address}\"\n  weight = {weight}\n"
            );
        }
        text
    }
}

/// Address and port of server `number` (1, 2, ...).
pub(crate) fn server(number: usize) -> SocketAddr {
    SocketAddr::new(server_addresses(number)[0], HTTP)
}

/// See the module.
pub(crate) struct Bed {
    pub(crate) topology: Topology,
    pub(crate) director: Director,
    pub(crate) wanted: Wanted,
    /// nginx, by server.
    pub(crate) web: Vec<Process>,
    /// Agents, by server.
    pub(crate) agents: Vec<Process>,
}

impl Bed {
    /// Builds it, and waits until the director is ready.
    pub(crate) fn build(wanted: Wanted) -> Result<Bed> {
        Bed::build_after(wanted, |_| Ok(()))
    }

    /// The same; `prepare` is called when everything but the director runs.
    pub(crate) fn build_after(
        wanted: Wanted,
        prepare: impl FnOnce(&Topology) -> Result<()>,
    ) -> Result<Bed> {
        let options = Options { servers: wanted.servers + wanted.spare, ..Options::default() };
        let topology = Topology::build(wanted.kind, &options)?;
        let site = site();
        let web = topology
            .servers
            .iter()
            .map(|server| nginx::start(&topology.lab, server, &site))
            .collect::<Result<_>>()?;
        let mut agents = Vec::new();
        if wanted.agent.is_some() || wanted.kind == Kind::Tunnel {
            for number in 1..=wanted.servers {
                agents.push(start_agent(&topology, &wanted, number, &[])?);
            }
        }
        prepare(&topology)?;
        let director = Director::start(&topology.lab, &topology.director, &wanted.config())?;
        Ok(Bed { topology, director, wanted, web, agents })
    }

    /// Starts the agent of server `number` (again).
    pub(crate) fn start_agent(&mut self, number: usize, arguments: &[&str]) -> Result<()> {
        let agent = start_agent(&self.topology, &self.wanted, number, arguments)?;
        self.agents[number - 1] = agent;
        Ok(())
    }

    /// Starts nginx on server `number` again.
    pub(crate) fn start_web(&mut self, number: usize) -> Result<()> {
        let server = &self.topology.servers[number - 1];
        self.web[number - 1] = nginx::start(&self.topology.lab, server, &site())?;
        Ok(())
    }

    /// Whether `/health` on server `number` answers 200, or 503.
    pub(crate) fn serve_health(&self, number: usize, good: bool) -> Result<()> {
        let server = &self.topology.servers[number - 1];
        let file = nginx::folder(&self.topology.lab, server).join("unavailable");
        match good {
            true => std::fs::remove_file(file)?,
            false => std::fs::write(file, "")?,
        }
        Ok(())
    }

    /// Ends the director and starts the next one.
    pub(crate) fn succeed(&mut self) -> Result<()> {
        let (lab, host) = (&self.topology.lab, &self.topology.director);
        self.director.process().stop()?;
        self.director = Director::start(lab, host, &self.wanted.config())?;
        Ok(())
    }

    /// Cuts server `number` off: whatever it sends or is sent is lost.
    pub(crate) fn cut_off(&self, number: usize, is_off: bool) -> Result<()> {
        let port = format!("server{number}-eth0");
        self.topology.back.host().set_up(&port, !is_off)
    }

    /// What `realserver-agent WORDS` says on server `number`.
    pub(crate) fn agent(&self, number: usize, words: &[&str]) -> Result<String> {
        let output = self.topology.servers[number - 1]
            .command(programs::path("realserver-agent")?)
            .args(words)
            .args(["--control".as_ref(), agent_socket(&self.topology, number).as_os_str()])
            .output(Duration::from_secs(5))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "realserver-agent {words:?}: {said}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What `dirctl WORDS` prints.
    pub(crate) fn dirctl(&self, words: &[&str]) -> Result<String> {
        let output = self
            .topology
            .director
            .command(programs::path("dirctl")?)
            .args(words)
            .env("SWITCHYARD_SOCKET", self.director.socket())
            .output(Duration::from_secs(10))?;
        let said = String::from_utf8_lossy(&output.stderr);
        // 1: not all servers are up.
        ensure!(matches!(output.status.code(), Some(0 | 1)), "dirctl {words:?}: {said}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// How the servers are, in the order of their numbers.
    pub(crate) fn servers(&self) -> Result<Vec<ServerHealth>> {
        let text = self.dirctl(&["servers", "--json"])?;
        let mut servers: Vec<ServerHealth> =
            serde_json::from_str(&text).with_context(|| text.clone())?;
        servers.sort_by_key(|server| server.address);
        Ok(servers)
    }

    /// How server `number` is.
    pub(crate) fn health(&self, number: usize) -> Result<ServerHealth> {
        let servers = self.servers()?;
        let found = servers.iter().find(|health| health.address == server(number));
        found.cloned().with_context(|| format!("no server {number} among {servers:?}"))
    }

    /// Waits until server `number` is `state`.
    pub(crate) fn wait_for(
        &self,
        number: usize,
        state: HealthState,
        limit: Duration,
    ) -> Result<ServerHealth> {
        self.wait_until(number, &format!("{state:?}"), limit, |health| health.state == state)
    }

    /// Waits until server `number` is as `wanted`, in words `what`.
    pub(crate) fn wait_until(
        &self,
        number: usize,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&ServerHealth) -> bool,
    ) -> Result<ServerHealth> {
        let deadline = Instant::now() + limit;
        loop {
            let health = self.health(number)?;
            if wanted(&health) {
                return Ok(health);
            }
            if Instant::now() > deadline {
                let log = self.director.process().log();
                bail!("server {number} is not {what} after {limit:?}: {health:?}\n{log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// All events so far.
    pub(crate) fn events(&self) -> Result<Vec<Event>> {
        let text = self.dirctl(&["events", "--json"])?;
        text.lines().map(|line| serde_json::from_str(line).context(line.to_owned())).collect()
    }

    /// Waits for an event of a kind about server `number` after `since`; how long after that it was.
    pub(crate) fn wait_for_event(
        &self,
        kind: EventKind,
        number: usize,
        since: SystemTime,
        limit: Duration,
    ) -> Result<f64> {
        let since = since.duration_since(UNIX_EPOCH)?.as_millis() as u64;
        let deadline = Instant::now() + limit;
        loop {
            let events = self.events()?;
            let is_it = |event: &&Event| {
                event.kind == kind
                    && event.time >= since
                    && event.server.is_some_and(|it| it.ip() == server(number).ip())
            };
            if let Some(event) = events.iter().find(is_it) {
                return Ok((event.time - since) as f64 / 1000.0);
            }
            if Instant::now() > deadline {
                bail!("no {kind:?} of server {number} within {limit:?}: {events:#?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Fetches from the client, each on a new connection.
    pub(crate) fn fetch(&self, count: u64) -> Result<Tally> {
        self.topology.fetch(&Plan::new(SocketAddr::new(VIP_V4, HTTP), count), |_| {})
    }

    /// Fetches, and fails if a request fails or comes to none of these servers only.
    #[track_caller]
    pub(crate) fn served_by(&self, count: u64, numbers: &[usize]) {
        let tally = self.fetch(count).unwrap();
        assert_eq!(tally.failed(), 0, "{tally:?}\n{}", self.director.process().log());
        let names: Vec<String> = numbers.iter().map(|number| format!("server{number}")).collect();
        for name in &names {
            assert!(tally.by_server.contains_key(name), "{name} got nothing: {tally:?}");
        }
        for name in tally.by_server.keys() {
            assert!(names.contains(name), "{name} got something: {tally:?}");
        }
    }
}

fn site() -> Site {
    let page = "a page\n".to_owned();
    let lines = "keepalive_timeout 600; \
                 location = /health { if (-f FOLDER/unavailable) { return 503; } return 200; } \
                 location / { try_files /page =404; }";
    Site { port: HTTP, lines: lines.to_owned(), files: vec![("page", page)] }
}

/// Where the agent of a server can be spoken to: the hosts of a lab share one file system.
pub(crate) fn agent_socket(topology: &Topology, number: usize) -> PathBuf {
    topology.lab.logs().join(format!("agent{number}.sock"))
}

fn start_agent(
    topology: &Topology,
    wanted: &Wanted,
    number: usize,
    arguments: &[&str],
) -> Result<Process> {
    let file = topology.lab.logs().join(format!("agent{number}.toml"));
    let lines = wanted.agent.as_deref().unwrap_or_default();
    let socket = agent_socket(topology, number);
    let text =
        format!("{}\n[agent]\ncontrol = \"{}\"\n{lines}\n", wanted.config(), socket.display());
    std::fs::write(&file, text)?;
    let process = topology.servers[number - 1]
        .command(programs::path("realserver-agent")?)
        .args(["run", "--config"])
        .arg(&file)
        .args(arguments)
        .spawn()?;
    process.wait_for_log("ready", Duration::from_secs(10))?;
    Ok(process)
}

/// The VIP, for those who speak of addresses only.
pub(crate) fn vip() -> IpAddr {
    VIP_V4
}

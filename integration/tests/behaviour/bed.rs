//! What every test lies in: the standard topology with web servers and a running director.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use integration::http::{Plan, Tally};
use integration::lab::{Process, supported};
use integration::programs;
use integration::running::Director;
use integration::topology::{Kind, Options, Topology, VIP_V4, VIP_V6};
pub(crate) use integration::written::{service, top, web};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The virtual addresses, by family.
pub(crate) const VIPS: [IpAddr; 2] = [VIP_V4, VIP_V6];

/// All ways to take packets that a veth pair offers.
pub(crate) const WAYS: [&str; 3] = ["copy", "generic", "packet"];

/// Whether to run; prints why not.
pub(crate) fn can_run() -> bool {
    match supported() {
        Ok(()) => true,
        Err(reason) => {
            println!("skipped: {reason:#}");
            false
        }
    }
}

/// See the module.
pub(crate) struct Bed {
    pub(crate) topology: Topology,
    pub(crate) director: Director,
}

impl Bed {
    /// Services on port 80 of both VIPs, round robin over three servers; `io` as the
    /// configuration names it.
    pub(crate) fn new(kind: Kind, io: &str) -> Bed {
        Bed::with(kind, &(top(io) + &web(kind, "rr", &[1, 1, 1])))
    }

    /// Another configuration.
    pub(crate) fn with(kind: Kind, config: &str) -> Bed {
        Bed::of(lay(kind, &Options::default()), config)
    }

    /// One on a topology that a test has changed.
    pub(crate) fn of(topology: Topology, config: &str) -> Bed {
        let director = Director::start(&topology.lab, &topology.director, config).unwrap();
        Bed { topology, director }
    }

    /// Starts another director, when the first has ended.
    pub(crate) fn succeed(&mut self, config: &str) {
        let (lab, host) = (&self.topology.lab, &self.topology.director);
        self.director = Director::start(lab, host, config).unwrap();
    }

    /// Has the servers serve the web on another port too.
    pub(crate) fn serve(&self, port: u16) {
        let program = programs::path("switchyard-lab").unwrap();
        let _ = self.topology.start_web(&program, port, 200).unwrap();
    }

    /// Fetches from the client.
    pub(crate) fn fetch(&self, vip: IpAddr, port: u16, count: u64) -> Tally {
        fetch(&self.topology, vip, port, count)
    }

    /// Every request to port 80 of both VIPs is answered by a real server.
    #[track_caller]
    pub(crate) fn carries(&self, count: u64) {
        for vip in VIPS {
            let tally = self.fetch(vip, 80, count);
            let servers: u64 = (1..=3).map(|number| of(&tally, number)).sum();
            let fates = || self.director.status().map(|status| status.verdicts);
            assert_eq!((servers, tally.failed()), (count, 0), "{vip}: {tally:?}, {:?}", fates());
        }
    }
}

/// Topology, web servers, and with tunnels what unpacks them. No director.
pub(crate) fn lay(kind: Kind, options: &Options) -> Topology {
    let topology = Topology::build(kind, options).unwrap();
    let program = programs::path("switchyard-lab").unwrap();
    // They end with the lab.
    let _ = topology.start_web(&program, 80, 200).unwrap();
    if kind == Kind::Tunnel {
        let _ = topology.start_agents(&program).unwrap();
    }
    topology
}

pub(crate) fn fetch(topology: &Topology, vip: IpAddr, port: u16, count: u64) -> Tally {
    topology.fetch(&Plan::new(SocketAddr::new(vip, port), count), |_| {}).unwrap()
}

/// Answers of server `number`.
pub(crate) fn of(tally: &Tally, number: usize) -> u64 {
    tally.by_server.get(&format!("server{number}")).copied().unwrap_or(0)
}

/// A web server on the director's own host, by the kernel's stack. It calls itself "kernel".
pub(crate) fn kernel_web(topology: &Topology, port: u16) -> Process {
    let program = programs::path("switchyard-lab").unwrap();
    let process = topology
        .director
        .command(program)
        .args(["serve-http", "--name", "kernel"])
        .args(["--listen", &format!("0.0.0.0:{port}")])
        .args(["--listen", &format!("[::]:{port}")])
        .spawn()
        .unwrap();
    process.wait_for_log("serves HTTP", SECOND * 5).unwrap();
    process
}

/// Whether the director's host has the address.
pub(crate) fn has_address(topology: &Topology, address: IpAddr) -> bool {
    topology.director.run(|| TcpListener::bind((address, 0)).is_ok()).unwrap()
}

/// Connects from the client; the error is the kernel's.
pub(crate) fn connect(topology: &Topology, target: SocketAddr) -> std::io::Result<TcpStream> {
    topology.client.run(|| TcpStream::connect_timeout(&target, SECOND * 3)).unwrap()
}

/// Runs a director with its own configuration file, which names its own socket, to its end.
/// Returns exit code and messages.
pub(crate) fn run_director(
    topology: &Topology,
    name: &str,
    config: &str,
    limit: Duration,
) -> (Option<i32>, String) {
    let folder = topology.lab.logs();
    let file = folder.join(format!("{name}.toml"));
    let socket = folder.join(format!("{name}.sock"));
    let control = format!("control = \"{}\"\n", socket.display());
    let control = if config.contains("control =") { String::new() } else { control };
    std::fs::write(&file, control + config).unwrap();
    run_program(topology, &programs::path("director").unwrap(), &file, limit)
}

/// The same, with a program and a file of the caller's.
pub(crate) fn run_program(
    topology: &Topology,
    program: &Path,
    file: &Path,
    limit: Duration,
) -> (Option<i32>, String) {
    let command = topology.director.command(program).arg("--config").arg(file);
    let output = command.output(limit).unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

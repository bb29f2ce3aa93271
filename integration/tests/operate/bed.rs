//! What every test lies in: the standard topology with web servers, a running director, and `dirctl`
//! as an operator would call it.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use integration::http::{Plan, Tally};
use integration::lab::{Host, supported};
use integration::programs;
use integration::running::Director;
use integration::topology::{Kind, Options, Topology};

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

/// What a command said.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Fails unless the output has all of these.
    #[track_caller]
    pub(crate) fn names(&self, words: &[&str]) {
        for word in words {
            assert!(self.out.contains(word), "{word:?} is not said:\n{}\n{}", self.out, self.err);
        }
    }
}

impl Bed {
    /// The topology, web servers on port 80, with tunnels what unpacks them, and a director with this
    /// configuration (see `integration::written`).
    pub(crate) fn with(kind: Kind, config: &str) -> Bed {
        Bed::of(lay(kind, &Options::default()), config)
    }

    /// A director on a topology that a test has changed.
    pub(crate) fn of(topology: Topology, config: &str) -> Bed {
        let director = Director::start(&topology.lab, &topology.director, config).unwrap();
        Bed { topology, director }
    }

    /// `dirctl WORDS` on the director's host.
    pub(crate) fn dirctl(&self, words: &[&str]) -> Said {
        dirctl(&self.topology.director, self.director.socket(), words)
    }

    /// Fetches from the client, each on a new connection.
    pub(crate) fn fetch(&self, vip: IpAddr, port: u16, count: u64) -> Tally {
        let plan = Plan::new(SocketAddr::new(vip, port), count);
        self.topology.fetch(&plan, |_| {}).unwrap()
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

/// `dirctl WORDS` on a host, for the director that listens on `socket`.
pub(crate) fn dirctl(host: &Host, socket: &Path, words: &[&str]) -> Said {
    let command = host.command(programs::path("dirctl").unwrap());
    let command = command.args(words).env("SWITCHYARD_SOCKET", socket);
    let output = command.output(Duration::from_secs(30)).unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

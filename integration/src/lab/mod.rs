//! A lab: hosts and segments made of network namespaces, veth pairs and bridges.
//!
//! Each host is a *named* namespace, `sy-<tag>-<host>`, so that `ip netns exec` opens it while a
//! test is stopped. The tag is random: two labs at once never meet. Everything goes away when the
//! [`Lab`] is dropped, also by a panic, and on Ctrl-C or SIGTERM; what a killed process leaves
//! behind goes away with the next [`sweep`].
//!
//! Knows namespaces, links and processes. Must not know what is tested in it: which addresses and
//! routes a director needs stands in [`topology`](crate::topology).
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use integration::lab::Lab;
//!
//! let lab = Lab::new("two-hosts")?;
//! let (client, server) = (lab.host("client")?, lab.host("server")?);
//! let wire = lab.segment("wire")?;
//! lab.connect(&client, &wire, "eth0", &["192.0.2.100/24", "2001:db8:1::100/64"])?;
//! lab.connect(&server, &wire, "eth0", &["192.0.2.11/24", "2001:db8:1::11/64"])?;
//! let listener = server.run(|| std::net::TcpListener::bind("192.0.2.11:80"))??;
//! let stream = client.run(|| std::net::TcpStream::connect("192.0.2.11:80"))??;
//! # drop((listener, stream));
//! # Ok(())
//! # }
//! ```

mod address;
mod cable;
mod host;
mod interrupt;
mod link;
mod namespace;
mod neighbours;
mod netlink;
mod process;
mod readiness;
mod record;
mod refusal;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail, ensure};

pub use address::{Mac, Prefix};
pub use host::Host;
pub use link::Link;
pub use process::{Command, Process};
pub use record::sweep;

use namespace::Namespace;
use process::Running;
use record::Record;

/// Whether this process may build labs: the error says what is missing. Tests that need a lab ask
/// first and print the answer when they skip.
///
/// # Errors
/// When the caller is not root or the kernel refuses network namespaces.
pub fn supported() -> Result<()> {
    ensure!(nix::unistd::geteuid().is_root(), "building network namespaces needs root");
    namespace::probe()
}

/// A network of hosts that lives as long as this value.
#[derive(Debug)]
pub struct Lab {
    inner: Arc<Inner>,
}

impl Lab {
    /// An empty lab. `name` (a word for people) goes into log lines and the record file.
    ///
    /// Sweeps leftovers of dead processes first, and takes over Ctrl-C and SIGTERM of this
    /// process for good: they tear down its labs and exit with 128 + the signal's number.
    ///
    /// # Errors
    /// When the caller is not root, or `/run` cannot be written.
    pub fn new(name: &str) -> Result<Lab> {
        ensure!(nix::unistd::geteuid().is_root(), "building network namespaces needs root");
        sweep()?;
        interrupt::watch()?;
        let record = Record::create(name)?;
        let logs = std::env::temp_dir().join(format!("switchyard-lab-{}", record.tag()));
        let inner = Arc::new(Inner {
            name: name.to_owned(),
            logs,
            state: Mutex::new(State { record: Some(record.clone()), ..State::default() }),
            tag: record.tag().to_owned(),
            tearing_down: Mutex::new(()),
        });
        // From here on an interrupt removes what has been made.
        interrupt::register(&inner);
        let lab = Lab { inner };
        std::fs::create_dir(&lab.inner.logs)
            .with_context(|| format!("make the log folder {}", lab.inner.logs.display()))?;
        Ok(lab)
    }

    /// The word given to [`new`](Lab::new).
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The random part of every name: six hexadecimal digits.
    pub fn tag(&self) -> &str {
        &self.inner.tag
    }

    /// Where the output of the lab's processes is written. Removed with the lab.
    pub fn logs(&self) -> &Path {
        &self.inner.logs
    }

    /// A new host: a namespace with `lo` up, no other interface, IPv6 without duplicate address
    /// detection and router discovery, and no reverse path filter.
    ///
    /// `name`: letters, digits, `-`; with an interface's name at most 14 bytes.
    ///
    /// # Errors
    /// When the name is taken or unusable.
    pub fn host(&self, name: &str) -> Result<Host> {
        ensure!(
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'),
            "host name {name:?}: use letters, digits and '-'"
        );
        let full_name = format!("{}-{name}", record::namespace_prefix(&self.inner.tag));
        let mut state = self.inner.lock();
        ensure!(state.record.is_some(), "lab {} has been torn down", self.inner.name);
        ensure!(!state.namespaces.contains(&full_name), "host name {name:?} is taken in this lab");
        let namespace = Namespace::create(&full_name)?;
        state.namespaces.push(full_name);
        drop(state);
        let host = Host::new(self.inner.clone(), name, namespace);
        host.prepare()?;
        Ok(host)
    }

    /// A new segment: a bridge in a namespace of its own, which forwards at once (no spanning
    /// tree, no forward delay), floods multicast (no snooping) and sends nothing by itself.
    ///
    /// # Errors
    /// As for [`host`](Lab::host); and when the kernel has no bridge.
    pub fn segment(&self, name: &str) -> Result<Segment> {
        let host = self.host(name)?;
        host.sysctl("net.ipv6.conf.all.disable_ipv6", "1")?;
        host.sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;
        host.run(|| link::create_bridge(BRIDGE))?
            .with_context(|| format!("create the bridge of segment {name}"))?;
        Ok(Segment { host })
    }

    /// Gives `host` an interface on `segment` with these addresses, up and ready to use.
    ///
    /// # Errors
    /// When the interface exists or an address (`"192.0.2.1/24"`) cannot be read.
    pub fn connect(
        &self,
        host: &Host,
        segment: &Segment,
        interface: &str,
        addresses: &[&str],
    ) -> Result<()> {
        self.connect_with(host, segment, &Link::new(interface).addresses(addresses)?)
    }

    /// As [`connect`](Lab::connect), with queues, MTU and MAC address to choose.
    ///
    /// # Errors
    /// As for [`connect`](Lab::connect), or when host and segment are of different labs.
    pub fn connect_with(&self, host: &Host, segment: &Segment, link: &Link) -> Result<()> {
        for other in [host, &segment.host] {
            if !Arc::ptr_eq(other.lab(), &self.inner) {
                bail!("{} is a host of another lab", other.name());
            }
        }
        let mac = {
            let mut state = self.inner.lock();
            state.links += 1;
            link.mac.unwrap_or_else(|| Mac::numbered(state.links))
        };
        let port = format!("{}-{}", host.name(), link.interface);
        link::connect(host, &segment.host, &port, link, mac).with_context(|| {
            format!("connect {} of {} to segment {}", link.interface, host.name(), segment.name())
        })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.inner.tear_down(std::thread::panicking());
    }
}

/// The bridge's name in a segment's namespace.
const BRIDGE: &str = "br0";

/// A layer-2 network: what a switch is to its cables.
#[derive(Clone, Debug)]
pub struct Segment {
    host: Host,
}

impl Segment {
    /// The name given to [`Lab::segment`].
    pub fn name(&self) -> &str {
        self.host.name()
    }

    /// The namespace that holds the bridge `br0` and its ports, `<host>-<interface>`: the place
    /// to capture all that the segment carries.
    pub fn host(&self) -> &Host {
        &self.host
    }
}

/// What the lab, its handles and the interrupt thread share.
#[derive(Debug)]
pub(crate) struct Inner {
    name: String,
    tag: String,
    logs: PathBuf,
    state: Mutex<State>,
    /// Held while tearing down: who comes second (the interrupt thread, about to end the process)
    /// waits for the first to finish.
    tearing_down: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` once torn down.
    record: Option<Record>,
    namespaces: Vec<String>,
    processes: Vec<Arc<Running>>,
    links: u32,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panicked test thread must still get its lab removed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the processes, removes the namespaces and the record. The second call does nothing.
    fn tear_down(&self, print_logs: bool) {
        let _alone = self.tearing_down.lock().unwrap_or_else(PoisonError::into_inner);
        let (record, namespaces, processes) = {
            let mut state = self.lock();
            let Some(record) = state.record.take() else {
                return;
            };
            (record, std::mem::take(&mut state.namespaces), std::mem::take(&mut state.processes))
        };
        process::stop_all(&processes);
        if print_logs {
            process::print_logs(&self.name, &processes);
        }
        for namespace in &namespaces {
            namespace::remove(namespace);
        }
        // The log folder is ours alone; a leftover is not worth a panic in a Drop.
        let _ = std::fs::remove_dir_all(&self.logs);
        record.remove();
        interrupt::forget(self);
    }
}

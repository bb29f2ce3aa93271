//! The director that the tests talk to, and the thread that serves it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::control::api::*;
use crate::control::health::ServerHealth;
use crate::control::operations::{Command, Operations};
use crate::control::server::{self, Limits};
use crate::control::socket;
use crate::fwmark::Rule;
use crate::health::journal::Journal;

/// Services by key only, and as many connections as asked for.
#[derive(Default)]
pub(super) struct Fake {
    pub(super) services: Mutex<Vec<ServiceView>>,
    pub(super) shards: usize,
    pub(super) per_shard: usize,
    /// Highest shard that was asked for.
    pub(super) reached: Mutex<usize>,
    pub(super) panics: bool,
    pub(super) servers: Vec<ServerHealth>,
    pub(super) journal: Arc<Journal>,
}

impl Operations for Fake {
    fn apply(&self, command: Command) -> Result<(), Refusal> {
        let mut services = self.services.lock().unwrap();
        let find = |key: &ServiceKey| services.iter().position(|view| view.spec.key == *key);
        match command {
            Command::AddService { service } if find(&service.key).is_some() => {
                Err(refusal(RefusalKind::ServiceExists, "it is there already"))
            }
            Command::AddService { service } => {
                let view = ServiceView {
                    spec: service,
                    declared: false,
                    stats: Stats::default(),
                    servers: vec![],
                    fallback: None,
                };
                services.insert(0, view);
                Ok(())
            }
            Command::DeleteService { service } => match find(&service) {
                Some(place) => {
                    services.remove(place);
                    Ok(())
                }
                None => Err(refusal(RefusalKind::NoSuchService, "there is none")),
            },
            Command::AddServer { service, server } => match find(&service) {
                Some(place) => {
                    let view = ServerView {
                        picks: 0,
                        local: false,
                        effective_weight: server.weight,
                        spec: server,
                        active: 3,
                        inactive: 4,
                        persistent: 0,
                        stats: Stats { connections: 9, ..Stats::default() },
                    };
                    services[place].servers.insert(0, view);
                    Ok(())
                }
                None => Err(refusal(RefusalKind::NoSuchService, "there is none")),
            },
            Command::Flush => {
                services.clear();
                Ok(())
            }
            _ => Err(refusal(RefusalKind::Unsupported, "not in this test")),
        }
    }

    fn services(&self) -> Vec<ServiceView> {
        assert!(!self.panics, "asked to panic");
        self.services.lock().unwrap().clone()
    }

    fn settings(&self) -> BTreeMap<String, u32> {
        BTreeMap::from([("sloppy_tcp".to_owned(), 1)])
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts { tcp: 900, tcp_fin: 120, udp: 300 }
    }

    fn servers(&self) -> Vec<ServerHealth> {
        self.servers.clone()
    }

    fn journal(&self) -> Option<Arc<Journal>> {
        Some(Arc::clone(&self.journal))
    }

    fn marks(&self) -> Vec<Rule> {
        Vec::new()
    }

    fn connections(&self, shard: usize) -> Option<Vec<ConnectionView>> {
        let mut reached = self.reached.lock().unwrap();
        *reached = shard.max(*reached);
        (shard < self.shards).then(|| (0..self.per_shard).map(|n| connection(shard, n)).collect())
    }

    fn status(&self) -> Status {
        Status {
            version: "0.1.0".to_owned(),
            pid: 1,
            uptime: 1.5,
            mode: "dispatcher".to_owned(),
            config: None,
            applied: None,
            table_size: 4096,
            connections: (self.shards * self.per_shard) as u64,
            services: self.services.lock().unwrap().len() as u32,
            ports: vec![PortView {
                interface: "eth0".to_owned(),
                queue: 0,
                worker: 0,
                io: "AF_XDP copy".to_owned(),
                received: 11,
                transmitted: 10,
                receive_dropped: 1,
                transmit_dropped: 0,
                receiving: 2048,
                transmitting: 0,
                socket: None,
            }],
            packets: String::new(),
            overflow: vec![],
            health: HealthSummary::of(&self.servers),
            workers: vec![],
            max_connections: 0,
            verdicts: vec![VerdictCount {
                verdict: "passed".to_owned(),
                reason: "no_service".to_owned(),
                meaning: "for no service of ours".to_owned(),
                packets: 7,
            }],
            warnings: vec![],
        }
    }
}

fn refusal(error: RefusalKind, message: &str) -> Refusal {
    Refusal { error, message: message.to_owned() }
}

fn connection(shard: usize, number: usize) -> ConnectionView {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    ConnectionView {
        protocol: Some(Protocol::Tcp),
        client: SocketAddr::new([10, 0, (number >> 8) as u8, number as u8].into(), shard as u16),
        virtual_address: address("192.0.2.10:80"),
        server: address("10.0.0.11:80"),
        state: "ESTABLISHED".to_owned(),
        expires: 899,
        engine: None,
    }
}

/// A served socket in a directory of its own.
pub(super) struct Served {
    pub(super) path: PathBuf,
    pub(super) fake: Arc<Fake>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    _directory: tempfile::TempDir,
}

impl Served {
    pub(super) fn new(limits: Limits, fake: Fake) -> Served {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control.sock");
        let fake = Arc::new(fake);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (operations, at) = (Arc::clone(&fake), path.clone());
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(async {
                let (listener, _file) = socket::bind(&at).unwrap();
                ready.send(()).unwrap();
                tokio::select! {
                    () = server::serve_within(limits, listener, operations) => {}
                    _ = stopped => {}
                }
            });
        });
        is_ready.recv().unwrap();
        let (stop, thread) = (Some(stop), Some(thread));
        Served { path, fake, stop, thread, _directory: directory }
    }

    /// Sends `request` as it stands and returns all that comes back until the server closes.
    pub(super) fn raw(&self, request: &[u8]) -> String {
        let mut stream = UnixStream::connect(&self.path).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // A server that answers before it has read everything resets the connection afterwards.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    /// One request on a connection of its own.
    pub(super) fn request(&self, method: &str, path: &str, body: &str) -> String {
        let length = body.len();
        self.raw(
            format!(
                "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
                 content-length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

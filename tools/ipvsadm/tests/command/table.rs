//! A director that has a table and no packets, behind the real control server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use director::control::api::{
    BatchOutcome, CommandRefusal, ConnectionView, OnRefusal, Protocol, Refusal, RefusalKind,
    ServerView, ServiceKey, ServiceView, Stats, Status, Timeouts,
};
use director::control::operations::{Command, Operations};
use director::control::{server, socket};

struct Table {
    services: Mutex<Vec<ServiceView>>,
    /// How many commands each batch had.
    batches: Mutex<Vec<usize>>,
    timeouts: Mutex<Timeouts>,
    /// Parts of the connection table, of a thousand connections each.
    shards: usize,
}

fn refuse<T>(error: RefusalKind) -> Result<T, Refusal> {
    Err(Refusal { error, message: format!("{error:?}") })
}

fn find<'a>(
    services: &'a mut [ServiceView],
    key: &ServiceKey,
) -> Result<&'a mut ServiceView, Refusal> {
    match services.iter_mut().find(|service| service.spec.key == *key) {
        Some(service) => Ok(service),
        None => refuse(RefusalKind::NoSuchService),
    }
}

fn place(service: &ServiceView, address: SocketAddr) -> Result<usize, Refusal> {
    match service.servers.iter().position(|server| server.spec.address == address) {
        Some(place) => Ok(place),
        None => refuse(RefusalKind::NoSuchServer),
    }
}

impl Operations for Table {
    fn batch(&self, commands: Vec<Command>, on_refusal: OnRefusal) -> BatchOutcome {
        self.batches.lock().unwrap().push(commands.len());
        let before = self.services();
        let mut outcome = BatchOutcome::default();
        for (index, command) in commands.into_iter().enumerate() {
            match self.apply(command) {
                Ok(()) => outcome.applied += 1,
                Err(refusal) => outcome.refused.push(CommandRefusal { refusal, index }),
            }
        }
        if on_refusal == OnRefusal::Undo && !outcome.refused.is_empty() {
            *self.services.lock().unwrap() = before;
        }
        outcome
    }

    fn apply(&self, command: Command) -> Result<(), Refusal> {
        let mut services = self.services.lock().unwrap();
        match command {
            Command::AddService { service } => {
                if find(&mut services, &service.key).is_ok() {
                    return refuse(RefusalKind::ServiceExists);
                }
                if service.scheduler == "fifo" {
                    return refuse(RefusalKind::NoSuchScheduler);
                }
                let stats = Stats::default();
                let service = ServiceView {
                    spec: service,
                    declared: false,
                    stats,
                    servers: vec![],
                    fallback: None,
                };
                services.push(service);
            }
            Command::EditService { service } => {
                let found = find(&mut services, &service.key)?;
                found.spec = service;
            }
            Command::DeleteService { service } => {
                find(&mut services, &service)?;
                services.retain(|other| other.spec.key != service);
            }
            Command::Flush => services.clear(),
            Command::AddServer { service, server } => {
                let service = find(&mut services, &service)?;
                if place(service, server.address).is_ok() {
                    return refuse(RefusalKind::ServerExists);
                }
                let (active, inactive, persistent) = (0, 0, 0);
                let stats = Stats::default();
                let server = ServerView {
                    picks: 0,
                    effective_weight: server.weight,
                    spec: server,
                    local: false,
                    active,
                    inactive,
                    persistent,
                    stats,
                };
                service.servers.insert(0, server);
            }
            Command::EditServer { service, server } => {
                let service = find(&mut services, &service)?;
                let place = place(service, server.address)?;
                service.servers[place].effective_weight = server.weight;
                service.servers[place].spec = server;
            }
            Command::DeleteServer { service, server } => {
                let service = find(&mut services, &service)?;
                let place = place(service, server)?;
                service.servers.remove(place);
            }
            Command::Zero { service: Some(service) } => {
                find(&mut services, &service)?;
            }
            Command::Zero { service: None } => {}
            Command::SetMarks { .. } => return refuse(RefusalKind::Unsupported),
            Command::SetTimeouts { timeouts } => {
                let mut now = self.timeouts.lock().unwrap();
                let pick = |new, old| if new == 0 { old } else { new };
                now.tcp = pick(timeouts.tcp, now.tcp);
                now.tcp_fin = pick(timeouts.tcp_fin, now.tcp_fin);
                now.udp = pick(timeouts.udp, now.udp);
            }
            // No command of ipvsadm's does.
            Command::SetSettings { .. } => return refuse(RefusalKind::Unsupported),
        }
        Ok(())
    }

    fn services(&self) -> Vec<ServiceView> {
        self.services.lock().unwrap().clone()
    }

    fn settings(&self) -> BTreeMap<String, u32> {
        BTreeMap::new()
    }

    fn timeouts(&self) -> Timeouts {
        *self.timeouts.lock().unwrap()
    }

    fn marks(&self) -> Vec<director::fwmark::Rule> {
        Vec::new()
    }

    fn connections(&self, shard: usize) -> Option<Vec<ConnectionView>> {
        let [.., middle, low] = (shard as u32).to_be_bytes();
        let connection = |number: u16| ConnectionView {
            protocol: Some(Protocol::Tcp),
            client: SocketAddr::new([10, 0, middle, low].into(), number),
            virtual_address: SocketAddr::new([10, 0, 0, 1].into(), 80),
            server: SocketAddr::new([10, 0, 0, 11].into(), 80),
            state: "ESTABLISHED".to_owned(),
            expires: 899,
            engine: None,
        };
        (shard < self.shards).then(|| (0..1000).map(connection).collect())
    }

    fn status(&self) -> Status {
        Status {
            workers: vec![],
            max_connections: 0,
            version: "0.1.0".to_owned(),
            pid: 1,
            uptime: 0.0,
            mode: "dispatcher".to_owned(),
            config: None,
            applied: None,
            table_size: 8192,
            connections: 2000,
            services: 0,
            ports: vec![],
            health: None,
            packets: String::new(),
            overflow: vec![],
            verdicts: vec![],
            warnings: vec![],
        }
    }
}

/// The table on a socket, in a directory of its own.
pub(crate) struct Served {
    pub(crate) path: PathBuf,
    table: Arc<Table>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    _directory: tempfile::TempDir,
}

impl Served {
    pub(crate) fn new() -> Served {
        Served::with_connections(2)
    }

    /// With so many thousand connections.
    pub(crate) fn with_connections(shards: usize) -> Served {
        let timeouts = Mutex::new(Timeouts { tcp: 900, tcp_fin: 120, udp: 300 });
        let table = Arc::new(Table {
            services: Mutex::default(),
            batches: Mutex::default(),
            timeouts,
            shards,
        });
        let operations = Arc::clone(&table);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control.sock");
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let at = path.clone();
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(async {
                let (listener, _file) = socket::bind(&at).unwrap();
                ready.send(()).unwrap();
                tokio::select! {
                    () = server::serve(listener, table) => {}
                    _ = stopped => {}
                }
            });
        });
        is_ready.recv().unwrap();
        Served {
            path,
            table: operations,
            stop: Some(stop),
            thread: Some(thread),
            _directory: directory,
        }
    }
}

impl Served {
    /// How many commands each batch had so far.
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.table.batches.lock().unwrap().clone()
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

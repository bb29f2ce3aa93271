//! A scheduler's tables are made while new connections go on being scheduled.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, Weak, mpsc};
use std::thread;

use schedulers::placement::Member as Placed;
use schedulers::{Change, Key, Options, Preparation, Prepared, Scheduler, Server, TooManyServers};

use super::*;
use crate::control::api::{Bias, Extras, HashKey, OnRefusal, Placement};
use crate::dispatch::service::Service;
use crate::health::servers::{Servers, Standing};

const ONE: &str = "10.77.0.11:80";
const TWO: &str = "10.77.0.12:80";
const THREE: &str = "10.77.0.13:80";

/// What a scheduler has done.
#[derive(Default)]
struct Seen {
    service: OnceLock<Weak<Service>>,
    /// Servers of the last plan.
    planned: Mutex<Vec<Placed>>,
    prepared: AtomicUsize,
    /// Of these, while somebody else could have the lock.
    unlocked: AtomicUsize,
    changes: AtomicUsize,
    /// Changes that came with work that was not done yet.
    unprepared: AtomicUsize,
}

impl Seen {
    fn counts(&self) -> [usize; 4] {
        let all = [&self.prepared, &self.unlocked, &self.changes, &self.unprepared];
        all.map(|count| count.swap(0, Relaxed))
    }

    /// Whether another thread gets the service's lock at once.
    fn can_be_locked(&self) -> bool {
        let Some(service) = self.service.get().and_then(Weak::upgrade) else { return false };
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            drop(service.choice());
            let _ = tell.send(());
        });
        told.recv_timeout(Duration::from_secs(5)).is_ok()
    }
}

/// dht, with an eye on when it works.
struct Watched {
    dht: Box<dyn Scheduler>,
    seen: Arc<Seen>,
    is_offered: bool,
}

impl Scheduler for Watched {
    fn plan(&self, members: &[Placed]) -> Option<Preparation> {
        let plan = self.dht.plan(members)?;
        *self.seen.planned.lock().unwrap() = members.to_vec();
        let seen = self.seen.clone();
        Some(Preparation::new(move || {
            seen.prepared.fetch_add(1, Relaxed);
            seen.unlocked.fetch_add(usize::from(seen.can_be_locked()), Relaxed);
            plan.run()
        }))
    }

    fn offer(&mut self, prepared: &Prepared) {
        self.is_offered = true;
        self.dht.offer(prepared);
    }

    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        let members: Vec<_> = servers.iter().map(|server| Placed::of(server)).collect();
        let fits =
            std::mem::take(&mut self.is_offered) && *self.seen.planned.lock().unwrap() == members;
        self.seen.changes.fetch_add(1, Relaxed);
        let has_work = !members.is_empty() && self.dht.plan(&members).is_some();
        self.seen.unprepared.fetch_add(usize::from(has_work && !fits), Relaxed);
        self.dht.changed(servers, change)
    }

    fn choose(&mut self, servers: &[Arc<Server>], key: &Key, now: Duration) -> Option<usize> {
        self.dht.choose(servers, key, now)
    }

    fn fork(&self, servers: &[Arc<Server>], key: &Key) -> Box<dyn Scheduler> {
        self.dht.fork(servers, key)
    }

    fn figure(&self, index: usize, server: &Server) -> String {
        self.dht.figure(index, server)
    }
}

fn weighing(address: &str, weight: i32) -> ServerSpec {
    ServerSpec { weight, ..server(address) }
}

/// A table with a service whose scheduler is watched.
fn watched() -> (Table, Arc<Seen>) {
    let (table, seen) = (table(), Arc::new(Seen::default()));
    let dht = schedulers::create("dht", &Options::default()).unwrap();
    let scheduler = Watched { dht, seen: seen.clone(), is_offered: false };
    let spec = ServiceSpec { scheduler: "dht".into(), ..service() };
    let service = Arc::new(Service::new(spec, Box::new(scheduler)));
    seen.service.set(Arc::downgrade(&service)).unwrap();
    let mut state = table.lock();
    state.services.push(service.clone());
    state.show(service);
    drop(state);
    (table, seen)
}

#[test]
fn whatever_changes_is_prepared_without_the_services_lock() {
    let (table, seen) = watched();
    let add = |address| Command::AddServer { service: key(), server: weighing(address, 1) };
    let edit =
        |address, weight| Command::EditServer { service: key(), server: weighing(address, weight) };
    for address in [ONE, TWO, THREE] {
        done(&table, add(address));
        assert_eq!(seen.counts(), [1, 1, 1, 0], "added {address}");
    }
    done(&table, edit(TWO, 5));
    assert_eq!(seen.counts(), [1, 1, 1, 0], "edited");
    done(&table, edit(TWO, 5));
    assert_eq!(seen.counts(), [0, 0, 1, 0], "nothing to do");
    let down = Standing { is_admitted: false, permille: 1000 };
    for standing in [down, Standing::UNCHECKED] {
        assert!(table.stand(&key(), TWO.parse().unwrap(), standing).is_some());
        assert_eq!(seen.counts(), [1, 1, 1, 0], "{standing:?}");
    }
    let edits = vec![edit(ONE, 2), edit(TWO, 3), edit(THREE, 4)];
    let outcome = table.batch(edits, OnRefusal::Undo, NOW);
    assert_eq!(outcome.applied, 3);
    assert_eq!(seen.counts(), [1, 1, 3, 0], "three edits as one");
    done(&table, Command::DeleteServer { service: key(), server: TWO.parse().unwrap() });
    assert_eq!(seen.counts(), [1, 1, 1, 0], "removed");
    done(&table, Command::DeleteService { service: key() });
    assert_eq!(seen.counts(), [0, 0, 1, 0], "all servers go as one");
}

#[test]
fn a_batch_that_exchanges_servers_and_an_edit_that_exchanges_the_scheduler_choose_as_before() {
    let (table, _) = watched();
    let add = |address| Command::AddServer { service: key(), server: weighing(address, 1) };
    [ONE, TWO].into_iter().for_each(|address| done(&table, add(address)));
    let chosen = |port: u16| {
        let key = Key {
            protocol: 6,
            source: "198.51.100.7".parse().unwrap(),
            source_port: port,
            destination: "192.0.2.10".parse().unwrap(),
            destination_port: 80,
            name: None,
        };
        let service = table.service(&self::key()).unwrap();
        service.schedule(&key, NOW).unwrap().binding.server.address()
    };
    let placement = Placement { key: Some(HashKey::SourcePort), ..Placement::default() };
    let extras = Some(Extras { placement, bias: Bias::None, ..Extras::default() });
    let spec = ServiceSpec { scheduler: "dht".into(), extras, ..service() };
    done(&table, Command::EditService { service: spec });
    let with_two: Vec<_> = (1..60).map(chosen).collect();
    let exchange =
        vec![Command::DeleteServer { service: key(), server: TWO.parse().unwrap() }, add(THREE)];
    assert_eq!(table.batch(exchange, OnRefusal::Undo, NOW).applied, 2);
    let with_three: Vec<_> = (1..60).map(chosen).collect();
    assert!(with_three.contains(&THREE.parse().unwrap()));
    assert!(!with_three.contains(&TWO.parse().unwrap()));
    let back =
        vec![Command::DeleteServer { service: key(), server: THREE.parse().unwrap() }, add(TWO)];
    assert_eq!(table.batch(back, OnRefusal::Undo, NOW).applied, 2);
    assert_eq!((1..60).map(chosen).collect::<Vec<_>>(), with_two);
}

/// The file has such a dht service with such servers.
fn declare(table: &Table, servers: &[ServerSpec]) -> usize {
    let mut declared = declared(servers);
    declared[0].service.scheduler = "dht".into();
    let changes = table.declare(&declared, &[], NOW).unwrap();
    assert_eq!(changes.refused, []);
    changes.made
}

#[test]
fn a_file_makes_the_table_of_a_service_once_however_many_servers_change() {
    let (table, seen) = watched();
    let address = |number: u32| format!("10.77.{}.{}:80", number / 250, number % 250 + 1);
    let mut servers: Vec<_> = (0..300).map(|number| weighing(&address(number), 1)).collect();
    assert_eq!(declare(&table, &servers), 301, "and the service, which nobody had declared");
    assert_eq!(seen.counts(), [1, 1, 1, 0], "300 servers");
    assert_eq!(declare(&table, &servers), 0);
    assert_eq!(seen.counts(), [0, 0, 0, 0], "nothing new");

    // An operator's server stays, and so does what he has changed of one that the file has not.
    let own = weighing("10.78.0.1:80", 1);
    done(&table, Command::AddServer { service: key(), server: own });
    done(&table, Command::EditServer { service: key(), server: weighing(&address(9), 3) });
    seen.counts();
    let before = table.service(&key()).unwrap();
    let stays = before.choice().members().last().unwrap().server.clone();
    servers.drain(100..200);
    servers[5].weight = 7;
    servers.extend((300..350).map(|number| weighing(&address(number), 2)));
    assert_eq!(declare(&table, &servers), 100 + 1 + 50);
    assert_eq!(seen.counts(), [1, 1, 1, 0], "100 removed, 1 edited, 50 added");
    let after = table.service(&key()).unwrap();
    assert!(Arc::ptr_eq(&before, &after));
    assert!(Arc::ptr_eq(&stays, &after.choice().members().last().unwrap().server));

    // The same, one by one.
    let plain = self::table();
    let add = |address: &str, weight| Command::AddServer {
        service: key(),
        server: weighing(address, weight),
    };
    done(
        &plain,
        Command::AddService { service: ServiceSpec { scheduler: "dht".into(), ..service() } },
    );
    let stayed = (0..100).chain(200..300);
    for number in stayed {
        let weight = [1, 7, 3][usize::from(number == 5) + 2 * usize::from(number == 9)];
        done(&plain, add(&address(number), weight));
    }
    done(&plain, add("10.78.0.1:80", 1));
    (300..350).for_each(|number| done(&plain, add(&address(number), 2)));
    assert_eq!(weights(&table), weights(&plain));
}

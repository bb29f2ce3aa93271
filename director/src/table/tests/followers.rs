//! Whatever happens to the table: those who hear only what is new know the same as those who look
//! at all of it, and workers see what operators see.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::control::api::{OnRefusal, Tunnel, TunnelChecksum};
use crate::dispatch::settings::Setting;
use crate::fwmark::Rule;

/// One thing that happens. Small numbers pick a service or a server.
#[derive(Clone, Debug)]
enum Step {
    Command(Command),
    Batch(Vec<Command>),
    Open(usize, usize),
    Close(usize, usize),
    Wait(u64),
}

fn any_key() -> impl Strategy<Value = ServiceKey> {
    let key = |protocol, address: &str| {
        Just(ServiceKey::Address { protocol, address: address.parse().unwrap() })
    };
    prop_oneof![
        key(Protocol::Tcp, "192.0.2.10:80"),
        key(Protocol::Tcp, "192.0.2.10:21"),
        key(Protocol::Udp, "192.0.2.10:80"),
        key(Protocol::Tcp, "192.0.2.11:0"),
        Just(ServiceKey::Fwmark { fwmark: 1, ipv6: false }),
    ]
}

fn any_service() -> impl Strategy<Value = ServiceSpec> {
    let engine = any::<bool>().prop_map(|sip| sip.then(|| "sip".to_owned()));
    let persistence = prop::option::of(engine)
        .prop_map(|some| some.map(|engine| Persistence { timeout: 60, prefix: 32, engine }));
    (any_key(), persistence, any::<bool>()).prop_map(|(key, persistence, rr)| ServiceSpec {
        key,
        persistence,
        scheduler: if rr { "rr" } else { "wlc" }.into(),
        ..service()
    })
}

fn any_server() -> impl Strategy<Value = ServerSpec> {
    let gue = Tunnel::Gue { port: 6080, checksum: TunnelChecksum::Csum };
    let ways = [
        (Forwarding::Nat, Tunnel::Ipip),
        (Forwarding::Direct, Tunnel::Ipip),
        (Forwarding::Tunnel, Tunnel::Ipip),
        (Forwarding::Tunnel, gue),
    ];
    (1..5_u8, 0..ways.len(), 0..3_i32).prop_map(move |(last, way, weight)| {
        // 10.77.0.1 is the director's own.
        let (forwarding, tunnel) = ways[way];
        ServerSpec { forwarding, tunnel, weight, ..server(&format!("10.77.0.{last}:80")) }
    })
}

pub(super) fn any_command() -> impl Strategy<Value = Command> {
    let rule: Rule = serde_json::from_str(r#"{"mark": 1, "protocol": "tcp"}"#).unwrap();
    let nat = |on| Command::SetSettings {
        settings: BTreeMap::from([("nat_icmp_send".to_owned(), u32::from(on))]),
    };
    prop_oneof![
        4 => any_service().prop_map(|service| Command::AddService { service }),
        3 => any_service().prop_map(|service| Command::EditService { service }),
        2 => any_key().prop_map(|service| Command::DeleteService { service }),
        6 => (any_key(), any_server())
            .prop_map(|(service, server)| Command::AddServer { service, server }),
        4 => (any_key(), any_server())
            .prop_map(|(service, server)| Command::EditServer { service, server }),
        3 => (any_key(), any_server())
            .prop_map(|(service, server)| Command::DeleteServer { service, server: server.address }),
        1 => Just(Command::Flush),
        1 => any::<bool>().prop_map(nat),
        1 => any::<bool>().prop_map(move |some| Command::SetMarks {
            marks: if some { vec![rule.clone()] } else { vec![] }
        }),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let server = (0..5_usize, 0..5_usize);
    prop_oneof![
        10 => any_command().prop_map(Step::Command),
        2 => prop::collection::vec(any_command(), 1..12).prop_map(Step::Batch),
        3 => server.clone().prop_map(|(service, server)| Step::Open(service, server)),
        2 => server.prop_map(|(service, server)| Step::Close(service, server)),
        1 => (1..200_u64).prop_map(Step::Wait),
    ]
}

/// Those who follow, and what they know.
struct World {
    table: Table,
    now: Duration,
    /// Servers with connections of ours, also when they have been removed.
    connected: Vec<Arc<crate::dispatch::service::RealServer>>,
    interests: BTreeSet<Interest>,
}

impl World {
    fn step(&mut self, step: Step) {
        match step {
            Step::Command(command) => _ = self.table.change(command, self.now),
            Step::Batch(commands) => {
                self.table.batch(commands, OnRefusal::Undo, self.now);
            }
            Step::Open(service, server) => {
                let state = self.table.lock();
                let Some(service) = state.services.iter().nth(service) else { return };
                let Some(member) = service.choice().members().get(server).cloned() else { return };
                member.server.load.connection_opened();
                self.connected.push(member.server);
            }
            Step::Close(service, server) if !self.connected.is_empty() => {
                let place = (service * 5 + server) % self.connected.len();
                self.connected.swap_remove(place).load.connection_closed(false);
            }
            Step::Close(..) => {}
            Step::Wait(seconds) => self.now += Duration::from_secs(seconds),
        }
        self.table.sweep(self.now);
    }

    fn agrees(&mut self) -> Result<(), TestCaseError> {
        let tidings = self.table.tidings();
        for interest in tidings.added {
            prop_assert!(self.interests.insert(interest), "{interest:?} is not new");
        }
        for interest in tidings.removed {
            prop_assert!(self.interests.remove(&interest), "{interest:?} was not there");
        }
        let known: Vec<_> = self.interests.iter().copied().collect();
        prop_assert_eq!(known, self.table.interests());

        let views = self.table.service_views();
        let servers = views.iter().flat_map(|view| view.servers.iter().map(move |s| (view, s)));
        let remote = servers.clone().filter(|(_, s)| !s.local);
        let expected: HashSet<IpAddr> = remote.map(|(_, s)| s.spec.address.ip()).collect();
        prop_assert_eq!(
            self.table.server_addresses().into_iter().collect::<HashSet<_>>(),
            expected
        );

        let services = self.table.published().load_full();
        for (protocol, address) in
            [(6, "192.0.2.10:80"), (6, "192.0.2.10:21"), (17, "192.0.2.10:80"), (6, "192.0.2.11:9")]
        {
            let address: SocketAddr = address.parse().unwrap();
            let found = services.find(protocol, address.ip(), address.port());
            let shown = views.iter().any(|view| match view.spec.key {
                ServiceKey::Address { protocol: own, address: at } => {
                    own.number() == protocol
                        && at.ip() == address.ip()
                        && [address.port(), 0].contains(&at.port())
                }
                ServiceKey::Fwmark { .. } => false,
            });
            prop_assert_eq!(found.is_some(), shown);
        }
        let is_noted = self.table.shared().settings.is_on(Setting::NatIcmpSend);
        for last in 1..5 {
            let address: SocketAddr = format!("10.77.0.{last}:80").parse().unwrap();
            let mut of_tcp = servers.clone().filter(|(view, server)| {
                let tcp = match view.spec.key {
                    ServiceKey::Address { protocol, .. } => protocol == Protocol::Tcp,
                    ServiceKey::Fwmark { .. } => true,
                };
                let by_nat = server.spec.forwarding == Forwarding::Nat && !server.local;
                tcp && server.spec.address == address && by_nat
            });
            prop_assert_eq!(
                services.has_nat_server(6, address.ip(), address.port()),
                is_noted && of_tcp.next().is_some()
            );
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn who_hears_only_what_is_new_knows_the_whole(
        steps in prop::collection::vec(any_step(), 1..60),
    ) {
        let mut world = World {
            table: table(), now: NOW, connected: Vec::new(), interests: BTreeSet::new(),
        };
        for step in steps {
            let told = format!("after {step:?}");
            world.step(step);
            world.agrees().map_err(|error| TestCaseError::fail(format!("{told}: {error}")))?;
        }
    }
}

#[test]
fn a_server_more_of_a_running_service_is_no_new_publication() {
    let table = table();
    done(&table, Command::AddService { service: service() });
    let before = table.published().load_full();
    done(&table, Command::AddServer { service: key(), server: server("10.77.0.11:80") });
    assert!(Arc::ptr_eq(&before, &table.published().load_full()));
}

#[test]
fn a_snapshot_that_a_worker_has_let_go_of_is_taken_apart_by_the_table() {
    let table = table();
    let worker = table.published().load_full();
    let snapshot = Arc::downgrade(&worker);
    done(&table, Command::AddService { service: service() });
    table.sweep(NOW);
    drop(worker);
    assert!(snapshot.upgrade().is_some(), "it was the worker who took it apart");
    table.sweep(NOW);
    assert!(snapshot.upgrade().is_none());
}

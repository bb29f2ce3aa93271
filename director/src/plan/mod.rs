//! What would change if the running director followed another configuration file.
//!
//! Pure: two files and what runs go in, a [`Plan`] comes out. The commands that it tells of are those
//! that are carried out (`steps.rs`), for a reload as for `dirctl apply`. Must not know the table.

mod fields;
pub mod restart;
pub mod steps;
#[cfg(test)]
mod tests;
mod watched;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use crate::config::{Config, DeclaredService};
use crate::control::api::{
    Extras, Forwarding, GoneServer, ServerSpec, ServerView, ServiceKey, ServiceSpec, ServiceView,
    Timeouts, Tunnel,
};
use crate::control::operations::Command;
use crate::control::plan::{
    Action, Fate, FieldChange, MarksChange, Plan, ServerChange, ServiceChange,
};
use crate::dispatch::settings::Setting;
use crate::fwmark::Rule;
use fields::{differ, one};
use steps::{Running, steps};

/// What runs.
pub struct Now {
    /// Services with their servers.
    pub services: Vec<ServiceView>,
    /// Settings by name.
    pub settings: BTreeMap<String, u32>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// The rules that set firewall marks.
    pub marks: Vec<Rule>,
}

/// What name and protocol of a service are made of.
const NAME: &[&str] = &["protocol", "address", "fwmark", "ipv6"];
/// When one of these is another, so is the scheduler.
const OF_SCHEDULER: &[&str] = &["scheduler", "flags", "bias", "bias_window"];

/// What would change if the director, which follows the file `old`, followed the file `new` called
/// `file`. With another mode nothing but a restart would help, and nothing else is looked at.
pub fn plan(file: &str, old: &Config, new: &Config, now: &Now) -> Plan {
    let restart = restart::keys(old, new).into_iter().map(str::to_owned).collect();
    let mut plan = Plan { file: file.to_owned(), restart, ..Plan::default() };
    if old.mode != new.mode {
        return plan;
    }
    plan.settings = settings(&old.settings, &new.settings)
        .iter()
        .filter_map(|(name, value)| {
            let running = now.settings.get(name).map(u32::to_string).unwrap_or_default();
            one(name, running, value.to_string())
        })
        .collect();
    plan.timeouts = new.timeouts.map_or_else(Vec::new, |wanted| timeouts(now.timeouts, wanted));
    plan.marks = marks(&old.marks, &new.marks, &now.marks);
    plan.services = services(old, new, now);
    plan
}

/// Settings that the file `after` asks for otherwise than `before`: what it does not say any more goes
/// back to its default. What an operator has set stays where the file has not changed.
pub fn settings(
    before: &BTreeMap<Setting, u32>,
    after: &BTreeMap<Setting, u32>,
) -> BTreeMap<String, u32> {
    let said = |file: &BTreeMap<Setting, u32>, setting: Setting| {
        file.get(&setting).copied().unwrap_or(setting.default())
    };
    let differing = Setting::ALL.iter().filter(|one| said(before, **one) != said(after, **one));
    differing.map(|&one| (one.name().to_owned(), said(after, one))).collect()
}

fn timeouts(running: Timeouts, wanted: Timeouts) -> Vec<FieldChange> {
    let pairs = [
        ("tcp", running.tcp, wanted.tcp),
        ("tcp_fin", running.tcp_fin, wanted.tcp_fin),
        ("udp", running.udp, wanted.udp),
    ];
    let change = |(name, old, new): (&str, u32, u32)| {
        // 0 leaves a timeout as it is.
        one(name, old.to_string(), if new == 0 { old } else { new }.to_string())
    };
    pairs.into_iter().filter_map(change).collect()
}

fn marks(before: &[Rule], after: &[Rule], running: &[Rule]) -> Option<MarksChange> {
    if before == after || running == after {
        return None;
    }
    let only = |these: &[Rule], those: &[Rule]| -> Vec<String> {
        these.iter().filter(|rule| !those.contains(rule)).map(rule).collect()
    };
    Some(MarksChange { removed: only(running, after), added: only(after, running) })
}

/// `mark=7 protocol=tcp destination=192.0.2.10/32 ports=80`
fn rule(rule: &Rule) -> String {
    let words = differ(None, Some(rule), &[]);
    let words = words.iter().map(|field| format!("{}={}", field.field, field.new));
    words.collect::<Vec<_>>().join(" ")
}

/// Views by name, with their servers by address.
struct Views<'a>(HashMap<ServiceKey, (&'a ServiceView, HashMap<SocketAddr, &'a ServerView>)>);

impl<'a> Views<'a> {
    fn new(services: &'a [ServiceView]) -> Views<'a> {
        let entry = |service: &'a ServiceView| {
            let servers = service.servers.iter().map(|server| (server.spec.address, server));
            (service.spec.key, (service, servers.collect()))
        };
        Views(services.iter().map(entry).collect())
    }

    fn service(&self, key: &ServiceKey) -> Option<&'a ServiceView> {
        self.0.get(key).map(|(service, _)| *service)
    }

    fn server(&self, key: &ServiceKey, address: SocketAddr) -> Option<&'a ServerView> {
        self.0.get(key).and_then(|(_, servers)| servers.get(&address)).copied()
    }
}

impl Running for Views<'_> {
    fn has_service(&self, service: &ServiceKey) -> bool {
        self.service(service).is_some()
    }

    fn has_server(&self, service: &ServiceKey, server: SocketAddr) -> bool {
        self.server(service, server).is_some()
    }
}

fn services(old: &Config, new: &Config, now: &Now) -> Vec<ServiceChange> {
    let views = Views::new(&now.services);
    let by_key = |config: &Config| -> HashMap<ServiceKey, DeclaredService> {
        config.services.iter().map(|it| (it.service.key, it.clone())).collect()
    };
    let (before, after) = (by_key(old), by_key(new));
    let ends = ends_orphans(old, new, now);
    let mut steps = steps(&before, &new.services, &views).into_iter().peekable();
    let mut changes = Vec::new();
    while let Some((key, Command::DeleteService { .. })) =
        steps.next_if(|(_, command)| matches!(command, Command::DeleteService { .. }))
    {
        changes.extend(views.service(&key).map(|view| removed(view, ends)));
    }
    let mut steps_of: HashMap<ServiceKey, Vec<Command>> = HashMap::new();
    for (key, command) in steps {
        steps_of.entry(key).or_default().push(command);
    }
    for declared in &new.services {
        let key = declared.service.key;
        let commands = steps_of.remove(&key).unwrap_or_default();
        let mut change = changed(&views, declared, commands, ends);
        let health = before.get(&key).map(|before| before.health.clone()).unwrap_or_default();
        change.fields.extend(watched::differ(&health, &after[&key].health));
        let is_same = change.fields.is_empty() && change.servers.is_empty();
        if change.action == Action::Added || !is_same {
            changes.push(change);
        }
    }
    changes
}

/// Whether connections of servers that are gone end at once, once the file is followed.
fn ends_orphans(old: &Config, new: &Config, now: &Now) -> bool {
    let name = Setting::ExpireNodestConn.name();
    let wanted = settings(&old.settings, &new.settings);
    wanted.get(name).or(now.settings.get(name)).is_some_and(|value| *value != 0)
}

fn removed(view: &ServiceView, ends: bool) -> ServiceChange {
    ServiceChange {
        service: view.spec.key,
        action: Action::Removed,
        fields: Vec::new(),
        servers: Vec::new(),
        connections: view.servers.iter().map(connections).sum(),
        fate: Some(fate_of_gone(&view.spec, ends)),
        forgets: false,
    }
}

fn changed(
    views: &Views<'_>,
    declared: &DeclaredService,
    commands: Vec<Command>,
    ends: bool,
) -> ServiceChange {
    let key = declared.service.key;
    let view = views.service(&key);
    let mut change = ServiceChange {
        service: key,
        action: if view.is_some() { Action::Changed } else { Action::Added },
        fields: Vec::new(),
        servers: Vec::new(),
        connections: view.map_or(0, |view| view.servers.iter().map(connections).sum()),
        fate: view.map(|_| Fate::Stay),
        forgets: false,
    };
    // What it will be when its servers go.
    let spec = match commands.first() {
        Some(Command::EditService { service }) => service,
        _ => view.map_or(&declared.service, |view| &view.spec),
    };
    for command in &commands {
        match command {
            Command::AddService { service } => change.fields = new_service(service),
            Command::EditService { service } => {
                change.fields = differ(view.map(|view| &view.spec), Some(service), NAME);
                change.forgets = change.fields.iter().any(|field| {
                    let name = field.field.as_str();
                    OF_SCHEDULER.contains(&name) || name.starts_with("placement")
                });
            }
            Command::AddServer { server, .. } => change.servers.push(new_server(server)),
            Command::EditServer { server, .. } => {
                let old = views.server(&key, server.address);
                change.servers.extend(old.and_then(|old| edited(old, server)));
            }
            Command::DeleteServer { server, .. } => {
                change.servers.push(ServerChange {
                    address: *server,
                    action: Action::Removed,
                    fields: Vec::new(),
                    connections: views.server(&key, *server).map_or(0, connections),
                    fate: Some(fate_of_gone(spec, ends)),
                });
            }
            _ => {}
        }
    }
    let fallback = view.and_then(|view| view.fallback.as_ref()).map(|view| &view.spec);
    let fallback = differ(fallback, declared.fallback.as_ref(), &[]);
    change.fields.extend(fallback.into_iter().map(|field| {
        let name = format!("fallback.{}", field.field);
        FieldChange { field: name, ..field }
    }));
    change
}

/// What of a new service is not as it would be if nothing was said.
fn new_service(spec: &ServiceSpec) -> Vec<FieldChange> {
    let silent = ServiceSpec {
        key: spec.key,
        scheduler: String::new(),
        flags: 0,
        persistence: None,
        one_packet: false,
        extras: Some(Extras::default()),
    };
    let fields = differ(Some(&silent), Some(spec), NAME);
    fields.into_iter().map(|field| FieldChange { old: String::new(), ..field }).collect()
}

fn new_server(spec: &ServerSpec) -> ServerChange {
    let silent = ServerSpec {
        address: spec.address,
        // Some other one, so that it is told.
        forwarding: match spec.forwarding {
            Forwarding::Nat => Forwarding::Direct,
            _ => Forwarding::Nat,
        },
        tunnel: Tunnel::default(),
        weight: -1,
        upper_threshold: 0,
        lower_threshold: 0,
    };
    let fields = differ(Some(&silent), Some(spec), &["address"]);
    ServerChange {
        address: spec.address,
        action: Action::Added,
        fields: fields.into_iter().map(|it| FieldChange { old: String::new(), ..it }).collect(),
        connections: 0,
        fate: None,
    }
}

/// A server that stays, if anything of it differs.
fn edited(old: &ServerView, new: &ServerSpec) -> Option<ServerChange> {
    let fields = differ(Some(&old.spec), Some(new), &["address"]);
    let is_method =
        |field: &FieldChange| field.field == "forwarding" || field.field.starts_with("tunnel");
    let fate = if fields.iter().any(is_method) { Fate::KeepMethod } else { Fate::Stay };
    (!fields.is_empty()).then(|| ServerChange {
        address: new.address,
        action: Action::Changed,
        fields,
        connections: connections(old),
        fate: Some(fate),
    })
}

fn connections(view: &ServerView) -> u64 {
    u64::from(view.active) + u64::from(view.inactive)
}

/// What becomes of the connections of a server that goes from a service.
fn fate_of_gone(spec: &ServiceSpec, ends: bool) -> Fate {
    match spec.extras.unwrap_or_default().gone_server {
        _ if ends => Fate::End,
        GoneServer::Drop => Fate::Drop,
        GoneServer::Rst => Fate::Reset,
        GoneServer::Reschedule => Fate::Reschedule,
    }
}

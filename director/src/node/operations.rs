//! The node as the control API sees it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use ::nlb::host::HostId;
use ::nlb::key::SealKey;
use tokio::sync::Notify;
use tracing::info;

use super::about::About;
use super::answers::{self, Scene};
use super::host::Host;
use super::remote::{Obey, Remote};
use super::sockets;
use super::{clock, lock, reload};
use crate::control::VERSION;
use crate::control::api::{ConnectionView, Refusal, RefusalKind, ServiceView, Status, Timeouts};
use crate::control::explain::{Explanation, Question};
use crate::control::nlb::views::NlbView;
use crate::control::nlb::{NlbAnswer, NlbCommand, NlbReply, NlbRequest, NlbResult};
use crate::control::operations::{Command, Operations};
use crate::control::plan::{ApplyRequest, FileApplied, Plan, PlanRequest, Settled, Verdict};
use crate::control::remote::Controller;
use crate::fwmark::Rule;

/// What ends up in every answer about services, which a node does not have.
const NOT_HERE: &str = "mode \"nlb\": services come from the configuration file, the same on every \
                        host: change it there and reload (SIGHUP, or `dirctl nlb reload`)";

/// Why no other file is planned or applied.
const NO_FILES: &str = "mode \"nlb\": a host follows its own file, which is the same on every host; \
                        `director check` says what is wrong in it, and once it is changed on all of them \
                        `dirctl nlb reload --host all` has it followed";

/// See the module.
#[derive(Debug)]
pub(super) struct Control {
    host: Arc<Mutex<Host>>,
    /// Wakes the node's loop: a command has changed something that must be told and done at once.
    wake: Arc<Notify>,
    pub(super) about: About,
    pub(super) reload: reload::Reload,
}

impl Control {
    pub(super) fn new(
        host: Arc<Mutex<Host>>,
        wake: Arc<Notify>,
        about: About,
        reload: reload::Reload,
    ) -> Control {
        Control { host, wake, about, reload }
    }

    /// Carries out a command on this host. Blocks: some ten milliseconds where the kernel's sockets
    /// are asked, a tenth of a second for `capacity`.
    pub(super) fn here(&self, command: &NlbCommand, from: &str) -> NlbAnswer {
        match command {
            NlbCommand::Reload => return self.reload(from),
            NlbCommand::Capacity => return self.capacity(),
            _ => {}
        }
        let held = match answers::needs_sockets(command) {
            true => sockets::held(),
            false => Ok(Vec::new()),
        };
        let held = match held {
            Ok(held) => held,
            Err(error) => {
                let message = format!("the kernel's sockets cannot be listed: {error}");
                return self.say(NlbResult::Failed, Some(message), None);
            }
        };
        let mut host = lock(&self.host);
        let scene = Scene { about: &self.about, held: &held, now: clock() };
        let answer = answers::answer(&mut host, command, &scene);
        drop(host);
        let asked = !matches!(answer.view.as_deref(), None | Some(NlbView::Rules(_)));
        let done = matches!(answer.result, NlbResult::Done | NlbResult::DrainInterrupted);
        if done && !asked {
            info!("{from}: {}", describe(command));
            self.wake.notify_one();
        }
        answer
    }

    /// Reads the file again.
    pub(super) fn reload(&self, from: &str) -> NlbAnswer {
        info!("{from}: reload");
        let outcome = self.reload.again(&mut lock(&self.host), &self.about, clock());
        self.wake.notify_one();
        match outcome {
            Ok(message) => self.say(NlbResult::Done, message, None),
            Err(message) => self.say(NlbResult::Failed, Some(message), None),
        }
    }

    fn capacity(&self) -> NlbAnswer {
        let policy = lock(&self.host).policy().clone();
        match answers::capacity(&policy) {
            Ok(cost) => self.say(NlbResult::Done, None, Some(NlbView::Capacity(cost))),
            Err(error) => self.say(NlbResult::Failed, Some(format!("{error:#}")), None),
        }
    }

    fn say(&self, result: NlbResult, message: Option<String>, view: Option<NlbView>) -> NlbAnswer {
        NlbAnswer {
            host: self.about.host.get(),
            name: self.about.name.clone(),
            state: lock(&self.host).membership.state().to_string(),
            result,
            message,
            view: view.map(Box::new),
        }
    }

    /// Asks other hosts, at their own addresses.
    fn there(&self, hosts: &[HostId], command: &NlbCommand) -> std::io::Result<NlbReply> {
        let own = self.about.addresses.first().copied();
        let family = own.is_none_or(|own| own.is_ipv4());
        let known = self.about.hosts();
        let addresses = hosts.iter().filter_map(|host| {
            let mut all = known.get(host.index())?.iter();
            all.find(|address| address.is_ipv4() == family)
        });
        let to: Vec<SocketAddr> =
            addresses.map(|address| SocketAddr::new(*address, Remote::PORT)).collect();
        let any = own.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED.into());
        Controller::new(self.key(), any)?.ask(&to, hosts, command)
    }

    /// The virtual addresses, and the interface that the filter is on.
    pub(super) fn place(&self) -> (Vec<std::net::IpAddr>, String) {
        let vips = lock(&self.host).policy().vips.to_vec();
        (vips, self.about.interface.clone())
    }

    /// The key of commands between machines.
    pub(super) fn key(&self) -> SealKey {
        lock(&self.host).key().control().clone()
    }

    /// The hosts that a word means: `all`, an id, an address, a name.
    fn meant(&self, word: &str) -> Result<Vec<HostId>, Refusal> {
        let hosts = self.about.hosts();
        let known = || HostId::all().zip(&hosts).filter(|(_, addresses)| !addresses.is_empty());
        if word == "all" {
            return Ok(known().map(|(host, _)| host).collect());
        }
        let by_number = word.parse::<HostId>().ok();
        let by_address = word.parse::<std::net::IpAddr>().ok();
        let found = known().find(|(host, addresses)| {
            Some(*host) == by_number || by_address.is_some_and(|it| addresses.contains(&it))
        });
        if let Some((host, _)) = found {
            return Ok(vec![host]);
        }
        if word == self.about.name {
            return Ok(vec![self.about.host]);
        }
        let host = lock(&self.host);
        let by_name = host.membership.others().find(|other| other.name == word);
        by_name.map(|other| vec![other.host]).ok_or_else(|| {
            let message = format!(
                "{word:?} is no host of this cluster: give all, an id (1 to {}), an address of the \
                 file, or a name that `dirctl nlb query` shows",
                hosts.len()
            );
            Refusal { error: RefusalKind::Invalid, message }
        })
    }
}

/// For the log.
fn describe(command: &NlbCommand) -> String {
    serde_json::to_string(command).unwrap_or_default()
}

impl Operations for Control {
    fn apply(&self, command: Command) -> Result<(), Refusal> {
        drop(command);
        Err(Refusal { error: RefusalKind::Unsupported, message: NOT_HERE.to_owned() })
    }

    fn services(&self) -> Vec<ServiceView> {
        Vec::new()
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts { tcp: 0, tcp_fin: 0, udp: 0 }
    }

    fn settings(&self) -> BTreeMap<String, u32> {
        BTreeMap::new()
    }

    fn marks(&self) -> Vec<Rule> {
        Vec::new()
    }

    fn connections(&self, _: usize) -> Option<Vec<ConnectionView>> {
        None
    }

    fn status(&self) -> Status {
        let host = lock(&self.host);
        let scene = Scene { about: &self.about, held: &[], now: clock() };
        Status {
            version: VERSION.to_owned(),
            pid: std::process::id(),
            uptime: self.about.started.elapsed().as_secs_f64(),
            mode: "nlb".to_owned(),
            config: Some(self.about.config.display().to_string()),
            applied: None,
            table_size: 0,
            connections: answers::own_flows(&host),
            max_connections: 0,
            services: u32::try_from(host.rules().rules().len()).unwrap_or(u32::MAX),
            ports: Vec::new(),
            workers: Vec::new(),
            verdicts: answers::frames(&host),
            packets: String::new(),
            overflow: Vec::new(),
            health: None,
            warnings: answers::warnings(&host, &scene),
        }
    }

    fn explain(&self, question: Question) -> Result<Explanation, Refusal> {
        super::explain::of(self, &question)
    }

    fn plan(&self, _: PlanRequest) -> Result<Plan, Refusal> {
        Err(no_files())
    }

    fn follow(&self, _: ApplyRequest) -> Result<FileApplied, Refusal> {
        Err(no_files())
    }

    fn settle(&self, _: Verdict) -> Result<Settled, Refusal> {
        Err(no_files())
    }

    fn nlb(&self, request: NlbRequest) -> Result<NlbReply, Refusal> {
        let hosts = match request.hosts.as_deref() {
            None => vec![self.about.host],
            Some(word) => self.meant(word)?,
        };
        let mut reply = NlbReply::default();
        if hosts.contains(&self.about.host) {
            reply.answers.push(self.here(&request.command, "control socket"));
        }
        let others: Vec<HostId> =
            hosts.into_iter().filter(|host| *host != self.about.host).collect();
        if !others.is_empty() {
            let there = self.there(&others, &request.command);
            let there = there.map_err(|error| Refusal {
                error: RefusalKind::Internal,
                message: format!("the other hosts cannot be asked: {error}"),
            })?;
            reply.answers.extend(there.answers);
            reply.silent.extend(there.silent);
        }
        reply.answers.sort_by_key(|answer| answer.host);
        reply.silent.sort_unstable();
        Ok(reply)
    }
}

fn no_files() -> Refusal {
    Refusal { error: RefusalKind::Unsupported, message: NO_FILES.to_owned() }
}

impl Obey for Control {
    fn obey(&self, command: &NlbCommand, from: SocketAddr) -> NlbAnswer {
        if *command == NlbCommand::Capacity {
            let message = "capacity is measured on the host itself only".to_owned();
            return self.say(NlbResult::Failed, Some(message), None);
        }
        self.here(command, &format!("remote command of {from}"))
    }

    fn refuse(&self, reason: &'static str, meaning: &'static str) {
        self.about.refuse(reason, meaning);
    }
}

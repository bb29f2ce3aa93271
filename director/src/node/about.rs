//! What hardly changes while a node runs, and what only its operator cares about: names, paths,
//! warnings, counters of refused commands.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::nlb::host::HostId;

use super::identity::Identity;
use crate::config::Config;
use crate::config::nlb::{InitialState, Isolated};
use crate::control::api::VerdictCount;

/// See the module.
#[derive(Debug)]
pub(super) struct About {
    /// This host.
    pub(super) host: HostId,
    /// Its name.
    pub(super) name: String,
    /// Its addresses that the file names.
    pub(super) addresses: Vec<IpAddr>,
    /// The interface of the cluster's segment.
    pub(super) interface: String,
    /// The configuration file.
    pub(super) config: PathBuf,
    /// When it started.
    pub(super) started: Instant,
    /// How long a drain waits unless it is told.
    pub(super) drain_timeout: Duration,
    /// `[nlb]` of the file, without its key.
    pub(super) settings: BTreeMap<String, String>,
    /// Addresses of all hosts by id, as the file was read last.
    hosts: Mutex<Vec<Vec<IpAddr>>>,
    /// By topic.
    warnings: Mutex<BTreeMap<&'static str, String>>,
    /// By reason: what it means, and how many.
    refused: Mutex<BTreeMap<&'static str, (&'static str, u64)>>,
}

impl About {
    pub(super) fn new(path: PathBuf, config: &Config, identity: &Identity, name: String) -> About {
        About {
            host: identity.host,
            name,
            addresses: identity.addresses.clone(),
            interface: identity.interface.clone(),
            config: path,
            started: Instant::now(),
            drain_timeout: config.nlb.drain_timeout,
            settings: settings(config),
            hosts: Mutex::new(config.nlb.hosts.clone()),
            warnings: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// Addresses of all hosts by id; of one that is gone there are none.
    pub(super) fn hosts(&self) -> Vec<Vec<IpAddr>> {
        locked(&self.hosts).clone()
    }

    /// The file names other hosts now.
    pub(super) fn set_hosts(&self, hosts: Vec<Vec<IpAddr>>) {
        *locked(&self.hosts) = hosts;
    }

    /// Tells the operator something until it is cleared.
    pub(super) fn warn(&self, topic: &'static str, message: String) {
        locked(&self.warnings).insert(topic, message);
    }

    /// That is over.
    pub(super) fn clear_warning(&self, topic: &'static str) {
        locked(&self.warnings).remove(topic);
    }

    /// What the operator has been told and not cleared.
    pub(super) fn warnings(&self) -> Vec<String> {
        locked(&self.warnings).values().cloned().collect()
    }

    /// A command from afar was not taken.
    pub(super) fn refuse(&self, reason: &'static str, meaning: &'static str) {
        locked(&self.refused).entry(reason).or_insert((meaning, 0)).1 += 1;
    }

    /// Commands from afar that were not taken.
    pub(super) fn refused_commands(&self) -> Vec<VerdictCount> {
        let refused = locked(&self.refused);
        let each = refused.iter().map(|(reason, (meaning, packets))| VerdictCount {
            verdict: String::new(),
            reason: (*reason).to_owned(),
            meaning: (*meaning).to_owned(),
            packets: *packets,
        });
        each.collect()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn settings(config: &Config) -> BTreeMap<String, String> {
    let nlb = &config.nlb;
    let switch = |on: bool| if on { "true" } else { "false" }.to_owned();
    let time = |time: Duration| format!("{time:?}");
    let pairs = [
        ("delivery", nlb.delivery.to_string()),
        ("period", time(nlb.period)),
        ("tolerance", nlb.tolerance.to_string()),
        (
            "isolated",
            match nlb.isolated {
                Isolated::Serve => "serve".to_owned(),
                Isolated::Stop => "stop".to_owned(),
            },
        ),
        (
            "initial_state",
            match nlb.initial_state {
                InitialState::Started => "started".to_owned(),
                InitialState::Stopped => "stopped".to_owned(),
                InitialState::Suspended => "suspended".to_owned(),
            },
        ),
        ("handover_timeout", time(nlb.handover_timeout)),
        ("drain_timeout", time(nlb.drain_timeout)),
        ("udp_pin", time(nlb.udp_pin)),
        ("track", switch(nlb.track)),
        ("echo", if nlb.echo_by_all { "all" } else { "one" }.to_owned()),
        ("remote_control", switch(nlb.remote_control)),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

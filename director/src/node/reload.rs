//! The configuration file, read again: weights, port rules and hosts follow at run time, everything
//! else with a restart. A wrong file changes nothing.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::nlb::host::HostId;
use tracing::{info, warn};

use super::about::About;
use super::answers::those;
use super::host::Host;
use super::plan;
use crate::config::{self, Config};

/// See the module.
#[derive(Debug)]
pub(super) struct Reload {
    path: PathBuf,
    host: HostId,
    /// As it was read last.
    config: Mutex<Config>,
}

impl Reload {
    pub(super) fn new(path: &Path, host: HostId, config: Config) -> Reload {
        Reload { path: path.to_owned(), host, config: Mutex::new(config) }
    }

    /// Reads the file and has membership and filter follow it. What there is to say about it.
    ///
    /// # Errors
    /// Why it changed nothing.
    pub(super) fn again(
        &self,
        host: &mut Host,
        about: &About,
        now: Duration,
    ) -> Result<Option<String>, String> {
        let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |problem: String| {
            warn!("reload refused, running on as before: {problem}");
            about.warn("reload", format!("the last reload was refused: {problem}"));
            Err(problem)
        };
        let new = match config::load(&self.path) {
            Ok(new) => new,
            Err(error) => return refused(error.to_string()),
        };
        if let Err(problem) = stays(self.host, &config.nlb.hosts, &new.nlb.hosts) {
            return refused(problem);
        }
        let fixed = needs_restart(&config, &new);
        if !fixed.is_empty() {
            return refused(format!(
                "{} cannot change at run time: drain and restart this host for it",
                fixed.join(", ")
            ));
        }
        let rules = match plan::rules(&new) {
            Ok(rules) => rules,
            Err(error) => return refused(error.to_string()),
        };
        let wanted = plan::plan(&new, &rules, self.host, super::generation(&self.path));
        let peers = others(self.host, &new.nlb.hosts);
        host.reload(wanted, rules, peers, now);
        about.set_hosts(new.nlb.hosts.clone());
        *config = new;
        about.clear_warning("reload");
        let waits = host.membership.status().plan_waits_for.filter(|hosts| !hosts.is_empty());
        let message = waits.map(|hosts| {
            let hosts = those(hosts);
            format!(
                "the new rules come in force when they are on {hosts} too: reload there, or drain what is to \
                 go (dirctl nlb drainstop)"
            )
        });
        info!("reloaded{}", message.as_ref().map(|it| format!(": {it}")).unwrap_or_default());
        Ok(message)
    }
}

/// Whether this host is the same one in another list of hosts.
///
/// # Errors
/// Where it would be, and how the list has to be written.
fn stays(host: HostId, old: &[Vec<IpAddr>], new: &[Vec<IpAddr>]) -> Result<(), String> {
    let own = old.get(host.index()).map(Vec::as_slice).unwrap_or_default();
    if new.get(host.index()).is_some_and(|addresses| addresses == own) {
        return Ok(());
    }
    let place = new.iter().position(|addresses| addresses.iter().any(|it| own.contains(it)));
    let remedy = "a host's place in the list is its id, and neither that nor its own addresses change at \
                  run time: keep the order, add hosts at the end, and write [] in nlb.hosts for one that is gone";
    Err(match place {
        Some(place) if place != host.index() => {
            format!("this is host {host}, and would be host {}; {remedy}", place + 1)
        }
        Some(_) => format!("host {host}, which this is, has other addresses; {remedy}"),
        None => format!(
            "the list of hosts has no host {host} any more, which this is: to take it out, drain it \
             (dirctl nlb drainstop) and stop it; else {remedy}"
        ),
    })
}

/// The addresses of all hosts but one.
pub(super) fn others(host: HostId, hosts: &[Vec<IpAddr>]) -> Vec<IpAddr> {
    let others = HostId::all().zip(hosts).filter(|(other, _)| *other != host);
    others.flat_map(|(_, addresses)| addresses).copied().collect()
}

/// Names the keys that a reload cannot change, if any differ.
fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let keys = [
        ("mode", old.mode != new.mode),
        ("control", old.control != new.control),
        ("metrics", old.metrics != new.metrics),
        ("sandbox", old.sandbox != new.sandbox),
        ("nlb.key", old.nlb.key != new.nlb.key),
        ("nlb.primary", old.nlb.primary != new.nlb.primary),
        ("the list of virtual addresses", plan::vips(old) != plan::vips(new)),
        ("nlb.delivery", old.nlb.delivery != new.nlb.delivery),
        ("nlb.period", old.nlb.period != new.nlb.period),
        ("nlb.tolerance", old.nlb.tolerance != new.nlb.tolerance),
        ("nlb.isolated", old.nlb.isolated != new.nlb.isolated),
        ("nlb.handover_timeout", old.nlb.handover_timeout != new.nlb.handover_timeout),
        ("nlb.drain_timeout", old.nlb.drain_timeout != new.nlb.drain_timeout),
        ("nlb.udp_pin", old.nlb.udp_pin != new.nlb.udp_pin),
        ("nlb.track", old.nlb.track != new.nlb.track),
        ("nlb.echo", old.nlb.echo_by_all != new.nlb.echo_by_all),
        ("nlb.remote_control", old.nlb.remote_control != new.nlb.remote_control),
    ];
    keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_come_and_go_behind_this_one_and_their_places_stay() {
        let hosts = |texts: &[&[&str]]| -> Vec<Vec<IpAddr>> {
            texts.iter().map(|it| it.iter().map(|it| it.parse().unwrap()).collect()).collect()
        };
        let (a, b, c) = (&["10.0.0.11"][..], &["10.0.0.12"][..], &["10.0.0.13"][..]);
        let second = HostId::new(2).unwrap();
        let old = hosts(&[a, b]);
        for right in [&[a, b, c][..], &[&[], b], &[c, b], &[a, b]] {
            assert_eq!(stays(second, &old, &hosts(right)), Ok(()), "{right:?}");
        }
        let both = ["10.0.0.12", "2001:db8::12"];
        for (wrong, what) in [
            (&[b][..], "this is host 2, and would be host 1"),
            (&[c, a, b], "this is host 2, and would be host 3"),
            (&[a], "the list of hosts has no host 2 any more"),
            (&[a, c], "the list of hosts has no host 2 any more"),
            (&[a, &both], "host 2, which this is, has other addresses"),
        ] {
            let said = stays(second, &old, &hosts(wrong)).unwrap_err();
            assert!(said.starts_with(what) && said.contains("at the end"), "{wrong:?}: {said}");
        }
        assert_eq!(
            others(second, &hosts(&[a, b, &[], c])),
            hosts(&[&["10.0.0.11", "10.0.0.13"]])[0]
        );
    }
}

//! The configuration file, read again: weights and port rules follow at run time, everything else
//! with a restart. A wrong file changes nothing.

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
        host.reload(wanted, rules, now);
        *config = new;
        about.clear_warning("reload");
        let waits = host.membership.status().plan_waits_for.filter(|hosts| !hosts.is_empty());
        let message = waits.map(|hosts| {
            let hosts = those(hosts);
            format!("the new rules come in force when they are on {hosts} too: reload there")
        });
        info!("reloaded{}", message.as_ref().map(|it| format!(": {it}")).unwrap_or_default());
        Ok(message)
    }
}

/// Names the keys that a reload cannot change, if any differ.
fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let keys = [
        ("mode", old.mode != new.mode),
        ("control", old.control != new.control),
        ("nlb.key", old.nlb.key != new.nlb.key),
        ("nlb.primary", old.nlb.primary != new.nlb.primary),
        ("the list of hosts", old.nlb.hosts != new.nlb.hosts),
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

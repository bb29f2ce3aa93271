//! Services and settings from the configuration file: at start, and again on SIGHUP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use tracing::{info, warn};

use super::operations::Director;
use super::sandbox::Sandbox;
use crate::config::{self, Config};
use crate::table::Table;

/// Declares the settings and services of the file for the first time.
///
/// # Errors
/// When one of them cannot be.
pub(super) fn first(table: &Table, config: &Config, epoch: Instant) -> Result<()> {
    table.declare_settings(&BTreeMap::new(), &config.settings);
    match table.declare(&config.services, &config.marks, epoch.elapsed()) {
        Ok(changes) => match changes.refused.first() {
            None => Ok(()),
            Some((key, refusal)) => bail!("service {key}: {}", refusal.message),
        },
        Err(refused) => bail!("{refused}"),
    }
}

/// Reads the file again and makes the table follow it. A wrong file changes nothing: the
/// director goes on as it was and warns in `dirctl status` until a reload succeeds.
pub(super) fn again(
    director: &Arc<Director>,
    table: &Table,
    sandbox: Sandbox,
    config: &mut Config,
    epoch: Instant,
) {
    let read = config::load(director.config_path()).map_err(|error| error.to_string());
    let allowed = read.and_then(|new| match sandbox.allows(&new) {
        Ok(()) => Ok(new),
        Err(why) => Err(why.to_owned()),
    });
    let new = match allowed {
        Ok(new) => new,
        Err(error) => {
            warn!("reload refused, running on as before: {error}");
            director.warn("reload", format!("the last reload was refused: {error}"));
            return;
        }
    };
    if let Some(keys) = needs_restart(config, &new) {
        let message = format!("{keys} changed in the file: restart the director for it");
        warn!("reload: {message}");
        director.warn("restart", message);
    } else {
        director.clear_warning("restart");
    }
    let changes = match table.declare(&new.services, &new.marks, epoch.elapsed()) {
        Err(refused) => {
            warn!("reload refused, running on as before: {refused}");
            director.warn("reload", format!("the last reload was refused: {refused}"));
            return;
        }
        Ok(changes) => changes,
    };
    for (key, refusal) in &changes.refused {
        warn!("reload: service {key}: {}", refusal.message);
    }
    if let Some(timeouts) = new.timeouts {
        table.shared().timeouts.set(timeouts);
    }
    table.declare_settings(&config.settings, &new.settings);
    director.clear_warning("reload");
    info!("reloaded: {} changes", changes.made);
    config.services = new.services;
    config.settings = new.settings;
    config.marks = new.marks;
    config.timeouts = new.timeouts;
}

/// Names the keys that a reload cannot change, if any differ.
fn needs_restart(old: &Config, new: &Config) -> Option<String> {
    let keys = [
        ("mode", old.mode != new.mode),
        ("interfaces", old.interfaces != new.interfaces),
        ("io", old.io != new.io),
        ("workers", old.workers != new.workers),
        ("cpus", old.cpus != new.cpus),
        ("busy_poll", old.busy_poll != new.busy_poll),
        ("rx_ring_size", old.rx_ring_size != new.rx_ring_size),
        ("tx_ring_size", old.tx_ring_size != new.tx_ring_size),
        ("frames", old.frames != new.frames),
        ("own_addresses", old.own_addresses != new.own_addresses),
        ("control", old.control != new.control),
        ("metrics", old.metrics != new.metrics),
        ("sandbox", old.sandbox != new.sandbox),
        ("health.memory", old.health != new.health),
        ("ftp_ports", old.ftp_ports != new.ftp_ports),
        ("max_connections", old.max_connections != new.max_connections),
    ];
    let changed: Vec<_> =
        keys.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect();
    (!changed.is_empty()).then(|| changed.join(", "))
}

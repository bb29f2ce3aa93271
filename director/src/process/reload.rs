//! Services and settings from the configuration file: at start, and again on SIGHUP.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, bail};
use tracing::{info, warn};

use super::apply::{Course, take_over};
use super::operations::Director;
use super::sandbox::Sandbox;
use crate::config::{self, Config};
use crate::control::events::EventKind;
use crate::plan::restart;
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
/// So does any file as long as an applied one waits to be confirmed.
pub(super) fn again(
    director: &Director,
    table: &Table,
    course: &Course,
    sandbox: Sandbox,
    epoch: Instant,
) {
    let reload = |config: &mut Config| read_again(director, table, sandbox, config, epoch);
    if let Err(file) = course.reload(reload) {
        let why = format!(
            "{file} was applied and waits to be confirmed (`dirctl confirm`, `dirctl revert`): reload again \
             afterwards"
        );
        refused(director, &why);
    }
}

/// Tells that nothing has changed, and why: in the log, in `dirctl status` and in `dirctl events`.
fn refused(director: &Director, why: &str) {
    warn!("reload refused, running on as before: {why}");
    director.warn("reload", format!("the last reload was refused: {why}"));
    director.note(EventKind::ReloadRefused, why.to_owned());
}

fn read_again(
    director: &Director,
    table: &Table,
    sandbox: Sandbox,
    config: &mut Config,
    epoch: Instant,
) {
    let own = director.own_file();
    // Before it is read: what is written in between counts as not read.
    let mark = own.look();
    let read = config::load(own.path()).map_err(|error| error.to_string());
    let allowed = read.and_then(|new| match sandbox.allows(&new) {
        Ok(()) => Ok(new),
        Err(why) => Err(why.to_owned()),
    });
    let new = match allowed {
        Ok(new) => new,
        Err(error) => {
            refused(director, &error);
            return;
        }
    };
    let keys = restart::keys(config, &new).join(", ");
    if !keys.is_empty() {
        let message = format!("{keys} changed in the file: restart the director for it");
        warn!("reload: {message}");
        director.warn("restart", message);
    } else {
        director.clear_warning("restart");
    }
    let changes = match table.declare(&new.services, &new.marks, epoch.elapsed()) {
        Err(error) => {
            refused(director, &error.to_string());
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
    let what = format!("reloaded: {} changes", changes.made);
    info!("{what}");
    director.note(EventKind::FileReloaded, what);
    director.clear_warning("apply");
    own.is_followed(mark);
    take_over(config, new);
}

//! What a director gives up that it does not need: capabilities and system calls. A fault in it that an
//! attacker finds is then worth less.
//!
//! Two steps. [`Sandbox::begin`] is taken before there are threads, for capabilities belong to a thread and
//! are inherited: it leaves those that a start takes. [`Sandbox::close`] is taken when everything is open: it
//! leaves those that reloads, checks and addresses take, and closes the system calls of all threads. Packet threads
//! keep none ([`Sandbox::enter_thread`]).
//!
//! What cannot be given up is said and ends nothing: traffic comes first. Nothing can be taken back.

mod calls;
mod capabilities;
mod open_calls;

use std::path::Path;

use tracing::{info, warn};

use crate::config::Config;
use crate::health::plan::CheckKind;
use capabilities::{FOR_A_RUN, FOR_A_START, READ_ANYTHING};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sandbox {
    wanted: bool,
    /// Whether commands of checks (type "exec") may be run.
    commands: bool,
    /// Whether the file can only be read with a capability for reading everything.
    reads_anything: bool,
}

impl Sandbox {
    /// The first step. The file at `path` stays readable, whoever owns it.
    pub(crate) fn begin(config: &Config, path: &Path) -> Sandbox {
        let mut sandbox = Sandbox {
            wanted: config.sandbox,
            commands: has_commands(config),
            reads_anything: false,
        };
        if !sandbox.wanted {
            return sandbox;
        }
        sandbox.reads_anything = capabilities::reading_takes_one(path);
        if let Err(error) = capabilities::keep(&sandbox.kept(FOR_A_START)) {
            warn!("sandbox: capabilities that a start does not take are still there: {error}");
        }
        sandbox
    }

    /// One that was closed at the start, to commands too unless `commands` says otherwise.
    #[cfg(test)]
    pub(super) fn closed(commands: bool) -> Sandbox {
        Sandbox { wanted: true, commands, reads_anything: false }
    }

    /// The second step.
    pub(crate) fn close(self) {
        if !self.wanted {
            warn!("sandbox: off (sandbox = false): every capability and system call stays open");
            return;
        }
        let kept = match capabilities::keep(&self.kept(FOR_A_RUN)) {
            Ok(kept) => kept,
            Err(error) => format!("not given up ({error})"),
        };
        match calls::close(self.commands) {
            Ok(open) => {
                let commands =
                    if self.commands { "; commands of checks can be run" } else { ", no commands" };
                info!(
                    "sandbox: capabilities {kept}; no new privileges; {open} system calls{commands}"
                );
            }
            Err(error) => {
                warn!("sandbox: capabilities {kept}; all system calls stay open: {error}");
            }
        }
    }

    /// What a thread does first that takes no capability but for its place before other programs, which it has.
    pub(super) fn enter_thread(self) {
        if self.wanted {
            capabilities::give_up_all();
        }
    }

    /// Why a file cannot be taken without a restart, if so.
    ///
    /// # Errors
    /// When it has commands, and they were closed at the start.
    pub(crate) fn allows(self, config: &Config) -> Result<(), &'static str> {
        if self.wanted && !self.commands && has_commands(config) {
            return Err(
                "it has a check of type \"exec\", and the sandbox was closed to commands at the start, \
                 where there was none: restart the director",
            );
        }
        Ok(())
    }

    fn kept(self, capabilities: &[caps::Capability]) -> Vec<caps::Capability> {
        let more = self.reads_anything.then_some(READ_ANYTHING);
        capabilities.iter().copied().chain(more).collect()
    }
}

fn has_commands(config: &Config) -> bool {
    let mut checks = config.services.iter().flat_map(|service| &service.health.checks);
    checks.any(|check| matches!(check.kind, CheckKind::Exec(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn file(check: &str) -> Config {
        let text = format!(
            "interfaces = [\"eth0\"]\n[[service]]\nlisten = \"192.0.2.10:80/tcp\"\n\
             forwarding = \"nat\"\ncheck = {check}\n[[service.server]]\naddress = \"10.0.0.1\"\n"
        );
        config::parse(&text, "test").unwrap()
    }

    #[test]
    fn a_reload_cannot_bring_commands_that_were_closed_at_the_start() {
        let (without, with) =
            (file("\"tcp\""), file("{ type = \"exec\", command = [\"/bin/true\"] }"));
        let sandbox = |wanted, commands| Sandbox { wanted, commands, reads_anything: false };
        assert!(sandbox(true, false).allows(&with).unwrap_err().contains("restart the director"));
        assert!(sandbox(true, false).allows(&without).is_ok());
        assert!(sandbox(true, true).allows(&with).is_ok());
        assert!(sandbox(false, false).allows(&with).is_ok());
    }
}

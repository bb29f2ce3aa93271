//! Root, when a command needs it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

/// A command that runs `program` as root: directly when we are, else by sudo, which may ask for a
/// password.
///
/// # Errors
/// When we are not root and there is no sudo. `what` names who needs root.
pub(crate) fn as_root(program: &Path, what: &str) -> Result<Command> {
    if nix::unistd::geteuid().is_root() {
        return Ok(Command::new(program));
    }
    let found =
        Command::new("sudo").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        bail!(
            "{what} needs root (network namespaces, AF_XDP), and there is no sudo here: run the \
             same command as root"
        );
    }
    eprintln!("{what} needs root (network namespaces, AF_XDP): asking sudo");
    let mut command = Command::new("sudo");
    command.arg("--preserve-env=SWITCHYARD_LOG,RUST_BACKTRACE").arg("--").arg(program);
    Ok(command)
}

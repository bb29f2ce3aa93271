//! Where the programs under test are: beside the program that asks.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// The path of one of our programs (`director`, `ipvsadm`, ...), built with the same profile as
/// the running one. Test programs lie one folder deeper than the others.
///
/// # Errors
/// When it has not been built.
pub fn path(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe().context("cannot tell where this program is")?;
    let beside = here.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    for candidate in beside {
        if candidate.is_file() {
            return Ok(candidate);
        }
    }
    bail!(
        "{name} is not beside {}: build it with the same profile (`cargo xtask test lab` does)",
        here.display()
    )
}

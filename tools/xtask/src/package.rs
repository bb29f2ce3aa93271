//! The Debian package: programs, pages, and cargo-deb around them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{build_programs, cargo, target_directory};

/// The release of cargo-deb that the package is made with.
const CARGO_DEB: &str = "3.8.0";

/// Builds the package and returns where it is.
///
/// # Errors
/// When something does not build, or cargo-deb cannot be installed.
pub(crate) fn build() -> Result<PathBuf> {
    let target = target_directory()?;
    let programs = build_programs()?;
    pages(&programs.join("pages"))?;
    let cargo_deb = cargo_deb(&target)?;
    let output = Command::new(cargo_deb)
        // As cargo calls its subcommands. With line tables the programs are five times as large.
        .args(["deb", "--no-build", "--locked", "--strip", "--package", "switchyard"])
        .current_dir(crate::cargo::workspace())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo-deb")?;
    if !output.status.success() {
        bail!("cargo-deb failed: see its messages above");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let package = said.lines().last().unwrap_or_default().trim();
    if !package.ends_with(".deb") {
        bail!("cargo-deb names no package: {package:?}");
    }
    Ok(PathBuf::from(package))
}

/// Pages and completions, the former packed as Debian has them.
fn pages(folder: &Path) -> Result<()> {
    if folder.exists() {
        // Pages of commands that are no more.
        std::fs::remove_dir_all(folder)?;
    }
    crate::write_pages(folder)?;
    let mut gzip = Command::new("gzip");
    gzip.args(["-9", "--no-name"]);
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "8" || extension == "5") {
            gzip.arg(path);
        }
    }
    anyhow::ensure!(gzip.status().context("cannot run gzip")?.success(), "gzip failed");
    Ok(())
}

/// The program, installed beside what cargo builds if it is not there.
fn cargo_deb(target: &Path) -> Result<PathBuf> {
    let root = target.join("tools");
    let own = root.join("bin/cargo-deb");
    for program in [own.as_path(), Path::new("cargo-deb")] {
        let asked = Command::new(program).args(["deb", "--version"]).stderr(Stdio::null()).output();
        let version = asked.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
        if version.is_ok_and(|version| version.ends_with(CARGO_DEB)) {
            return Ok(program.to_path_buf());
        }
    }
    eprintln!("package: installing cargo-deb {CARGO_DEB} into {} (a few minutes)", root.display());
    let mut command =
        cargo(&["install", "cargo-deb", "--locked", "--version", CARGO_DEB, "--root"]);
    let installed = command.arg(&root).status().context("cannot run cargo")?.success();
    if !installed {
        bail!("by hand: cargo install cargo-deb --locked --version {CARGO_DEB}");
    }
    Ok(own)
}

//! Calling cargo.

use std::ffi::OsString;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Packages whose programs the demo, the lab and the benchmarks use.
const PROGRAMS: [&str; 5] = ["director", "realserver-agent", "ipvsadm", "dirctl", "integration"];

/// Where the workspace is.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A cargo command in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(workspace()).args(arguments);
    command
}

/// Builds all programs for release and returns the folder they are in.
///
/// # Errors
/// When cargo fails.
pub(crate) fn build_programs() -> Result<PathBuf> {
    let mut arguments = vec!["build", "--release", "--locked"];
    for package in PROGRAMS {
        arguments.extend(["--package", package]);
    }
    if !cargo(&arguments).status().context("cannot run cargo")?.success() {
        bail!("the build failed: see cargo's messages above");
    }
    Ok(target_directory()?.join("release"))
}

/// Cargo's target directory, wherever the user has put it.
///
/// # Errors
/// When cargo does not say.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let output = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let directory = metadata["target_directory"].as_str();
    Ok(PathBuf::from(directory.context("cargo metadata names no target directory")?))
}

/// Builds the test programs that `arguments` select and returns them with their names.
///
/// # Errors
/// When they do not build.
pub(crate) fn test_programs(arguments: &[&str]) -> Result<Vec<(String, PathBuf)>> {
    let mut all = vec!["test", "--no-run", "--locked", "--message-format=json-render-diagnostics"];
    all.extend(arguments);
    let mut child = cargo(&all).stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let mut programs = Vec::new();
    let output = child.stdout.take().context("cargo has no output")?;
    for line in std::io::BufReader::new(output).lines() {
        let message: serde_json::Value = serde_json::from_str(&line?)?;
        let is_test = message["profile"]["test"].as_bool() == Some(true);
        if let (true, Some(program)) = (is_test, message["executable"].as_str()) {
            let name = message["target"]["name"].as_str().unwrap_or("test");
            programs.push((name.to_owned(), PathBuf::from(program)));
        }
    }
    if !child.wait()?.success() {
        bail!("the tests do not build: see cargo's messages above");
    }
    Ok(programs)
}

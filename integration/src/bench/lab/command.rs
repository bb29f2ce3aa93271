//! `ipvsadm` as the process that operators run: how long it takes, how much it prints, and the most
//! memory it has. What it prints goes through a pipe to a reader that counts lines and nothing else.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::super::machine;
use crate::programs;
use crate::running::Director;

/// Read at a time: as much as a pipe holds.
const PIECE: usize = 64 * 1024;

/// What came of a command.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// From its start to its end.
    pub(super) took: Duration,
    /// Lines on standard output.
    pub(super) lines: u64,
    /// The most memory that it had while it printed, bytes; 0 of one that prints nothing.
    pub(super) peak: u64,
}

/// Somebody who types commands for one director.
pub(super) struct Operator {
    socket: PathBuf,
    /// Where complaints go: a pipe that nobody reads would fill up.
    complaints: PathBuf,
}

impl Operator {
    /// Keeps its file in `folder`.
    pub(super) fn of(director: &Director, folder: &Path) -> Operator {
        Operator { socket: director.socket().clone(), complaints: folder.join("complaints") }
    }

    /// Our `ipvsadm`, fed with `input`.
    pub(super) fn ipvsadm(&self, arguments: &[&str], input: Option<&Path>) -> Result<Outcome> {
        let mut command = Command::new(programs::path("ipvsadm")?);
        command.args(arguments).env("SWITCHYARD_SOCKET", &self.socket);
        self.measure(command, input).with_context(|| format!("ipvsadm {}", arguments.join(" ")))
    }

    /// The floor: a program that copies as many bytes as another reads or prints.
    pub(super) fn cat(&self, file: &Path) -> Result<Outcome> {
        self.measure(Command::new("cat"), Some(file)).context("cat")
    }

    /// Writes what `ipvsadm` prints to a file.
    pub(super) fn keep(&self, arguments: &[&str], file: &Path) -> Result<()> {
        let output = File::create(file).with_context(|| format!("create {}", file.display()))?;
        let status = Command::new(programs::path("ipvsadm")?)
            .args(arguments)
            .env("SWITCHYARD_SOCKET", &self.socket)
            .stdin(Stdio::null())
            .stdout(output)
            .status()?;
        ensure!(status.success(), "ipvsadm {}: {status}", arguments.join(" "));
        Ok(())
    }

    fn measure(&self, mut command: Command, input: Option<&Path>) -> Result<Outcome> {
        let input = match input {
            Some(file) => {
                File::open(file).with_context(|| format!("open {}", file.display()))?.into()
            }
            None => Stdio::null(),
        };
        let complaints = File::create(&self.complaints).context("create a file for complaints")?;
        command.stdin(input).stdout(Stdio::piped()).stderr(complaints);
        let start = Instant::now();
        let mut running = Running(command.spawn()?);
        let mut outcome = running.read()?;
        let status = running.0.wait()?;
        outcome.took = start.elapsed();
        if !status.success() {
            let said = std::fs::read_to_string(&self.complaints).unwrap_or_default();
            bail!("{status}: {}", said.lines().next().unwrap_or("without a word"));
        }
        Ok(outcome)
    }
}

/// A process that is not left behind when measuring is given up.
struct Running(Child);

impl Running {
    /// Reads to the end of what it prints.
    fn read(&mut self) -> Result<Outcome> {
        let mut output = self.0.stdout.take().context("it has no standard output")?;
        let mut outcome = Outcome::default();
        let mut piece = vec![0; PIECE];
        loop {
            let length = output.read(&mut piece)?;
            if length == 0 {
                return Ok(outcome);
            }
            outcome.lines += piece[..length].iter().filter(|&&byte| byte == b'\n').count() as u64;
            // Who has ended by now has had no more than it had.
            outcome.peak = outcome.peak.max(machine::peak_of(self.0.id()).unwrap_or(0));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, as a rule, and been waited for: then these do nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

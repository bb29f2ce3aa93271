//! A director that runs in a host of the lab, and the commands an operator would give it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use director::control::api::{ServiceView, Status};
use director::control::client::Client;
use nix::sys::signal::Signal;

use crate::lab::{Host, Lab, Process};
use crate::programs;

/// How long a director may take to start: loading programs and binding sockets retries for a
/// second when a queue has just been given up.
const START_LIMIT: Duration = Duration::from_secs(15);

/// A running director.
#[derive(Debug)]
pub struct Director {
    host: Host,
    process: Process,
    config: PathBuf,
    socket: PathBuf,
}

impl Director {
    /// Starts a director in `host` with `config`, to which the path of the control socket is
    /// added, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start; the error shows its log.
    pub fn start(lab: &Lab, host: &Host, config: &str) -> Result<Director> {
        let director = Director::launch(lab, host, config)?;
        director.process.wait_for_log("ready:", START_LIMIT)?;
        Ok(director)
    }

    /// Starts a director and does not wait for it.
    ///
    /// # Errors
    /// When the program is not there.
    pub fn launch(lab: &Lab, host: &Host, config: &str) -> Result<Director> {
        let config_path = lab.logs().join(format!("{}.toml", host.name()));
        let socket = lab.logs().join(format!("{}.sock", host.name()));
        let director = Director {
            process: {
                write_config(&config_path, &socket, config)?;
                host.command(programs::path("director")?)
                    .arg("--config")
                    .arg(&config_path)
                    .spawn()?
            },
            host: host.clone(),
            config: config_path,
            socket,
        };
        Ok(director)
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The control socket.
    pub fn socket(&self) -> &PathBuf {
        &self.socket
    }

    /// Replaces the configuration file and sends SIGHUP. Returns at once; the log tells the rest.
    ///
    /// # Errors
    /// When the file cannot be written or the process is gone.
    pub fn reload(&self, config: &str) -> Result<()> {
        write_config(&self.config, &self.socket, config)?;
        self.process.signal(Signal::SIGHUP)
    }

    /// Runs our `ipvsadm` in the director's host and returns what it prints.
    ///
    /// # Errors
    /// When it exits with anything but 0; the error shows what it said.
    pub fn ipvsadm(&self, arguments: &[&str]) -> Result<String> {
        let output = self
            .host
            .command(programs::path("ipvsadm")?)
            .args(arguments)
            .env("SWITCHYARD_SOCKET", &self.socket)
            .output(Duration::from_secs(10))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("ipvsadm {arguments:?}: {}: {said}", output.status);
        }
        String::from_utf8(output.stdout).context("ipvsadm prints no text")
    }

    /// What the director says of itself.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn status(&self) -> Result<Status> {
        Ok(self.client()?.status()?)
    }

    /// Its services.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn services(&self) -> Result<Vec<ServiceView>> {
        Ok(self.client()?.services()?)
    }

    /// Packets that met the fate called `reason` so far.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn verdicts(&self, reason: &str) -> Result<u64> {
        let status = self.status()?;
        let counts = status.verdicts.iter().filter(|count| count.reason == reason);
        Ok(counts.map(|count| count.packets).sum())
    }

    /// A client of its control API.
    ///
    /// # Errors
    /// When it does not run.
    pub fn client(&self) -> Result<Client> {
        Client::connect(&self.socket).context("the director does not answer")
    }

    /// Ends it with SIGTERM.
    ///
    /// # Errors
    /// When it does not end cleanly, or has lost frames of its packet memory; the error shows its log.
    pub fn stop(self) -> Result<()> {
        let status = self.process.stop()?;
        if !status.success() {
            bail!("the director ended with {status}:\n{}", self.process.log());
        }
        let log = self.process.log();
        ensure!(
            !log.contains("frames of packet memory are lost"),
            "the director lost frames:\n{log}"
        );
        // Each worker has accounted for all of them.
        ensure!(log.contains("has ended; "), "no worker tells where its frames are:\n{log}");
        Ok(())
    }
}

fn write_config(path: &PathBuf, socket: &std::path::Path, config: &str) -> Result<()> {
    let text = format!("control = \"{}\"\n{config}", socket.display());
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

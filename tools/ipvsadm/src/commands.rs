//! Carries out what was asked for: the only place, with `listing`, that speaks with the
//! director. It knows no flag and no layout, only which goes with which.

use std::io::{self, Write};
use std::path::PathBuf;

use director::control::ClientError;
use director::control::api::{BatchOutcome, OnRefusal};
use director::control::client::Client;
use director::control::operations::Command;

use crate::failure::Failure;
use crate::help;
use crate::names::Names;
use crate::order::Order;
use crate::refusals::{Told, told};

/// One run of the command: where the director is, and where the output goes.
pub struct Session<'a> {
    /// Control socket.
    pub socket: PathBuf,
    /// Standard output.
    pub output: &'a mut dyn Write,
    /// Whether a person reads the messages: then refusals come with the director's reason, a line
    /// that ipvsadm does not have.
    pub explain: bool,
    /// Names of hosts and services.
    pub names: Names,
    /// Opened when first needed, so that `-h` and usage errors need no director.
    pub client: Option<Client>,
}

impl Session<'_> {
    /// Carries out one order. [`Order::Restore`] is not one of them: see [`crate::restore`].
    ///
    /// # Errors
    /// With ipvsadm's text and exit code.
    pub fn carry_out(&mut self, order: Order) -> Result<(), Failure> {
        match order {
            Order::Help => self.print(&help::text()),
            Order::Version => self.print(&format!("{}\n", help::VERSION)),
            Order::Change(command) => self.change(command),
            Order::List { what, format } => self.list(what, &format),
            Order::Save { full: true, .. } => self.save_all(),
            Order::Save { numeric, .. } => self.save(numeric),
            // As a kernel without sync: it does not know the request, and no daemon ever runs.
            Order::StartDaemon => {
                self.director()?;
                Err(Failure::change("Protocol not available"))
            }
            Order::StopDaemon => {
                self.director()?;
                Err(Failure::change("No daemon is running"))
            }
            Order::Restore { .. } => Err(Failure::try_help()),
        }
    }

    fn change(&mut self, command: Command) -> Result<(), Failure> {
        let explain = self.explain;
        match self.director()?.apply(std::slice::from_ref(&command)) {
            Ok(_) => Ok(()),
            Err(ClientError::Refused { refusal, .. }) => {
                Err(Failure::change(words(told(Some(&command), &refusal), explain)))
            }
            Err(error) => Err(no_director(&error)),
        }
    }

    /// Has the director carry out many changes at once.
    pub(crate) fn batch(
        &mut self,
        commands: &[Command],
        on_refusal: OnRefusal,
    ) -> Result<BatchOutcome, Failure> {
        self.director()?.batch(commands, on_refusal).map_err(|error| no_director(&error))
    }

    /// The director, connected to at the first call.
    pub(crate) fn director(&mut self) -> Result<&mut Client, Failure> {
        let client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(&self.socket).map_err(|error| no_director(&error))?,
        };
        Ok(self.client.insert(client))
    }

    pub(crate) fn listing_failed(&self, error: &ClientError) -> Failure {
        match error {
            ClientError::Refused { refusal, .. } => {
                Failure::listing(words(told(None, refusal), self.explain))
            }
            error => no_director(error),
        }
    }

    pub(crate) fn print(&mut self, text: &str) -> Result<(), Failure> {
        written(self.output.write_all(text.as_bytes()))
    }
}

/// A reader that has seen enough (`ipvsadm -Lnc | head`) is no error; a full disk is.
pub(crate) fn written(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::listing(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn words(told: Told, explain: bool) -> String {
    match told.reason {
        Some(reason) if explain => format!("{}\n{reason}", told.line),
        _ => told.line,
    }
}

/// ipvsadm's first line, and in place of its question about the kernel module what to do here.
pub(crate) fn no_director(error: &ClientError) -> Failure {
    let why = match error {
        ClientError::PermissionDenied { .. } => "Permission denied (you must be root)".to_owned(),
        error => error.to_string(),
    };
    let mut message = format!("Can't initialize ipvs: {why}");
    if let Some(remedy) = error.remedy() {
        message.push('\n');
        message.push_str(&remedy);
    }
    Failure::usage(message)
}

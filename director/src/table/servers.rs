//! Many changes to the servers of one service as one, for a scheduler that makes a table of them: the
//! table of dht is built once, and while new connections go on being scheduled.
//!
//! Knows lists of servers. Must not know where the changes come from; whether a server can be at all has
//! been checked. A scheduler that has nothing to build hears of each change by itself, so that it keeps what
//! it remembers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::apply::{no_such_server, server_exists};
use super::rehearsal::holds;
use super::transition::placed;
use super::{State, Table};
use crate::control::api::{Refusal, ServerSpec, ServiceKey};
use crate::control::operations::Command;

/// A change to the servers of a service.
#[derive(Clone, Debug)]
enum ServerChange {
    Add(ServerSpec),
    Edit(ServerSpec),
    Delete(SocketAddr),
}

/// Servers as they would be.
#[derive(Debug, Default)]
struct After {
    /// Newest first.
    servers: Vec<ServerSpec>,
    /// For each change whether it is refused, and why.
    answers: Vec<Result<(), Refusal>>,
}

impl ServerChange {
    /// The change that a command makes, or the command if it makes none.
    fn of(command: Command) -> Result<ServerChange, Box<Command>> {
        match command {
            Command::AddServer { server, .. } => Ok(ServerChange::Add(server)),
            Command::EditServer { server, .. } => Ok(ServerChange::Edit(server)),
            Command::DeleteServer { server, .. } => Ok(ServerChange::Delete(server)),
            other => Err(Box::new(other)),
        }
    }

    fn command(self, service: ServiceKey) -> Command {
        match self {
            ServerChange::Add(server) => Command::AddServer { service, server },
            ServerChange::Edit(server) => Command::EditServer { service, server },
            ServerChange::Delete(server) => Command::DeleteServer { service, server },
        }
    }
}

impl Table {
    /// Carries out commands in their order, each with the service that it is about, and notes what became
    /// of each. Changes to servers of one service that follow one another are made as one where that is
    /// done sooner.
    pub(super) fn carry_out(
        &self,
        state: &mut State,
        commands: Vec<(ServiceKey, Command)>,
        now: Duration,
        mut note: impl FnMut(ServiceKey, Result<(), Refusal>),
    ) {
        let mut commands = commands.into_iter().peekable();
        while let Some((key, command)) = commands.next() {
            let mut changes = match ServerChange::of(command) {
                Ok(change) => vec![change],
                Err(command) => {
                    note(key, self.apply(state, *command, now));
                    continue;
                }
            };
            while let Some((_, command)) =
                commands.next_if(|(of, command)| *of == key && is_of_server(command))
            {
                changes.extend(ServerChange::of(command));
            }
            match self.change_servers(state, &key, &changes, now) {
                Some(answers) => answers.into_iter().for_each(|answer| note(key, answer)),
                None => changes
                    .into_iter()
                    .for_each(|change| note(key, self.apply(state, change.command(key), now))),
            }
        }
    }

    /// Makes the changes in their order, if that is done sooner as one; what became of each. `None`: make
    /// them one by one, nothing has been done.
    fn change_servers(
        &self,
        state: &mut State,
        key: &ServiceKey,
        changes: &[ServerChange],
        now: Duration,
    ) -> Option<Vec<Result<(), Refusal>>> {
        if changes.len() < 2 {
            return None;
        }
        let service = state.services.find(key).ok()?.clone();
        let spec = service.spec();
        let before = service.choice().members().iter().map(|it| it.spec.clone()).collect();
        let settle = |server: &ServerSpec| self.settle(server.clone());
        let After { servers, answers } =
            after(before, changes, settle, |servers| holds(&spec, servers));
        let placed = placed(state, &service, &servers);
        // Dropped after the lock: it may hold the old table.
        let prepared = Some(service.prepare(|_| placed)?);
        let mut choice = service.choice();
        choice.offer(&prepared);
        let exchanged = self.exchange(state, &service, &mut choice, None, servers, now);
        drop(choice);
        state.touch(&service);
        exchanged.is_ok().then_some(answers)
    }
}

fn is_of_server(command: &Command) -> bool {
    matches!(
        command,
        Command::AddServer { .. } | Command::EditServer { .. } | Command::DeleteServer { .. }
    )
}

/// What becomes of a list (newest first) by the changes. `holds` says whether so many servers can be.
fn after(
    before: Vec<ServerSpec>,
    changes: &[ServerChange],
    settle: impl Fn(&ServerSpec) -> ServerSpec,
    holds: impl Fn(usize) -> Result<(), Refusal>,
) -> After {
    // Oldest first, with holes where servers were.
    let mut servers: Vec<Option<ServerSpec>> = before.into_iter().rev().map(Some).collect();
    let addresses = servers.iter().flatten().map(|server| server.address);
    let mut places: HashMap<SocketAddr, usize> = addresses.zip(0..).collect();
    let mut change = |change: &ServerChange| match change {
        ServerChange::Add(server) => {
            if places.contains_key(&server.address) {
                return Err(server_exists());
            }
            holds(places.len() + 1)?;
            places.insert(server.address, servers.len());
            servers.push(Some(settle(server)));
            Ok(())
        }
        ServerChange::Edit(server) => {
            let place = *places.get(&server.address).ok_or_else(no_such_server)?;
            servers[place] = Some(settle(server));
            Ok(())
        }
        ServerChange::Delete(address) => {
            let place = places.remove(address).ok_or_else(no_such_server)?;
            servers[place] = None;
            Ok(())
        }
    };
    let answers = changes.iter().map(&mut change).collect();
    After { servers: servers.into_iter().rev().flatten().collect(), answers }
}

#[cfg(test)]
mod tests {
    use super::super::tests::server;
    use super::*;
    use crate::control::api::RefusalKind;

    #[test]
    fn changes_are_answered_and_ordered_as_one_by_one() {
        let before = ["10.77.0.12:80", "10.77.0.11:80"].map(server).to_vec();
        let [one, three, four, five] =
            ["10.77.0.11:80", "10.77.0.13:80", "10.77.0.14:80", "10.77.0.15:80"].map(server);
        let heavy = ServerSpec { weight: 7, ..one.clone() };
        let changes = [
            ServerChange::Add(one),
            ServerChange::Delete(four.address),
            ServerChange::Edit(four.clone()),
            ServerChange::Delete("10.77.0.12:80".parse().unwrap()),
            ServerChange::Add(three.clone()),
            ServerChange::Edit(heavy.clone()),
            ServerChange::Add(four.clone()),
            ServerChange::Add(five),
        ];
        let holds = |servers| match servers {
            ..=3 => Ok(()),
            _ => Err(super::super::check::refuse(RefusalKind::Invalid, "full")),
        };
        let after = after(before, &changes, ServerSpec::clone, holds);
        assert_eq!(after.servers, [four, three, heavy]);
        let errors = after.answers.into_iter().map(|answer| answer.err().map(|it| it.error));
        let (exists, missing) = (RefusalKind::ServerExists, RefusalKind::NoSuchServer);
        let full = Some(RefusalKind::Invalid);
        let (exists, missing) = (Some(exists), Some(missing));
        let expected = [exists, missing, missing, None, None, None, None, full];
        assert_eq!(errors.collect::<Vec<_>>(), expected);
    }
}

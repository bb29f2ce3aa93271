//! Listens to control connections: their packets go through here before they are translated.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use forwarding::checksum::Partial;
use forwarding::helpers::ftp::{self, Expected, Outcome};
use forwarding::{Fragment, Headers, Packet};

use crate::dispatch::connection::{Connection, Control, Tuple};
use crate::dispatch::state::{State, Timeouts};
use crate::dispatch::verdict::{DropReason, Stop};
use crate::dispatch::{Dispatcher, TCP, Target};

/// Data connections that a control connection may await at a time. A client announces one, uses it,
/// and announces the next; what it announces without end would fill the table.
const AWAITED: usize = 8;

/// What an FTP control connection has besides a connection.
#[derive(Debug, Default)]
pub struct Helper {
    dialogue: ftp::Control,
    /// Shared with the data connections.
    control: Arc<Control>,
    /// What was announced last, latest at the back.
    awaited: VecDeque<Tuple>,
}

impl Helper {
    /// What the control connection shares with its data connections.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// The same with another control, which `copy` makes of this one's.
    pub fn sharing(&self, copy: impl FnOnce(&Arc<Control>) -> Arc<Control>) -> Helper {
        Helper {
            dialogue: self.dialogue.clone(),
            control: copy(&self.control),
            awaited: self.awaited.clone(),
        }
    }

    /// Notes that `tuple` is awaited, and returns what no longer is for it.
    fn note(&mut self, tuple: Tuple) -> Option<Tuple> {
        self.awaited.retain(|known| *known != tuple);
        self.awaited.push_back(tuple);
        if self.awaited.len() > AWAITED { self.awaited.pop_front() } else { None }
    }
}

/// A data connection that has just been announced.
struct Announced {
    connection: Connection,
    control: Arc<Control>,
    /// What is no longer awaited for it.
    given_up: Option<Tuple>,
}

impl Announced {
    /// By `connection`, a control connection.
    fn by(
        connection: &mut Connection,
        expected: Expected,
        now: Duration,
        timeouts: &Timeouts,
    ) -> Option<Announced> {
        let (client, vip) = (connection.tuple.client, connection.tuple.peer);
        let server = connection.server_endpoint;
        let (client, port, server) = match expected {
            // The server connects from the port before its own.
            Expected::Active { client } => {
                (client, vip.1.wrapping_sub(1), (server.0, server.1.wrapping_sub(1)))
            }
            Expected::Passive { server } => ((client.0, 0), server.1, server),
        };
        let tuple = Tuple { protocol: TCP, template: false, client, peer: (vip.0, port) };
        let binding = connection.binding.clone();
        let helper = connection.helper()?;
        let control = helper.control.clone();
        Some(Announced {
            connection: Connection::expected(tuple, server, &control, binding, now, timeouts),
            control,
            given_up: helper.note(tuple),
        })
    }
}

impl Dispatcher {
    /// A packet of a control connection on its way to the server. `headers` are the packet's.
    pub(in crate::dispatch) fn help_client(
        &self,
        now: Duration,
        packet: &mut Packet<'_>,
        headers: &Headers,
        target: &Target,
        partial: Option<Partial>,
    ) -> Result<(), Stop> {
        intact(packet, headers, partial)?;
        let announced = self.with_control_connection(target, |connection| {
            let is_established = connection.state == State::Established;
            let helper = connection.helper()?;
            let expected = helper.dialogue.from_client(packet.bytes_mut(), headers, partial);
            if !is_established {
                helper.dialogue.withdraw();
                return None;
            }
            Announced::by(connection, expected?, now, &self.shared.timeouts)
        });
        self.expect(announced, now)
    }

    /// A packet of a control connection on its way to the client. It may become longer or shorter,
    /// and `headers` with it; it counts as what it has become.
    pub(in crate::dispatch) fn help_server(
        &self,
        now: Duration,
        packet: &mut Packet<'_>,
        headers: &mut Headers,
        target: &Target,
        partial: Option<Partial>,
    ) -> Result<(), Stop> {
        intact(packet, headers, partial)?;
        let mut refused = None;
        let announced = self.with_control_connection(target, |connection| {
            let is_established = connection.state == State::Established;
            let helper = connection.helper()?;
            if !is_established {
                helper.dialogue.withdraw();
            }
            let (server, vip) = (target.server.0, target.virtual_endpoint.0);
            match helper.dialogue.from_server(packet, headers, server, vip, partial) {
                Outcome::Forward(expected) => {
                    connection.counted(headers.ip_len(), false);
                    Announced::by(connection, expected?, now, &self.shared.timeouts)
                }
                Outcome::Early | Outcome::Torn => {
                    refused = Some(DropReason::FtpHeld);
                    None
                }
                Outcome::Refused(_) => {
                    refused = Some(DropReason::FtpRefused);
                    None
                }
            }
        });
        match refused {
            Some(reason) => Err(Stop::Drop(reason)),
            None => self.expect(announced, now),
        }
    }

    /// Whether the packet, which belongs to no connection, is the first of one that was announced:
    /// then it belongs to that.
    pub(in crate::dispatch) fn is_awaited(&self, headers: &Headers) -> bool {
        headers.protocol == TCP
            && self.shared.connections.adopt(&Tuple {
                protocol: TCP,
                template: false,
                client: (headers.source, headers.source_port),
                peer: (headers.destination, headers.destination_port),
            })
    }

    fn with_control_connection(
        &self,
        target: &Target,
        act: impl FnOnce(&mut Connection) -> Option<Announced>,
    ) -> Option<Announced> {
        let (client, peer) = (target.client, target.virtual_endpoint);
        let tuple = Tuple { protocol: TCP, template: false, client, peer };
        self.shared.connections.with_tuple(&tuple, act).flatten()
    }

    /// Puts what was announced into the table. When that is full the announcement must not arrive:
    /// it will be repeated, and there may be room then.
    fn expect(&self, announced: Option<Announced>, now: Duration) -> Result<(), Stop> {
        let Some(Announced { connection, control, given_up }) = announced else {
            return Ok(());
        };
        let connections = &self.shared.connections;
        if let Some(tuple) = given_up {
            connections.forget_expected(&tuple, |known| known.is_controlled_by(&control));
        }
        if connections.is_full() {
            return Err(Stop::Drop(DropReason::TableFull));
        }
        connections.expect(connection, now, &self.shared.timeouts);
        Ok(())
    }
}

/// The kernel verifies the checksum of all that its helper may change.
fn intact(packet: &Packet<'_>, headers: &Headers, partial: Option<Partial>) -> Result<(), Stop> {
    if partial.is_some() || headers.fragment != Fragment::Whole {
        return Ok(());
    }
    let segment = packet.bytes().get(headers.l4..headers.end).unwrap_or_default();
    match headers.pseudo_header().bytes(segment).folded() {
        0xffff => Ok(()),
        _ => Err(Stop::Drop(DropReason::FtpChecksum)),
    }
}

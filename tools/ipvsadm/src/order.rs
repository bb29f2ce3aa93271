//! From words to what is asked for. Here all rules meet: the command first, options in the order
//! given, then the legality tables, then what only makes sense together.

use std::net::SocketAddr;

use director::control::api::{
    Forwarding, Persistence, ServerSpec, ServiceKey, ServiceSpec, Timeouts, Tunnel,
};
use director::control::filter::ConnectionFilter;
use director::control::operations::Command;

use crate::draft::Draft;
use crate::failure::Failure;
use crate::flags::Kind;
use crate::flags::scheduling::scheduler_flags;
use crate::flags::service::{DEFAULT_PERSISTENCE, client_prefix, timeout};
use crate::layout::Format;
use crate::legality::{self, Action, Opt, TUNNEL_OPTIONS, TunnelType};
use crate::names::Names;
use crate::popt::{Found, Scanner};

/// The persistence engine that there is.
const ENGINE: &str = "sip";

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// A change of the table or of the timeouts.
    Change(Command),
    /// A listing.
    List {
        /// Of what.
        what: What,
        /// How.
        format: Format,
    },
    /// The commands that rebuild the table.
    Save {
        /// Numbers instead of names.
        numeric: bool,
        /// Everything, so that the same can be rebuilt.
        full: bool,
    },
    /// Commands from standard input.
    Restore {
        /// All or nothing.
        atomic: bool,
    },
    /// To start a sync daemon.
    StartDaemon,
    /// To stop a sync daemon.
    StopDaemon,
    /// The help text.
    Help,
    /// The version line.
    Version,
}

/// What to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// All services.
    Table,
    /// One service.
    Service(ServiceKey),
    /// These connections.
    Connections(ConnectionFilter),
    /// Timeouts.
    Timeouts,
    /// Sync daemons.
    Daemons,
}

/// Reads a command line: the words after the program's name. None at all means `-L`.
///
/// # Errors
/// With ipvsadm's text and exit code.
pub fn parse(words: &[String], names: &Names) -> Result<Order, Failure> {
    if words.is_empty() {
        return Ok(Order::List { what: What::Table, format: Format::default() });
    }
    let mut scanner = Scanner::new(words);
    // Whatever is wrong with the first flag, the answer is to try the help.
    let Ok(Some(first)) = scanner.next_flag() else {
        return Err(Failure::try_help());
    };
    let action = match first.flag.kind {
        Kind::Command(action) => action,
        Kind::Help => return Ok(Order::Help),
        Kind::Version => return Ok(Order::Version),
        Kind::Option(_) => return Err(Failure::try_help()),
    };
    let mut draft = Draft::new(action, names.clone());
    (first.flag.take)(&mut draft, first.value.as_deref())?;
    while let Some(Found { flag, value, word }) =
        scanner.next_flag().map_err(|bad| Failure::option(&bad))?
    {
        let Kind::Option(option) = flag.kind else {
            return Err(Failure::usage(format!("invalid option `{word}'")));
        };
        if let Some(option) = option {
            draft.note(option)?;
        }
        (flag.take)(&mut draft, value.as_deref())?;
    }
    let mut left_over = scanner.left_over();
    if action == Action::Set {
        let &[tcp, tcp_fin, udp, ref rest @ ..] = left_over else {
            return Err(Failure::usage("--set option requires 3 timeout values"));
        };
        draft.timeouts = Timeouts {
            tcp: timeout(tcp, 0)?,
            tcp_fin: timeout(tcp_fin, 0)?,
            udp: timeout(udp, 0)?,
        };
        left_over = rest;
    }
    if let Some(word) = left_over.first() {
        return Err(Failure::usage(format!("unexpected argument {word}")));
    }
    // Known only now: the scheduler may stand behind its flags.
    draft.flag_bits = scheduler_flags(&draft.scheduler, &draft.flags)?;
    legality::check(action, draft.given)?;
    finish(&draft)
}

fn finish(draft: &Draft) -> Result<Order, Failure> {
    let command = match draft.action {
        Action::AddService => Command::AddService { service: service(draft)? },
        Action::EditService => Command::EditService { service: service(draft)? },
        Action::DeleteService => Command::DeleteService { service: key(draft) },
        Action::AddServer => Command::AddServer { service: key(draft), server: server(draft)? },
        Action::EditServer => Command::EditServer { service: key(draft), server: server(draft)? },
        Action::DeleteServer => {
            Command::DeleteServer { service: key(draft), server: server_address(draft) }
        }
        Action::Flush => Command::Flush,
        Action::Zero => Command::Zero { service: named(draft) },
        Action::Set => Command::SetTimeouts { timeouts: draft.timeouts },
        Action::List => return list(draft),
        Action::Save => {
            // A name that is saved may be another's when it is restored.
            let numeric = draft.format.numeric || draft.full;
            return Ok(Order::Save { numeric, full: draft.full });
        }
        Action::Restore => return Ok(Order::Restore { atomic: draft.atomic }),
        Action::StartDaemon => return Ok(Order::StartDaemon),
        Action::StopDaemon => return Ok(Order::StopDaemon),
    };
    Ok(Order::Change(command))
}

fn key(draft: &Draft) -> ServiceKey {
    if draft.fwmark != 0 {
        return ServiceKey::Fwmark { fwmark: draft.fwmark, ipv6: draft.ipv6 };
    }
    let address = SocketAddr::new(draft.address, draft.port);
    ServiceKey::Address { protocol: draft.protocol, address }
}

fn named(draft: &Draft) -> Option<ServiceKey> {
    draft.given.has(Opt::Service).then(|| key(draft))
}

fn service(draft: &Draft) -> Result<ServiceSpec, Failure> {
    use director::control::api::Protocol;
    let marked = draft.fwmark != 0;
    if !marked && draft.port == 0 && draft.persistence.is_none() {
        return Err(Failure::usage("Zero port specified for non-persistent service"));
    }
    if draft.one_packet && !marked && draft.protocol != Protocol::Udp {
        return Err(Failure::usage("One-Packet Scheduling is only for UDP virtual services"));
    }
    let scheduler = match draft.scheduler.as_str() {
        "" => "wlc",
        name => name,
    };
    // A mask or an engine without -p has no effect in the kernel, and the API has no place for it.
    // But an engine that does not exist is refused even so: such a one is asked for, to hear that.
    let refused = draft.engine.as_ref().is_some_and(|engine| engine != ENGINE);
    let timeout = draft.persistence.or(refused.then_some(DEFAULT_PERSISTENCE));
    let persistence = match timeout {
        Some(timeout) => {
            let prefix = client_prefix(draft)?;
            Some(Persistence { timeout, prefix, engine: draft.engine.clone() })
        }
        None => None,
    };
    Ok(ServiceSpec {
        key: key(draft),
        scheduler: scheduler.to_owned(),
        flags: draft.flag_bits,
        persistence,
        one_packet: draft.one_packet,
        // What is not spoken of stays.
        extras: draft.extras,
    })
}

/// The server as it is named: its own port, or else the service's.
fn server_address(draft: &Draft) -> SocketAddr {
    match draft.server {
        Some(server) => SocketAddr::new(server.address, server.port.unwrap_or(draft.port)),
        None => SocketAddr::new(draft.address, draft.port),
    }
}

fn server(draft: &Draft) -> Result<ServerSpec, Failure> {
    let mut address = server_address(draft);
    // These two leave the packet's port alone, so another one could not be reached.
    if draft.fwmark == 0 && draft.forwarding != Forwarding::Nat {
        address.set_port(draft.port);
    }
    let tunneled = draft.forwarding == Forwarding::Tunnel;
    if !tunneled {
        if address.is_ipv6() != draft.ipv6 {
            let message = "Different address family is allowed only for tunneling servers";
            return Err(Failure::usage(message));
        }
        if draft.given.has_any(TUNNEL_OPTIONS) {
            return Err(Failure::usage("Tunnel options conflict with forward method"));
        }
    } else {
        legality::check_tunnel(draft.tunnel, draft.given)?;
    }
    let checksum = draft.tunnel_checksum;
    Ok(ServerSpec {
        address,
        forwarding: draft.forwarding,
        tunnel: match draft.tunnel {
            TunnelType::Ipip => Tunnel::Ipip,
            TunnelType::Gue => Tunnel::Gue { port: draft.tunnel_port, checksum },
            TunnelType::Gre => Tunnel::Gre { checksum },
        },
        weight: draft.weight,
        upper_threshold: draft.upper_threshold,
        lower_threshold: draft.lower_threshold,
    })
}

fn list(draft: &Draft) -> Result<Order, Failure> {
    let given = draft.given;
    let no_table = given.has_any(&[Opt::Connection, Opt::Timeout, Opt::Daemon]);
    let columns = given.has_any(&[Opt::Stats, Opt::Rate, Opt::Thresholds]);
    let setting = given.has_any(&[Opt::Timeout, Opt::Daemon]);
    if no_table && columns || setting && given.has(Opt::PersistentConn) {
        return Err(Failure::usage("options conflicts in the list command"));
    }
    if !draft.filter.is_empty() && !given.has(Opt::Connection) {
        let message = "'client', 'service', 'server' and 'state' go with -c only";
        return Err(Failure::usage(message));
    }
    let what = if given.has(Opt::Connection) {
        What::Connections(draft.filter.clone())
    } else if given.has(Opt::Timeout) {
        What::Timeouts
    } else if given.has(Opt::Daemon) {
        What::Daemons
    } else {
        named(draft).map_or(What::Table, What::Service)
    };
    Ok(Order::List { what, format: draft.format })
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;

/// What the tests of the flags are written in.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    fn read(line: &str) -> Result<Order, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words, &Names::from_text("", "http 80/tcp\ndomain 53/udp\n"))
    }

    pub(crate) fn order(line: &str) -> Order {
        read(line).unwrap_or_else(|failure| panic!("{line}: {failure}"))
    }

    /// Message and exit code.
    pub(crate) fn complaint(line: &str) -> (String, u8) {
        let failure = read(line).map(|order| panic!("{line}: {order:?}")).unwrap_err();
        (failure.message, failure.code)
    }

    pub(crate) fn command(line: &str) -> Command {
        match order(line) {
            Order::Change(command) => command,
            other => panic!("{line}: {other:?}"),
        }
    }

    pub(crate) fn service(line: &str) -> ServiceSpec {
        match command(line) {
            Command::AddService { service } | Command::EditService { service } => service,
            other => panic!("{line}: {other:?}"),
        }
    }

    pub(crate) fn server(line: &str) -> ServerSpec {
        match command(line) {
            Command::AddServer { server, .. } | Command::EditServer { server, .. } => server,
            other => panic!("{line}: {other:?}"),
        }
    }

    /// The service that a command names, as JSON.
    pub(crate) fn key(line: &str) -> String {
        match command(line) {
            Command::DeleteService { service } => serde_json::to_string(&service).unwrap(),
            other => panic!("{line}: {other:?}"),
        }
    }
}

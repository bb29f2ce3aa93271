//! The tables of what goes with what, and the messages that they give rise to.

use super::{Action, Given, Opt};
use crate::failure::Failure;

/// One row of a table. What is in none of the three is illegal.
struct Row {
    required: &'static [Opt],
    optional: &'static [Opt],
    /// At most one of these.
    exclusive: &'static [Opt],
}

const NOTHING: Row = Row { required: &[], optional: &[], exclusive: &[] };

const SERVICE: Row = Row {
    required: &[Opt::Service],
    optional: &[
        Opt::Scheduler,
        Opt::Persistent,
        Opt::Netmask,
        Opt::Engine,
        Opt::SchedulerFlags,
        Opt::OnePacket,
        Opt::ServiceTimeouts,
        Opt::GoneServer,
        Opt::NoDestination,
        Opt::LeaveQuiesced,
        Opt::MssClamp,
        Opt::Bias,
        Opt::BiasWindow,
        Opt::Teardown,
        Opt::HashKey,
        Opt::Sticky,
        Opt::Variants,
    ],
    exclusive: &[],
};

const SERVER: Row = Row {
    required: &[Opt::Service, Opt::Server],
    optional: &[
        Opt::Forwarding,
        Opt::Weight,
        Opt::UpperThreshold,
        Opt::LowerThreshold,
        Opt::TunType,
        Opt::TunPort,
        Opt::TunNocsum,
        Opt::TunCsum,
        Opt::TunRemcsum,
    ],
    exclusive: &[],
};

const LIST: Row = Row {
    required: &[],
    optional: &[
        Opt::Numeric,
        Opt::Stats,
        Opt::Rate,
        Opt::Thresholds,
        Opt::PersistentConn,
        Opt::NoSort,
        Opt::SyncId,
        Opt::Exact,
        Opt::TunInfo,
        Opt::Json,
        Opt::Client,
        Opt::OfService,
        Opt::OfServer,
        Opt::State,
    ],
    exclusive: &[Opt::Connection, Opt::Service, Opt::Timeout, Opt::Daemon],
};

fn row(action: Action) -> Row {
    match action {
        Action::AddService | Action::EditService => SERVICE,
        Action::AddServer | Action::EditServer => SERVER,
        Action::DeleteService => Row { required: &[Opt::Service], ..NOTHING },
        Action::DeleteServer => Row { required: &[Opt::Service, Opt::Server], ..NOTHING },
        Action::List => LIST,
        Action::Save => Row { optional: &[Opt::Numeric, Opt::Full], ..NOTHING },
        Action::Zero => Row { optional: &[Opt::Service], ..NOTHING },
        Action::StartDaemon => Row {
            optional: &[
                Opt::McastInterface,
                Opt::SyncId,
                Opt::McastGroup,
                Opt::McastPort,
                Opt::McastTtl,
                Opt::SyncMaxlen,
            ],
            ..NOTHING
        },
        Action::StopDaemon => Row { optional: &[Opt::SyncId], ..NOTHING },
        Action::Restore => Row { optional: &[Opt::Atomic], ..NOTHING },
        Action::Flush | Action::Set => NOTHING,
    }
}

/// Whether an option is legal with a command at all.
pub fn allows(action: Action, option: Opt) -> bool {
    let Row { required, optional, exclusive } = row(action);
    [required, optional, exclusive].iter().any(|options| options.contains(&option))
}

/// Whether the options given go with the command.
///
/// # Errors
/// On the first option, in the order of [`Opt::ALL`], that is missing, illegal or in conflict.
pub fn check(action: Action, given: Given) -> Result<(), Failure> {
    let context = Context { kind: "command", name: action.name() };
    context.check(&row(action), Opt::ALL, given)
}

/// Tunnel types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunnelType {
    /// IP in IP.
    #[default]
    Ipip,
    /// Generic UDP encapsulation.
    Gue,
    /// Generic routing encapsulation.
    Gre,
}

impl TunnelType {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TunnelType::Ipip => "ipip",
            TunnelType::Gue => "gue",
            TunnelType::Gre => "gre",
        }
    }
}

/// The options that make no sense without a tunnel.
pub const TUNNEL_OPTIONS: &[Opt] =
    &[Opt::TunType, Opt::TunPort, Opt::TunNocsum, Opt::TunCsum, Opt::TunRemcsum];

/// Whether the tunnel options given go with the tunnel type.
///
/// # Errors
/// As [`check`].
pub fn check_tunnel(tunnel: TunnelType, given: Given) -> Result<(), Failure> {
    let row = match tunnel {
        TunnelType::Ipip => NOTHING,
        TunnelType::Gue => Row {
            required: &[Opt::TunPort],
            exclusive: &[Opt::TunNocsum, Opt::TunCsum, Opt::TunRemcsum],
            ..NOTHING
        },
        TunnelType::Gre => Row { exclusive: &[Opt::TunNocsum, Opt::TunCsum], ..NOTHING },
    };
    let context = Context { kind: "tunnel type", name: tunnel.name() };
    context.check(&row, &TUNNEL_OPTIONS[1..], given)
}

struct Context {
    kind: &'static str,
    name: &'static str,
}

impl Context {
    fn check(&self, row: &Row, options: &[Opt], given: Given) -> Result<(), Failure> {
        let Context { kind, name: place } = self;
        let mut first: Option<Opt> = None;
        for &option in options {
            let name = option.name();
            if !given.has(option) {
                if row.required.contains(&option) {
                    return Err(Failure::usage(format!(
                        "You need to supply the '{name}' option for the '{place}' {kind}"
                    )));
                }
            } else if row.exclusive.contains(&option) {
                if let Some(first) = first {
                    let first = first.name();
                    return Err(Failure::usage(format!(
                        "The option '{name}' conflicts with the '{first}' option in the '{place}' \
                         {kind}"
                    )));
                }
                first = Some(option);
            } else if !row.required.contains(&option) && !row.optional.contains(&option) {
                return Err(Failure::usage(format!(
                    "Illegal '{name}' option with the '{place}' {kind}"
                )));
            }
        }
        Ok(())
    }
}

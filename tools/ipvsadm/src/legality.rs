//! Which option goes with which command, and with which tunnel type: the tables, and the messages
//! that they give rise to. They know that an option was given, not what its value was.

use crate::failure::Failure;

macro_rules! names {
    ($(#[$meta:meta])* $vis:vis enum $kind:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $kind { $($(#[$doc])* $variant,)* }

        impl $kind {
            /// All of them, in the order in which they are looked at.
            pub const ALL: &[$kind] = &[$($kind::$variant,)*];

            /// What messages call it.
            pub fn name(self) -> &'static str {
                match self { $($kind::$variant => $name,)* }
            }
        }
    };
}

names! {
    /// What a run does.
    pub enum Action {
        /// `-A`
        AddService = "add-service",
        /// `-E`
        EditService = "edit-service",
        /// `-D`
        DeleteService = "delete-service",
        /// `-C`
        Flush = "flush",
        /// `-L`
        List = "list",
        /// `-a`
        AddServer = "add-server",
        /// `-d`
        DeleteServer = "delete-server",
        /// `-e`
        EditServer = "edit-server",
        /// `--set`
        Set = "set",
        /// `--start-daemon`
        StartDaemon = "start-daemon",
        /// `--stop-daemon`
        StopDaemon = "stop-daemon",
        /// `-R`
        Restore = "restore",
        /// `-S`
        Save = "save",
        /// `-Z`
        Zero = "zero",
    }
}

names! {
    /// An option as the tables know it. Several flags may be one option: `-t`, `-u` and `-f` all
    /// give the service address.
    pub enum Opt {
        /// `-n`
        Numeric = "numeric",
        /// `-c`
        Connection = "connection",
        /// `-t -u --sctp-service -f`
        Service = "service-address",
        /// `-s`
        Scheduler = "scheduler",
        /// `-p`
        Persistent = "persistent",
        /// `-M`
        Netmask = "netmask",
        /// `-r`
        Server = "real-server",
        /// `-g -i -m`
        Forwarding = "forwarding-method",
        /// `-w`
        Weight = "weight",
        /// `-x`
        UpperThreshold = "u-threshold",
        /// `-y`
        LowerThreshold = "l-threshold",
        /// `--mcast-interface`
        McastInterface = "mcast-interface",
        /// `--timeout`
        Timeout = "timeout",
        /// `--daemon`
        Daemon = "daemon",
        /// `--stats`
        Stats = "stats",
        /// `--rate`
        Rate = "rate",
        /// `--thresholds`
        Thresholds = "thresholds",
        /// `--persistent-conn`
        PersistentConn = "persistent-conn",
        /// `--nosort`
        NoSort = "nosort",
        /// `--syncid`
        SyncId = "syncid",
        /// `-X`
        Exact = "exact",
        /// `-o`
        OnePacket = "ops",
        /// `--pe`
        Engine = "pe",
        /// `-b`
        SchedulerFlags = "sched-flags",
        /// `--mcast-group`
        McastGroup = "mcast-group",
        /// `--mcast-port`
        McastPort = "mcast-port",
        /// `--mcast-ttl`
        McastTtl = "mcast-ttl",
        /// `--sync-maxlen`
        SyncMaxlen = "sync-maxlen",
        /// `--tun-info`
        TunInfo = "tun-info",
        /// `--tun-type`
        TunType = "tun-type",
        /// `--tun-port`
        TunPort = "tun-port",
        /// `--tun-nocsum`
        TunNocsum = "tun-nocsum",
        /// `--tun-csum`
        TunCsum = "tun-csum",
        /// `--tun-remcsum`
        TunRemcsum = "tun-remcsum",
    }
}

/// Which options were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given(u64);

impl Given {
    /// Notes that `option` was given.
    ///
    /// # Errors
    /// When it was given before.
    pub fn note(&mut self, option: Opt) -> Result<(), Failure> {
        if self.has(option) {
            return Err(Failure::usage(format!(
                "multiple '{}' options specified",
                option.name()
            )));
        }
        self.0 |= 1 << option as u64;
        Ok(())
    }

    /// Whether `option` was given.
    pub fn has(&self, option: Opt) -> bool {
        self.0 & (1 << option as u64) != 0
    }

    /// Whether any of `options` was given.
    pub fn has_any(&self, options: &[Opt]) -> bool {
        options.iter().any(|&option| self.has(option))
    }
}

/// One row of a table. What is in none of the three is illegal.
struct Row {
    required: &'static [Opt],
    optional: &'static [Opt],
    /// At most one of these.
    exclusive: &'static [Opt],
}

const NOTHING: Row = Row {
    required: &[],
    optional: &[],
    exclusive: &[],
};

const SERVICE: Row = Row {
    required: &[Opt::Service],
    optional: &[
        Opt::Scheduler,
        Opt::Persistent,
        Opt::Netmask,
        Opt::Engine,
        Opt::SchedulerFlags,
        Opt::OnePacket,
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
    ],
    exclusive: &[Opt::Connection, Opt::Service, Opt::Timeout, Opt::Daemon],
};

fn row(action: Action) -> Row {
    match action {
        Action::AddService | Action::EditService => SERVICE,
        Action::AddServer | Action::EditServer => SERVER,
        Action::DeleteService => Row {
            required: &[Opt::Service],
            ..NOTHING
        },
        Action::DeleteServer => Row {
            required: &[Opt::Service, Opt::Server],
            ..NOTHING
        },
        Action::List => LIST,
        Action::Save => Row {
            optional: &[Opt::Numeric],
            ..NOTHING
        },
        Action::Zero => Row {
            optional: &[Opt::Service],
            ..NOTHING
        },
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
        Action::StopDaemon => Row {
            optional: &[Opt::SyncId],
            ..NOTHING
        },
        Action::Flush | Action::Set | Action::Restore => NOTHING,
    }
}

/// Whether the options given go with the command.
///
/// # Errors
/// On the first option, in the order of [`Opt::ALL`], that is missing, illegal or in conflict.
pub fn check(action: Action, given: Given) -> Result<(), Failure> {
    let context = Context {
        kind: "command",
        name: action.name(),
    };
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
pub const TUNNEL_OPTIONS: &[Opt] = &[
    Opt::TunType,
    Opt::TunPort,
    Opt::TunNocsum,
    Opt::TunCsum,
    Opt::TunRemcsum,
];

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
        TunnelType::Gre => Row {
            exclusive: &[Opt::TunNocsum, Opt::TunCsum],
            ..NOTHING
        },
    };
    let context = Context {
        kind: "tunnel type",
        name: tunnel.name(),
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn given(options: &[Opt]) -> Given {
        let mut given = Given::default();
        for &option in options {
            given.note(option).unwrap();
        }
        given
    }

    /// The reference's table: `+` required, then optional, then `|` exclusive.
    const TABLE: &[(Action, &str, &str, &str)] = &[
        (
            Action::AddService,
            "service-address",
            "scheduler persistent netmask ops pe sched-flags",
            "",
        ),
        (
            Action::EditService,
            "service-address",
            "scheduler persistent netmask ops pe sched-flags",
            "",
        ),
        (Action::DeleteService, "service-address", "", ""),
        (Action::Flush, "", "", ""),
        (
            Action::List,
            "",
            "numeric stats rate thresholds persistent-conn nosort syncid exact tun-info",
            "connection service-address timeout daemon",
        ),
        (
            Action::AddServer,
            "service-address real-server",
            "forwarding-method weight u-threshold l-threshold tun-type tun-port tun-nocsum \
             tun-csum tun-remcsum",
            "",
        ),
        (
            Action::EditServer,
            "service-address real-server",
            "forwarding-method weight u-threshold l-threshold tun-type tun-port tun-nocsum \
             tun-csum tun-remcsum",
            "",
        ),
        (Action::DeleteServer, "service-address real-server", "", ""),
        (Action::Set, "", "", ""),
        (
            Action::StartDaemon,
            "",
            "mcast-interface syncid mcast-group mcast-port mcast-ttl sync-maxlen",
            "",
        ),
        (Action::StopDaemon, "", "syncid", ""),
        (Action::Restore, "", "", ""),
        (Action::Save, "", "numeric", ""),
        (Action::Zero, "", "service-address", ""),
    ];

    fn options(names: &str) -> Vec<Opt> {
        let find = |name| {
            *Opt::ALL
                .iter()
                .find(|option| option.name() == name)
                .unwrap()
        };
        names.split_whitespace().map(find).collect()
    }

    #[test]
    fn every_cell_of_the_command_table_is_as_in_the_reference() {
        assert_eq!(TABLE.len(), Action::ALL.len());
        for &(action, required, optional, exclusive) in TABLE {
            let required = options(required);
            let legal = [options(optional), options(exclusive)].concat();
            for &option in Opt::ALL {
                let mut with = required.clone();
                with.retain(|&other| other != option);
                let name = option.name();
                let place = action.name();
                let without = check(action, given(&with));
                if required.contains(&option) {
                    let expected =
                        format!("You need to supply the '{name}' option for the '{place}' command");
                    assert_eq!(without.unwrap_err().message, expected);
                    continue;
                }
                assert_eq!(without, Ok(()), "{place} without {name}");
                with.push(option);
                let with = check(action, given(&with));
                if legal.contains(&option) {
                    assert_eq!(with, Ok(()), "{place} with {name}");
                } else {
                    let expected = format!("Illegal '{name}' option with the '{place}' command");
                    assert_eq!(with.unwrap_err(), Failure::usage(expected));
                }
            }
        }
    }

    #[test]
    fn exclusive_options_name_the_later_first_and_the_earlier_second() {
        let options = given(&[Opt::Service, Opt::Connection]);
        assert_eq!(
            check(Action::List, options).unwrap_err().message,
            "The option 'service-address' conflicts with the 'connection' option in the 'list' \
             command"
        );
    }

    #[test]
    fn tunnel_types_take_their_own_options_only() {
        let message = |tunnel, options: &[Opt]| {
            check_tunnel(tunnel, given(options)).map_err(|failure| failure.message)
        };
        for option in &TUNNEL_OPTIONS[1..] {
            let expected = format!(
                "Illegal '{}' option with the 'ipip' tunnel type",
                option.name()
            );
            assert_eq!(message(TunnelType::Ipip, &[*option]), Err(expected));
        }
        let missing = "You need to supply the 'tun-port' option for the 'gue' tunnel type";
        assert_eq!(message(TunnelType::Gue, &[]), Err(missing.to_owned()));
        assert_eq!(
            message(TunnelType::Gue, &[Opt::TunPort, Opt::TunRemcsum]),
            Ok(())
        );
        let both = [Opt::TunPort, Opt::TunNocsum, Opt::TunCsum];
        let conflict = "The option 'tun-csum' conflicts with the 'tun-nocsum' option in the 'gue' \
                        tunnel type";
        assert_eq!(message(TunnelType::Gue, &both), Err(conflict.to_owned()));
        assert_eq!(message(TunnelType::Gre, &[Opt::TunCsum]), Ok(()));
        let illegal = "Illegal 'tun-remcsum' option with the 'gre' tunnel type";
        assert_eq!(
            message(TunnelType::Gre, &[Opt::TunRemcsum]),
            Err(illegal.to_owned())
        );
    }

    #[test]
    fn option_given_twice_is_named() {
        let mut options = given(&[Opt::Forwarding]);
        let failure = options.note(Opt::Forwarding).unwrap_err();
        assert_eq!(
            failure.message,
            "multiple 'forwarding-method' options specified"
        );
    }
}

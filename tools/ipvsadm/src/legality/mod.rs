//! Which option goes with which command, and with which tunnel type. Here are the words: commands,
//! options, and the set of those given; the tables are in [`tables`]. All of it knows that an option
//! was given, not what its value was.

use crate::failure::Failure;

pub mod tables;
#[cfg(test)]
mod tests;

pub use tables::{TUNNEL_OPTIONS, TunnelType, check, check_tunnel};

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
        // From here on what ipvsadm does not have.
        /// `--json`
        Json = "json",
        /// `--client`
        Client = "client",
        /// `--service`
        OfService = "service",
        /// `--server`
        OfServer = "server",
        /// `--state`
        State = "state",
        /// `--atomic`
        Atomic = "atomic",
        /// `--full`
        Full = "full",
        /// `--service-timeouts`
        ServiceTimeouts = "service-timeouts",
        /// `--gone-server`
        GoneServer = "gone-server",
        /// `--no-destination`
        NoDestination = "no-destination",
        /// `--leave-quiesced`
        LeaveQuiesced = "leave-quiesced",
        /// `--mss-clamp`
        MssClamp = "mss-clamp",
        /// `--bias`
        Bias = "bias",
        /// `--bias-window`
        BiasWindow = "bias-window",
        /// `--teardown`
        Teardown = "teardown",
        /// `--hash-key`
        HashKey = "hash-key",
        /// `--sticky`
        Sticky = "sticky",
        /// `--variants`
        Variants = "variants",
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
            return Err(Failure::usage(format!("multiple '{}' options specified", option.name())));
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

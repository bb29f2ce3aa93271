//! The settings that kernel IPVS has as sysctls (`net.ipv4.vs.*`), with its names and defaults, and
//! those of the kernel's own limit on ICMP errors (`net.ipv4.icmp_*`, `net.ipv6.icmp.*`).
//!
//! Workers read them as single words, without a lock; the control plane sets them. One that is set
//! holds from the next packet on. What a setting does is said where it is read.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Names, defaults, ranges and meanings: one row per setting.
macro_rules! settings {
    ($($variant:ident = $name:literal, $default:literal, $range:expr, $meaning:literal;)*) => {
        /// One of the settings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Setting {
            $(#[doc = $meaning] $variant,)*
        }

        impl Setting {
            /// All of them.
            pub const ALL: &'static [Setting] = &[$(Setting::$variant),*];

            /// The kernel's name.
            pub const fn name(self) -> &'static str {
                match self { $(Setting::$variant => $name),* }
            }

            /// The kernel's default.
            pub const fn default(self) -> u32 {
                match self { $(Setting::$variant => $default),* }
            }

            /// The default as text.
            pub const fn default_text(self) -> &'static str {
                match self { $(Setting::$variant => concat!($default)),* }
            }

            /// The values that make sense.
            pub const fn range(self) -> RangeInclusive<u32> {
                match self { $(Setting::$variant => $range),* }
            }

            /// What it does, for the reference: Markdown of one line.
            pub const fn meaning(self) -> &'static str {
                match self { $(Setting::$variant => $meaning),* }
            }
        }
    };
}

/// Off or on.
const SWITCH: RangeInclusive<u32> = 0..=1;

/// The kernel's modes of a defence: off, automatic, automatic and now active, always.
const MODES: RangeInclusive<u32> = 0..=3;

/// What an `int` of the kernel holds.
const INT: RangeInclusive<u32> = 0..=i32::MAX as u32;

/// Seconds that the kernel can count in jiffies: INT_MAX/HZ at the usual HZ of 1000.
const SECONDS: RangeInclusive<u32> = 0..=2_147_483;

settings! {
    AmDroprate = "am_droprate", 10, INT,
        "with `drop_packet = 3`: one of so many packets that would open a connection is dropped; 0 = none";
    Amemthresh = "amemthresh", 1024, INT,
        "the defences in mode 1 begin when fewer connections than this fit into the table (`max_connections`), and end when more do. The kernel counts free pages of memory";
    CacheBypass = "cache_bypass", 0, SWITCH,
        "a packet for a service by firewall mark that no server can take goes on to its own destination, instead of being answered with port unreachable";
    ConnReuseMode = "conn_reuse_mode", 1, 0..=3,
        "a SYN for a connection that has ended (TIME_WAIT, CLOSE): 0 goes to its server, 1 is scheduled anew; 2 and 3 do so in FIN_WAIT too when the director does not see the server's side. Connections of a persistent client always stay";
    DropEntry = "drop_entry", 0, MODES,
        "remove at random, every second, from a part of the table: connections that are not established, and established ones that were idle for a minute and have had hardly any packets. 0 off, 1 when room runs out (2 while it does), 3 always";
    DropPacket = "drop_packet", 0, MODES,
        "drop some of the packets that would open a connection. Modes as with `drop_entry`; in mode 2 one of `amemthresh / (amemthresh - free places)`";
    ExpireNodestConn = "expire_nodest_conn", 0, SWITCH,
        "the connections of a server that is removed end at once, and their next packets are scheduled if they may open one; so is a SYN of a connection whose server has weight 0. 0: they wait for the server to return until they expire";
    ExpireQuiescentTemplate = "expire_quiescent_template", 0, SWITCH,
        "clients of a persistent service do not stay with a server of weight 0: their next connection is scheduled";
    IcmpMsgsBurst = "icmp_msgs_burst", 50, INT,
        "own ICMP errors at once, to all together";
    IcmpMsgsPerSec = "icmp_msgs_per_sec", 1000, INT,
        "own ICMP errors per second, to all together";
    IcmpRatelimit = "icmp_ratelimit", 1000, INT,
        "milliseconds between two own ICMP errors to one IPv4 address, after six at once; 0 = no limit";
    IcmpRatemask = "icmp_ratemask", 6168, INT,
        "which types of ICMP over IPv4 are limited, a bit for each: 6168 is destination unreachable, source quench, time exceeded, parameter problem. What tells a path's MTU never is";
    Icmpv6Ratelimit = "icmpv6_ratelimit", 1000, INT,
        "the same as `icmp_ratelimit` for IPv6 (`net.ipv6.icmp.ratelimit`). All types are limited but packet too big";
    LblcExpiration = "lblc_expiration", 86_400, SECONDS,
        "seconds without use after which `lblc` forgets which server an address has";
    LblcrExpiration = "lblcr_expiration", 86_400, SECONDS,
        "the same for `lblcr`, and seconds without change after which a set of servers loses one";
    NatIcmpSend = "nat_icmp_send", 0, SWITCH,
        "a packet that a `nat` server sends from its service's port and that belongs to no connection is answered with port unreachable, instead of being left to the host";
    PmtuDisc = "pmtu_disc", 1, SWITCH,
        "tunnel packets bear the don't-fragment bit of the packet inside, and what does not fit is answered with the MTU. 0: no bit, and IPv4 packets are cut after they have been wrapped";
    RunEstimation = "run_estimation", 1, SWITCH,
        "estimate rates (`ipvsadm -L --rate`); 0 leaves them as they are";
    ScheduleIcmp = "schedule_icmp", 0, SWITCH,
        "an ICMP error about a packet of a service, of a connection that is not known here, goes to a server all the same";
    SecureTcp = "secure_tcp", 0, MODES,
        "TCP connections count as established only after more of the handshake, so that half-open ones go soon. Modes as with `drop_entry`";
    SloppySctp = "sloppy_sctp", 0, SWITCH,
        "any SCTP packet but ABORT may open a connection";
    SloppyTcp = "sloppy_tcp", 0, SWITCH,
        "any TCP segment but RST may open a connection: for a director that takes over from another without its connections";
}

impl Setting {
    /// The setting called `name`.
    pub fn find(name: &str) -> Option<Setting> {
        Setting::ALL.iter().copied().find(|setting| setting.name() == name)
    }

    /// Whether it is one that is off or on.
    pub fn is_switch(self) -> bool {
        self.range() == SWITCH
    }
}

/// The value of every setting.
#[derive(Debug)]
pub struct Settings {
    values: [AtomicU32; Setting::ALL.len()],
}

impl Default for Settings {
    /// The kernel's defaults.
    fn default() -> Settings {
        Settings {
            values: std::array::from_fn(|index| AtomicU32::new(Setting::ALL[index].default())),
        }
    }
}

impl Settings {
    /// The value of `setting`.
    pub fn get(&self, setting: Setting) -> u32 {
        self.values[setting as usize].load(Relaxed)
    }

    /// Whether `setting` is anything but 0.
    pub fn is_on(&self, setting: Setting) -> bool {
        self.get(setting) != 0
    }

    /// Gives `setting` a value, which the caller has held against its range.
    pub fn set(&self, setting: Setting, value: u32) {
        self.values[setting as usize].store(value, Relaxed);
    }

    /// The same settings, apart from these.
    pub(super) fn fork(&self) -> Settings {
        let fork = Settings::default();
        Setting::ALL.iter().for_each(|&setting| fork.set(setting, self.get(setting)));
        fork
    }

    /// All of them by name.
    pub fn all(&self) -> BTreeMap<String, u32> {
        Setting::ALL.iter().map(|&one| (one.name().to_owned(), self.get(one))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_own_place_and_a_default_within_its_range() {
        let settings = Settings::default();
        for (place, &setting) in Setting::ALL.iter().enumerate() {
            assert_eq!(setting as usize, place);
            assert_eq!(Setting::find(setting.name()), Some(setting));
            assert!(setting.range().contains(&setting.default()), "{}", setting.name());
            assert_eq!(settings.get(setting), setting.default());
        }
        assert!(Setting::ALL.is_sorted_by_key(|setting| setting.name()));
        assert_eq!(Setting::find("conntrack"), None);
    }

    #[test]
    fn one_that_is_set_leaves_the_others_alone() {
        let settings = Settings::default();
        settings.set(Setting::SloppyTcp, 1);
        for (name, value) in settings.all() {
            let expected =
                if name == "sloppy_tcp" { 1 } else { Setting::find(&name).unwrap().default() };
            assert_eq!(value, expected, "{name}");
        }
    }
}

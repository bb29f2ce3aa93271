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
            pub fn name(self) -> &'static str {
                match self { $(Setting::$variant => $name),* }
            }

            /// The kernel's default.
            pub fn default(self) -> u32 {
                match self { $(Setting::$variant => $default),* }
            }

            /// The values that make sense.
            pub fn range(self) -> RangeInclusive<u32> {
                match self { $(Setting::$variant => $range),* }
            }

            /// One line for people.
            pub fn meaning(self) -> &'static str {
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
        "With `drop_packet = 3`: one of so many packets that would open a connection is dropped.";
    Amemthresh = "amemthresh", 1024, INT,
        "The defences in mode 1 act while fewer connections than this fit into the table.";
    CacheBypass = "cache_bypass", 0, SWITCH,
        "A packet for a service by firewall mark that no server can take goes on to its own destination.";
    ConnReuseMode = "conn_reuse_mode", 1, 0..=3,
        "A SYN for a connection that has ended: 0 its server, 1 scheduled anew, 2 and 3 also in FIN_WAIT of direct and tunnel.";
    DropEntry = "drop_entry", 0, MODES,
        "Connections that have hardly begun or hardly live are removed at random.";
    DropPacket = "drop_packet", 0, MODES,
        "Of the packets that would open a connection some are dropped.";
    ExpireNodestConn = "expire_nodest_conn", 0, SWITCH,
        "A connection whose server is gone ends with its next packet, and one whose server is quiesced with its next SYN.";
    ExpireQuiescentTemplate = "expire_quiescent_template", 0, SWITCH,
        "A persistence template does not hold while its server is quiesced.";
    IcmpMsgsBurst = "icmp_msgs_burst", 50, INT,
        "How many ICMP errors of the director's own may be sent at once.";
    IcmpMsgsPerSec = "icmp_msgs_per_sec", 1000, INT,
        "How many ICMP errors of the director's own are sent in a second, to all destinations together.";
    IcmpRatelimit = "icmp_ratelimit", 1000, INT,
        "Milliseconds between two ICMP errors of the director's own to one IPv4 address; 0 = no limit.";
    IcmpRatemask = "icmp_ratemask", 6168, INT,
        "Which ICMP types over IPv4 are limited, one bit for each.";
    Icmpv6Ratelimit = "icmpv6_ratelimit", 1000, INT,
        "Milliseconds between two ICMP errors of the director's own to one IPv6 address; 0 = no limit.";
    LblcExpiration = "lblc_expiration", 86_400, SECONDS,
        "Seconds without use after which lblc forgets an address.";
    LblcrExpiration = "lblcr_expiration", 86_400, SECONDS,
        "Seconds without use after which lblcr forgets an address, and without change its set of servers shrinks.";
    NatIcmpSend = "nat_icmp_send", 0, SWITCH,
        "A NAT server's packet that belongs to no connection is answered with ICMP port unreachable.";
    PmtuDisc = "pmtu_disc", 1, SWITCH,
        "Tunnel packets over IPv4 bear the don't-fragment bit of what they carry; 0: none does, and all are cut to fit.";
    RunEstimation = "run_estimation", 1, SWITCH,
        "Rates are estimated.";
    ScheduleIcmp = "schedule_icmp", 0, SWITCH,
        "An ICMP error about a packet of a service that belongs to no connection is scheduled.";
    SecureTcp = "secure_tcp", 0, MODES,
        "TCP connections follow the table against attacks: established only after more of the handshake.";
    SloppySctp = "sloppy_sctp", 0, SWITCH,
        "Any SCTP packet may open a connection, unless it aborts.";
    SloppyTcp = "sloppy_tcp", 0, SWITCH,
        "Any TCP segment may open a connection, unless it resets.";
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

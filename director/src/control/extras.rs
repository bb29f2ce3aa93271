//! What a service may be asked to do beyond what the kernel's IPVS does.
//!
//! The kernel's tool does not know these: an edit that does not speak of them leaves them as they
//! are. Each is off by default, and the service then behaves as the kernel's.

use schedulers::Flags;
use schedulers::placement::{HashBy, PlacementOptions};
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extras {
    /// Timeouts of its connections.
    pub timeouts: OwnTimeouts,
    /// What becomes of packets whose server has been removed.
    pub gone_server: GoneServer,
    /// What a client is told whom no server can take.
    pub no_destination: NoDestination,
    /// A persistence template whose server is quiesced is not followed by new connections.
    pub leave_quiesced: bool,
    /// The largest segment that a SYN may announce.
    pub mss_clamp: MssClamp,
    /// How much a connection in progress counts: lc, wlc, sed, nq, lblc, lblcr, load.
    pub bias: Bias,
    /// For how long a new connection is in progress, milliseconds, 100..=60000.
    pub bias_window: BiasWindow,
    /// What becomes of the connections of a server that has failed.
    pub teardown: Teardown,
    /// What a hashing scheduler goes by, and how the table of dht is cut.
    pub placement: Placement,
}

/// What a hashing scheduler goes by, and how the table of dht is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Placement {
    /// For dht, mh, sh and dh; `None`: as the scheduler does by itself, its flags included.
    pub key: Option<HashKey>,
    /// Of dht: servers that are out of service keep their part, and nobody else's keys move.
    pub sticky: bool,
    /// Rows of dht's table, 1..=65535.
    pub variants: u16,
}

impl Default for Placement {
    fn default() -> Placement {
        let PlacementOptions { variants, sticky } = PlacementOptions::default();
        Placement { key: None, sticky, variants }
    }
}

impl Placement {
    /// Schedulers that go by a key.
    pub const SCHEDULERS: [&str; 4] = ["dht", "mh", "sh", "dh"];

    /// What it comes to for a service with `scheduler`: the flags of dht say the same as `sticky` and
    /// `key` do, where no key is given. With a scheduler that does not go by a key it is the default.
    pub fn with_flags(self, scheduler: &str, flags: u32) -> Placement {
        if !Placement::SCHEDULERS.contains(&scheduler) {
            return Placement::default();
        }
        if scheduler != "dht" {
            return Placement { key: self.key, ..Placement::default() };
        }
        let has = |flag| Flags(flags).contains(flag);
        let by_flag = if has(Flags::FLAG_3) {
            Some(HashKey::DnsName)
        } else {
            has(Flags::FLAG_2).then_some(HashKey::SourcePort)
        };
        let sticky = self.sticky || has(Flags::FLAG_1);
        Placement { key: self.key.or(by_flag), sticky, ..self }
    }

    /// The part that the scheduler is told by itself.
    pub fn hash_by(self) -> HashBy {
        match self.key {
            None => HashBy::OfScheduler,
            Some(HashKey::Source) => HashBy::Source,
            Some(HashKey::SourcePort) => HashBy::SourcePort,
            Some(HashKey::Destination) => HashBy::Destination,
            Some(HashKey::Tuple) => HashBy::Tuple,
            Some(HashKey::DnsName) => HashBy::Name,
        }
    }

    /// How the table of dht is cut.
    pub fn options(self) -> PlacementOptions {
        PlacementOptions { variants: self.variants, sticky: self.sticky }
    }
}

/// What of a packet a hashing scheduler goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HashKey {
    /// The client's address.
    Source,
    /// The client's address and port.
    SourcePort,
    /// The address that the client asked for.
    Destination,
    /// Protocol, both addresses and both ports.
    Tuple,
    /// The name in a DNS question; any other packet goes by its source. Each datagram is scheduled by
    /// itself.
    DnsName,
}

/// How much a connection in progress adds to its server's load. In JSON and in the file: `"none"`,
/// `"linear:200"` or `"ilb:2"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Bias {
    /// Nothing: the kernel's.
    #[default]
    None,
    /// So many ten-thousandths of a server's capacity each, 1..=10000.
    Linear(u16),
    /// Each this part of what is left of it (intelligent load biasing), 2..=100.
    Ilb(u16),
}

impl Bias {
    /// What may be written, for error texts.
    pub const GRAMMAR: &str =
        "\"none\", \"linear:N\" with N from 1 to 10000, or \"ilb:M\" with M from 2 to 100";
}

impl std::fmt::Display for Bias {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bias::None => f.write_str("none"),
            Bias::Linear(number) => write!(f, "linear:{number}"),
            Bias::Ilb(multiplier) => write!(f, "ilb:{multiplier}"),
        }
    }
}

impl std::str::FromStr for Bias {
    type Err = String;

    fn from_str(text: &str) -> Result<Bias, String> {
        let number = |text: &str| text.parse::<u16>().ok();
        let bias = match text.split_once(':') {
            None if text == "none" => Some(Bias::None),
            Some(("linear", n)) => number(n).filter(|n| (1..=10_000).contains(n)).map(Bias::Linear),
            Some(("ilb", m)) => number(m).filter(|m| (2..=100).contains(m)).map(Bias::Ilb),
            _ => None,
        };
        bias.ok_or_else(|| format!("{text:?} is no bias: give {}", Bias::GRAMMAR))
    }
}

impl TryFrom<String> for Bias {
    type Error = String;

    fn try_from(text: String) -> Result<Bias, String> {
        text.parse()
    }
}

impl From<Bias> for String {
    fn from(bias: Bias) -> String {
        bias.to_string()
    }
}

impl From<Bias> for schedulers::Bias {
    fn from(bias: Bias) -> schedulers::Bias {
        match bias {
            Bias::None => schedulers::Bias::None,
            Bias::Linear(each) => schedulers::Bias::Linear(each),
            Bias::Ilb(multiplier) => schedulers::Bias::Ilb(multiplier),
        }
    }
}

/// Milliseconds; 5000 unless something else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BiasWindow(pub u32);

impl Default for BiasWindow {
    fn default() -> BiasWindow {
        BiasWindow(5000)
    }
}

/// What becomes of the connections of a server that has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Teardown {
    /// Each ends with its next packet: TCP clients get RST, what may open a connection opens one to
    /// another server.
    #[default]
    Lazy,
    /// The same, and clients that are silent are roused so that they hear of it.
    Eager,
    /// They stay, in case the server returns.
    None,
}

/// Timeouts of one service, seconds; 0 = the director's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnTimeouts {
    /// TCP ESTABLISHED.
    pub tcp: u32,
    /// TCP FIN_WAIT.
    pub tcp_fin: u32,
    /// UDP.
    pub udp: u32,
}

/// What becomes of a client's packet whose server has been removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoneServer {
    /// It is dropped, until the server returns or the connection expires.
    #[default]
    Drop,
    /// The client is told and the connection is over: RST, or ICMP port unreachable.
    Rst,
    /// What may open a connection opens one to another server; else as [`GoneServer::Rst`].
    Reschedule,
}

/// What a client is told whose packet no server can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoDestination {
    /// ICMP port unreachable.
    #[default]
    Icmp,
    /// RST, to a TCP segment; ICMP to all else.
    Rst,
}

/// The largest segment that a SYN may announce. In JSON: `false`, `true` or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MssClamp {
    /// True: what fits the MTU of the packet's way, less what a tunnel adds. False: no limit.
    ByRoute(bool),
    /// Bytes of data, [`MssClamp::LEAST`]..=[`MssClamp::MOST`].
    Bytes(u16),
}

impl MssClamp {
    /// What every host takes over IPv4 (RFC 9293 section 3.7.1).
    pub const LEAST: u16 = 536;
    /// What the largest IPv4 packet carries.
    pub const MOST: u16 = 65_495;
}

impl Default for MssClamp {
    fn default() -> Self {
        MssClamp::ByRoute(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_off_and_a_clamp_is_a_word_or_a_number() {
        let read = |text: &str| serde_json::from_str::<Extras>(text);
        assert_eq!(read("{}").unwrap(), Extras::default());
        let asked = read(r#"{"gone_server":"rst","mss_clamp":1400,"timeouts":{"tcp":7200}}"#);
        let timeouts = OwnTimeouts { tcp: 7200, ..OwnTimeouts::default() };
        let mss_clamp = MssClamp::Bytes(1400);
        let expected =
            Extras { timeouts, mss_clamp, gone_server: GoneServer::Rst, ..Extras::default() };
        assert_eq!(asked.unwrap(), expected);
        let clamp = |text: &str| read(text).map(|extras| extras.mss_clamp).ok();
        assert_eq!(clamp(r#"{"mss_clamp":true}"#), Some(MssClamp::ByRoute(true)));
        for wrong in [r#"{"mss_clamp":70000}"#, r#"{"mss_clamp":"x"}"#, r#"{"mss_clamp":-1}"#] {
            assert_eq!(clamp(wrong), None, "{wrong}");
        }
        let text = serde_json::to_string(&expected).unwrap();
        assert_eq!(read(&text).unwrap(), expected);
    }

    #[test]
    fn what_a_hashing_scheduler_goes_by_is_said_in_words_or_by_the_flags_of_dht() {
        let read = |text: &str| serde_json::from_str::<Extras>(text).map(|it| it.placement);
        let asked = read(r#"{"placement":{"key":"dns-name"}}"#).unwrap();
        let name = Placement { key: Some(HashKey::DnsName), sticky: false, variants: 512 };
        assert_eq!(asked, name);
        assert!(read(r#"{"placement":{"key":"name"}}"#).is_err());
        assert!(read(r#"{"placement":{"variants":65536}}"#).is_err());
        let none = Placement::default();
        assert_eq!(none.with_flags("dht", 0x28), Placement { sticky: true, ..name });
        let port = none.with_flags("dht", 0x10);
        assert_eq!(port.hash_by(), HashBy::SourcePort);
        // A key that is given goes before a flag, and only dht has these flags.
        assert_eq!(name.with_flags("dht", 0x10), name);
        assert_eq!(none.with_flags("mh", 0x38), none);
        assert_eq!(name.with_flags("wlc", 0), none);
    }
}

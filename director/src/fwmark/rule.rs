//! One rule: a mark, and what a packet must be like to get it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{MAX_RANGES, Prefix};
use crate::control::api::Protocol;

/// See the module. In JSON as in the configuration file, with ports as texts:
/// `{"mark":1,"protocol":"tcp","destination":"203.0.113.0/24","ports":["80","8000-8099"]}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The mark, 1..=4294967295.
    pub mark: u32,
    /// TCP, UDP or SCTP; `None` is all three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Where the packet comes from; `None` is anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Prefix>,
    /// Where it goes; `None` is anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Prefix>,
    /// Its destination port is in one of these; empty is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRange>,
    /// Its source port is in one of these; empty is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_ports: Vec<PortRange>,
}

/// Why a rule makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// 0 is no mark.
    #[error("a mark is 1 or more: 0 is that of packets without one")]
    NoMark,
    /// No packet has addresses of two families.
    #[error("source and destination are of different address families")]
    MixedFamilies,
    /// It would take everything that comes in, the operator's own connection first.
    #[error(
        "nothing narrows it down: it would take every connection to this machine, ssh included"
    )]
    Everything,
    /// More ranges than [`MAX_RANGES`].
    #[error("at most {MAX_RANGES} ports or ranges fit a rule")]
    TooManyRanges,
}

impl Rule {
    /// Whether it makes sense by itself.
    ///
    /// # Errors
    /// When no packet can match it, or every packet does.
    pub fn check(&self) -> Result<(), BadRule> {
        if self.mark == 0 {
            return Err(BadRule::NoMark);
        }
        if let (Some(source), Some(destination)) = (self.source, self.destination)
            && source.is_ipv6() != destination.is_ipv6()
        {
            return Err(BadRule::MixedFamilies);
        }
        let somewhere = |prefix: Option<Prefix>| prefix.is_some_and(|prefix| prefix.length() > 0);
        let narrow = somewhere(self.source) || somewhere(self.destination);
        let all = |ports: &[PortRange]| ports.iter().all(|range| *range == PortRange::ALL);
        if !narrow && all(&self.ports) && all(&self.source_ports) {
            return Err(BadRule::Everything);
        }
        if self.ports.len() > MAX_RANGES || self.source_ports.len() > MAX_RANGES {
            return Err(BadRule::TooManyRanges);
        }
        Ok(())
    }

    /// Whether packets of the family can match.
    pub fn concerns(&self, ipv6: bool) -> bool {
        [self.source, self.destination].iter().flatten().all(|prefix| prefix.is_ipv6() == ipv6)
    }
}

/// Ports from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRange {
    /// The lowest.
    pub first: u16,
    /// The highest; not below the first.
    pub last: u16,
}

/// The text is no port and no range of ports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a port nor a range such as \"8000-8099\"")]
pub struct BadRange(String);

impl PortRange {
    /// Every port.
    pub const ALL: PortRange = PortRange { first: 0, last: u16::MAX };

    /// A single port.
    pub fn one(port: u16) -> PortRange {
        PortRange { first: port, last: port }
    }

    /// Whether `port` is in it.
    pub fn has(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl FromStr for PortRange {
    type Err = BadRange;

    fn from_str(text: &str) -> Result<PortRange, BadRange> {
        let wrong = || BadRange(text.to_owned());
        let port = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse::<u16>().map_err(|_| wrong()),
            false => Err(wrong()),
        };
        let range = match text.split_once('-') {
            Some((first, last)) => PortRange { first: port(first)?, last: port(last)? },
            None => PortRange::one(port(text)?),
        };
        if range.first <= range.last { Ok(range) } else { Err(wrong()) }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

impl TryFrom<String> for PortRange {
    type Error = BadRange;

    fn try_from(text: String) -> Result<PortRange, BadRange> {
        text.parse()
    }
}

impl From<PortRange> for String {
    fn from(range: PortRange) -> String {
        range.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(json: &str) -> Result<Rule, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn a_rule_is_written_as_it_is_read() {
        let text = r#"{"mark":1,"protocol":"tcp","destination":"203.0.113.0/24","ports":["80","8000-8099"]}"#;
        let read = rule(text).unwrap();
        assert_eq!(read.check(), Ok(()));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn ports_that_are_none_are_refused() {
        for text in ["", "-", "80-", "-80", "90-80", "65536", "+80", "http", "80-90-100", "80 "] {
            assert!(text.parse::<PortRange>().is_err(), "{text:?}");
        }
        assert!(rule(r#"{"mark":1,"ports":["90-80"]}"#).is_err());
        assert!(rule(r#"{"mark":1,"prots":["80"]}"#).is_err());
    }

    #[test]
    fn a_rule_that_matches_everything_or_nothing_is_refused() {
        let check = |json| rule(json).unwrap().check();
        assert_eq!(check(r#"{"mark":0,"ports":["80"]}"#), Err(BadRule::NoMark));
        assert_eq!(check(r#"{"mark":1,"protocol":"tcp"}"#), Err(BadRule::Everything));
        assert_eq!(check(r#"{"mark":1,"destination":"0.0.0.0/0"}"#), Err(BadRule::Everything));
        assert_eq!(check(r#"{"mark":1,"ports":["0-65535"]}"#), Err(BadRule::Everything));
        let mixed = r#"{"mark":1,"source":"192.0.2.0/24","destination":"2001:db8::/32"}"#;
        assert_eq!(check(mixed), Err(BadRule::MixedFamilies));
        let many =
            Rule { ports: (1..17).map(PortRange::one).collect(), ..rule(r#"{"mark":1}"#).unwrap() };
        assert_eq!(many.check(), Err(BadRule::TooManyRanges));
    }
}

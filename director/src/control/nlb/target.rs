//! Which port rules a command is for: `all`, `192.0.2.10`, `192.0.2.10:80`, `all:80`, and the same
//! with `[2001:db8::10]`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortTarget {
    /// The virtual address; `None` = whatever address.
    pub vip: Option<IpAddr>,
    /// The port; `None` = whatever port.
    pub port: Option<u16>,
}

/// A text that names no port rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} names no port rules: write all, VIP, VIP:PORT or all:PORT, as in 192.0.2.10:80 or \
     [2001:db8::10]:80"
)]
pub struct BadTarget {
    given: String,
}

impl FromStr for PortTarget {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<PortTarget, BadTarget> {
        let bad = || BadTarget { given: text.to_owned() };
        if let Ok(vip) = text.parse::<IpAddr>() {
            return Ok(PortTarget { vip: Some(vip), port: None });
        }
        if let Some(vip) = bare(text) {
            return Ok(PortTarget { vip: Some(vip), port: None });
        }
        if let Ok(both) = text.parse::<SocketAddr>() {
            return Ok(PortTarget { vip: Some(both.ip()), port: Some(both.port()) });
        }
        let (vip, port) = match text.rsplit_once(':') {
            Some(("all", port)) => (None, port),
            Some((vip, port)) => (Some(bare(vip).ok_or_else(bad)?), port),
            None if text == "all" => (None, "all"),
            None => return Err(bad()),
        };
        let port = if port == "all" { None } else { Some(port.parse().map_err(|_| bad())?) };
        Ok(PortTarget { vip, port })
    }
}

/// `192.0.2.10`, `[2001:db8::10]`
fn bare(text: &str) -> Option<IpAddr> {
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => text.parse::<std::net::Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

impl TryFrom<String> for PortTarget {
    type Error = BadTarget;

    fn try_from(text: String) -> Result<PortTarget, BadTarget> {
        text.parse()
    }
}

impl From<PortTarget> for String {
    fn from(target: PortTarget) -> String {
        target.to_string()
    }
}

impl fmt::Display for PortTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.vip, self.port) {
            (None, None) => f.write_str("all"),
            (None, Some(port)) => write!(f, "all:{port}"),
            (Some(vip), None) => vip.fmt(f),
            (Some(vip), Some(port)) => SocketAddr::new(vip, port).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_rules_are_named_by_address_port_both_or_all() {
        for (text, shown) in [
            ("all", "all"),
            ("all:all", "all"),
            ("all:443", "all:443"),
            ("192.0.2.10", "192.0.2.10"),
            ("192.0.2.10:all", "192.0.2.10"),
            ("192.0.2.10:80", "192.0.2.10:80"),
            ("2001:db8::10", "2001:db8::10"),
            ("[2001:db8::10]", "2001:db8::10"),
            ("[2001:db8::10]:all", "2001:db8::10"),
            ("[2001:db8::10]:80", "[2001:db8::10]:80"),
        ] {
            let target: PortTarget = text.parse().unwrap();
            assert_eq!(target.to_string(), shown);
            assert_eq!(target.to_string().parse(), Ok(target), "{text}");
        }
    }

    #[test]
    fn what_names_no_port_rules_is_refused_with_the_notation() {
        for text in ["", "80", ":80", "all:", "all:65536", "192.0.2.10:http", "192.0.2:80", "[::1"]
        {
            let refused = text.parse::<PortTarget>().unwrap_err().to_string();
            assert!(refused.contains("VIP:PORT"), "{text}: {refused}");
        }
    }
}

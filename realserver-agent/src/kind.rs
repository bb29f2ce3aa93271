//! The types of tunnel, as `--tunnel` names them.

use std::fmt;
use std::str::FromStr;

/// The UDP port of GUE when none is named: the one that IANA has assigned to it.
pub const GUE_PORT: u16 = 6080;

/// What may be around a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Another IP header: protocol 4 (IPv4 inside) or 41 (IPv6 inside).
    Ipip,
    /// Generic UDP encapsulation, with any of its checksum variants.
    Gue {
        /// The UDP port that we receive on.
        port: u16,
    },
    /// Generic routing encapsulation: protocol 47.
    Gre {
        /// Whether it comes with checksums; `None` = not known, either may come. The agent's own
        /// unpacking takes both, a device of the kernel one of them.
        checksum: Option<bool>,
    },
}

/// What was given is no type of tunnel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// Not one of the names.
    #[error(
        "there is no such type of tunnel: ipip, gue, gue:PORT, gre, gre:csum and gre:nocsum are known"
    )]
    Unknown,
    /// Behind `gue:` there is no port.
    #[error("the port behind gue: is a number from 1 to 65535")]
    Port,
}

impl Kind {
    /// Whether it comes the same way as the other: one socket takes both.
    pub fn comes_as(self, other: Kind) -> bool {
        self == other || matches!((self, other), (Kind::Gre { .. }, Kind::Gre { .. }))
    }
}

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Kind, KindError> {
        match text.split_once(':') {
            None if text == "ipip" => Ok(Kind::Ipip),
            None if text == "gre" => Ok(Kind::Gre { checksum: None }),
            None if text == "gue" => Ok(Kind::Gue { port: GUE_PORT }),
            Some(("gue", port)) => match port.parse() {
                Ok(port) if port > 0 => Ok(Kind::Gue { port }),
                _ => Err(KindError::Port),
            },
            Some(("gre", "csum")) => Ok(Kind::Gre { checksum: Some(true) }),
            Some(("gre", "nocsum")) => Ok(Kind::Gre { checksum: Some(false) }),
            _ => Err(KindError::Unknown),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Ipip => out.write_str("ipip"),
            Kind::Gue { port } => write!(out, "gue:{port}"),
            Kind::Gre { checksum: None } => out.write_str("gre"),
            Kind::Gre { checksum: Some(true) } => out.write_str("gre:csum"),
            Kind::Gre { checksum: Some(false) } => out.write_str("gre:nocsum"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (text, kind) in [
            ("ipip", Kind::Ipip),
            ("gre", Kind::Gre { checksum: None }),
            ("gre:csum", Kind::Gre { checksum: Some(true) }),
            ("gre:nocsum", Kind::Gre { checksum: Some(false) }),
            ("gue:1", Kind::Gue { port: 1 }),
            ("gue:65535", Kind::Gue { port: 65535 }),
        ] {
            assert_eq!(text.parse(), Ok(kind));
            assert_eq!(kind.to_string(), text);
        }
        assert_eq!("gue".parse(), Ok(Kind::Gue { port: 6080 }));
    }

    #[test]
    fn what_is_no_tunnel_is_refused_with_what_would_be() {
        for text in ["", "vxlan", "IPIP", "ipip:5", "gre:5", "gre:", "gre:remcsum", " gue"] {
            assert_eq!(text.parse::<Kind>(), Err(KindError::Unknown), "{text}");
        }
        for text in ["gue:", "gue:0", "gue:65536", "gue:-1", "gue:5:5", "gue:http"] {
            assert_eq!(text.parse::<Kind>(), Err(KindError::Port), "{text}");
        }
    }
}

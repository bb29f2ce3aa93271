//! Networks as people write them: `203.0.113.0/24`, `2001:db8::/32`, `192.0.2.10`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A network: the addresses that share their first `length` bits. Bits behind them are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// Why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPrefix {
    /// Not an address, or something else than a length behind it.
    #[error("{0:?} is not a network")]
    NotANetwork(String),
    /// The length is above 32 or 128.
    #[error("a prefix of {length} is longer than an address of {longest} bits")]
    TooLong {
        /// As it is written.
        length: u8,
        /// 32 or 128.
        longest: u8,
    },
    /// There are ones behind the prefix, so that nobody can tell which of both is meant.
    #[error("{address} is an address within {network}, not the network itself")]
    HostBits {
        /// As it is written.
        address: IpAddr,
        /// The network that it is in.
        network: Prefix,
    },
    /// `::ffff:a.b.c.d`: its packets are IPv4 packets.
    #[error("{0} is an IPv4 address in IPv6 clothes")]
    Mapped(IpAddr),
}

impl Prefix {
    /// The first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// 0 to 32, or to 128.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether it is a network of IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.address.is_ipv6()
    }

    /// Address and mask with IPv4 mapped into IPv6 (`::ffff:a.b.c.d`), so that one comparison
    /// serves both families.
    pub fn mapped(&self) -> (u128, u128) {
        let (address, length) = match self.address {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().to_bits(), 96 + self.length),
            IpAddr::V6(v6) => (v6.to_bits(), self.length),
        };
        (address, u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0))
    }
}

impl FromStr for Prefix {
    type Err = BadPrefix;

    fn from_str(text: &str) -> Result<Prefix, BadPrefix> {
        let wrong = || BadPrefix::NotANetwork(text.to_owned());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        if let IpAddr::V6(v6) = address
            && v6.to_ipv4_mapped().is_some()
        {
            return Err(BadPrefix::Mapped(address));
        }
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| wrong())?
            }
            Some(_) => return Err(wrong()),
            None => longest,
        };
        if length > longest {
            return Err(BadPrefix::TooLong { length, longest });
        }
        let network = Prefix { address: cut(address, length), length };
        match network.address == address {
            true => Ok(network),
            false => Err(BadPrefix::HostBits { address, network }),
        }
    }
}

fn cut(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl TryFrom<String> for Prefix {
    type Error = BadPrefix;

    fn try_from(text: String) -> Result<Prefix, BadPrefix> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> String {
        prefix.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_as_they_are_written() {
        for text in ["203.0.113.0/24", "0.0.0.0/0", "192.0.2.10/32", "2001:db8::/32", "::/0"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        let host = |text: &str| text.parse::<Prefix>().unwrap().length();
        assert_eq!((host("192.0.2.10"), host("2001:db8::1")), (32, 128));
    }

    #[test]
    fn what_is_no_network_says_why() {
        let why = |text: &str| text.parse::<Prefix>().unwrap_err().to_string();
        for text in ["", "web", "192.0.2.0/", "192.0.2.0/+8", "192.0.2.0/256", "/24", "1.2.3/8"] {
            assert!(why(text).contains("is not a network"), "{text}: {}", why(text));
        }
        assert!(why("192.0.2.0/33").contains("32 bits"));
        assert!(why("192.0.2.10/24").contains("within 192.0.2.0/24"));
        assert!(why("::ffff:192.0.2.1").contains("IPv4"));
    }

    #[test]
    fn both_families_are_compared_in_one_form() {
        let (address, mask) = "192.0.2.0/24".parse::<Prefix>().unwrap().mapped();
        assert_eq!(address, 0xffff_c000_0200);
        assert_eq!(mask, u128::MAX << 8);
        assert_eq!("::/0".parse::<Prefix>().unwrap().mapped(), (0, 0));
        assert_eq!("::1".parse::<Prefix>().unwrap().mapped(), (1, u128::MAX));
    }
}

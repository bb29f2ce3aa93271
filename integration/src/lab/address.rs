//! Addresses as people write them: `192.0.2.1/24`, `2001:db8::1/64`, `02:53:59:00:00:01`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

/// An address with the length of its network's prefix in bits. Without `/length`: the address
/// alone (32 or 128).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address, host part included.
    pub address: IpAddr,
    /// 0 to 32 or 128.
    pub length: u8,
}

impl FromStr for Prefix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Prefix> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .with_context(|| format!("{text:?} is not an address like 192.0.2.1/24"))?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            Some(length) => length
                .parse()
                .with_context(|| format!("{text:?}: the prefix length is not a number"))?,
            None => longest,
        };
        ensure!(length <= longest, "{text:?}: the prefix length is over {longest}");
        Ok(Prefix { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The locally administered address number `number` of a lab ("SY" in its second and third
    /// byte): the same build order gives the same addresses, so captures can be compared.
    pub(super) fn numbered(number: u32) -> Mac {
        let [_, high, middle, low] = number.to_be_bytes();
        Mac([0x02, b'S', b'Y', high, middle, low])
    }
}

impl FromStr for Mac {
    type Err = Error;

    fn from_str(text: &str) -> Result<Mac> {
        let mut bytes = [0; 6];
        let mut parts = text.trim().split(':');
        for byte in &mut bytes {
            *byte = parts
                .next()
                .and_then(|part| u8::from_str_radix(part, 16).ok())
                .with_context(|| format!("{text:?} is not an Ethernet address"))?;
        }
        ensure!(parts.next().is_none(), "{text:?} is longer than an Ethernet address");
        Ok(Mac(bytes))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_length_stands_for_itself_alone() {
        let v4: Prefix = "192.0.2.1".parse().unwrap();
        let v6: Prefix = "2001:db8::1".parse().unwrap();
        assert_eq!((v4.length, v6.length), (32, 128));
        assert_eq!("2001:db8::1/64", "2001:db8::1/64".parse::<Prefix>().unwrap().to_string());
    }

    #[test]
    fn a_prefix_longer_than_the_family_allows_is_refused() {
        assert!("192.0.2.1/33".parse::<Prefix>().is_err());
        assert!("2001:db8::1/129".parse::<Prefix>().is_err());
        assert!("192.0.2/24".parse::<Prefix>().is_err());
    }

    #[test]
    fn an_ethernet_address_survives_writing_and_reading() {
        let mac = Mac::numbered(0x0001_0203);
        assert_eq!(mac.to_string(), "02:53:59:01:02:03");
        assert_eq!(mac.to_string().parse::<Mac>().unwrap(), mac);
        assert!("02:53:59:01:02".parse::<Mac>().is_err());
        assert!("02:53:59:01:02:03:04".parse::<Mac>().is_err());
    }
}

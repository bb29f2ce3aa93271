//! Addresses, ports and numbers as ipvsadm reads them, which is as the C library does: `10.1` and
//! `0x7f.1` are addresses, `+5` is a number. A host that is no address is asked of the resolver.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};

use director::control::api::Protocol;

use crate::names::Names;

/// A host with or without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Address.
    pub address: IpAddr,
    /// Port, when one was given.
    pub port: Option<u16>,
}

/// Reads `host[:port]`, `[v6]:port` or a bare IPv6 address; the port may be a service name of
/// `protocol`. `None` when it is neither of these.
pub fn host_port(text: &str, protocol: Protocol, names: &Names) -> Option<HostPort> {
    // All digits would be an address to inet_aton, and is a forgotten host to everybody else.
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut text = text;
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once("]:")?;
        if let Ok(address) = host.parse::<Ipv6Addr>() {
            let port = Some(port_of(port, protocol, names)?);
            return Some(HostPort { address: address.into(), port });
        }
        // Brackets around anything else are taken off, and what stands behind them with them.
        text = host;
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(HostPort { address: address.into(), port: None });
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let address = inet_aton(host).or_else(|| resolve(host))?.into();
    let port = match port {
        Some(port) => Some(port_of(port, protocol, names)?),
        None => None,
    };
    Some(HostPort { address, port })
}

fn port_of(text: &str, protocol: Protocol, names: &Names) -> Option<u16> {
    number(text, 0, 65535)
        .and_then(|port| u16::try_from(port).ok())
        .or_else(|| names.port(text, protocol))
}

fn resolve(host: &str) -> Option<Ipv4Addr> {
    if host.is_empty() {
        return None;
    }
    let mut found = (host, 0).to_socket_addrs().ok()?;
    found.find_map(|address| match address.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    })
}

/// One to four parts, each decimal, octal (`0`) or hexadecimal (`0x`); the last one fills all the
/// bytes that are left.
pub fn inet_aton(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 4 {
        return None;
    }
    let mut address: u32 = 0;
    for (place, part) in parts.iter().enumerate() {
        let value = c_number(part)?;
        let last = place + 1 == parts.len();
        let bytes_left = 4 - place as u32;
        let limit = if last { u64::MAX >> (64 - 8 * bytes_left) } else { 255 };
        if value > limit {
            return None;
        }
        let value = value as u32;
        address |= if last { value } else { value << (8 * (bytes_left - 1)) };
    }
    Some(address.into())
}

fn c_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    // `from_str_radix` allows a sign, which inet_aton does not.
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// A decimal number from `low` to `high`, as strtol reads it: leading blanks and a sign are fine,
/// anything after the digits is not.
pub fn number(text: &str, low: i64, high: i64) -> Option<i64> {
    let value: i64 = text.trim_ascii_start().parse().ok()?;
    (low..=high).contains(&value).then_some(value)
}

/// The digits that `text` starts with, as atoi reads them; 0 when there are none.
pub fn leading_number(text: &str) -> i64 {
    let text = text.trim_ascii_start();
    let end = text
        .char_indices()
        .find(|&(place, letter)| {
            !(letter.is_ascii_digit() || place == 0 && matches!(letter, '-' | '+'))
        })
        .map_or(text.len(), |(place, _)| place);
    text[..end].parse().unwrap_or(0)
}

/// The prefix length that a dotted IPv4 mask stands for. `None` when its ones are not together,
/// which the kernel takes and the director does not.
pub fn prefix_of(mask: Ipv4Addr) -> Option<u8> {
    let bits = u32::from(mask);
    let ones = bits.leading_ones();
    (ones + bits.trailing_zeros() >= 32).then_some(ones as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        let names = Names::from_text("", "http 80/tcp\nsip 5060/udp\n");
        host_port(text, Protocol::Tcp, &names)
            .map(|HostPort { address, port }| format!("{address} {port:?}"))
    }

    #[test]
    fn addresses_are_read_as_the_c_library_reads_them() {
        for (text, expected) in [
            ("10.0.0.1:80", "10.0.0.1 Some(80)"),
            ("10.0.0.1", "10.0.0.1 None"),
            ("10.1:80", "10.0.0.1 Some(80)"),
            ("0x0a.010.1:0", "10.8.0.1 Some(0)"),
            ("10:80", "0.0.0.10 Some(80)"),
            ("10.0.0.1:http", "10.0.0.1 Some(80)"),
            ("[2001:db8::1]:80", "2001:db8::1 Some(80)"),
            ("2001:db8::1", "2001:db8::1 None"),
            ("[10.0.0.1]:80", "10.0.0.1 None"),
            ("[10.0.0.1:81]:80", "10.0.0.1 Some(81)"),
            ("localhost:80", "127.0.0.1 Some(80)"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "10",
            "10.0.0.256:80",
            "10.0.0.1:65536",
            "10.0.0.1:-1",
            "10.0.0.1:sip",
            "10.0.0.1:",
            "[2001:db8::1]",
            "[2001:db8::1",
            "[]:80",
            ":80",
            "1.2.3.4.5:80",
            "+1.2.3.4:80",
            "09.1:80",
            "10..1:80",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_keep_to_their_range_and_take_no_rest() {
        assert_eq!(number(" +7", 0, 9), Some(7));
        for text in ["", "7x", "10", "-1", "7 ", "99999999999999999999", "0x7"] {
            assert_eq!(number(text, 0, 9), None, "{text}");
        }
        assert_eq!([leading_number("64x"), leading_number("x"), leading_number("-3")], [64, 0, -3]);
    }

    #[test]
    fn masks_with_holes_are_told_from_prefixes() {
        let prefix = |text: &str| prefix_of(text.parse().unwrap());
        assert_eq!(prefix("255.255.255.0"), Some(24));
        assert_eq!(prefix("255.255.255.255"), Some(32));
        assert_eq!(prefix("0.0.0.0"), Some(0));
        assert_eq!(prefix("255.0.255.0"), None);
    }
}

//! Where somebody listens on this machine, from `/proc/net`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use realserver_agent::settings::Protocol;

/// A socket that takes what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Where it is bound.
    pub address: SocketAddr,
}

impl Listener {
    /// Whether what comes for `address` is taken. Sockets of IPv6 that are bound to nothing take IPv4 as
    /// well, unless their program has forbidden it, which cannot be seen.
    pub fn takes(&self, address: SocketAddr) -> bool {
        let ip = self.address.ip();
        let everywhere = ip.is_unspecified() && (ip.is_ipv6() || address.is_ipv4());
        self.address.port() == address.port() && (everywhere || ip == address.ip())
    }
}

/// All of TCP and UDP, in this network namespace.
pub fn look() -> Vec<Listener> {
    /// `TCP_LISTEN` of the kernel; UDP sockets are in `TCP_CLOSE` all the time.
    const FILES: [(&str, Protocol, &str); 4] = [
        ("tcp", Protocol::Tcp, "0A"),
        ("tcp6", Protocol::Tcp, "0A"),
        ("udp", Protocol::Udp, "07"),
        ("udp6", Protocol::Udp, "07"),
    ];
    let read = |(name, protocol, state): (&str, Protocol, &'static str)| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        let rows = parse(&text.unwrap_or_default(), state);
        rows.into_iter().map(move |address| Listener { protocol, address })
    };
    FILES.into_iter().flat_map(read).collect()
}

/// The local addresses of the sockets in `state`.
fn parse(text: &str, state: &str) -> Vec<SocketAddr> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let (local, own) = (words.nth(1)?, words.nth(1)?);
        let (ip, port) = local.split_once(':')?;
        let ip = address(ip)?;
        (own == state).then_some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
    };
    text.lines().skip(1).filter_map(row).collect()
}

/// The kernel prints words of 32 bits as this machine has them in memory.
fn address(text: &str) -> Option<IpAddr> {
    let word = |place: usize| {
        let digits = text.get(place * 8..place * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            let octets: [u8; 16] = words.try_into().ok()?;
            Some(Ipv6Addr::from(octets).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn the_kernels_table_is_read() {
        let text = "  sl  local_address rem_address   st\n\
            0: 0100007F:0050 00000000:0000 0A 00000000:00000000\n\
            1: 0A0200C0:01BB 640200C0:9C40 01 00000000:00000000\n\
            2: B80D0120000000000000000010000000:0050 0:0 0A x\n";
        let wanted = ["127.0.0.1:80", "[2001:db8::10]:80"].map(|it| it.parse().unwrap());
        assert_eq!(parse(text, "0A"), wanted);
        assert!(parse("", "0A").is_empty() && parse("x\ny z\n", "0A").is_empty());
    }

    #[test]
    fn who_is_bound_to_nothing_takes_everything() {
        let takes = |bound: &str, address: &str| {
            let address = address.parse().unwrap();
            Listener { protocol: Protocol::Tcp, address: bound.parse().unwrap() }.takes(address)
        };
        assert!(takes("0.0.0.0:80", "192.0.2.10:80") && takes("[::]:80", "192.0.2.10:80"));
        assert!(takes("192.0.2.10:80", "192.0.2.10:80"));
        assert!(!takes("10.0.0.1:80", "192.0.2.10:80") && !takes("0.0.0.0:81", "192.0.2.10:80"));
        assert!(!takes("0.0.0.0:80", "[2001:db8::10]:80"));
    }
}

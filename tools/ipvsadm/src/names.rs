//! Names of hosts and ports, from the text of `/etc/hosts` and `/etc/services`. It asks no name
//! server.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use director::control::api::Protocol;

/// Both directories of names; empty ones give numbers. Cheap to clone: every line of a restore has
/// them at hand.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<Directories>);

#[derive(Debug, Default)]
struct Directories {
    hosts: HashMap<IpAddr, String>,
    ports: HashMap<(Protocol, u16), String>,
    services: HashMap<(Protocol, String), u16>,
}

impl Names {
    /// Those of this system. A file that cannot be read gives no names.
    pub fn of_the_system() -> Names {
        let read = |path| std::fs::read(path).unwrap_or_default();
        let hosts = read("/etc/hosts");
        let services = read("/etc/services");
        Names::from_text(&String::from_utf8_lossy(&hosts), &String::from_utf8_lossy(&services))
    }

    /// From the text of both files. Of two lines for the same thing the first counts.
    pub fn from_text(hosts: &str, services: &str) -> Names {
        let mut names = Directories::default();
        for words in lines(hosts) {
            if let [address, name, ..] = words[..]
                && let Ok(address) = address.parse()
            {
                names.hosts.entry(address).or_insert_with(|| name.to_owned());
            }
        }
        for words in lines(services) {
            let [name, port, ref aliases @ ..] = words[..] else {
                continue;
            };
            let Some((port, protocol)) = port.split_once('/') else {
                continue;
            };
            let Ok(port) = port.parse::<u16>() else {
                continue;
            };
            let protocol = match protocol {
                "tcp" => Protocol::Tcp,
                "udp" => Protocol::Udp,
                "sctp" => Protocol::Sctp,
                _ => continue,
            };
            names.ports.entry((protocol, port)).or_insert_with(|| name.to_owned());
            for word in std::iter::once(&name).chain(aliases) {
                names.services.entry((protocol, (*word).to_owned())).or_insert(port);
            }
        }
        Names(Arc::new(names))
    }

    /// The port of a service.
    pub fn port(&self, service: &str, protocol: Protocol) -> Option<u16> {
        self.0.services.get(&(protocol, service.to_owned())).copied()
    }

    /// `host:port`, `[v6 host]:port`, in names as far as they are known. Without a protocol the port
    /// stays a number.
    pub fn show(&self, address: SocketAddr, protocol: Option<Protocol>) -> String {
        let mut text = String::new();
        self.write(&mut text, address, protocol);
        text
    }

    /// Adds the same to `text`.
    pub fn write(&self, text: &mut String, address: SocketAddr, protocol: Option<Protocol>) {
        let Directories { hosts, ports, .. } = &*self.0;
        text.push_str(if address.is_ipv6() { "[" } else { "" });
        match hosts.get(&address.ip()) {
            Some(name) => text.push_str(name),
            None => write_host(text, address.ip()),
        }
        text.push_str(if address.is_ipv6() { "]:" } else { ":" });
        let port = protocol.and_then(|protocol| ports.get(&(protocol, address.port())));
        match port {
            Some(name) => text.push_str(name),
            // Writing into a `String` cannot fail.
            None => _ = write!(text, "{}", address.port()),
        }
    }
}

/// As the C library writes an address, which has the last of `::10.0.0.1` dotted.
fn write_host(text: &mut String, address: IpAddr) {
    _ = match address {
        IpAddr::V6(address) if matches!(u128::from(address) >> 16, 1..=0xffff) => {
            let [.., a, b, c, d] = address.octets();
            write!(text, "::{a}.{b}.{c}.{d}")
        }
        address => write!(text, "{address}"),
    };
}

/// The words of each line, without comments.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split('#').next().unwrap_or_default().split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names::from_text(
            "127.0.0.1 localhost # us\n127.0.0.1 other\n2001:db8::1 six\nnonsense\n",
            "http 80/tcp www\nsip 5060/tcp\nsip 5060/udp\nm3ua 2905/sctp\n# x 1/tcp\nx 1/ddp\n",
        )
    }

    #[test]
    fn listed_names_replace_numbers_and_the_first_line_wins() {
        let show = |text: &str, protocol| names().show(text.parse().unwrap(), Some(protocol));
        assert_eq!(show("127.0.0.1:5060", Protocol::Udp), "localhost:sip");
        assert_eq!(show("10.0.0.1:80", Protocol::Tcp), "10.0.0.1:http");
        assert_eq!(show("10.0.0.1:80", Protocol::Udp), "10.0.0.1:80");
        assert_eq!(show("[2001:db8::1]:2905", Protocol::Sctp), "[six]:m3ua");
    }

    #[test]
    fn service_names_and_their_aliases_are_known_by_protocol() {
        assert_eq!(names().port("www", Protocol::Tcp), Some(80));
        assert_eq!(names().port("www", Protocol::Udp), None);
        assert_eq!(names().port("x", Protocol::Tcp), None);
    }

    #[test]
    fn without_files_everything_stays_a_number() {
        let names = Names::default();
        let address = "[2001:db8::1]:80".parse().unwrap();
        assert_eq!(names.show(address, Some(Protocol::Tcp)), "[2001:db8::1]:80");
        for written in ["[::10.0.0.1]:80", "[::ffff:10.0.0.1]:80", "[::1]:80", "[::]:80"] {
            assert_eq!(names.show(written.parse().unwrap(), None), written);
        }
    }
}

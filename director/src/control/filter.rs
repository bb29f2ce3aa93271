//! Which connections a listing is to have: the part of `GET /v1/connections` behind the question
//! mark. It knows connections as the API shows them, and how the four conditions are written.

use std::net::{IpAddr, SocketAddr};

use super::api::{ConnectionView, Protocol};
use crate::fwmark::Prefix;

/// What a connection has to be like; a condition that is not given is met by all.
///
/// ```
/// use director::control::filter::ConnectionFilter;
///
/// let filter = ConnectionFilter::from_query("client=10.0.0.0/8&service=192.0.2.10:80/tcp")?;
/// assert_eq!(filter.to_query(), "client=10.0.0.0/8&service=192.0.2.10:80/tcp");
/// assert!(ConnectionFilter::from_query("sever=10.0.0.1").is_err());
/// # Ok::<(), director::control::filter::BadFilter>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionFilter {
    /// The client's address is in this network.
    pub client: Option<Prefix>,
    /// The virtual address, and where given the port and protocol.
    pub service: Option<End>,
    /// The server, and where given its port.
    pub server: Option<End>,
    /// The state, in the kernel's words (`ESTABLISHED`).
    pub state: Option<String>,
}

/// One end of a connection. What is `None` is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Address.
    pub address: IpAddr,
    /// Port.
    pub port: Option<u16>,
    /// Protocol.
    pub protocol: Option<Protocol>,
}

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFilter {
    /// None of the four.
    #[error("there is no condition {0:?}: there are client, service, server and state")]
    Unknown(String),
    /// A client that is no network.
    #[error("client {0:?} is not a network: write 10.0.0.0/8 or an address")]
    Client(String),
    /// A service that is none.
    #[error("service {0:?} is not one: write 192.0.2.10, 192.0.2.10:80 or 192.0.2.10:80/tcp")]
    Service(String),
    /// A server that is none.
    #[error("server {0:?} is not one: write 10.0.0.11 or 10.0.0.11:80")]
    Server(String),
    /// A state that is no word.
    #[error("state {0:?} is not a word like ESTABLISHED")]
    State(String),
}

impl ConnectionFilter {
    /// Whether it lets everything through.
    pub fn is_empty(&self) -> bool {
        *self == ConnectionFilter::default()
    }

    /// Whether it lets this one through.
    pub fn admits(&self, connection: &ConnectionView) -> bool {
        let ConnectionView { protocol, client, virtual_address, server, state, .. } = connection;
        self.client.is_none_or(|network| contains(&network, client.ip()))
            && self.service.is_none_or(|end| end.is(*virtual_address, *protocol))
            && self.server.is_none_or(|end| end.is(*server, *protocol))
            && self.state.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(state))
    }

    /// Adds a condition by name.
    ///
    /// # Errors
    /// When there is none of that name, or the value cannot be read.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), BadFilter> {
        let owned = || value.to_owned();
        match name {
            "client" => {
                self.client = Some(value.parse().map_err(|_| BadFilter::Client(owned()))?);
            }
            "service" => {
                self.service = Some(End::read(value).ok_or_else(|| BadFilter::Service(owned()))?);
            }
            "server" => {
                let end = End::read(value).filter(|end| end.protocol.is_none());
                self.server = Some(end.ok_or_else(|| BadFilter::Server(owned()))?);
            }
            "state" => {
                let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                if value.is_empty() || !value.chars().all(is_word) {
                    return Err(BadFilter::State(owned()));
                }
                self.state = Some(owned());
            }
            _ => return Err(BadFilter::Unknown(name.to_owned())),
        }
        Ok(())
    }

    /// Reads `client=10.0.0.0/8&state=ESTABLISHED`.
    ///
    /// # Errors
    /// On the first condition that cannot be read.
    pub fn from_query(query: &str) -> Result<ConnectionFilter, BadFilter> {
        let mut filter = ConnectionFilter::default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            filter.set(name, &decoded(value))?;
        }
        Ok(filter)
    }

    /// The same as [`ConnectionFilter::from_query`] reads.
    pub fn to_query(&self) -> String {
        let ConnectionFilter { client, service, server, state } = self;
        let conditions = [
            client.map(|network| format!("client={network}")),
            service.map(|end| format!("service={}", end.written())),
            server.map(|end| format!("server={}", end.written())),
            state.as_ref().map(|state| format!("state={state}")),
        ];
        conditions.into_iter().flatten().collect::<Vec<_>>().join("&")
    }
}

impl End {
    fn is(&self, address: SocketAddr, protocol: Option<Protocol>) -> bool {
        self.address == address.ip()
            && self.port.is_none_or(|port| port == address.port())
            && self.protocol.is_none_or(|wanted| Some(wanted) == protocol)
    }

    pub(super) fn read(text: &str) -> Option<End> {
        let (ends, protocol) = match text.split_once('/') {
            Some((ends, name)) => {
                let mut all = Protocol::ALL.into_iter();
                (ends, Some(all.find(|protocol| protocol.to_string() == name)?))
            }
            None => (text, None),
        };
        if let Ok(address) = ends.parse::<SocketAddr>() {
            return Some(End { address: address.ip(), port: Some(address.port()), protocol });
        }
        Some(End { address: ends.parse().ok()?, port: None, protocol })
    }

    fn written(&self) -> String {
        let ends = match self.port {
            Some(port) => SocketAddr::new(self.address, port).to_string(),
            None => self.address.to_string(),
        };
        self.protocol.map_or(ends.clone(), |protocol| format!("{ends}/{protocol}"))
    }
}

fn contains(network: &Prefix, address: IpAddr) -> bool {
    // IPv4 is a network of IPv6 to the comparison below, and nobody's idea of one.
    if network.is_ipv6() != address.is_ipv6() {
        return false;
    }
    let (start, mask) = network.mapped();
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    };
    address & mask == start
}

/// `%3A` and the like, as clients that are careful write them.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> ConnectionView {
        ConnectionView {
            protocol: Some(Protocol::Tcp),
            client: "10.1.2.3:4000".parse().unwrap(),
            virtual_address: "192.0.2.10:80".parse().unwrap(),
            server: "10.77.0.11:8080".parse().unwrap(),
            state: "ESTABLISHED".to_owned(),
            expires: 1,
            engine: None,
        }
    }

    #[test]
    fn every_condition_has_to_be_met() {
        let admits =
            |query: &str| ConnectionFilter::from_query(query).unwrap().admits(&connection());
        for query in [
            "",
            "client=10.0.0.0/8",
            "client=10.1.2.3",
            "client=0.0.0.0/0",
            "service=192.0.2.10",
            "service=192.0.2.10:80",
            "service=192.0.2.10%3A80%2Ftcp",
            "server=10.77.0.11",
            "server=10.77.0.11:8080",
            "state=established",
            "client=10.0.0.0/8&service=192.0.2.10&server=10.77.0.11&state=ESTABLISHED",
        ] {
            assert!(admits(query), "{query}");
        }
        for query in [
            "client=10.1.2.4",
            "client=::/0",
            "service=192.0.2.11",
            "service=192.0.2.10:81",
            "service=192.0.2.10:80/udp",
            "server=10.77.0.11:80",
            "state=SYN_RECV",
            "client=10.0.0.0/8&state=SYN_RECV",
        ] {
            assert!(!admits(query), "{query}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (query, word) in [
            ("sever=1", "\"sever\""),
            ("client", "client"),
            ("client=10.0.0.1/8", "10.0.0.1/8"),
            ("service=80", "192.0.2.10:80/tcp"),
            ("service=192.0.2.10:80/icmp", "icmp"),
            ("server=10.0.0.1:80/tcp", "10.0.0.11:80"),
            ("state=", "ESTABLISHED"),
            ("state=a%26b", "a&b"),
        ] {
            let message = ConnectionFilter::from_query(query).unwrap_err().to_string();
            assert!(message.contains(word), "{query}: {message}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        for query in [
            "client=2001:db8::/32&service=[2001:db8::1]:80/tcp&server=fd77::11&state=TIME_WAIT",
            "",
        ] {
            assert_eq!(ConnectionFilter::from_query(query).unwrap().to_query(), query);
        }
    }
}

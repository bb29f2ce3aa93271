//! Addresses with port and protocol as one text: `192.0.2.10:80/tcp`, `[2001:db8::10]:53/udp`.

use std::net::{IpAddr, SocketAddr};

use realserver_agent::settings::spelling::nearest;

use super::fields::Field;
use super::problem::Report;
use crate::control::api::Protocol;

const PROTOCOLS: &[(&str, Protocol)] =
    &[("tcp", Protocol::Tcp), ("udp", Protocol::Udp), ("sctp", Protocol::Sctp)];

const LISTEN: &str = "write \"192.0.2.10:80/tcp\" or \"[2001:db8::10]:53/udp\"";
const SERVER: &str =
    "write \"10.0.0.11:80\", \"[2001:db8::11]:80\", or the address alone for the service's port";

/// `listen` of a service: address, port (0 = any) and protocol.
pub(super) fn listen(field: &Field<'_>, report: &mut Report<'_>) -> Option<(Protocol, SocketAddr)> {
    let text = field.text("\"192.0.2.10:80/tcp\"", report)?;
    let Some((address, name)) = text.rsplit_once('/') else {
        field.wrong(format!("{text:?} names no protocol"), LISTEN, report);
        return None;
    };
    let names: Vec<&str> = PROTOCOLS.iter().map(|(name, _)| *name).collect();
    let Some((_, protocol)) = PROTOCOLS.iter().find(|(known, _)| *known == name) else {
        let near = nearest(name, &names)
            .map_or_else(String::new, |near| format!("did you mean \"/{near}\"? "));
        field.wrong(
            format!("{name:?} is not a protocol"),
            format!("{near}end it with /tcp, /udp or /sctp"),
            report,
        );
        return None;
    };
    let address: SocketAddr = match address.parse() {
        Ok(address) => address,
        Err(_) => {
            let (what, remedy) = diagnose(address, LISTEN);
            field.wrong(what, remedy, report);
            return None;
        }
    };
    // Built anew: the text may hold a scope, which would make equal addresses differ.
    let address = SocketAddr::new(address.ip(), address.port());
    usable(field, address.ip(), report).then_some((*protocol, address))
}

/// `address` of a server: address and, when it is written, port.
pub(super) fn server(field: &Field<'_>, report: &mut Report<'_>) -> Option<(IpAddr, Option<u16>)> {
    let text = field.text("\"10.0.0.11:80\"", report)?;
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .filter(|text| text.contains(':'))
        .unwrap_or(text);
    let (address, port) = match (bare.parse::<IpAddr>(), text.parse::<SocketAddr>()) {
        (Ok(address), _) => (address, None),
        (_, Ok(address)) => (address.ip(), Some(address.port())),
        _ => {
            let (what, remedy) = diagnose(text, SERVER);
            field.wrong(what, remedy, report);
            return None;
        }
    };
    usable(field, address, report).then_some((address, port))
}

/// Says what is wrong with a text that is no address with a port.
fn diagnose(text: &str, example: &str) -> (String, String) {
    if text.parse::<std::net::Ipv6Addr>().is_ok() {
        let what = format!("{text:?} is an IPv6 address without a port");
        return (what, format!("write it as \"[{text}]:80\", with your port"));
    }
    if let Some((host, port)) = text.rsplit_once(':') {
        let whole_address = host.parse::<IpAddr>().is_ok_and(|host| host.is_ipv4())
            || (host.starts_with('[') && host.ends_with(']'));
        if whole_address && port.parse::<u16>().is_err() {
            let what = format!("{port:?} is not a port");
            return (what, "give a number from 0 to 65535".to_owned());
        }
    } else if text.parse::<IpAddr>().is_ok() {
        let what = format!("{text:?} names no port");
        return (what, format!("{example}; port 0 is any port of a persistent service"));
    }
    let named =
        text.contains(|letter: char| letter.is_ascii_alphabetic() && !letter.is_ascii_hexdigit());
    let what = if named {
        format!("{text:?} is a name, not an address")
    } else {
        format!("{text:?} is not an address with a port")
    };
    (what, example.to_owned())
}

/// Whether traffic can be sent to the address at all.
fn usable(field: &Field<'_>, address: IpAddr, report: &mut Report<'_>) -> bool {
    let (what, remedy) = match address {
        _ if address.is_unspecified() => (
            "means every address",
            "name the one address; a service has one and a server has one".to_owned(),
        ),
        _ if address.is_multicast() => (
            "is a multicast group",
            "name a unicast address: connections go to one server".to_owned(),
        ),
        IpAddr::V4(v4) if v4.is_broadcast() => {
            ("is the broadcast address", "name a unicast address".to_owned())
        }
        IpAddr::V6(v6) if v6.is_unicast_link_local() => (
            "is a link-local address",
            "name a global or unique-local address: this one means another machine on each segment"
                .to_owned(),
        ),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => (
                "is an IPv4 address in IPv6 clothes",
                format!("write {v4}: packets to it are IPv4 packets"),
            ),
            None => return true,
        },
        IpAddr::V4(_) => return true,
    };
    field.wrong(format!("{address} {what}"), remedy, report);
    false
}

//! Rules in the form in which packets are compared with them.

use std::net::IpAddr;

use super::{PortRange, Rule};
use crate::control::api::Protocol;

/// The rules of a list, ready to be asked. Asking costs nothing when there are none, and one pass
/// over the rules of the packet's family otherwise; only packets without a connection are asked
/// about.
///
/// ```
/// use director::fwmark::{Classifier, Rule};
///
/// let rule: Rule = serde_json::from_str(r#"{"mark":7,"ports":["80"]}"#).unwrap();
/// let classifier = Classifier::new(&[rule]);
/// let (client, vip) = ("198.51.100.7".parse().unwrap(), "192.0.2.10".parse().unwrap());
/// assert_eq!(classifier.mark(6, (client, 4000), (vip, 80)), Some(7));
/// assert_eq!(classifier.mark(6, (client, 4000), (vip, 443)), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    /// The last rule first: the first that matches counts.
    v4: Vec<Compiled>,
    v6: Vec<Compiled>,
}

/// One rule. Addresses are compared as 128 bits, IPv4 mapped into IPv6.
#[derive(Clone, Debug)]
struct Compiled {
    mark: u32,
    protocol: Option<u8>,
    source: Network,
    destination: Network,
    ports: Box<[PortRange]>,
    source_ports: Box<[PortRange]>,
}

/// Address and mask; all zero is everywhere.
type Network = (u128, u128);

impl Classifier {
    /// Compiles the rules, which are in the order in which they are written.
    pub fn new(rules: &[Rule]) -> Classifier {
        let of_family = |ipv6| {
            let concerned = rules.iter().rev().filter(|rule| rule.concerns(ipv6));
            concerned.map(Compiled::new).collect()
        };
        Classifier { v4: of_family(false), v6: of_family(true) }
    }

    /// The mark of a packet, if it gets one: its protocol, where it comes from and where it goes.
    pub fn mark(
        &self,
        protocol: u8,
        (source, source_port): (IpAddr, u16),
        (destination, port): (IpAddr, u16),
    ) -> Option<u32> {
        let rules = if destination.is_ipv6() { &self.v6 } else { &self.v4 };
        if rules.is_empty() || !Protocol::ALL.iter().any(|known| known.number() == protocol) {
            return None;
        }
        let (source, destination) = (mapped(source), mapped(destination));
        let matching = |rule: &&Compiled| {
            rule.protocol.is_none_or(|wanted| wanted == protocol)
                && within(rule.destination, destination)
                && within(rule.source, source)
                && has(&rule.ports, port)
                && has(&rule.source_ports, source_port)
        };
        rules.iter().find(matching).map(|rule| rule.mark)
    }
}

impl Compiled {
    fn new(rule: &Rule) -> Compiled {
        let network =
            |prefix: Option<super::Prefix>| prefix.map_or((0, 0), |prefix| prefix.mapped());
        Compiled {
            mark: rule.mark,
            protocol: rule.protocol.map(Protocol::number),
            source: network(rule.source),
            destination: network(rule.destination),
            ports: rule.ports.clone().into(),
            source_ports: rule.source_ports.clone().into(),
        }
    }
}

fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn within((network, mask): Network, address: u128) -> bool {
    address & mask == network
}

fn has(ranges: &[PortRange], port: u16) -> bool {
    ranges.is_empty() || ranges.iter().any(|range| range.has(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classifier(rules: &[&str]) -> Classifier {
        let rules: Vec<Rule> =
            rules.iter().map(|json| serde_json::from_str(json).unwrap()).collect();
        Classifier::new(&rules)
    }

    fn mark(classifier: &Classifier, protocol: u8, from: &str, to: &str) -> Option<u32> {
        let end = |text: &str| {
            let address: std::net::SocketAddr = text.parse().unwrap();
            (address.ip(), address.port())
        };
        classifier.mark(protocol, end(from), end(to))
    }

    #[test]
    fn the_last_rule_that_matches_counts() {
        let classifier = classifier(&[
            r#"{"mark":1,"destination":"203.0.113.0/24"}"#,
            r#"{"mark":2,"ports":["443"]}"#,
            r#"{"mark":3,"source":"198.51.100.0/24","ports":["443"]}"#,
        ]);
        let mark = |from, to| mark(&classifier, 6, from, to);
        assert_eq!(mark("198.51.100.7:4000", "203.0.113.9:80"), Some(1));
        assert_eq!(mark("198.51.101.7:4000", "203.0.113.9:443"), Some(2));
        assert_eq!(mark("198.51.100.7:4000", "203.0.113.9:443"), Some(3));
        assert_eq!(mark("198.51.100.7:4000", "203.0.114.9:80"), None);
        assert_eq!(mark("[2001:db8::7]:4000", "[2001:db8::9]:443"), Some(2));
        assert_eq!(mark("[2001:db8::7]:4000", "[2001:db8::9]:80"), None);
    }

    #[test]
    fn everything_that_a_rule_says_has_to_hold() {
        let classifier = classifier(&[r#"{"mark":9,"protocol":"udp","source":"2001:db8:1::/48",
            "destination":"2001:db8:2::/64","ports":["53","5000-5009"],
            "source_ports":["1024-65535"]}"#]);
        let mark = |protocol, from, to| mark(&classifier, protocol, from, to);
        let (from, to) = ("[2001:db8:1:5::7]:4000", "[2001:db8:2::9]:5003");
        assert_eq!(mark(17, from, to), Some(9));
        assert_eq!(mark(6, from, to), None);
        assert_eq!(mark(17, "[2001:db8:3::7]:4000", to), None);
        assert_eq!(mark(17, "[2001:db8:1:5::7]:1023", to), None);
        assert_eq!(mark(17, from, "[2001:db8:2:1::9]:5003"), None);
        assert_eq!(mark(17, from, "[2001:db8:2::9]:5010"), None);
        assert_eq!(mark(17, "198.51.100.7:4000", "192.0.2.10:5003"), None);
    }

    #[test]
    fn packets_without_ports_get_no_mark() {
        let classifier = classifier(&[r#"{"mark":1,"destination":"203.0.113.0/24"}"#]);
        assert_eq!(mark(&classifier, 1, "198.51.100.7:0", "203.0.113.9:0"), None);
        assert_eq!(mark(&classifier, 132, "198.51.100.7:1", "203.0.113.9:1"), Some(1));
    }
}

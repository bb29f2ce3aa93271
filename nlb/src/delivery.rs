//! How frames of clients reach all hosts: the MAC address and the multicast group that come of the
//! primary address `a.b.c.d`.
//!
//! | delivery | MAC address of the cluster | on the segment |
//! |---|---|---|
//! | unicast | `02-BF-a-b-c-d` | no port ever learns it, so switches flood it |
//! | multicast | `03-BF-a-b-c-d` | flooded as multicast; routers may want a static ARP entry |
//! | igmp | `01-00-5E-7F-c-d` | only ports whose hosts joined `239.255.c.d` |
//!
//! Of an IPv6 primary address, `a b c d` are the first four octets of SHA-256 of its 16 octets.
//!
//! In the igmp mode two clusters on one segment meet when `c` and `d` are the same
//! ([`Delivery::collides`]).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use forwarding::wire::ethernet::Address;
use sha2::{Digest, Sha256};

use crate::host::HostId;

/// How frames reach all hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// A unicast address that nobody sends from: switches flood it.
    #[default]
    Unicast,
    /// A multicast address.
    Multicast,
    /// The multicast address of an IPv4 group that the hosts join.
    Igmp,
}

/// A word that names no delivery.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("delivery {given:?}: give unicast, multicast or igmp")]
pub struct BadDelivery {
    /// What was given.
    pub given: String,
}

impl FromStr for Delivery {
    type Err = BadDelivery;

    fn from_str(text: &str) -> Result<Delivery, BadDelivery> {
        match text {
            "unicast" => Ok(Delivery::Unicast),
            "multicast" => Ok(Delivery::Multicast),
            "igmp" => Ok(Delivery::Igmp),
            _ => Err(BadDelivery { given: text.to_owned() }),
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Delivery::Unicast => "unicast",
            Delivery::Multicast => "multicast",
            Delivery::Igmp => "igmp",
        })
    }
}

impl Delivery {
    /// The MAC address of a cluster with this primary address.
    ///
    /// ```
    /// use nlb::delivery::Delivery;
    ///
    /// let primary = "1.2.33.44".parse().unwrap();
    /// assert_eq!(Delivery::Unicast.cluster_mac(primary), [0x02, 0xbf, 1, 2, 33, 44]);
    /// ```
    pub fn cluster_mac(self, primary: IpAddr) -> Address {
        let [a, b, c, d] = octets(primary);
        match self {
            Delivery::Unicast => [0x02, 0xbf, a, b, c, d],
            Delivery::Multicast => [0x03, 0xbf, a, b, c, d],
            Delivery::Igmp => [0x01, 0x00, 0x5e, 0x7f, c, d],
        }
    }

    /// The group that hosts join; `None` where there is nothing to join.
    pub fn group(self, primary: IpAddr) -> Option<Ipv4Addr> {
        let [_, _, c, d] = octets(primary);
        (self == Delivery::Igmp).then(|| Ipv4Addr::new(239, 255, c, d))
    }

    /// Whether two clusters on one segment would receive each other's frames.
    pub fn collides(self, primary: IpAddr, other: IpAddr) -> bool {
        self.cluster_mac(primary) == self.cluster_mac(other)
    }
}

/// The source MAC address that hides the cluster's from switches, where a host sends with the
/// cluster's own: `02-h-a-b-c-d`, `h` the host's id.
pub fn masked_source(primary: IpAddr, host: HostId) -> Address {
    let [a, b, c, d] = octets(primary);
    [0x02, host.get(), a, b, c, d]
}

fn octets(primary: IpAddr) -> [u8; 4] {
    match primary {
        IpAddr::V4(primary) => primary.octets(),
        IpAddr::V6(primary) => {
            let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(primary.octets()).into();
            [a, b, c, d]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(mac: Address) -> String {
        mac.map(|octet| format!("{octet:02X}")).join("-")
    }

    #[test]
    fn addresses_are_the_published_ones() {
        for (primary, unicast, multicast, igmp, group, host5) in [
            (
                "1.2.33.44",
                "02-BF-01-02-21-2C",
                "03-BF-01-02-21-2C",
                "01-00-5E-7F-21-2C",
                "239.255.33.44",
                "02-05-01-02-21-2C",
            ),
            (
                "10.0.0.1",
                "02-BF-0A-00-00-01",
                "03-BF-0A-00-00-01",
                "01-00-5E-7F-00-01",
                "239.255.0.1",
                "02-05-0A-00-00-01",
            ),
            (
                "192.168.1.100",
                "02-BF-C0-A8-01-64",
                "03-BF-C0-A8-01-64",
                "01-00-5E-7F-01-64",
                "239.255.1.100",
                "02-05-C0-A8-01-64",
            ),
            (
                "172.31.250.9",
                "02-BF-AC-1F-FA-09",
                "03-BF-AC-1F-FA-09",
                "01-00-5E-7F-FA-09",
                "239.255.250.9",
                "02-05-AC-1F-FA-09",
            ),
        ] {
            let primary = primary.parse().unwrap();
            assert_eq!(hex(Delivery::Unicast.cluster_mac(primary)), unicast);
            assert_eq!(hex(Delivery::Multicast.cluster_mac(primary)), multicast);
            assert_eq!(hex(Delivery::Igmp.cluster_mac(primary)), igmp);
            assert_eq!(Delivery::Igmp.group(primary).unwrap().to_string(), group);
            assert_eq!(hex(masked_source(primary, HostId::new(5).unwrap())), host5);
            assert_eq!(Delivery::Unicast.group(primary), None);
        }
        let primary = "1.2.33.44".parse().unwrap();
        let masked = |id| hex(masked_source(primary, HostId::new(id).unwrap()));
        assert_eq!((&masked(1)[..5], masked(32)), ("02-01", "02-20-01-02-21-2C".to_owned()));
    }

    /// `printf '20010db8000000000000000000000010' | xxd -r -p | sha256sum`
    #[test]
    fn an_ipv6_primary_address_counts_by_its_digest() {
        let primary = "2001:db8::10".parse().unwrap();
        assert_eq!(hex(Delivery::Unicast.cluster_mac(primary)), "02-BF-9B-26-2F-E9");
    }

    #[test]
    fn igmp_clusters_collide_by_two_octets_and_others_by_four() {
        let [one, other] = ["10.0.7.9", "172.16.7.9"].map(|text| text.parse().unwrap());
        assert!(Delivery::Igmp.collides(one, other));
        assert!(!Delivery::Unicast.collides(one, other));
        assert!(!Delivery::Multicast.collides(one, other));
    }

    #[test]
    fn words_read_as_they_are_written_and_others_are_refused() {
        for delivery in [Delivery::Unicast, Delivery::Multicast, Delivery::Igmp] {
            assert_eq!(delivery.to_string().parse(), Ok(delivery));
        }
        assert_eq!(
            "IGMP".parse::<Delivery>().unwrap_err().to_string(),
            "delivery \"IGMP\": give unicast, multicast or igmp"
        );
    }
}

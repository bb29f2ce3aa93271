//! The network that measurements are made in: three hosts in a row, every neighbour known, so that
//! nothing but the measured packets moves.

use anyhow::Result;

use crate::lab::{Host, Lab, Link, Mac};

/// The address that packets are sent to.
pub(super) const VIP: [u8; 4] = [203, 0, 113, 10];
/// Its port.
pub(super) const PORT: u16 = 80;
/// The sender's address, and that of the one server.
pub(super) const CLIENT: [u8; 4] = [192, 0, 2, 100];
const SINK: &str = "10.77.0.11";

/// Descriptors in every ring: bursts of a sender that runs ahead must fit.
pub(super) const RING: u32 = 4096;

/// See the module.
pub(super) struct Bed {
    pub(super) lab: Lab,
    pub(super) source: Host,
    pub(super) middle: Host,
    pub(super) sink: Host,
}

/// The MAC addresses along the way.
#[derive(Clone, Copy)]
pub(super) struct Macs {
    pub(super) source: Mac,
    /// Of the middle, towards the source and towards the sink.
    pub(super) middle: [Mac; 2],
    pub(super) sink: Mac,
}

impl Bed {
    pub(super) fn build() -> Result<Bed> {
        let lab = Lab::new("bench")?;
        let [source, middle, sink] = [lab.host("source")?, lab.host("middle")?, lab.host("sink")?];
        for host in [&source, &middle, &sink] {
            // Nothing is to be said on these wires but by us.
            host.sysctl("net.ipv6.conf.all.disable_ipv6", "1")?;
            host.sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;
        }
        let link = |interface: &str, address: &str| Link::new(interface).addresses(&[address]);
        let [near, far] = [link("eth0", "192.0.2.1/24")?, link("eth1", "10.77.0.1/16")?];
        lab.cable([&middle, &source], &near, &link("eth0", "192.0.2.100/24")?)?;
        lab.cable([&middle, &sink], &far, &link("eth0", &format!("{SINK}/16"))?)?;
        middle.route(&format!("{}/32", std::net::Ipv4Addr::from(VIP)), SINK)?;
        let bed = Bed { lab, source, middle, sink };
        let macs = bed.macs()?;
        bed.middle.neighbour("eth0", CLIENT.into(), macs.source)?;
        bed.middle.neighbour("eth1", SINK.parse()?, macs.sink)?;
        for server in 1..=super::publication::SERVERS {
            bed.middle.neighbour("eth1", [10, 77, 1, server].into(), macs.sink)?;
        }
        Ok(bed)
    }

    pub(super) fn macs(&self) -> Result<Macs> {
        Ok(Macs {
            source: self.source.mac("eth0")?,
            middle: [self.middle.mac("eth0")?, self.middle.mac("eth1")?],
            sink: self.sink.mac("eth0")?,
        })
    }

    /// The director's configuration: the one service that packets are sent to, by direct routing.
    pub(super) fn config(&self) -> String {
        let vip = std::net::Ipv4Addr::from(VIP);
        format!(
            "interfaces = [\"eth0\", \"eth1\"]\nio = \"copy\"\nring_size = {RING}\n\n[[service]]\n\
             listen = \"{vip}:{PORT}/udp\"\nscheduler = \"rr\"\nforwarding = \"direct\"\n\n  \
             [[service.server]]\n  address = \"{SINK}:{PORT}\"\n"
        )
    }
}

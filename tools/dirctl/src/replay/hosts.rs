//! Packets through a cluster of `mode = "nlb"`: each host's own decision, and who takes a packet.

use director::config::Config;
use director::control::api::{Protocol, ServiceKey};
use director::world::{Cluster, NoWorld};
use forwarding::Headers;
use nlb::filter::Reason;

use super::fate::{Fate, Target, Verdict};

/// See the module.
pub struct Hosts {
    cluster: Cluster,
    services: Vec<ServiceKey>,
}

impl Hosts {
    /// All hosts of the file, agreed.
    ///
    /// # Errors
    /// What of the file a node would refuse.
    pub fn new(config: &Config) -> Result<Hosts, NoWorld> {
        let services = config.services.iter().map(|declared| declared.service.key).collect();
        Ok(Hosts { cluster: Cluster::from_config(config)?, services })
    }

    /// The MAC address that frames to the cluster have.
    pub fn mac(&self) -> [u8; 6] {
        self.cluster.mac()
    }

    /// Decides on a frame.
    pub fn judge(&mut self, frame: &[u8], headers: Option<&Headers>) -> Fate {
        let count = self.cluster.hosts().count();
        let (mut takers, mut reason, mut target) = (0, None, None);
        for (host, decision) in self.cluster.decide(frame) {
            if decision.passes() {
                takers += 1;
                target = Some(Target::Host(host));
            }
            // What a taker says is why; else what the first host says.
            if reason.is_none() || (decision.passes() && takers == 1) {
                reason = Some(decision.reason);
            }
        }
        let reason = reason.unwrap_or(Reason::NotOwner);
        let verdict = match takers {
            0 => Verdict::Dropped,
            1 => Verdict::Taken,
            _ => Verdict::Passed,
        };
        let is_one = takers == 1 && count > 0;
        Fate {
            verdict,
            reason: reason.label(),
            meaning: reason.explanation(),
            answered: false,
            service: headers.and_then(|headers| self.service(headers)),
            target: target.filter(|_| is_one),
            is_clients: is_one,
        }
    }

    fn service(&self, headers: &Headers) -> Option<ServiceKey> {
        let of = |port: u16| {
            self.services.iter().copied().find(|key| match key {
                ServiceKey::Address { protocol, address } => {
                    number(*protocol) == headers.protocol
                        && address.ip() == headers.destination
                        && address.port() == port
                }
                ServiceKey::Fwmark { .. } => false,
            })
        };
        of(headers.destination_port).or_else(|| of(0))
    }
}

fn number(protocol: Protocol) -> u8 {
    protocol.number()
}

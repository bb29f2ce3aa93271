//! Firewall marks: which packets bear which number, for services that are named by one.
//!
//! With kernel IPVS the marks are set by iptables or nft before IPVS sees a packet. We take packets
//! before any firewall does, so the configuration says what they would have said: a list of rules
//! (`[[mark]]`), each with a mark and what a packet must be like to get it. All rules are looked at
//! in order and a later one replaces the mark of an earlier, as rules with `-j MARK --set-mark` and
//! `meta mark set` do: **the last rule that matches counts**.
//!
//! [`Rule`] is what people write, [`Classifier`] what workers ask. Knows packets by their headers;
//! must not know services, servers or where rules come from.

mod classifier;
mod prefix;
mod rule;

pub use classifier::Classifier;
pub use prefix::{BadPrefix, Prefix};
pub use rule::{BadRange, BadRule, PortRange, Rule};

/// Most rules in a list: the steering program holds them all as instructions.
pub const MAX_RULES: usize = 128;

/// Most ranges in a rule's `ports` or `source_ports`, as many as iptables' `multiport` takes.
pub const MAX_RANGES: usize = 15;

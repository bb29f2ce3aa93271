//! What a node shows of itself. Hosts are told by id, times in seconds.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ::nlb::delivery::Delivery;
use serde::{Deserialize, Serialize};

use super::by_host;
use crate::control::api::VerdictCount;

/// What was asked for. In JSON an object with `kind` and the fields of the view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)] // The types say it.
pub enum NlbView {
    Query(QueryView),
    Rules(RulesView),
    Params(ParamsView),
    Display(Box<DisplayView>),
    Macs(MacsView),
    Filter(FilterView),
    History(HistoryView),
    Connections(ConnectionsView),
    Map(MapView),
    Capacity(CapacityView),
}

/// A cluster, as one host sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryView {
    /// Version of the node.
    pub version: String,
    /// The primary address.
    pub cluster: String,
    /// The hosts it takes for members, itself included.
    pub members: Vec<u8>,
    /// The host that takes what no rule covers.
    pub default_host: Option<u8>,
    /// How many times the cluster has converged.
    pub epoch: u64,
    /// How many times this host has begun to converge since it runs.
    pub convergences: u64,
    /// Since the last convergence began.
    pub last_began: Option<f64>,
    /// Since it ended; nothing while it lasts.
    pub last_ended: Option<f64>,
    /// Flows held here.
    pub flows: u64,
    /// Its drain.
    pub drain: Option<DrainView>,
    /// Why it serves nothing though started.
    pub quarantine: Option<String>,
    /// Hosts with which heartbeats pass in one direction only.
    pub one_way: Vec<u8>,
    /// Hosts heard that do not fit.
    pub misfits: Vec<u8>,
    /// Members that a new configuration waits for; nothing when none waits.
    pub plan_waits_for: Option<Vec<u8>>,
    /// The hosts heard since start, itself included.
    pub hosts: Vec<HostView>,
    /// What the operator should know.
    pub warnings: Vec<String>,
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DrainView {
    /// Since it began.
    pub since: f64,
    /// Until it ends at the latest.
    pub left: Option<f64>,
    /// Flows at its beginning.
    pub flows_at_start: u64,
    /// Flows that have not ended.
    pub flows_left: u64,
}

/// A host, as another one sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostView {
    /// Its id.
    pub host: u8,
    /// Its name.
    pub name: String,
    /// Where it stands, by its own word.
    pub state: String,
    /// Whether it is believed to be alive.
    pub heard: bool,
    /// Since its last heartbeat.
    pub silent: f64,
    /// Its own addresses.
    pub addresses: Vec<IpAddr>,
    /// Flows it holds.
    pub flows: u64,
    /// Whether its configuration in force is this host's.
    pub same_configuration: bool,
}

/// Port rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RulesView {
    /// Those asked for.
    pub rules: Vec<RuleView>,
}

/// A port rule on this host. What is told of buckets and flows is of its slot: rules that differ
/// only in their ports share one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleView {
    /// In words: `tcp 80-90 of 192.0.2.10`.
    pub rule: String,
    /// The virtual address; nothing = all.
    pub vip: Option<IpAddr>,
    /// `tcp`, `udp`, `both`.
    pub protocol: String,
    /// First port.
    pub first_port: u16,
    /// Last port.
    pub last_port: u16,
    /// `multiple`, `single`, `disabled`.
    pub filter: String,
    /// `none`, `single`, `network`, or the bits that count: `28/56`.
    pub affinity: String,
    /// Slots of the rule: one, two of a rule for both protocols without affinity, none when disabled.
    pub slots: Vec<u8>,
    /// `enabled`, `disabled`, `draining`: what the operator made of it here.
    pub state: String,
    /// Weight, or handling priority of a single-host rule; 0 = takes nothing.
    pub number: u8,
    /// Buckets served here, of 4096.
    pub buckets: usize,
    /// Flows held here.
    pub flows: u64,
    /// Connections opened here since the last convergence.
    pub opened: u64,
}

/// What a node runs with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ParamsView {
    /// Version of the node.
    pub version: String,
    /// Configuration file.
    pub config: String,
    /// When the file was last written, seconds since 1970, of the configuration in force.
    pub generation: u64,
    /// What hosts compare: equal on hosts that fit.
    pub digest: String,
    /// Names and values, as in `[nlb]` of the file.
    pub settings: BTreeMap<String, String>,
    /// The primary address, the other virtual ones.
    pub vips: Vec<IpAddr>,
    /// Addresses of this host alone.
    pub addresses: Vec<IpAddr>,
    /// The interface of the cluster's segment.
    pub interface: String,
    /// Its Ethernet address.
    pub mac: String,
    /// The cluster's.
    pub cluster_mac: String,
    /// The port rules.
    pub rules: Vec<RuleView>,
    /// Frames by reason since start.
    pub frames: Vec<VerdictCount>,
    /// Heartbeats that were not believed, by reason.
    pub refused_heartbeats: Vec<VerdictCount>,
    /// Remote commands that were not taken, by reason.
    pub refused_commands: Vec<VerdictCount>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DisplayView {
    /// What it runs with.
    pub params: ParamsView,
    /// The cluster as it sees it.
    pub query: QueryView,
    /// Past convergences.
    pub history: HistoryView,
}

/// What follows from a primary address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MacsView {
    /// The address.
    pub address: IpAddr,
    /// The cluster's Ethernet address by each delivery.
    pub unicast: String,
    /// See there.
    pub multicast: String,
    /// See there.
    pub igmp: String,
    /// The group that hosts join with `igmp`.
    pub group: String,
}

impl MacsView {
    /// Of an address.
    pub fn of(address: IpAddr) -> MacsView {
        let mac = |delivery: Delivery| show_mac(delivery.cluster_mac(address));
        let group = Delivery::Igmp.group(address);
        MacsView {
            address,
            unicast: mac(Delivery::Unicast),
            multicast: mac(Delivery::Multicast),
            igmp: mac(Delivery::Igmp),
            group: group.map(|group| group.to_string()).unwrap_or_default(),
        }
    }
}

/// `02-BF-0A-00-00-01`
pub fn show_mac(mac: [u8; 6]) -> String {
    mac.map(|octet| format!("{octet:02X}")).join("-")
}

/// What becomes of a packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FilterView {
    /// Whether this host takes it.
    pub passes: bool,
    /// Why, in a word.
    pub reason: String,
    /// What that means.
    pub meaning: String,
    /// The rule that covers it; nothing: the default rule.
    pub rule: Option<String>,
    /// The slot it goes by.
    pub slot: Option<u8>,
    /// Its bucket there.
    pub bucket: Option<u16>,
    /// Who owns the bucket, as this host sees it.
    pub owner: Option<u8>,
    /// Whether new flows of the bucket are taken here.
    pub serving: bool,
    /// Whether another host still holds flows of the bucket.
    pub tainted: bool,
    /// What this host has of the flow: `socket`, `pin`.
    pub held: Option<String>,
}

/// Past convergences, the latest last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryView {
    /// At most 256.
    pub convergences: Vec<ConvergenceView>,
}

/// A convergence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConvergenceView {
    /// Since it began.
    pub began: f64,
    /// How long it took; nothing while it lasts.
    pub took: Option<f64>,
    /// Members before.
    pub from: Vec<u8>,
    /// Members after.
    pub to: Vec<u8>,
    /// Why, in a word.
    pub cause: String,
    /// The host it was about.
    pub host: Option<u8>,
}

/// Flows held here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionsView {
    /// How many there are.
    pub total: usize,
    /// The first of them.
    pub flows: Vec<FlowView>,
}

/// A flow held here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowView {
    /// `tcp`, `udp`, `gre`.
    pub protocol: String,
    /// Who.
    pub client: IpAddr,
    /// From where; 0 of `gre`.
    pub client_port: u16,
    /// To whom.
    pub vip: IpAddr,
    /// To where; 0 of `gre`.
    pub port: u16,
    /// What tells of it: `socket`, `pin`.
    pub held: String,
    /// Who owns its bucket now: the flow stays here for as long as it lasts.
    pub owner: Option<u8>,
}

/// Who has how many buckets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MapView {
    /// Slot by slot.
    pub slots: Vec<SlotView>,
}

/// Who has how many buckets of a slot, of 4096.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotView {
    /// Its number.
    pub slot: u8,
    /// Its rules in words.
    pub rules: Vec<String>,
    /// Now, by host.
    #[serde(with = "by_host")]
    pub now: BTreeMap<u8, usize>,
    /// With the changes asked for.
    #[serde(with = "by_host")]
    pub then: BTreeMap<u8, usize>,
    /// Buckets that would change hands.
    pub moved: usize,
}

/// What the filter costs, measured with a program of its own on one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CapacityView {
    /// Nanoseconds for a dropped SYN of another host's client.
    pub dropped: f64,
    /// Nanoseconds for a passed one.
    pub passed: f64,
    /// Nanoseconds of processor for a datagram to this host's own stack and an answer, through
    /// loopback and without an application: less than any service costs.
    pub served: f64,
}

//! The filter as a program: the decision of [`nlb::filter`] in the kernel, step by step the same.
//!
//! ```text
//!   frame --> Ethernet, one VLAN tag --> heartbeat, neither IPv4 nor IPv6 --------> pass
//!               | headers.rs
//!             IP header, extension headers --> whose is the destination?
//!               | addresses.rs                    mine, a group's, nobody's -----> pass / drop
//!             a virtual address: extension headers, fragments
//!               | upper.rs
//!             TCP, UDP, GRE, ICMP --> other protocols, remote commands ----------> pass
//!               | packet.rs
//!             flow and kind --> host not active, later fragment -----------------> pass / drop
//!               | flow.rs, memory.rs              held by this host -------------> pass
//!             port rule --> slot --> hash --> bucket: serving? tainted?
//!               | rules.rs
//!             reason --> note for later fragments, count, own MAC address -------> pass / drop
//!                 verdict.rs
//! ```
//!
//! There is no loop, and no path of more than some hundred instructions besides the hash. What
//! changes seldom (MAC addresses, the key, which options are on) is written into the program, what
//! changes with every convergence is in maps.

mod addresses;
mod flow;
mod headers;
mod memory;
mod packet;
mod rules;
mod stack;
mod upper;
mod verdict;

use netio::bpf::{Assembler, Insn, Label};
use nlb::filter::{Echo, Policy, Reason};
use nlb::key::HashKey;
use nlb::rules::{Rules, Scope};

use super::maps::{Memory, Tables};
use super::publish;

/// What is written into the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    own_mac: [u8; 6],
    cluster_mac: [u8; 6],
    hash: HashKey,
    /// The number of the primary address.
    primary: u32,
    echo: Echo,
    track: bool,
    udp_pin: bool,
    rules: Shape,
}

/// What kinds of rules there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// For one port of one virtual address.
    ports_of_one: bool,
    /// For one port of all of them.
    ports_of_all: bool,
    /// How many for several ports.
    ranges: usize,
}

impl Shape {
    fn of(rules: &Rules) -> Shape {
        let ports = || rules.entries().iter().filter(|entry| !entry.is_range());
        Shape {
            ports_of_one: ports().any(|entry| entry.scope != Scope::All),
            ports_of_all: ports().any(|entry| entry.scope == Scope::All),
            ranges: rules.entries().len() - ports().count(),
        }
    }
}

impl Settings {
    pub(super) fn of(policy: &Policy) -> Settings {
        Settings {
            own_mac: policy.own_mac,
            cluster_mac: policy.cluster_mac,
            hash: policy.hash,
            primary: publish::number_of(policy, policy.primary),
            echo: policy.echo,
            track: policy.track,
            udp_pin: policy.udp_pin,
            rules: Shape::of(&policy.rules),
        }
    }

    pub(super) fn own_mac(&self) -> [u8; 6] {
        self.own_mac
    }
}

/// Writes the XDP program.
pub(super) fn filter(settings: &Settings, tables: &Tables, memory: &Memory) -> Vec<Insn> {
    let mut asm = Assembler::new();
    let reasons = vec![None; Reason::ALL.len()];
    let verdict = asm.label("verdict");
    let (later, classified) = (asm.label("later fragment"), asm.label("classified"));
    let mut writer = Writer { asm, settings, tables, memory, reasons, verdict };
    writer.headers();
    writer.addresses();
    writer.upper(later);
    writer.classify(later, classified);
    writer.asm.place(classified);
    writer.flow();
    writer.verdicts();
    writer.asm.assemble().expect("every label is placed, none is far")
}

/// Writes the decision.
struct Writer<'a> {
    asm: Assembler,
    settings: &'a Settings,
    tables: &'a Tables,
    memory: &'a Memory,
    /// Where to go for a reason, by its number, once somebody goes there.
    reasons: Vec<Option<Label>>,
    /// With the reason in its register.
    verdict: Label,
}

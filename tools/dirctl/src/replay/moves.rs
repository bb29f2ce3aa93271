//! Flows under two configurations: which of them go to somebody else.

use std::collections::{BTreeMap, HashMap};

use super::fate::{Fate, Flow, Target};

/// Flows that are compared at most: a hundred megabytes or two.
const FLOWS: usize = 1 << 19;

/// Pairs of targets that are counted one by one.
const PAIRS: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub struct Moves {
    places: HashMap<Flow, usize>,
    /// In the order of their first packets: where each goes, under one and the other.
    flows: Vec<(Flow, [Option<Target>; 2])>,
    /// Packets of flows beyond [`FLOWS`].
    pub beyond: u64,
}

/// A flow that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub flow: Flow,
    /// Who had it.
    pub from: Option<Target>,
    /// Who has it.
    pub to: Option<Target>,
}

impl Moves {
    /// A packet of a flow, and what became of it under both. Who gets the first packet of a flow that
    /// anybody gets is who has it.
    pub fn note(&mut self, flow: Flow, fates: [&Fate; 2]) {
        let targets = fates.map(|fate| fate.target.filter(|_| fate.is_clients));
        if targets == [None; 2] {
            return;
        }
        let place = match self.places.get(&flow) {
            Some(place) => *place,
            None if self.flows.len() >= FLOWS => {
                self.beyond += 1;
                return;
            }
            None => {
                self.places.insert(flow, self.flows.len());
                self.flows.push((flow, [None; 2]));
                self.flows.len() - 1
            }
        };
        for (known, target) in self.flows[place].1.iter_mut().zip(targets) {
            *known = known.or(target);
        }
    }

    /// Flows that were compared.
    pub fn compared(&self) -> usize {
        self.flows.len()
    }

    /// Those that move, in the order of their first packets.
    pub fn moved(&self) -> impl Iterator<Item = Move> + '_ {
        let moved = self.flows.iter().filter(|(_, [from, to])| from != to);
        moved.map(|&(flow, [from, to])| Move { flow, from, to })
    }

    /// How many move from whom to whom, by name.
    pub fn pairs(&self) -> BTreeMap<(String, String), u64> {
        let mut pairs = BTreeMap::new();
        for Move { from, to, .. } in self.moved() {
            let pair = (name(from), name(to));
            if pairs.len() < PAIRS || pairs.contains_key(&pair) {
                *pairs.entry(pair).or_default() += 1;
            }
        }
        pairs
    }
}

/// Who, or `nobody`.
pub fn name(target: Option<Target>) -> String {
    target.map_or("nobody".to_owned(), |target| target.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::fate::Verdict;
    use super::*;

    fn fate(server: &str) -> Fate {
        Fate {
            verdict: Verdict::Forwarded,
            reason: "nat",
            meaning: "",
            answered: false,
            service: None,
            target: server.parse().ok().map(Target::Server),
            is_clients: true,
        }
    }

    fn flow(port: u16) -> Flow {
        let from = format!("198.51.100.7:{port}").parse().unwrap();
        Flow { protocol: 6, from, to: "192.0.2.10:80".parse().unwrap() }
    }

    #[test]
    fn a_flow_moves_when_its_first_packets_go_to_somebody_else_and_only_then() {
        let [one, two, none] = ["10.0.0.1:80", "10.0.0.2:80", ""].map(fate);
        let mut moves = Moves::default();
        moves.note(flow(1), [&one, &one]);
        moves.note(flow(2), [&one, &two]);
        moves.note(flow(2), [&one, &one]);
        moves.note(flow(3), [&none, &two]);
        moves.note(flow(4), [&none, &none]);
        let reply = Fate { is_clients: false, ..two };
        moves.note(flow(5), [&reply, &one]);
        let moved: Vec<u16> = moves.moved().map(|it| it.flow.from.port()).collect();
        assert_eq!((moves.compared(), moved), (4, vec![2, 3, 5]));
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        let pairs = moves.pairs();
        assert_eq!(pairs[&pair("10.0.0.1:80", "10.0.0.2:80")], 1);
        assert_eq!(pairs[&pair("nobody", "10.0.0.2:80")], 1);
    }
}

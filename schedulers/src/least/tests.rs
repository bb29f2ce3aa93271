//! The tree is held to the walk: after whatever has happened both must choose the same server.

use super::*;
use crate::testing::{load, overload, server, servers};
use crate::watched::FEW;
use crate::weight::overhead_words;
use crate::weight::{expected_delay, lightness, overhead, overhead_by_weight, queue};
use proptest::prelude::*;

const MEASURES: [Measure; 5] = [overhead_by_weight, overhead, expected_delay, queue, lightness];

/// One thing that happens to a list. Numbers pick a server by remainder.
#[derive(Clone, Debug)]
enum Step {
    Add { weight: i32 },
    AddMany { count: usize },
    Remove { which: usize },
    Shrink { to: usize },
    Weigh { which: usize, weight: i32 },
    Limit { which: usize, upper: u32 },
    Open { which: usize, count: u32, active: bool },
    Close { which: usize, active: bool },
    Move { which: usize, to_active: bool },
    OpenAll,
    Rebind,
    Replace { which: usize },
    Choose,
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..10_000_usize;
    let weight = prop_oneof![Just(0), 1..5_i32, Just(i32::MAX)];
    prop_oneof![
        4 => weight.clone().prop_map(|weight| Step::Add { weight }),
        1 => (1..60_usize).prop_map(|count| Step::AddMany { count }),
        4 => which.clone().prop_map(|which| Step::Remove { which }),
        1 => (0..30_usize).prop_map(|to| Step::Shrink { to }),
        4 => (which.clone(), weight).prop_map(|(which, weight)| Step::Weigh { which, weight }),
        3 => (which.clone(), 0..4_u32).prop_map(|(which, upper)| Step::Limit { which, upper }),
        9 => (which.clone(), 0..4_u32, any::<bool>())
            .prop_map(|(which, count, active)| Step::Open { which, count, active }),
        6 => (which.clone(), any::<bool>()).prop_map(|(which, active)| Step::Close { which, active }),
        2 => which.clone().prop_map(|which| Step::Replace { which }),
        4 => (which, any::<bool>())
            .prop_map(|(which, to_active)| Step::Move { which, to_active }),
        1 => Just(Step::OpenAll),
        1 => Just(Step::Rebind),
        12 => Just(Step::Choose),
    ]
}

/// A list with a tree for it.
struct World {
    servers: Vec<Arc<Server>>,
    least: Least,
    next: u64,
}

impl World {
    fn add(&mut self, weight: i32) {
        self.servers.insert(0, server(self.next, weight));
        self.next += 1;
        self.least.follow(&self.servers, Change::Added);
    }

    fn remove(&mut self, index: usize) {
        let id = self.servers.remove(index).id();
        self.least.follow(&self.servers, Change::Removed { index, id });
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let pick = |which: usize| self.servers.get(which % self.servers.len().max(1));
        let index = |which: usize| which % self.servers.len();
        match *step {
            Step::Add { weight } => self.add(weight),
            Step::AddMany { count } => (0..count).for_each(|n| self.add(1 + n as i32 % 3)),
            Step::Remove { which } if !self.servers.is_empty() => self.remove(index(which)),
            Step::Replace { which } if !self.servers.is_empty() => {
                let index = index(which);
                let ended = self.servers[index].clone();
                self.servers[index] = Arc::new(Server::new(ended.id(), ended.address(), 80, 2));
                self.least.follow(&self.servers, Change::Replaced { index });
                // What is left of the old one's counts concerns nobody.
                load(&ended, 3, 0);
            }
            Step::Shrink { to } => {
                while self.servers.len() > to {
                    self.remove(0);
                }
            }
            Step::Weigh { which, weight } => {
                // Also without telling the scheduler, as between the two it must hold as well.
                pick(which).inspect(|server| server.set_weight(weight));
            }
            Step::Limit { which, upper } => {
                if let Some(server) = pick(which) {
                    server.set_thresholds(upper, 0);
                    let change = Change::Edited { index: index(which) };
                    self.least.follow(&self.servers, change);
                }
            }
            Step::Open { which, count, active } => {
                let (active, inactive) = if active { (count, 0) } else { (0, count) };
                pick(which).inspect(|server| load(server, active, inactive));
            }
            Step::Close { which, active } => {
                pick(which).inspect(|server| server.connection_closed(active));
            }
            Step::Move { which, to_active } => {
                pick(which).inspect(|server| server.connection_moved(to_active));
            }
            Step::OpenAll => self.servers.iter().for_each(|server| load(server, 1, 0)),
            Step::Rebind => {
                self.least = Least::by(self.least.measure, overhead_words);
                self.least.follow(&self.servers, Change::Bound);
            }
            Step::Remove { .. } | Step::Replace { .. } | Step::Choose => {}
        }
        let walked = least_loaded(each(&self.servers), self.least.measure);
        prop_assert_eq!(self.least.lightest(&self.servers), walked, "after {:?}", step);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tree_chooses_whom_a_walk_would_choose(
        measure in 0..MEASURES.len(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let least = Least::by(MEASURES[measure], overhead_words);
        let mut world = World { servers: Vec::new(), least, next: 0 };
        for step in &steps {
            world.step(step)?;
        }
    }
}

#[test]
fn no_change_of_another_worker_is_overlooked() {
    for measure in MEASURES {
        let servers = servers(&[1, 2, 3, 4, 5].repeat(40));
        let mut least = Least::by(measure, overhead_words);
        least.follow(&servers, Change::Bound);
        for _ in 0..20 {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (1..4_u32)
                    .map(|thread| {
                        let servers = &servers;
                        scope.spawn(move || churn(servers, thread))
                    })
                    .collect();
                while threads.iter().any(|thread| !thread.is_finished()) {
                    assert!(least.lightest(&servers).is_some());
                }
            });
            // They are at rest: now the choice is the walk's, whatever marks crossed.
            assert_eq!(least.lightest(&servers), least_loaded(each(&servers), measure));
        }
    }
}

fn churn(servers: &[Arc<Server>], seed: u32) {
    let mut random = seed;
    for _ in 0..5000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let server = &servers[(random >> 8) as usize % servers.len()];
        match random >> 29 {
            0 => server.connection_closed(true),
            1 => server.connection_closed(false),
            2 | 3 => server.connection_moved(random & 256 == 0),
            4 => server.set_thresholds(random >> 10 & 7, 0),
            _ => server.connection_opened(),
        }
    }
}

#[test]
fn a_server_that_changes_lists_is_watched_by_the_new_one() {
    let (one, other) = (servers(&[1; 20]), servers(&[1; 40]));
    let mut old = Least::by(overhead, overhead_words);
    old.follow(&one, Change::Bound);
    let mut list = other.clone();
    let mut new = Least::by(overhead, overhead_words);
    new.follow(&list, Change::Bound);
    list.insert(0, one[7].clone());
    new.follow(&list, Change::Added);
    assert_eq!(new.lightest(&list), Some(0));
    load(&one[7], 1, 0);
    assert_eq!(new.lightest(&list), Some(1));
}

#[test]
fn servers_of_a_list_that_has_become_short_are_marked_no_more() {
    let mut list = servers(&[1; FEW + 1]);
    let mut least = Least::by(overhead, overhead_words);
    least.follow(&list, Change::Bound);
    let board = least.watched.board().unwrap().clone();
    load(&list[3], 1, 0);
    assert_eq!(board.marked(), 1);
    let id = list.remove(0).id();
    least.follow(&list, Change::Removed { index: 0, id });
    assert!(least.watched.board().is_none());
    load(&list[4], 1, 0);
    assert_eq!(board.marked(), 1);
    overload(&list[0]);
    assert_eq!(least.lightest(&list), Some(1));
}

//! The tree is held to the walk, the scale to the list, and choices to what the bias promises.

use super::*;
use crate::testing::{Service, client, destination, load, overload, server};
use crate::weight::overhead_words;
use crate::weight::{Measure, expected_delay, overhead, overhead_by_weight, queue};
use crate::{Bias, create};
use proptest::prelude::*;

const MEASURES: [Measure; 4] = [overhead_by_weight, overhead, expected_delay, queue];
const BIASES: [Bias; 4] = [Bias::Ilb(2), Bias::Ilb(8), Bias::Linear(200), Bias::Linear(0)];
const WINDOW: Duration = Duration::from_secs(5);

fn options(bias: Bias) -> Options {
    Options { bias, bias_window: WINDOW, ..Options::default() }
}

fn biased(scheduler: &str, bias: Bias, weights: &[i32]) -> Service {
    Service::with_options(scheduler, weights, &options(bias))
}

/// So many connections that are established, and older than the window.
fn settled(service: &mut Service, id: u64, connections: u32) {
    load(service.server(id), connections, 0);
    service.next();
    service.now += WINDOW;
    service.next();
}

/// The ids of those chosen when each choice becomes a connection.
fn connect(service: &mut Service, count: usize) -> Vec<u64> {
    (0..count).map(|_| service.connect().unwrap()).collect()
}

/// One thing that happens to a list. Numbers pick a server by remainder.
#[derive(Clone, Debug)]
enum Step {
    Add { weight: i32, count: usize },
    Remove { which: usize },
    Shrink { to: usize },
    Weigh { which: usize, weight: i32 },
    Limit { which: usize, upper: u32 },
    Open { which: usize, count: u32, active: bool },
    Close { which: usize, active: bool },
    Handshake { which: usize, begins: bool },
    Wait { milliseconds: u64 },
    Rebind,
    Choose,
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..10_000_usize;
    let weight = prop_oneof![Just(0), 1..5_i32, Just(i32::MAX)];
    prop_oneof![
        4 => (weight.clone(), prop_oneof![Just(1), 1..40_usize])
            .prop_map(|(weight, count)| Step::Add { weight, count }),
        3 => which.clone().prop_map(|which| Step::Remove { which }),
        1 => (0..30_usize).prop_map(|to| Step::Shrink { to }),
        3 => (which.clone(), weight).prop_map(|(which, weight)| Step::Weigh { which, weight }),
        2 => (which.clone(), 0..4_u32).prop_map(|(which, upper)| Step::Limit { which, upper }),
        9 => (which.clone(), 0..4_u32, any::<bool>())
            .prop_map(|(which, count, active)| Step::Open { which, count, active }),
        5 => (which.clone(), any::<bool>()).prop_map(|(which, active)| Step::Close { which, active }),
        4 => (which, any::<bool>()).prop_map(|(which, begins)| Step::Handshake { which, begins }),
        4 => prop_oneof![0..2000_u64, 0..20_000_u64]
            .prop_map(|milliseconds| Step::Wait { milliseconds }),
        1 => Just(Step::Rebind),
        9 => Just(Step::Choose),
    ]
}

/// A list with a biased choice for it.
struct World {
    servers: Vec<Arc<Server>>,
    biased: Biased<Connections>,
    measure: Measure,
    bias: Bias,
    now: Duration,
    next: u64,
}

impl World {
    fn new(measure: Measure, bias: Bias) -> World {
        let biased = Biased::by(Connections::by(measure, bias), overhead_words, &options(bias));
        World { servers: Vec::new(), biased, measure, bias, now: Duration::ZERO, next: 0 }
    }

    fn remove(&mut self, index: usize) {
        let id = self.servers.remove(index).id();
        self.biased.follow(&self.servers, Change::Removed { index, id });
    }

    fn step(&mut self, step: &Step) {
        let pick = |which: usize| self.servers.get(which % self.servers.len().max(1));
        match *step {
            Step::Add { weight, count } => {
                for _ in 0..count {
                    self.servers.insert(0, server(self.next, weight));
                    self.next += 1;
                    self.biased.follow(&self.servers, Change::Added);
                }
            }
            Step::Remove { which } if !self.servers.is_empty() => {
                self.remove(which % self.servers.len());
            }
            Step::Shrink { to } => {
                while self.servers.len() > to {
                    self.remove(0);
                }
            }
            Step::Weigh { which, weight } => {
                pick(which).inspect(|server| server.set_weight(weight));
            }
            Step::Limit { which, upper } => {
                pick(which).inspect(|server| server.set_thresholds(upper, 0));
            }
            Step::Open { which, count, active } => {
                let (active, inactive) = if active { (count, 0) } else { (0, count) };
                pick(which).inspect(|server| load(server, active, inactive));
            }
            Step::Close { which, active } => {
                pick(which).inspect(|server| server.connection_closed(active));
            }
            Step::Handshake { which, begins: true } => {
                pick(which).inspect(|server| server.handshake_begun());
            }
            Step::Handshake { which, begins: false } => {
                pick(which).inspect(|server| server.handshake_ended());
            }
            Step::Wait { milliseconds } => self.now += Duration::from_millis(milliseconds),
            Step::Rebind => {
                let next = World::new(self.measure, self.bias);
                self.biased = next.biased;
                self.biased.follow(&self.servers, Change::Bound);
            }
            Step::Remove { .. } | Step::Choose => {}
        }
    }

    /// What must hold after whatever has happened.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let chosen = self.biased.lightest(&self.servers, self.now);
        let (whole, walked) = walk(self.biased.scale(), each(&self.servers));
        prop_assert_eq!(chosen, walked);
        prop_assert!(self.biased.scale().fits(whole), "{:?}", whole);
        prop_assert_eq!(chosen.is_some(), self.servers.iter().any(|server| server.is_eligible()));
        prop_assert!(chosen.is_none_or(|index| self.servers[index].is_eligible()));
        for server in &self.servers {
            let value = self.biased.scale().measure(server).value;
            prop_assert_eq!(value.is_finite(), server.is_eligible(), "{}", value);
            prop_assert!(value >= 0.0, "{}", value);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_eligible_server_is_chosen_and_the_tree_chooses_whom_a_walk_would(
        measure in 0..MEASURES.len(),
        bias in 0..BIASES.len(),
        steps in proptest::collection::vec(step(), 1..100),
    ) {
        let mut world = World::new(MEASURES[measure], BIASES[bias]);
        for step in &steps {
            world.step(step);
            world.check()?;
        }
    }

    #[test]
    fn without_connections_in_progress_the_order_is_the_schedulers_own(
        name in 0..4_usize,
        loads in proptest::collection::vec((1..5_i32, 0..5_u32, 0..300_u32), 1..40),
    ) {
        let name = ["wlc", "lc", "sed", "nq"][name];
        let weights: Vec<i32> = loads.iter().map(|load| load.0).collect();
        let mut service = biased(name, Bias::Ilb(2), &weights);
        for (server, (_, active, inactive)) in service.servers.iter().zip(&loads) {
            load(server, *active, *inactive);
        }
        service.next();
        service.now += WINDOW;
        let chosen = service.next();
        let mut plain = create(name, &Options::default()).unwrap();
        plain.changed(&service.servers, Change::Bound).unwrap();
        let key = client("198.51.100.7", 5000);
        let kernels = plain.choose(&service.servers, &key, service.now).unwrap();
        prop_assert_eq!(chosen, Some(kernels as u64));
    }
}

#[test]
fn a_newcomer_is_the_best_for_as_many_connections_as_the_formula_says() {
    // n* at 0.8, where the most loaded stand. Those in progress count as load too, if little.
    for (bias, most) in [(Bias::Ilb(2), 3), (Bias::Ilb(4), 6), (Bias::Ilb(8), 13)] {
        for others in [5, 100] {
            let mut service = biased("wlc", bias, &vec![1; others]);
            (0..others as u64).for_each(|id| load(service.server(id), 80, 0));
            settled(&mut service, 0, 0);
            service.add(1000, 1).unwrap();
            let chosen = connect(&mut service, most + 3);
            let newcomers = chosen.iter().take_while(|id| **id == 1000).count();
            assert!((most - 2..=most).contains(&newcomers), "{bias:?}: {chosen:?}");
            service.now += WINDOW;
            let chosen = connect(&mut service, most);
            assert_eq!(chosen[0], 1000, "{bias:?}: established, they count no more");
        }
    }
}

#[test]
fn connections_count_until_they_are_established_when_there_is_no_window() {
    let options = Options { bias: Bias::Ilb(2), ..Options::default() };
    let mut service = Service::with_options("wlc", &[1, 1, 1], &options);
    (1..3).for_each(|id| load(service.server(id), 80, 0));
    let mut chosen = Vec::new();
    for _ in 0..6 {
        let id = service.connect().unwrap();
        service.server(id).handshake_begun();
        chosen.push(id);
    }
    assert_eq!(chosen[..3], [0, 0, 0]);
    assert!(chosen[3..].contains(&1) && chosen[3..].contains(&2), "{chosen:?}");
    service.now += Duration::from_secs(3600);
    assert_ne!(service.next(), Some(0), "an hour changes nothing");
    (0..3).for_each(|_| service.server(0).handshake_ended());
    assert_eq!(service.next(), Some(0));
}

#[test]
fn handshakes_are_seen_in_a_long_list_when_nothing_else_changes() {
    let mut service = biased("wlc", Bias::Ilb(2), &[1; 40]);
    (0..40).for_each(|id| load(service.server(id), 1, 0));
    settled(&mut service, 0, 0);
    assert_eq!(service.next(), Some(0));
    service.server(0).handshake_begun();
    assert_eq!(service.next(), Some(1));
    service.server(0).handshake_ended();
    assert_eq!(service.next(), Some(0));
}

#[test]
fn in_progress_counts_by_weight_except_for_lc() {
    let shares = |name| {
        let mut service = biased(name, Bias::Ilb(2), &[1, 2, 5]);
        let chosen = connect(&mut service, 800);
        [0, 1, 2].map(|server| chosen.iter().filter(|id| **id == server).count())
    };
    assert_eq!(shares("wlc"), [100, 200, 500]);
    assert_eq!(shares("sed"), [100, 200, 500]);
    assert!(shares("lc").iter().all(|share| (265..=268).contains(share)), "{:?}", shares("lc"));
}

#[test]
fn ties_go_to_the_newest() {
    for count in [3, 40] {
        let mut service = biased("wlc", Bias::Ilb(2), &vec![2; count]);
        assert_eq!(connect(&mut service, 3), [0, 1, 2]);
        service.add(99, 2).unwrap();
        assert_eq!(service.next(), Some(99));
    }
}

#[test]
fn a_server_near_its_upper_threshold_is_fuller_than_its_load_says() {
    let mut service = biased("wlc", Bias::Ilb(2), &[1, 1]);
    service.server(0).set_thresholds(10, 0);
    load(service.server(0), 9, 0);
    load(service.server(1), 900, 0);
    settled(&mut service, 0, 0);
    assert_eq!(service.next(), Some(1), "nine tenths against eight");
    service.server(0).connection_closed(true);
    service.server(0).connection_closed(true);
    assert_eq!(service.next(), Some(0));
}

#[test]
fn thresholds_far_above_all_loads_make_no_load_vanish() {
    let mut service = biased("wlc", Bias::Ilb(2), &[1, 1]);
    (0..2).for_each(|id| service.server(id).set_thresholds(1_000_000, 0));
    settled(&mut service, 1, 80);
    assert_eq!(connect(&mut service, 4), [0, 0, 0, 1]);
}

#[test]
fn weights_that_are_all_raised_leave_the_bias_what_it_was() {
    let mut service = biased("wlc", Bias::Ilb(2), &[1; 6]);
    (1..6).for_each(|id| load(service.server(id), 80, 0));
    settled(&mut service, 1, 0);
    (0..6).for_each(|id| service.set_weight(id, 1000));
    assert_eq!(connect(&mut service, 4)[..3], [0, 0, 0]);
    assert_ne!(service.next(), Some(0));
}

#[test]
fn a_load_beyond_all_others_is_put_into_proportion_at_once() {
    for count in [2, 200] {
        let mut service = biased("wlc", Bias::Ilb(2), &vec![1; count]);
        settled(&mut service, 0, 1);
        // Without a new scale both would be beyond it, and equal.
        load(service.server(0), 10_000, 0);
        service.now += Duration::from_millis(1);
        (1..count as u64).for_each(|id| load(service.server(id), 9_000, 0));
        (1..count as u64).for_each(|id| service.server(id).turn_window(16));
        service.server(0).turn_window(16);
        assert_eq!(service.next(), Some(1), "{count}");
    }
}

#[test]
fn udp_is_spread_by_what_is_young() {
    let mut service = biased("sed", Bias::Ilb(2), &[1, 1, 2]);
    let mut shares = [0; 3];
    for _ in 0..400 {
        let id = service.next().unwrap();
        service.server(id).connection_opened();
        shares[id as usize] += 1;
    }
    // Plain sed sees only active connections, and would send all to server 2.
    assert_eq!(shares, [100, 100, 200]);
}

#[test]
fn quiesced_and_overloaded_servers_get_nothing_however_light() {
    for count in [3, 30] {
        let mut weights = vec![1; count];
        weights[0] = 0;
        let mut service = biased("nq", Bias::Linear(200), &weights);
        overload(service.server(1));
        (2..count as u64).for_each(|id| load(service.server(id), 5 + id as u32, 0));
        assert_eq!(service.next(), Some(2));
        (2..count as u64).for_each(|id| service.set_weight(id, 0));
        assert_eq!(service.next(), None);
    }
}

#[test]
fn lblc_and_lblcr_choose_by_bias_what_they_remember() {
    for name in ["lblc", "lblcr"] {
        let mut service = biased(name, Bias::Ilb(2), &[9, 9, 9]);
        load(service.server(1), 5, 0);
        load(service.server(2), 5, 0);
        settled(&mut service, 0, 0);
        let chosen: Vec<_> = (0..5)
            .map(|number| {
                let id = service.choose(&destination(&format!("203.0.113.{number}"))).unwrap();
                load(service.server(id), 1, 0);
                id
            })
            .collect();
        assert!(chosen[..2] == [0, 0] && chosen.contains(&1) && chosen.contains(&2), "{chosen:?}");
        let first = destination("203.0.113.0");
        assert_eq!(service.choose(&first), Some(0), "{name}: remembered for all that");
    }
}

#[test]
fn within_a_set_of_lblcr_too_the_bias_counts() {
    let mut service = biased("lblcr", Bias::Ilb(2), &[2, 2, 2]);
    let key = destination("203.0.113.1");
    assert_eq!(service.choose(&key), Some(0));
    load(service.server(2), 1, 0);
    settled(&mut service, 0, 3);
    assert_eq!(service.choose(&key), Some(1), "0 is swamped: 1 joins the set");
    (0..3).for_each(|_| service.server(0).connection_closed(true));
    settled(&mut service, 1, 1);
    assert_eq!(service.choose(&key), Some(0));
    load(service.server(0), 0, 3);
    (0..3).for_each(|_| service.server(0).handshake_begun());
    assert_eq!(service.choose(&key), Some(1));
}

#[test]
fn the_window_goes_on_while_lblc_and_lblcr_only_remember() {
    for name in ["lblc", "lblcr"] {
        let mut service = biased(name, Bias::Ilb(2), &[9, 9]);
        let first = destination("203.0.113.0");
        service.choose(&first);
        load(service.server(0), 3, 0);
        for _ in 0..16 {
            service.now += WINDOW / 16;
            service.choose(&first);
        }
        assert_eq!(service.server(0).in_progress(), 0, "{name}");
    }
}

#[test]
fn no_change_of_another_worker_is_overlooked() {
    for measure in MEASURES {
        let mut world = World::new(measure, Bias::Ilb(2));
        for weight in 1..=200 {
            world.step(&Step::Add { weight: 1 + weight % 5, count: 1 });
        }
        for _ in 0..10 {
            let servers = world.servers.clone();
            std::thread::scope(|scope| {
                let threads: Vec<_> = (1..4_u32)
                    .map(|thread| {
                        let servers = &servers;
                        scope.spawn(move || churn(servers, thread))
                    })
                    .collect();
                while threads.iter().any(|thread| !thread.is_finished()) {
                    world.now += Duration::from_millis(100);
                    assert!(world.biased.lightest(&servers, world.now).is_some());
                }
            });
            world.check().unwrap();
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
            2 => server.connection_moved(random & 256 == 0),
            3 => server.handshake_begun(),
            4 => server.handshake_ended(),
            5 => server.report(None),
            _ => server.connection_opened(),
        }
    }
}

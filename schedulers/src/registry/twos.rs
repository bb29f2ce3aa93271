//! Power of two choices (twos): two servers drawn by weight, the less loaded of them gets it.
//!
//! Follows `ip_vs_twos.c`. Both draws are uniform over 0 to the sum of the eligible weights, *both
//! ends included*, and a draw falls to the server at which the running subtraction of weights
//! reaches 0: the first server has one chance more than its weight. Both draws may fall to the same
//! server. Mitzenmacher, Richa, Sitaraman, "The Power of Two Random Choices", 2001.

use crate::watched::{Rule, Tree, Watched};
use crate::weight::{each, is_lighter, overhead_by_weight_words};
use crate::{Change, Entry, Key, Options, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "twos",
    summary: "power of two choices: the less loaded of two servers drawn by weight",
    create: |options| Box::new(TwoChoices::new(options)),
};

struct TwoChoices {
    draws: Draws,
    /// Sums of eligible weights.
    sums: Watched<u64>,
}

impl TwoChoices {
    fn new(options: &Options) -> TwoChoices {
        let sum: Rule<u64> =
            Rule { nobody: 0, measure: eligible_share, join: |older, newer| older + newer };
        TwoChoices { draws: Draws { state: options.seed }, sums: Watched::by(sum) }
    }
}

impl Scheduler for TwoChoices {
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        self.sums.follow(servers, change);
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], _: &Key, _: Duration) -> Option<usize> {
        let draws = &mut self.draws;
        if let Some(tree) = self.sums.review(servers) {
            let total = tree.all();
            if total == 0 {
                return None;
            }
            let mut drawn = || fall(tree, draws.up_to(total));
            let (first, second) = (drawn()?, drawn()?);
            let burden = |index: usize| burden(&servers[index]);
            return Some(if is_lighter(burden(second), burden(first)) { second } else { first });
        }
        let eligible = || each(servers).filter(|(_, server)| server.is_eligible());
        let (last, _) = eligible().last()?;
        let total: u64 = eligible().map(|(_, server)| share(server)).sum();
        let first = draw(eligible(), draws.up_to(total));
        let second = draw(eligible(), draws.up_to(total));
        // Another worker may have lowered a weight since the sum was taken; a draw beyond the end
        // then falls to the last server.
        Some(match (first, second) {
            (Some((_, first)), Some((index, second))) if is_lighter(second, first) => index,
            (Some((index, _)), _) => index,
            (None, _) => last,
        })
    }

    fn fork(&self, servers: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        let draws = Draws { state: self.draws.state };
        Box::new(TwoChoices { draws, sums: self.sums.fork(servers) })
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        overhead_by_weight_words(server)
    }

    fn bearings(&self, _: &[Arc<Server>], _: &Key) -> String {
        "the less loaded of two that are drawn by weight".to_owned()
    }
}

fn eligible_share(server: &Server) -> u64 {
    if server.is_eligible() { share(server) } else { 0 }
}

/// The weight as a share; never negative.
fn share(server: &Server) -> u64 {
    u64::from(server.weight().max(0).unsigned_abs())
}

fn burden(server: &Server) -> (u64, i32) {
    (server.overhead(), server.weight())
}

/// The index of the server that a number up to the sum of all falls to, which is not 0.
fn fall(tree: &Tree<u64>, number: u64) -> Option<usize> {
    // Both 0 and 1 fall to the first that has a weight.
    let mut left = number.max(1);
    tree.descend(|_, newer| {
        let is_newer = left <= newer;
        if !is_newer {
            left -= newer;
        }
        is_newer
    })
}

/// The server that a number falls to, with its overhead and weight.
fn draw<'a>(
    servers: impl Iterator<Item = (usize, &'a Server)>,
    mut number: u64,
) -> Option<(usize, (u64, i32))> {
    for (index, server) in servers {
        number = number.saturating_sub(share(server));
        if number == 0 {
            return Some((index, burden(server)));
        }
    }
    None
}

/// Random numbers by SplitMix64 (Steele, Lea, Flood 2014); any seed will do.
#[derive(Debug)]
struct Draws {
    state: u64,
}

impl Draws {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number in 0..=`most`.
    fn up_to(&mut self, most: u64) -> u64 {
        let scaled = u128::from(self.next()) * (u128::from(most) + 1);
        (scaled >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Service, load, overload, servers};

    #[test]
    fn a_draw_falls_where_the_weights_run_out() {
        let list = servers(&[2, 1, 3]);
        let falls = |number| draw(each(&list), number).map(|(index, _)| index);
        let drawn: Vec<_> = (0..=6).map(falls).collect();
        let expected = [0, 0, 0, 1, 2, 2, 2].map(Some);
        assert_eq!(drawn, expected);
        assert_eq!(falls(7), None);
    }

    #[test]
    fn in_a_long_list_a_draw_falls_to_the_same_server() {
        let weights: Vec<i32> = (0..50).map(|number| [0, 3, 1, 7, 2][number % 5]).collect();
        let list = servers(&weights);
        overload(&list[3]);
        overload(&list[47]);
        let mut twos = TwoChoices::new(&Options::default());
        twos.changed(&list, Change::Bound).unwrap();
        for quiesced in [None, Some(1), Some(49), Some(24)] {
            quiesced.inspect(|index: &usize| list[*index].set_weight(0));
            let tree = twos.sums.review(&list).unwrap();
            let eligible = || each(&list).filter(|(_, server)| server.is_eligible());
            let total: u64 = eligible().map(|(_, server)| share(server)).sum();
            assert_eq!(tree.all(), total);
            for number in 0..=total {
                let walked = draw(eligible(), number).map(|(index, _)| index);
                assert_eq!(fall(tree, number), walked, "{number} of {total}");
            }
        }
    }

    #[test]
    fn draws_cover_both_ends() {
        let mut draws = Draws { state: 1 };
        let mut seen = [0_u32; 5];
        for _ in 0..5000 {
            seen[draws.up_to(4) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (900..1100).contains(&count)), "{seen:?}");
        assert_eq!(draws.up_to(0), 0);
    }

    #[test]
    fn the_less_loaded_of_two_is_preferred() {
        let mut service = Service::new("twos", &[1, 1]);
        load(service.server(0), 10, 0);
        let chosen = service.run(3000);
        let busy = chosen.iter().filter(|&&id| id == 0).count();
        // The busy server gets it only when both draws fall to it: (2/3)^2.
        assert!((1200..1470).contains(&busy), "{busy} of 3000");
    }

    #[test]
    fn load_is_taken_per_weight() {
        let mut service = Service::new("twos", &[1, 1000]);
        load(service.server(0), 1, 0);
        load(service.server(1), 500, 0);
        let chosen = service.run(500);
        assert!(chosen.iter().filter(|&&id| id == 1).count() > 490);
    }

    #[test]
    fn without_load_the_shares_follow_the_weights() {
        // Ties go to the first draw, so each server gets its chance of one draw.
        let mut service = Service::new("twos", &[10, 20, 70]);
        let chosen = service.run(10_100);
        for (id, chance) in [(0, 1100), (1, 2000), (2, 7000)] {
            let times = chosen.iter().filter(|&&one| one == id).count();
            assert!(times.abs_diff(chance) < 250, "server {id}: {times}");
        }
    }

    #[test]
    fn quiesced_and_overloaded_servers_are_never_drawn() {
        let mut service = Service::new("twos", &[0, 50, 1]);
        overload(service.server(1));
        assert_eq!(service.run(100), [2; 100]);
        service.set_weight(2, 0);
        assert_eq!(service.next(), None);
        service.add(9, 1).unwrap();
        assert_eq!(service.next(), Some(9));
        service.remove(9);
        assert_eq!(service.next(), None);
    }

    #[test]
    fn the_same_seed_gives_the_same_draws() {
        let mut one = Service::new("twos", &[1, 2, 3]);
        let mut other = Service::new("twos", &[1, 2, 3]);
        assert_eq!(one.run(50), other.run(50));
    }
}

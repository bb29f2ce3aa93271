//! Round robin (rr): each eligible server in turn, whatever its weight.
//!
//! Follows `ip_vs_rr.c`. A cursor stands on the server chosen last, or before the head. The search
//! goes from behind the cursor to the tail and then from the head up to and including the cursor's
//! own server. A new server comes in at the head, and so has its turn when the walk next begins
//! anew. When the server under the cursor is removed, the cursor steps back to the one before it,
//! so that the turn of the one behind is not skipped.

use crate::remembered::{Remembered, after};
use crate::weight::weight_words;
use crate::{Change, Entry, Key, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "rr",
    summary: "round robin: each server in turn",
    create: |_| Box::new(RoundRobin::default()),
};

#[derive(Debug, Default)]
struct RoundRobin {
    /// The server chosen last; `None` = before the head of the list.
    cursor: Option<Remembered>,
}

impl Scheduler for RoundRobin {
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        match change {
            Change::Bound => self.cursor = None,
            Change::Removed { index, id } if self.cursor.is_some_and(|c| c.id() == id) => {
                let before = index.checked_sub(1);
                self.cursor = before.and_then(|before| Remembered::at(servers, before));
            }
            Change::Removed { .. }
            | Change::Added
            | Change::Edited { .. }
            | Change::Replaced { .. } => {}
        }
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], _: &Key, _: Duration) -> Option<usize> {
        let cursor = self.cursor.and_then(|cursor| cursor.find(servers));
        let start = cursor.map_or(0, |index| index + 1);
        let chosen =
            (start..servers.len()).chain(0..start).find(|&index| servers[index].is_eligible())?;
        self.cursor = Remembered::at(servers, chosen);
        Some(chosen)
    }

    fn fork(&self, _: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        Box::new(RoundRobin { cursor: self.cursor })
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        weight_words(server)
    }

    fn bearings(&self, servers: &[Arc<Server>], _: &Key) -> String {
        after(self.cursor, servers)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Service, overload};

    #[test]
    fn every_server_has_its_turn_whatever_its_weight() {
        let mut service = Service::new("rr", &[5, 1, 100]);
        assert_eq!(service.run(7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn quiesced_and_overloaded_servers_are_passed_over() {
        let mut service = Service::new("rr", &[1, 0, 1, 1]);
        overload(service.server(2));
        assert_eq!(service.run(4), [0, 3, 0, 3]);
        service.set_weight(1, 1);
        assert_eq!(service.run(3), [0, 1, 3]);
    }

    #[test]
    fn the_only_eligible_server_is_chosen_again_and_again() {
        let mut service = Service::new("rr", &[0, 1, 0]);
        assert_eq!(service.run(3), [1, 1, 1]);
    }

    #[test]
    fn a_failed_search_leaves_the_turn_where_it_was() {
        let mut service = Service::new("rr", &[1, 1, 1]);
        assert_eq!(service.run(1), [0]);
        (0..3).for_each(|id| service.set_weight(id, 0));
        assert_eq!(service.next(), None);
        (0..3).for_each(|id| service.set_weight(id, 1));
        assert_eq!(service.run(2), [1, 2]);
    }

    #[test]
    fn no_servers_no_choice() {
        assert_eq!(Service::new("rr", &[]).next(), None);
    }

    #[test]
    fn a_new_server_waits_for_the_walk_to_begin_anew() {
        let mut service = Service::new("rr", &[1, 1]);
        assert_eq!(service.run(1), [0]);
        service.add(9, 1).unwrap();
        assert_eq!(service.run(4), [1, 9, 0, 1]);
    }

    #[test]
    fn a_server_added_before_the_first_choice_is_first() {
        let mut service = Service::new("rr", &[1]);
        service.add(9, 1).unwrap();
        assert_eq!(service.run(3), [9, 0, 9]);
    }

    #[test]
    fn removing_the_server_under_the_cursor_skips_nobody() {
        let mut service = Service::new("rr", &[1, 1, 1]);
        assert_eq!(service.run(2), [0, 1]);
        service.remove(1);
        assert_eq!(service.run(3), [2, 0, 2]);
    }

    #[test]
    fn removing_the_head_under_the_cursor_puts_the_cursor_before_the_head() {
        let mut service = Service::new("rr", &[1, 1, 1]);
        assert_eq!(service.run(1), [0]);
        service.remove(0);
        // The newcomer stands right behind a cursor that stands before the head.
        service.add(9, 1).unwrap();
        assert_eq!(service.run(3), [9, 1, 2]);
    }

    #[test]
    fn removing_another_server_moves_no_turn() {
        let mut service = Service::new("rr", &[1, 1, 1, 1]);
        assert_eq!(service.run(2), [0, 1]);
        service.remove(0);
        assert_eq!(service.run(2), [2, 3]);
        service.remove(1);
        assert_eq!(service.run(2), [2, 3]);
    }
}

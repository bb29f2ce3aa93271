//! How the words of a slot are read while others write them: a sequence lock whose sequence is the
//! word that changes anyway.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use netio::{Line, Words};

use super::slot::{CHANGING, GENERATION, LIVE, Moment, Name};

/// A place for a connection: what the words mean says `slot.rs`.
pub(super) type Slot = Words;

const CLIENT: usize = 0;
const PEER: usize = 2;
const ENDS: usize = 4;
const BINDING: usize = 5;
const MOMENT: usize = 6;
const LINKS: usize = 7;

/// Both halves of an address, or two numbers, in one word.
fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// What is read of a live slot at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) name: Name,
    pub(super) binding: u32,
    pub(super) moment: Moment,
}

/// What [`Slot`]s can do; a slot is only words.
pub(super) trait Place {
    /// What is in it, or `None` when it is empty or is just being filled.
    fn look(&self) -> Option<Seen>;
    /// Exchanges what changes, if it is still what was seen.
    fn renew(&self, seen: Moment, new: Moment) -> bool;
    /// Fills an empty slot. Under the lock.
    fn fill(&self, name: &Name, binding: u32, moment: Moment);
    /// Puts in place what changes, and what is known of the kind; returns what changed before. Under
    /// the lock.
    fn put(&self, name: &Name, moment: Moment) -> Moment;
    /// Empties it if what changes is still `seen`. Under the lock.
    fn empty(&self, seen: Moment) -> bool;
    /// When the wheel looks at it. Under the lock, like the rest.
    fn due(&self) -> u32;
    fn set_due(&self, due: u32);
    /// Neighbours, plus one; 0 is none.
    fn links(&self) -> (u32, u32);
    fn set_links(&self, before: u32, behind: u32);
}

/// A word of a slot: an atomic one, of the standard library or of the model that the tests use.
pub(super) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn exchange(&self, old: u64, new: u64, order: Ordering) -> Result<u64, u64>;
    fn fence(order: Ordering);
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }

    #[inline(always)]
    fn exchange(&self, old: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        self.compare_exchange(old, new, order, Relaxed)
    }

    #[inline(always)]
    fn fence(order: Ordering) {
        fence(order);
    }
}

impl<W: Word> Place for Line<W, 8> {
    #[inline(always)]
    fn look(&self) -> Option<Seen> {
        let [words @ .., moment, _] = &self.0;
        let first = Moment(moment.load(Acquire));
        if !first.is_live() {
            return None;
        }
        let word = |index: usize| words[index].load(Relaxed);
        let wide = |index: usize| u128::from(word(index)) << 64 | u128::from(word(index + 1));
        let name = Name { client: wide(CLIENT), peer: wide(PEER), ends: word(ENDS) };
        let binding = (word(BINDING) >> 32) as u32;
        // What was read above was read before what is read below.
        W::fence(Acquire);
        let moment = Moment(moment.load(Relaxed));
        moment.is_of_the_same_connection(first).then_some(Seen { name, binding, moment })
    }

    #[inline(always)]
    fn renew(&self, seen: Moment, new: Moment) -> bool {
        seen == new || self.0[MOMENT].exchange(seen.0, new.0, Relaxed).is_ok()
    }

    fn fill(&self, name: &Name, binding: u32, moment: Moment) {
        let before = self.0[MOMENT].load(Relaxed);
        let generation = (((before >> GENERATION) + 1) & 0xf_ffff) << GENERATION;
        // Who sees one of the words below sees that the slot was empty, too.
        W::fence(Release);
        self.0[CLIENT].store((name.client >> 64) as u64, Relaxed);
        self.0[CLIENT + 1].store(name.client as u64, Relaxed);
        self.0[PEER].store((name.peer >> 64) as u64, Relaxed);
        self.0[PEER + 1].store(name.peer as u64, Relaxed);
        self.0[ENDS].store(name.ends, Relaxed);
        self.0[BINDING].store(pair(binding, 0), Relaxed);
        self.0[MOMENT].store(moment.0 & CHANGING | generation | LIVE, Release);
    }

    fn put(&self, name: &Name, moment: Moment) -> Moment {
        self.0[ENDS].store(name.ends, Relaxed);
        let mut before = self.0[MOMENT].load(Relaxed);
        loop {
            let new = moment.0 & CHANGING | before & !CHANGING;
            match self.0[MOMENT].exchange(before, new, Release) {
                Ok(_) => return Moment(before),
                Err(now) => before = now,
            }
        }
    }

    fn empty(&self, seen: Moment) -> bool {
        let empty = seen.0 & !LIVE;
        self.0[MOMENT].exchange(seen.0, empty, Relaxed).is_ok()
    }

    fn due(&self) -> u32 {
        self.0[BINDING].load(Relaxed) as u32
    }

    fn set_due(&self, due: u32) {
        let binding = (self.0[BINDING].load(Relaxed) >> 32) as u32;
        self.0[BINDING].store(pair(binding, due), Relaxed);
    }

    fn links(&self) -> (u32, u32) {
        let links = self.0[LINKS].load(Relaxed);
        ((links >> 32) as u32, links as u32)
    }

    fn set_links(&self, before: u32, behind: u32) {
        self.0[LINKS].store(pair(before, behind), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netio::Lines;

    use super::*;
    use crate::dispatch::connection::Tuple;
    use crate::dispatch::state::State;

    fn tuple(client: &str, peer: &str) -> Tuple {
        Tuple {
            protocol: 6,
            template: false,
            client: (client.parse().unwrap(), 4000),
            peer: (peer.parse().unwrap(), 80),
        }
    }

    #[test]
    fn a_slot_is_seen_whole_or_not_at_all() {
        let slots: Lines<AtomicU64, 8> = Lines::zeroed(1);
        let slot = &slots[0];
        assert!(slot.look().is_none());
        let name = Name::of(&tuple("2001:db8::7", "192.0.2.10")).with(80, false, false);
        let moment = Moment::new(State::Established, Duration::from_secs(900), 3, false, true);
        slot.fill(&name, 77, moment);
        slot.set_due(5);
        let seen = slot.look().unwrap();
        assert_eq!((seen.name, seen.binding, slot.due()), (name, 77, 5));
        assert_eq!((seen.moment.state(), seen.moment.packets()), (State::Established, 3));
        let renewed = seen.moment.renewed(seen.moment.expires() + 9, true);
        assert!(slot.renew(seen.moment, renewed) && !slot.renew(seen.moment, renewed));
        assert_eq!((renewed.packets(), renewed.state()), (4, State::Established));
        assert!(!slot.empty(seen.moment), "it has changed");
        assert!(slot.empty(renewed) && slot.look().is_none());
        slot.fill(&name, 77, moment);
        assert!(!slot.renew(renewed, renewed.renewed(1, true)), "another connection");
    }

    /// One fills and empties a slot with names whose parts belong together; others look.
    #[test]
    fn no_reader_sees_parts_of_two_connections() {
        let slots: Lines<AtomicU64, 8> = Lines::zeroed(1);
        let slot = &slots[0];
        let name = |number: u32| {
            let end = |first: u32| (std::net::Ipv4Addr::from_bits(first + number).into(), 9);
            Name::of(&Tuple { protocol: 6, template: false, client: end(0), peer: end(1 << 24) })
        };
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut seen = 0;
                        while seen < 2000 {
                            let Some(Seen { name, binding, moment }) = slot.look() else {
                                continue;
                            };
                            if moment.state() == State::Close {
                                break;
                            }
                            assert_eq!(name.peer - name.client, 1 << 24);
                            assert_eq!(u128::from(binding), name.client);
                            seen += 1;
                        }
                    })
                })
                .collect();
            let at = Duration::from_secs(1);
            let mut number = 0;
            while !readers.iter().all(std::thread::ScopedJoinHandle::is_finished)
                && number < 50_000_000
            {
                number += 1;
                let moment = Moment::new(State::Udp, at, 0, false, false);
                slot.fill(&name(number % 1000), number % 1000, moment);
                assert!(slot.empty(Moment(slot.0[MOMENT].load(Relaxed))));
            }
            slot.fill(&name(0), 0, Moment::new(State::Close, at, 0, false, false));
        });
    }

    impl Word for loom::sync::atomic::AtomicU64 {
        fn load(&self, order: Ordering) -> u64 {
            loom::sync::atomic::AtomicU64::load(self, order)
        }

        fn store(&self, value: u64, order: Ordering) {
            loom::sync::atomic::AtomicU64::store(self, value, order);
        }

        fn exchange(&self, old: u64, new: u64, order: Ordering) -> Result<u64, u64> {
            self.compare_exchange(old, new, order, Relaxed)
        }

        fn fence(order: Ordering) {
            loom::sync::atomic::fence(order);
        }
    }

    type ModelSlot = Line<loom::sync::atomic::AtomicU64, 8>;

    fn numbered(number: u32) -> Name {
        let end = |first: u32| (std::net::Ipv4Addr::from_bits(first + number).into(), 9);
        Name::of(&Tuple { protocol: 6, template: false, client: end(0), peer: end(1 << 24) })
    }

    fn moment(packets: u8) -> Moment {
        Moment::new(State::Udp, Duration::from_secs(1), packets, false, false)
    }

    /// All orders in which the steps of the two may be seen, as the memory model has them: one
    /// connection goes and another one comes while a packet looks, and is counted.
    #[test]
    fn in_every_order_a_packet_sees_one_connection_whole_and_is_counted_on_that_one() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let slot: loom::sync::Arc<ModelSlot> =
                loom::sync::Arc::new(Line(std::array::from_fn(|_| {
                    loom::sync::atomic::AtomicU64::new(0)
                })));
            slot.fill(&numbered(1), 1, moment(0));
            let packet = loom::thread::spawn({
                let slot = slot.clone();
                move || {
                    let seen = slot.look()?;
                    assert_eq!(seen.name, numbered(seen.binding));
                    let counted = slot.renew(seen.moment, seen.moment.renewed(20, true));
                    counted.then_some(seen.binding)
                }
            });
            let mut gone = slot.look();
            while let Some(seen) = gone {
                if slot.empty(seen.moment) {
                    break;
                }
                gone = slot.look();
            }
            // What the last look saw is what went: nothing is counted on it any more.
            let counted_before = gone.map_or(0, |seen| seen.moment.packets());
            slot.fill(&numbered(2), 2, moment(0));
            let counted_on = packet.join().unwrap();
            let last = slot.look().map_or(0, |seen| seen.moment.packets());
            let expected = match counted_on {
                None => (0, 0),
                Some(1) => (1, 0),
                Some(_) => (0, 1),
            };
            assert_eq!((counted_before, last), expected);
        });
    }

    /// Two workers with packets of one connection do not undo each other's count.
    #[test]
    fn in_every_order_two_packets_are_both_counted_or_one_goes_the_long_way() {
        loom::model(|| {
            let slot: loom::sync::Arc<ModelSlot> =
                loom::sync::Arc::new(Line(std::array::from_fn(|_| {
                    loom::sync::atomic::AtomicU64::new(0)
                })));
            slot.fill(&numbered(1), 1, moment(0));
            let packet = |slot: &ModelSlot| {
                slot.look().is_some_and(|it| slot.renew(it.moment, it.moment.renewed(20, true)))
            };
            let other = loom::thread::spawn({
                let slot = slot.clone();
                move || packet(&slot)
            });
            let counted = u8::from(packet(&slot)) + u8::from(other.join().unwrap());
            assert!(counted >= 1);
            assert_eq!(slot.look().map(|seen| seen.moment.packets()), Some(counted));
        });
    }
}

//! A timing wheel: which connections may expire in which quarter of a second.
//!
//! A place in it says "look at this connection then", not "it expires then": a packet that refreshes
//! a connection leaves its place where it is, and when it comes up the connection is put further on.
//! So an established packet costs the wheel nothing. The connections of one moment hang together by
//! the links in their slots: the wheel takes no memory but its rim.

use std::time::Duration;

/// Moments around the wheel; times further ahead than that are looked at once per turn.
const MOMENTS: u32 = 512;

/// Milliseconds per moment: how exactly connections expire.
const MOMENT_MS: u64 = 250;

/// Where a connection keeps what the wheel has to know of it. Slots are numbered.
pub(super) trait Spokes {
    /// Number of the moment at which it is looked at.
    fn due(&self, slot: u32) -> u32;
    /// Sets it.
    fn set_due(&self, slot: u32, due: u32);
    /// The slots before and behind it, plus one; 0 is none.
    fn links(&self, slot: u32) -> (u32, u32);
    /// Sets them.
    fn set_links(&self, slot: u32, before: u32, behind: u32);
}

/// The wheel of one shard.
#[derive(Debug)]
pub(super) struct Wheel {
    /// The first connection of each moment, plus one; 0 is none.
    rim: Box<[u32]>,
    /// Number of the moment that is being looked at.
    now: u32,
}

impl Wheel {
    pub(super) fn new() -> Wheel {
        Wheel { rim: vec![0; MOMENTS as usize].into(), now: 0 }
    }

    /// Puts `slot`, which is nowhere in it, where `at` will be looked at, or at the far end.
    pub(super) fn insert(&mut self, slot: u32, at: Duration, spokes: &impl Spokes) {
        let due = wanted(at).clamp(self.now + 1, self.now + MOMENTS - 1);
        let first = &mut self.rim[(due % MOMENTS) as usize];
        let behind = std::mem::replace(first, slot + 1);
        spokes.set_links(slot, 0, behind);
        if let Some(behind) = behind.checked_sub(1) {
            spokes.set_links(behind, slot + 1, spokes.links(behind).1);
        }
        spokes.set_due(slot, due);
    }

    /// Takes `slot` out.
    pub(super) fn remove(&mut self, slot: u32, spokes: &impl Spokes) {
        let (before, behind) = spokes.links(slot);
        match before.checked_sub(1) {
            Some(before) => spokes.set_links(before, spokes.links(before).0, behind),
            None => self.rim[(spokes.due(slot) % MOMENTS) as usize] = behind,
        }
        if let Some(behind) = behind.checked_sub(1) {
            spokes.set_links(behind, before, spokes.links(behind).1);
        }
    }

    /// Whether a connection that is looked at in moment `due` has to be looked at sooner to expire
    /// `at` that time.
    pub(super) fn is_late(&self, due: u32, at: Duration) -> bool {
        wanted(at) < due
    }

    /// Takes out one connection that is to be looked at by `now`; `None` when there is no more.
    pub(super) fn take(&mut self, now: Duration, spokes: &impl Spokes) -> Option<u32> {
        let current = (now.as_millis() as u64 / MOMENT_MS) as u32;
        // After a pause longer than a turn every moment is looked at once; more would find nothing.
        if current.saturating_sub(self.now) >= MOMENTS {
            self.now = current - MOMENTS + 1;
        }
        while self.now <= current {
            if let Some(slot) = self.rim[(self.now % MOMENTS) as usize].checked_sub(1) {
                self.remove_first(slot, spokes);
                return Some(slot);
            }
            if self.now == current {
                break;
            }
            self.now += 1;
        }
        None
    }

    fn remove_first(&mut self, slot: u32, spokes: &impl Spokes) {
        let (_, behind) = spokes.links(slot);
        self.rim[(self.now % MOMENTS) as usize] = behind;
        if let Some(behind) = behind.checked_sub(1) {
            spokes.set_links(behind, 0, spokes.links(behind).1);
        }
    }
}

/// The moment in which something that expires `at` that time is to be looked at: the one after.
fn wanted(at: Duration) -> u32 {
    (at.as_millis() as u64 / MOMENT_MS) as u32 + 1
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Due, before, behind.
    struct Some64(RefCell<Vec<(u32, u32, u32)>>);

    impl Spokes for Some64 {
        fn due(&self, slot: u32) -> u32 {
            self.0.borrow()[slot as usize].0
        }

        fn set_due(&self, slot: u32, due: u32) {
            self.0.borrow_mut()[slot as usize].0 = due;
        }

        fn links(&self, slot: u32) -> (u32, u32) {
            let (_, before, behind) = self.0.borrow()[slot as usize];
            (before, behind)
        }

        fn set_links(&self, slot: u32, before: u32, behind: u32) {
            let known = &mut self.0.borrow_mut()[slot as usize];
            (known.1, known.2) = (before, behind);
        }
    }

    fn spokes(count: usize) -> Some64 {
        Some64(RefCell::new(vec![(0, 0, 0); count]))
    }

    fn take_all(wheel: &mut Wheel, now: Duration, spokes: &Some64) -> Vec<u32> {
        let mut taken: Vec<_> = std::iter::from_fn(|| wheel.take(now, spokes)).collect();
        taken.sort_unstable();
        taken
    }

    #[test]
    fn a_connection_comes_up_after_its_time_and_within_two_moments() {
        let (mut wheel, spokes) = (Wheel::new(), spokes(2));
        wheel.insert(1, Duration::from_secs(10), &spokes);
        assert_eq!(take_all(&mut wheel, Duration::from_millis(9_999), &spokes), [0; 0]);
        assert_eq!(take_all(&mut wheel, Duration::from_millis(10_500), &spokes), [1]);
        assert_eq!(take_all(&mut wheel, Duration::from_secs(1000), &spokes), [0; 0]);
    }

    #[test]
    fn a_time_beyond_the_wheel_comes_up_once_per_turn() {
        let (mut wheel, spokes) = (Wheel::new(), spokes(2));
        wheel.insert(1, Duration::from_secs(900), &spokes);
        assert_eq!(take_all(&mut wheel, Duration::from_secs(128), &spokes), [1]);
    }

    #[test]
    fn none_is_lost_when_nobody_looks_for_hours() {
        let (mut wheel, spokes) = (Wheel::new(), spokes(1000));
        for slot in 0..1000 {
            wheel.insert(slot, Duration::from_millis(u64::from(slot) * 100), &spokes);
        }
        let taken = take_all(&mut wheel, Duration::from_secs(36_000), &spokes);
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn who_is_taken_out_anywhere_in_a_moment_does_not_come_up() {
        for gone in 0..3 {
            let (mut wheel, spokes) = (Wheel::new(), spokes(3));
            (0..3).for_each(|slot| wheel.insert(slot, Duration::from_secs(5), &spokes));
            wheel.remove(gone, &spokes);
            let mut left = vec![0, 1, 2];
            left.retain(|slot| *slot != gone);
            assert_eq!(take_all(&mut wheel, Duration::from_secs(6), &spokes), left);
        }
    }
}

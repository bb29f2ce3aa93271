//! The lines of the table that `cargo xtask test nlb` prints at the end.

use std::time::{Duration, Instant};

/// What a case came to; times from the event on.
pub(crate) struct Row<'a> {
    pub(crate) case: &'a str,
    pub(crate) nodes: usize,
    /// Until another host has said that something has changed.
    pub(crate) noticed: Option<Duration>,
    /// Until the last new connection that went unanswered.
    pub(crate) served: Duration,
    /// From the first to the last new connection that went unanswered.
    pub(crate) gap: Duration,
    /// Of those under way that should have lived.
    pub(crate) broken: usize,
    pub(crate) twice: usize,
}

impl Row<'_> {
    /// The word `figure:` and the columns of the table; its heading is in xtask.
    pub(crate) fn print(&self) {
        let seconds = |time: Duration| format!("{:.2}", time.as_secs_f64());
        println!(
            "\nfigure: {:38} {:5} {:>8} {:>12} {:>6} {:>7} {:>14}",
            self.case,
            self.nodes,
            self.noticed.map_or_else(|| "-".to_owned(), seconds),
            seconds(self.served),
            seconds(self.gap),
            self.broken,
            self.twice
        );
    }
}

/// How long the last of these came after `start`, and how long they lasted, one `interval` for the
/// last included. Zero when there are none.
pub(crate) fn gap(moments: &[Instant], start: Instant, interval: Duration) -> (Duration, Duration) {
    match (moments.iter().min(), moments.iter().max()) {
        (Some(first), Some(last)) => {
            (last.saturating_duration_since(start) + interval, *last - *first + interval)
        }
        _ => (Duration::ZERO, Duration::ZERO),
    }
}

/// [`gap`], when more than one thing happened: each of these is laid to the last event before it, and
/// what lasted longest counts. What came before the first event is laid to that.
///
/// # Panics
/// Without an event.
pub(crate) fn longest_gap(
    moments: &[Instant],
    events: &[Instant],
    interval: Duration,
) -> (Duration, Duration) {
    let until = |number: usize| events.get(number + 1);
    let of = |number: usize| -> Vec<Instant> {
        let begun = |moment: &&Instant| number == 0 || **moment >= events[number];
        let ended = |moment: &&Instant| until(number).is_none_or(|next| *moment < next);
        moments.iter().filter(begun).filter(ended).copied().collect()
    };
    let gaps = events.iter().enumerate().map(|(number, event)| gap(&of(number), *event, interval));
    gaps.max_by_key(|&(_, gap)| gap).expect("something happened")
}

#[test]
fn quick_what_each_event_cost_is_its_own() {
    let start = Instant::now();
    let at = |milliseconds| start + Duration::from_millis(milliseconds);
    let interval = Duration::from_millis(10);
    let took = |served, gap| (Duration::from_millis(served), Duration::from_millis(gap));
    let moments = [at(100), at(150), at(6000)];
    assert_eq!(gap(&moments, start, interval), took(6010, 5910));
    assert_eq!(longest_gap(&moments, &[start], interval), took(6010, 5910));
    assert_eq!(longest_gap(&moments, &[start, at(5900)], interval), took(160, 60));
    assert_eq!(longest_gap(&moments, &[at(120), at(150)], interval), took(5860, 5860));
    assert_eq!(longest_gap(&[], &[start], interval), took(0, 0));
}

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

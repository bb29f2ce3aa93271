//! `dirctl drops`: why packets are not forwarded, how many, and how many of late.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use director::control::ClientError;
use director::control::api::VerdictCount;
use director::control::client::Client;
use serde_json::json;

use crate::clean::clean;
use crate::columns::{Side, columns};
use crate::outlet::{WARNINGS, paint, wrote};
use crate::paint::Paint;

/// Shows why packets are not forwarded, and how many
#[derive(Debug, Args)]
pub struct Drops {
    /// Show them again every second, with how many a second
    #[arg(long)]
    watch: bool,
    /// Reasons that no packet has met too, and what is forwarded
    #[arg(long, short)]
    all: bool,
    /// Print JSON: an array, with --watch one to a line
    #[arg(long)]
    json: bool,
}

/// Help below the options.
pub const HELP: &str = "\
Counts are of all workers since the director started. With --watch the column per second is of the
time since the last look; it ends with Ctrl-C, or when the reader leaves.

Examples:
  dirctl drops                          # what has happened
  dirctl drops --all                    # every reason there is, and what it means
  dirctl drops --watch                  # what happens now
  dirctl drops --json | jq -r '.[] | select(.verdict == \"dropped\") | \"\\(.packets) \\(.reason)\"'
  dirctl capture --drops no_route -w no_route.pcapng     # the packets themselves

Exit codes:
  0   nothing has been dropped
  1   packets have been dropped
  2   the director is not running
  3   the director cannot be asked, or has ended while it was watched
  64  wrong usage of this command";

/// How often `--watch` looks.
const PERIOD: Duration = Duration::from_secs(1);

/// `dirctl drops`; gives the exit code.
///
/// # Errors
/// When the director does not answer.
pub fn run(socket: &Path, words: &Drops) -> Result<u8, ClientError> {
    let mut client = Client::connect(socket)?;
    let mut before: Option<(Instant, Vec<VerdictCount>)> = None;
    loop {
        let counts = client.drops()?;
        let now = Instant::now();
        let rates = before.as_ref().map(|(then, before)| {
            Rates::between(before, &counts, now.duration_since(*then).as_secs_f64())
        });
        let text = match words.json {
            true => json(&counts, rates.as_ref(), words.all),
            false => text(&counts, rates.as_ref(), words.all, paint()),
        };
        let mut output = io::stdout();
        let separator = if words.watch && before.is_some() && !words.json { "\n" } else { "" };
        let written = write!(output, "{separator}{text}").and_then(|()| output.flush());
        if !wrote(written) || !words.watch {
            return Ok(if has_drops(&counts) { WARNINGS } else { 0 });
        }
        before = Some((now, counts));
        std::thread::sleep(PERIOD);
    }
}

fn has_drops(counts: &[VerdictCount]) -> bool {
    counts.iter().any(is_drop)
}

fn is_drop(count: &VerdictCount) -> bool {
    count.verdict == "dropped" && count.packets > 0
}

/// Packets per second by reason, since the last look.
#[derive(Debug, Default)]
pub struct Rates(HashMap<String, f64>);

impl Rates {
    /// Of two looks that lie `seconds` apart.
    pub fn between(before: &[VerdictCount], after: &[VerdictCount], seconds: f64) -> Rates {
        let then: HashMap<&str, u64> =
            before.iter().map(|it| (it.reason.as_str(), it.packets)).collect();
        let rate = |it: &VerdictCount| {
            let reason = &it.reason;
            // A director that has started anew counts from 0.
            let new = it.packets.saturating_sub(then.get(reason.as_str()).copied().unwrap_or(0));
            (reason.clone(), new as f64 / seconds.max(0.001))
        };
        Rates(after.iter().map(rate).collect())
    }

    fn of(&self, reason: &str) -> f64 {
        self.0.get(reason).copied().unwrap_or(0.0)
    }
}

/// Those that are to be shown, the most frequent first within what is done with them.
fn shown(counts: &[VerdictCount], all: bool) -> Vec<&VerdictCount> {
    let is_wanted = |it: &&VerdictCount| {
        all || (it.packets > 0 && !matches!(it.verdict.as_str(), "forwarded" | "sent"))
    };
    let mut shown: Vec<_> = counts.iter().filter(is_wanted).collect();
    shown.sort_by_key(|it| (place(&it.verdict), std::cmp::Reverse(it.packets)));
    shown
}

/// For people.
pub fn text(counts: &[VerdictCount], rates: Option<&Rates>, all: bool, paint: Paint) -> String {
    let shown = shown(counts, all);
    if shown.is_empty() {
        return "no packet has been dropped or passed to the kernel\n".to_owned();
    }
    let mut rows = vec![["packets", "a second", "", "reason", "meaning"].map(str::to_owned)];
    for VerdictCount { verdict, reason, meaning, packets } in &shown {
        let rate = rates.map_or("-".to_owned(), |rates| format!("{:.0}", rates.of(reason)));
        rows.push([packets.to_string(), rate, clean(verdict), clean(reason), clean(meaning)]);
    }
    let sides = [Side::Right, Side::Right, Side::Left, Side::Left, Side::Left];
    let mut text = String::new();
    for (place, line) in columns(sides, &rows).into_iter().enumerate() {
        let bad = place > 0 && is_drop(shown[place - 1]);
        text += &match (place, bad) {
            (0, _) => paint.heading(&line),
            (_, true) => paint.loss(&line),
            (_, false) => line,
        };
        text.push('\n');
    }
    text
}

/// For programs.
pub fn json(counts: &[VerdictCount], rates: Option<&Rates>, all: bool) -> String {
    let reasons: Vec<_> = shown(counts, all)
        .into_iter()
        .map(|it| {
            let mut object = json!({
                "verdict": it.verdict,
                "reason": it.reason,
                "meaning": it.meaning,
                "packets": it.packets,
            });
            if let Some(rates) = rates {
                object["per_second"] = json!(rates.of(&it.reason));
            }
            object
        })
        .collect();
    json!(reasons).to_string() + "\n"
}

/// Where a verdict stands among others.
fn place(verdict: &str) -> usize {
    let order = ["dropped", "passed", "", "forwarded", "sent"];
    order.iter().position(|it| *it == verdict).unwrap_or(order.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(verdict: &str, reason: &str, packets: u64) -> VerdictCount {
        let meaning = format!("It is {reason}.\u{7}");
        let (verdict, reason) = (verdict.to_owned(), reason.to_owned());
        VerdictCount { verdict, reason, meaning, packets }
    }

    fn counts() -> Vec<VerdictCount> {
        vec![
            count("forwarded", "sent_nat", 1000),
            count("passed", "passed_icmp", 70),
            count("dropped", "no_route", 3),
            count("dropped", "too_big", 50),
            count("dropped", "no_room", 0),
        ]
    }

    #[test]
    fn drops_come_first_the_most_frequent_before_others_and_zeros_only_when_asked_for() {
        let text = text(&counts(), None, false, Paint::default());
        let places: Vec<_> = ["too_big", "no_route", "passed_icmp"]
            .iter()
            .map(|it| text.find(it).unwrap())
            .collect();
        assert!(places.is_sorted(), "{text}");
        assert!(!text.contains("no_room") && !text.contains("sent_nat") && !text.contains('\u{7}'));
        let all = super::text(&counts(), None, true, Paint::default());
        assert!(all.contains("no_room") && all.contains("sent_nat"));
        assert_eq!(super::text(&[], None, false, Paint::default()).lines().count(), 1);
    }

    #[test]
    fn a_rate_is_of_the_time_since_the_last_look_and_never_negative() {
        let mut later = counts();
        later[2].packets = 23;
        later[3].packets = 10;
        let rates = Rates::between(&counts(), &later, 2.0);
        assert_eq!((rates.of("no_route"), rates.of("too_big")), (10.0, 0.0));
        let json = json(&later, Some(&rates), false);
        assert!(json.contains("\"per_second\":10.0"), "{json}");
    }
}

//! `dirctl top`: services, servers and traffic as they are now, again and again.
//!
//! [`snapshot`] what the director says, [`rates`] what that comes to per second, [`state`] and [`keys`]
//! what the operator has made of the view, [`rows`] which lines it has, [`view`] a frame of it, `screen`
//! the terminal. All but the first and the last are pure.

pub mod keys;
pub mod numbers;
pub mod rates;
pub mod rows;
mod screen;
pub mod snapshot;
pub mod state;
pub mod view;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::outlet::{USAGE, complain};
use snapshot::Snapshot;
use state::{Column, Top};

/// How wide a frame is that a script gets.
const WIDTH: usize = 120;

/// `dirctl top ...`
#[derive(Clone, Debug, clap::Args)]
pub struct Words {
    /// Seconds between two frames: 0.1 to 3600
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Print so many frames as plain text and end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: Option<u32>,
    /// Print one frame as plain text and end: the same as --batch 1
    #[arg(long, conflicts_with = "batch")]
    pub once: bool,
    /// Sort by this column
    #[arg(long, value_enum, default_value_t)]
    pub sort: Column,
    /// Only what has this in its name, address or state
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub filter: String,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.1..=3600.0).contains(&seconds) {
        return Err("seconds from 0.1 to 3600".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Shows the director that listens on `socket`; gives the exit code.
pub fn run(socket: &Path, words: &Words) -> u8 {
    let top = Top { column: words.sort, filter: words.filter.clone(), ..Top::default() };
    if let Some(frames) = words.batch.or(words.once.then_some(1)) {
        return print_frames(socket, words.interval, frames, top);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let _ = writeln!(
            io::stderr(),
            "dirctl: top needs a terminal\nfor a script: dirctl top --once, or dirctl status --json"
        );
        return USAGE;
    }
    screen::show(socket, words.interval, top)
}

fn print_frames(socket: &Path, interval: Duration, frames: u32, mut top: Top) -> u8 {
    let began = Instant::now();
    top.expanded = Some(true);
    let mut output = io::stdout();
    for frame in 0..frames {
        if frame > 0 {
            std::thread::sleep(interval);
            if output.write_all(b"\n").is_err() {
                return 0;
            }
        }
        match Snapshot::ask(socket, began.elapsed()) {
            Ok(snapshot) => top.take(Ok(snapshot)),
            Err(error) => return complain(&error),
        }
        let written = output.write_all(text(&top).as_bytes()).and_then(|()| output.flush());
        // A reader that has left wants no more.
        if written.is_err() {
            return 0;
        }
    }
    0
}

/// A frame without colour, as long as it needs to be.
pub fn text(top: &Top) -> String {
    let lines = view::lines(top, WIDTH, usize::MAX);
    let plain = lines.iter().map(|line| {
        let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
        text.trim_end().to_owned() + "\n"
    });
    plain.collect()
}

/// What `--help` says below the options.
pub const HELP: &str = "\
Services with their servers, what they carry per second, drops by reason, and packet ports; in mode
nlb the hosts of the cluster and their shares. Press ? for the keys. Rates are of the time between
two frames (of the first frame: the director's own averages). bps are bits per second; out is only
known where answers pass the director (nat).

States:
  up, drain, down   as `dirctl servers` says; `-` where nobody watches
  quiet             weight 0
  part              some servers of the service are down
  empty             a service without servers
  sorry             who takes connections when all others have failed
Weight 100>60 is one of 100 by which schedulers go as 60, because of health or feedback.

Examples:
  dirctl top                               # every second
  dirctl top -i 5 --sort cps               # every five, the busiest first
  dirctl top --once                        # a frame for a script or a report
  dirctl top --batch 60 --filter 10.0.0.11 # a minute of one server

Exit codes:
  0   ended with q, Ctrl-C or a signal; the frames are printed
  2   the director is not running (--once, --batch; the view waits for it)
  3   the director cannot be asked
  64  wrong usage of this command, or no terminal to show it on";

#[cfg(test)]
mod tests;

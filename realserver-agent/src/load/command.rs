//! The operator's command that prints the load.

use std::cell::RefCell;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::program;
use crate::protocol::FULL;

/// From one run to the next.
const PERIOD: Duration = Duration::from_secs(5);
/// How long it may run.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What it said last, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Latest(RefCell<(Option<u16>, String)>);

impl Latest {
    /// The load, when the last run told one, and what is wrong; empty when nothing is.
    pub fn get(&self) -> (Option<u16>, String) {
        self.0.borrow().clone()
    }
}

/// Runs it again and again, for ever; without one there is nothing to do.
pub async fn follow(command: Option<&[String]>, latest: &Latest) {
    let Some(command) = command else { return std::future::pending().await };
    let mut ticks = interval_at(Instant::now(), PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let said = ask(command, TIMEOUT).await;
        let new = match said {
            Ok(load) => (Some(load), String::new()),
            Err(trouble) => (None, trouble),
        };
        let before = latest.0.replace(new.clone());
        if before.1 != new.1 && !new.1.is_empty() {
            tracing::warn!(
                "the command for the load: {}; it does not count until it is right",
                new.1
            );
        }
    }
}

async fn ask(command: &[String], timeout: Duration) -> Result<u16, String> {
    let output = program::run(command, &[], timeout).await.map_err(|error| error.to_string())?;
    read(&output)
}

/// `0..=10000`, or `0%..=100%`.
fn read(output: &[u8]) -> Result<u16, String> {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    let load = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<u16>().ok().and_then(|it| it.checked_mul(100)),
        None => text.parse().ok(),
    };
    load.filter(|load| *load <= FULL).ok_or_else(|| {
        let start: String = text.chars().take(40).collect();
        format!("it printed {start:?}, and 0..=10000 or 0%..=100% is wanted")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_percentages_are_read_and_nothing_else() {
        for (output, load) in [("2500\n", 2500), (" 75%", 7500), ("0", 0), ("100 %", 10_000)] {
            assert_eq!(read(output.as_bytes()), Ok(load), "{output}");
        }
        for output in
            ["", "10001", "101%", "-1", "0.5", "70000", "66000%", "5 5", "load: 5", "\u{ff}"]
        {
            assert!(read(output.as_bytes()).is_err(), "{output}");
        }
        assert!(read(&[0xff; 4000]).unwrap_err().len() < 300);
    }

    #[tokio::test]
    async fn a_command_that_hangs_or_fails_gives_no_load() {
        let shell = |script: &str| ["/bin/sh", "-c", script].map(str::to_owned);
        let second = Duration::from_secs(5);
        assert_eq!(ask(&shell("echo 42"), second).await, Ok(42));
        assert!(ask(&shell("echo 42; exit 3"), second).await.unwrap_err().contains('3'));
        assert!(ask(&shell("sleep 100"), Duration::from_millis(50)).await.is_err());
    }
}

//! HAProxy's agent-check: one line of text (haproxy(1), `agent-check`).

use crate::protocol::{FULL, State};
use crate::standing::Standing;

/// The longest reason that is told, in bytes.
const LONGEST: usize = 200;

/// The line. `ready` takes back an earlier `drain`, which `up` would not; the weight is never 0 %,
/// which would be a drain: of servers that are all full, each still takes its share.
pub fn line(standing: &Standing) -> String {
    match standing.state() {
        (State::Up, _) => match standing.report().load {
            Some(load) => {
                let free = u32::from(FULL.saturating_sub(load)) * 100 / u32::from(FULL);
                format!("up ready {}%\n", free.max(1))
            }
            None => "up ready\n".to_owned(),
        },
        (State::Draining, _) => "drain\n".to_owned(),
        (State::Down, reason) => format!("down #{}\n", one_line(&reason)),
    }
}

fn one_line(reason: &str) -> String {
    let printable =
        reason.chars().map(|it| if it.is_ascii() && !it.is_control() { it } else { '?' });
    printable.take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Report;

    #[test]
    fn every_state_has_its_line() {
        let standing = Standing::default();
        assert_eq!(line(&standing), "up ready\n");
        for (load, text) in [(0, "100%"), (2500, "75%"), (9950, "1%"), (10_000, "1%")] {
            standing.set_report(Report { load: Some(load), ..Report::default() });
            assert_eq!(line(&standing), format!("up ready {text}\n"));
        }
        standing.drained.set(true);
        assert_eq!(line(&standing), "drain\n");
        standing.set_failures(vec!["exec: \n\u{7f}".repeat(1000)]);
        let down = line(&standing);
        assert!(down.starts_with("down #exec: ??exec") && down.len() < 220, "{down:?}");
        assert_eq!(down.matches('\n').count(), 1);
    }
}

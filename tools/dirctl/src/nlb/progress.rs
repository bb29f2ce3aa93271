//! A drain that is watched: one line that tells how many connections are left.

use std::io::{self, Write};
use std::time::Duration;

use director::control::nlb::views::QueryView;
use director::control::nlb::{NlbCommand, NlbReply, NlbRequest, NlbView};

use super::way::{NoAnswer, Way};
use crate::clean::duration;

/// How often is asked.
const PAUSE: Duration = Duration::from_millis(500);

/// Watches until no host of these drains any more; writes to a terminal. What became of them: where
/// they stand, and nothing more.
///
/// # Errors
/// When a host cannot be asked any more.
pub fn watch(
    way: &Way,
    hosts: Option<&str>,
    terminal: &mut impl Write,
) -> Result<NlbReply, NoAnswer> {
    let request = NlbRequest { command: NlbCommand::Query, hosts: hosts.map(str::to_owned) };
    loop {
        let mut reply = way.ask(&request)?;
        let line = line(&reply);
        // A terminal that is gone does not keep the drain from ending.
        let _ = write!(terminal, "\r\x1b[K{}", line.as_deref().unwrap_or_default());
        let _ = terminal.flush();
        if line.is_none() {
            for answer in &mut reply.answers {
                answer.view = None;
            }
            return Ok(reply);
        }
        std::thread::sleep(PAUSE);
    }
}

/// What is left of the drains, or `None` when there are none.
pub fn line(reply: &NlbReply) -> Option<String> {
    let drains: Vec<String> = reply
        .answers
        .iter()
        .filter_map(|answer| match answer.view.as_deref() {
            Some(NlbView::Query(QueryView { drain: Some(drain), .. })) => {
                let left = drain.left.map(|left| format!(", {} at most", duration(left)));
                Some(format!(
                    "host {}: {} of {} left{}",
                    answer.host,
                    drain.flows_left,
                    drain.flows_at_start,
                    left.unwrap_or_default()
                ))
            }
            _ => None,
        })
        .collect();
    (!drains.is_empty()).then(|| drains.join("; "))
}

/// Whether standard output is watched by a person.
pub fn is_watched() -> bool {
    use io::IsTerminal;
    io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use director::control::nlb::views::DrainView;
    use director::control::nlb::{NlbAnswer, NlbResult};

    use super::*;

    #[test]
    fn the_line_tells_what_is_left_and_is_gone_when_nobody_drains() {
        let answer = |host, drain| NlbAnswer {
            host,
            name: "web".to_owned(),
            state: "draining".to_owned(),
            result: NlbResult::Done,
            message: None,
            view: Some(Box::new(NlbView::Query(QueryView { drain, ..QueryView::default() }))),
        };
        let drain = |left| DrainView { since: 1.0, left, flows_at_start: 10, flows_left: 4 };
        let mut reply = NlbReply {
            answers: vec![
                answer(1, None),
                answer(2, Some(drain(Some(90.0)))),
                answer(3, Some(drain(None))),
            ],
            silent: vec![],
        };
        assert_eq!(
            line(&reply).unwrap(),
            "host 2: 4 of 10 left, 1 min 30 s at most; host 3: 4 of 10 left"
        );
        reply.answers.truncate(1);
        assert_eq!(line(&reply), None);
    }
}

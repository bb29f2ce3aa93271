//! The findings as a person reads them, 80 columns wide, and as a program does.

use serde::Serialize;

use super::finding::{Finding, Severity};
use crate::clean::{clean, count};
use crate::paint::Paint;

/// No line is longer, but for commands and long names.
const WIDTH: usize = 80;
/// Where the words of a finding begin.
const INDENT: usize = 9;

/// All that was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// `director` or `server`.
    pub side: &'static str,
    /// The worst first.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Puts the worst first; those of one severity stay in the order of the examination.
    pub fn new(side: &'static str, mut findings: Vec<Finding>) -> Report {
        findings.sort_by_key(|finding| finding.severity);
        Report { side, findings }
    }

    /// Whether somebody has to do something.
    pub fn is_good(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity > Severity::Warning)
    }

    /// As a person reads it; `verbose` with what is good, too.
    pub fn text(&self, verbose: bool, paint: Paint) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            if finding.severity < Severity::Ok {
                text.push_str(&at_length(finding, paint));
                text.push('\n');
            }
        }
        if verbose {
            for finding in self.findings.iter().filter(|it| it.severity == Severity::Ok) {
                let words = format!("{}: {}", finding.check.name(), clean(&finding.found));
                text.push_str(&format!("{:<INDENT$}{}\n", "ok", wrapped(&words)));
            }
            text.push('\n');
        }
        text + &self.summary(verbose, paint)
    }

    fn summary(&self, verbose: bool, paint: Paint) -> String {
        let of =
            |severity| self.findings.iter().filter(|it| it.severity == severity).count() as u64;
        let [faults, warnings, notes, good] = Severity::ALL.map(of);
        let parts = [(faults, "fault"), (warnings, "warning"), (notes, "note")];
        let parts = parts.into_iter().filter(|(number, _)| *number > 0);
        let mut parts: Vec<String> = parts.map(|(number, word)| count(number, word)).collect();
        if parts.is_empty() {
            parts.push("nothing wrong was found".to_owned());
        }
        let hint = if verbose || good == 0 { "" } else { " (--verbose shows it)" };
        let side = self.side;
        let line = format!("{side} side: {}; {good} good{hint}", parts.join(", "));
        let line = match (faults, warnings) {
            (0, 0) => line,
            (0, _) => paint.warning(&line),
            _ => paint.loss(&line),
        };
        line + "\n"
    }
}

/// A finding with its reason and its remedy.
fn at_length(finding: &Finding, paint: Paint) -> String {
    let name = finding.severity.name().to_uppercase();
    let padded = format!("{name:<INDENT$}");
    let head = match finding.severity {
        Severity::Fault => paint.loss(&padded),
        Severity::Warning => paint.warning(&padded),
        Severity::Note | Severity::Ok => padded,
    };
    let found = format!("{}: {}", finding.check.name(), clean(&finding.found));
    let blank = " ".repeat(INDENT);
    let mut text = format!("{head}{}\n{blank}{}\n", wrapped(&found), wrapped(finding.why));
    if !finding.remedy.is_empty() {
        let place = finding.on.as_ref().map(|host| format!(" on {}", clean(host)));
        text.push_str(&format!("{blank}remedy{}:\n", place.unwrap_or_default()));
        for command in &finding.remedy {
            // Commands are to be pasted: they stay on their line.
            text.push_str(&format!("{blank}    {}\n", paint.heading(&clean(command))));
        }
    }
    text
}

/// Words over as many lines as they need, all but the first indented.
fn wrapped(words: &str) -> String {
    let mut text = String::new();
    let mut column = INDENT;
    for (place, word) in words.split_whitespace().enumerate() {
        let length = word.chars().count();
        if place > 0 && column + 1 + length > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(INDENT));
            column = INDENT;
        } else if place > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Check;

    fn report() -> Report {
        Report::new(
            "director",
            vec![
                Finding::ok(Check::Kernel, "Linux 6.18"),
                Finding::warning(Check::Mtu, "too small"),
                Finding::fault(Check::VipElsewhere, "10.0.0.11 answers ARP for 192.0.2.10 on eth0")
                    .remedy("sysctl -w net.ipv4.conf.all.arp_ignore=1")
                    .on("10.0.0.11"),
            ],
        )
    }

    #[test]
    fn the_worst_comes_first_with_its_remedy_and_where_to_run_it() {
        let text = report().text(false, Paint::default());
        let wanted = "\
FAULT    vip-elsewhere: 10.0.0.11 answers ARP for 192.0.2.10 on eth0
         Who else answers for the VIP takes the clients from the director.
         remedy on 10.0.0.11:
             sysctl -w net.ipv4.conf.all.arp_ignore=1

WARNING  mtu: too small
         What does not fit the way to the server depends on ICMP that many
         networks drop: large transfers hang.

director side: 1 fault, 1 warning; 1 good (--verbose shows it)
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn what_is_good_is_shown_when_it_is_asked_for() {
        let text = report().text(true, Paint::default());
        assert!(text.contains("\nok       kernel: Linux 6.18\n"), "{text}");
        assert!(!report().is_good());
        let good = Report::new("server", vec![Finding::note(Check::Clock, "unknown")]);
        assert!(good.is_good(), "a note is nothing to act on");
        let warned = Report::new("server", vec![Finding::warning(Check::Mtu, "small")]);
        assert!(!warned.is_good());
    }

    #[test]
    fn text_from_outside_cannot_steer_the_terminal_and_lines_fit() {
        let long = format!("\x1b[2J {}", "word ".repeat(60));
        let report = Report::new("server", vec![Finding::fault(Check::ServerDown, long)]);
        let text = report.text(false, Paint::default());
        assert!(!text.contains('\x1b'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn programs_get_names_and_commands() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["side"], "director");
        let first = &json["findings"][0];
        assert_eq!(
            (&first["severity"], &first["check"]),
            (&"fault".into(), &"vip-elsewhere".into())
        );
        assert_eq!((&first["on"], &first["remedy"][0].is_string()), (&"10.0.0.11".into(), &true));
    }
}

//! The guest's console: commands in, one per line; their output and exit codes out.
//!
//! Knows pipes and markers. Must not know what the commands do.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Begins the line that ends an answer; `init.sh` writes it.
const MARK: u8 = 1;

/// A terminal's input buffer is 4096 bytes, and what does not fit is lost without a word.
const LONGEST_LINE: usize = 3000;

/// The guest's console sometimes sleeps through a line, a moment after the machine was idle, and wakes
/// up with the next one. An empty one does nothing: `init.sh` skips it.
const NUDGE: Duration = Duration::from_secs(2);

/// What a command in the guest said, standard output and error together, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its output, as text.
    pub output: String,
    /// Its exit code.
    pub code: i32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Console {
    input: ChildStdin,
    lines: Receiver<Vec<u8>>,
    number: u32,
}

impl Console {
    /// Takes the pipes of a guest that is starting. A thread reads until the guest ends.
    pub(super) fn new(input: ChildStdin, output: ChildStdout) -> Console {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        Console { input, lines, number: 0 }
    }

    /// Waits until the guest has come up; what it says is its start's answer.
    pub(super) fn started(&mut self, limit: Duration) -> Result<Answer> {
        self.answer(limit)
    }

    /// Runs one line of shell in the guest.
    ///
    /// # Errors
    /// When the guest does not answer within `limit`, or is gone.
    pub(super) fn run(&mut self, line: &str, limit: Duration) -> Result<Answer> {
        ensure!(!line.contains('\n'), "a command for the guest is one line: {line:?}");
        ensure!(line.len() <= LONGEST_LINE, "too long for the guest's console: {line:.60}...");
        self.number += 1;
        self.send(&format!("{} {line}\n", self.number))?;
        self.answer(limit).with_context(|| format!("the guest, asked: {line}"))
    }

    /// Writes to the console and waits for nothing.
    pub(super) fn send(&mut self, text: &str) -> Result<()> {
        self.input.write_all(text.as_bytes()).context("the guest's console is closed")?;
        self.input.flush().context("the guest's console is closed")
    }

    fn answer(&mut self, limit: Duration) -> Result<Answer> {
        let deadline = Instant::now() + limit;
        let mut output = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left.min(NUDGE)) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) if left > NUDGE => {
                    self.send("\n")?;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!("no answer within {limit:?}; so far: {}", text(&output));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("the guest is gone; it said: {}", text(&output));
                }
            };
            match ending(&line) {
                Some((number, code)) if number == self.number => {
                    // The marker brings a line end of its own, for output that has none.
                    output.pop();
                    return Ok(Answer { output: text(&output), code });
                }
                // The answer to a command that was given up.
                Some(_) => output.clear(),
                None => output.extend_from_slice(&line),
            }
        }
    }
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// Reads `\x01 NUMBER CODE`.
fn ending(line: &[u8]) -> Option<(u32, i32)> {
    let rest = line.strip_prefix(&[MARK])?;
    let mut words = str::from_utf8(rest).ok()?.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_marker_ends_an_answer() {
        assert_eq!(ending(b"\x01 7 255\n"), Some((7, 255)));
        assert_eq!(ending(b" 7 255\n"), None);
        assert_eq!(ending(b"\x01 seven\n"), None);
    }

    /// A shell that follows the same protocol, in the guest's place.
    #[test]
    fn output_without_a_line_end_and_exit_codes_come_back_whole() {
        let script = "printf '\\n\\001 0 0\\n'; while read -r n line; do \
                      [ -n \"$n\" ] || continue; (eval \"$line\") 2>&1; \
                      printf '\\n\\001 %s %s\\n' \"$n\" \"$?\"; done";
        let mut shell = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let mut console = Console::new(shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let limit = Duration::from_secs(10);
        assert_eq!(console.started(limit).unwrap(), Answer { output: String::new(), code: 0 });
        let answer = console.run("printf 'a\\nb'; exit 3", limit).unwrap();
        assert_eq!(answer, Answer { output: "a\nb".into(), code: 3 });
        let answer = console.run("echo to-error >&2", limit).unwrap();
        assert_eq!(answer, Answer { output: "to-error\n".into(), code: 0 });
        // Long enough to be nudged, which is no command.
        let answer = console.run("sleep 3; echo late", limit).unwrap();
        assert_eq!(answer, Answer { output: "late\n".into(), code: 0 });
        let answer = console.run("echo next", limit).unwrap();
        assert_eq!(answer, Answer { output: "next\n".into(), code: 0 });
        assert!(console.run("two\nlines", limit).is_err());
        drop(console);
        shell.wait().expect("it ends with its input");
    }
}

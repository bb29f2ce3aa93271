//! `-R`: one command per line of standard input, carried out in order. Not atomic, as ipvsadm's is not,
//! unless that is asked for.
//!
//! What is seen of it is as if each line were carried out before the next is read: messages in order,
//! listings that show what came before them, an exit code that is the last line's. But changes that
//! follow each other go to the director together, as many as have been read already; so a file of a
//! hundred thousand lines takes a few dozen requests, and a person who types them sees each at once.

use std::io::{BufRead, BufReader, Read, Write};

use director::control::api::OnRefusal;
use director::control::operations::Command;

use crate::commands::{Session, words as with_reason};
use crate::failure::Failure;
use crate::names::Names;
use crate::order::{Order, parse};
use crate::refusals::told;

/// Most changes in a request.
const MOST: usize = 4096;

/// Room for input: about as many lines as go into a request.
pub const BUFFER: usize = 256 * 1024;

/// Carries out the lines of `input`; complaints that do not end the run go to `complaints`. The
/// exit code is that of the last line.
///
/// # Errors
/// On the first usage error, which ends the run; before the first line when there is no director.
pub fn restore(
    session: &mut Session<'_>,
    input: &mut BufReader<impl Read>,
    complaints: &mut dyn Write,
) -> Result<u8, Failure> {
    session.director()?;
    let mut lines = Lines { input, line: Vec::new(), number: 0 };
    let mut waiting = Vec::new();
    let mut code = 0;
    while let Some(words) = lines.next()? {
        let order = match parse_line(&words, &session.names) {
            Some(Ok(Order::Change(command))) => {
                waiting.push(command);
                None
            }
            other => other,
        };
        if order.is_some() || waiting.len() >= MOST || !lines.more_at_hand() {
            code = carry_out(session, &mut waiting, complaints)?.unwrap_or(code);
        }
        let Some(order) = order else { continue };
        let outcome = match order {
            // Standard input inside standard input: refused rather than read twice.
            Ok(Order::Restore { .. }) => Err(Failure::try_help()),
            // As in ipvsadm these two are the end of everything.
            Ok(order @ (Order::Help | Order::Version)) => {
                return session.carry_out(order).map(|()| 0);
            }
            Ok(order) => session.carry_out(order),
            Err(failure) => Err(failure),
        };
        code = match outcome {
            Ok(()) => 0,
            Err(failure) if failure.ends_restore => return Err(failure),
            Err(failure) => {
                complain(complaints, &failure.message);
                failure.code
            }
        };
    }
    Ok(carry_out(session, &mut waiting, complaints)?.unwrap_or(code))
}

/// What a line asks for; `None` of a blank one.
fn parse_line(words: &[String], names: &Names) -> Option<Result<Order, Failure>> {
    (!words.is_empty()).then(|| parse(words, names))
}

/// Carries out the changes that wait, and gives the exit code of the last; `None` when there are none.
fn carry_out(
    session: &mut Session<'_>,
    waiting: &mut Vec<Command>,
    complaints: &mut dyn Write,
) -> Result<Option<u8>, Failure> {
    let Some(last) = waiting.len().checked_sub(1) else {
        return Ok(None);
    };
    let outcome = session.batch(waiting, OnRefusal::Continue)?;
    let mut code = 0;
    for refused in outcome.refused {
        let told = told(waiting.get(refused.index), &refused.refusal);
        let failure = Failure::change(with_reason(told, session.explain));
        complain(complaints, &failure.message);
        if refused.index == last {
            code = failure.code;
        }
    }
    waiting.clear();
    Ok(Some(code))
}

/// `-R --atomic`: all lines of `input` or none.
///
/// # Errors
/// When a line cannot be read, is no change, or is refused; nothing has been changed then, and the
/// message names the line.
pub fn restore_atomically(
    session: &mut Session<'_>,
    input: &mut BufReader<impl Read>,
) -> Result<u8, Failure> {
    session.director()?;
    let mut lines = Lines { input, line: Vec::new(), number: 0 };
    let (mut commands, mut numbers) = (Vec::new(), Vec::new());
    let at = |number: u64, message: &str| {
        format!("line {number}: {}\nNothing has been changed.", message.trim_end())
    };
    while let Some(words) = lines.next()? {
        let Some(order) = parse_line(&words, &session.names) else { continue };
        match order {
            Ok(Order::Change(command)) => {
                commands.push(command);
                numbers.push(lines.number);
            }
            Ok(_) => {
                let message = at(lines.number, "only changes can be all or nothing");
                return Err(Failure::usage(message));
            }
            Err(failure) => {
                let message = at(lines.number, &failure.message);
                return Err(Failure { message, ..failure });
            }
        }
    }
    let outcome = session.batch(&commands, OnRefusal::Undo)?;
    match outcome.refused.first() {
        None => Ok(0),
        Some(refused) => {
            let told = told(commands.get(refused.index), &refused.refusal);
            let number = numbers.get(refused.index).copied().unwrap_or_default();
            Err(Failure::change(at(number, &with_reason(told, session.explain))))
        }
    }
}

fn complain(complaints: &mut dyn Write, message: &str) {
    // Nobody can be told that nobody can be told.
    let _ = writeln!(complaints, "{message}");
}

/// Lines cut into words; a blank one has none.
struct Lines<'a, R> {
    input: &'a mut BufReader<R>,
    line: Vec<u8>,
    /// Of the line that was read last, counted from 1.
    number: u64,
}

impl<R: Read> Lines<'_, R> {
    fn next(&mut self) -> Result<Option<Vec<String>>, Failure> {
        self.line.clear();
        match self.input.read_until(b'\n', &mut self.line) {
            Ok(0) => return Ok(None),
            Ok(_) => self.number += 1,
            Err(error) => return Err(Failure::usage(format!("cannot read: {error}"))),
        }
        Ok(Some(words(&String::from_utf8_lossy(&self.line))))
    }

    /// Whether the next line can be had without waiting for it.
    fn more_at_hand(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }
}

/// A saved line may or may not start with the command's name; ipvsadm skips it wherever it stands.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().filter(|word| *word != "ipvsadm").map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_name_blanks_and_carriage_returns_are_no_words() {
        assert_eq!(words("ipvsadm  -A -t\t10.0.0.1:80\r\n"), ["-A", "-t", "10.0.0.1:80"]);
        assert_eq!(words("-C"), ["-C"]);
        assert!(words(" \r\n").is_empty());
        assert!(words("ipvsadm").is_empty());
    }

    #[test]
    fn line_that_has_not_come_yet_is_not_waited_for() {
        let mut input = BufReader::with_capacity(8, &b"-C\n\n-Z\n-C -C\n"[..]);
        let mut lines = Lines { input: &mut input, line: Vec::new(), number: 0 };
        let mut seen = Vec::new();
        while let Some(words) = lines.next().unwrap() {
            seen.push((words.len(), lines.number, lines.more_at_hand()));
        }
        assert_eq!(seen, [(1, 1, true), (0, 2, true), (1, 3, false), (2, 4, false)]);
    }
}

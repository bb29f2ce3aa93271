//! `-R`: one command per line of standard input, each carried out before the next is read. Not
//! atomic, as ipvsadm's is not.

use std::io::{BufRead, Write};

use crate::commands::Session;
use crate::failure::Failure;
use crate::order::{Order, parse};

/// Carries out the lines of `input`; complaints that do not end the run go to `complaints`. The
/// exit code is that of the last line.
///
/// # Errors
/// On the first usage error, which ends the run.
pub fn restore(
    session: &mut Session<'_>,
    input: &mut dyn BufRead,
    complaints: &mut dyn Write,
) -> Result<u8, Failure> {
    let mut code = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        match input.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(code),
            Ok(_) => {}
            Err(error) => return Err(Failure::usage(format!("cannot read: {error}"))),
        }
        let words = words(&String::from_utf8_lossy(&line));
        if words.is_empty() {
            continue;
        }
        let outcome = match parse(&words, &session.names) {
            // Standard input inside standard input: refused rather than read twice.
            Ok(Order::Restore) => Err(Failure::try_help()),
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
                // Nobody can be told that nobody can be told.
                let _ = writeln!(complaints, "{failure}");
                failure.code
            }
        };
    }
}

/// A saved line may or may not start with the command's name; ipvsadm skips it wherever it stands.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().filter(|word| *word != "ipvsadm").map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn command_name_blanks_and_carriage_returns_are_no_words() {
        assert_eq!(words("ipvsadm  -A -t\t10.0.0.1:80\r\n"), ["-A", "-t", "10.0.0.1:80"]);
        assert_eq!(words("-C"), ["-C"]);
        assert!(words(" \r\n").is_empty());
        assert!(words("ipvsadm").is_empty());
    }
}

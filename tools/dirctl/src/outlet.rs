//! What every subcommand says with: standard output, its colours, errors, and exit codes.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use director::cli::printable;
use director::control::ClientError;
use director::control::api::RefusalKind;

use crate::paint::Paint;

/// There is something to look into: a warning, a finding, a difference.
pub const WARNINGS: u8 = 1;
/// The director is not running.
pub const NOT_RUNNING: u8 = 2;
/// The director cannot be asked: no permission, no answer, another version; or the output cannot be
/// written.
pub const CANNOT_ASK: u8 = 3;
/// Wrong usage of the command.
pub const USAGE: u8 = 64;

/// How to write to standard output.
pub fn paint() -> Paint {
    let variable = |name| std::env::var(name).ok();
    let (no_color, term) = (variable("NO_COLOR"), variable("TERM"));
    Paint::new(io::stdout().is_terminal(), no_color.as_deref(), term.as_deref())
}

/// Whether something could not be written, and that is our concern.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Writes to standard output. What cannot be written is remembered until [`end`].
pub fn print(text: &str) {
    let mut output = io::stdout();
    wrote(output.write_all(text.as_bytes()).and_then(|()| output.flush()));
}

/// Takes note of how writing to standard output went; whether to go on. A reader that has left wants
/// no more, and is no concern of ours; a disk that is full is.
pub fn wrote(outcome: io::Result<()>) -> bool {
    let Err(error) = outcome else { return true };
    if error.kind() != io::ErrorKind::BrokenPipe && !FAILED.swap(true, Relaxed) {
        let _ = writeln!(io::stderr(), "dirctl: the output cannot be written: {error}");
    }
    false
}

/// The exit code of a command that would end with `code`: nobody shall take half an output for whole.
pub fn end(code: u8) -> ExitCode {
    ExitCode::from(if FAILED.load(Relaxed) { CANNOT_ASK } else { code })
}

/// JSON as a text of its own.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn pretty(socket: &Path, text: serde_json::Result<String>) -> Result<String, ClientError> {
    let text = text.map_err(io::Error::from);
    let text = text.map_err(|error| ClientError::System { path: socket.to_path_buf(), error })?;
    Ok(text + "\n")
}

/// Says why the director has not answered, and how that is remedied; gives the exit code for it.
pub fn complain(error: &ClientError) -> u8 {
    let remedy = error.remedy().map(|remedy| format!("{remedy}\n")).unwrap_or_default();
    let text = printable(&format!("dirctl: {error}\n{remedy}"));
    // `eprintln!` panics when standard error is closed; then nobody is there to be told.
    let _ = io::stderr().write_all(text.as_bytes());
    match error {
        ClientError::NotRunning { .. } => NOT_RUNNING,
        ClientError::Refused { refusal, .. } if refusal.error == RefusalKind::Invalid => USAGE,
        _ => CANNOT_ASK,
    }
}

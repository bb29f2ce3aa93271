//! `dirctl plan`, `apply`, `confirm` and `revert`: another configuration file for the running director.
//!
//! Reads the file here and sends its text: the director opens nothing of the client's.

mod arguments;
mod text;

pub(crate) use text::summary;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use director::control::ClientError;
use director::control::api::RefusalKind;
use director::control::client::Client;
use director::control::plan::{
    ApplyRequest, CONFIRM, LONGEST_TEXT, PlanRequest, Saved, Settled, Verdict,
};

pub use arguments::{Apply, PlanFile, Settle};

use crate::clean::clean;
use crate::outlet::{USAGE, WARNINGS, paint, pretty, print};

/// `dirctl plan FILE`
///
/// # Errors
/// When the director cannot be asked.
pub fn plan(socket: &Path, arguments: &PlanFile) -> Result<u8, ClientError> {
    let Some((file, text)) = read(&arguments.file) else { return Ok(USAGE) };
    let answer = Client::connect(socket)?.plan(&PlanRequest { file, text });
    let plan = match answer {
        Ok(plan) => plan,
        Err(error) => return refused(error),
    };
    print(&match arguments.json {
        true => pretty(socket, serde_json::to_string_pretty(&plan))?,
        false => text::plan(&plan, false, paint()),
    });
    Ok(if plan.is_empty() && plan.restart.is_empty() { 0 } else { WARNINGS })
}

/// `dirctl apply FILE`
///
/// # Errors
/// When the director cannot be asked.
pub fn apply(socket: &Path, arguments: &Apply) -> Result<u8, ClientError> {
    let Some((file, text)) = read(&arguments.file) else { return Ok(USAGE) };
    let Apply { confirm, save, ignore_restart, json, .. } = *arguments;
    let request = ApplyRequest { file, text, confirm, save, ignore_restart };
    let applied = match Client::connect(socket)?.follow(&request) {
        Ok(applied) => applied,
        Err(error) => return refused(error),
    };
    print(&match json {
        true => pretty(socket, serde_json::to_string_pretty(&applied))?,
        false => text::applied(&applied, paint()),
    });
    Ok(code(&applied.saved))
}

/// `dirctl confirm` and `dirctl revert`
///
/// # Errors
/// When the director cannot be asked.
pub fn settle(socket: &Path, verdict: Verdict, arguments: &Settle) -> Result<u8, ClientError> {
    let settled: Settled = match Client::connect(socket)?.settle(verdict) {
        Ok(settled) => settled,
        Err(error) => return refused(error),
    };
    print(&match arguments.json {
        true => pretty(socket, serde_json::to_string_pretty(&settled))?,
        false => text::settled(&settled, paint()),
    });
    Ok(code(&settled.saved))
}

fn code(saved: &Saved) -> u8 {
    match saved {
        Saved::Failed { .. } => WARNINGS,
        Saved::NotAsked | Saved::Later | Saved::Same { .. } | Saved::Done { .. } => 0,
    }
}

/// A refusal that has its own exit code here; any other error is the caller's.
fn refused(error: ClientError) -> Result<u8, ClientError> {
    let ClientError::Refused { refusal, .. } = &error else { return Err(error) };
    let code = match refusal.error {
        // As `director check` says it: each line is whole, and clean.
        RefusalKind::BadFile => {
            let lines = refusal.message.lines().map(|line| clean(line) + "\n");
            let _ = io::stderr().write_all(lines.collect::<String>().as_bytes());
            return Ok(USAGE);
        }
        RefusalKind::Busy | RefusalKind::NeedsRestart | RefusalKind::NothingWaits => WARNINGS,
        RefusalKind::Unsupported | RefusalKind::Internal | RefusalKind::BadRequest => {
            return Err(error);
        }
        // The table says of a service or server that it cannot be.
        _ => USAGE,
    };
    let _ = writeln!(io::stderr(), "dirctl: {}", clean(&refusal.message));
    Ok(code)
}

/// Name and text of a file; `None`, and why is said, if it cannot be had.
fn read(path: &PathBuf) -> Option<(String, String)> {
    let name = path.display().to_string();
    let mut text = String::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(LONGEST_TEXT as u64 + 1).read_to_string(&mut text));
    let problem = match read {
        Ok(bytes) if bytes > LONGEST_TEXT => format!(
            "it is longer than {} MiB: copy it over the director's file and reload (SIGHUP)",
            LONGEST_TEXT >> 20
        ),
        Ok(_) => return Some((name, text)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            "it is not UTF-8 text: save it as such".to_owned()
        }
        Err(error) => format!("{error}: check the path and that you may read it"),
    };
    let name = clean(&name);
    let _ = writeln!(io::stderr(), "dirctl: cannot read the configuration file {name}: {problem}");
    None
}

/// `60s`, `5m`, `1h`, or a number of seconds.
fn time(word: &str) -> Result<u32, String> {
    let seconds = crate::nlb::arguments::time(word).ok().and_then(|it| u32::try_from(it).ok());
    let wanted = seconds.filter(|seconds| CONFIRM.contains(seconds));
    wanted.ok_or_else(|| "write 1s to 24h: 60s, 5m, 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_the_director_would_refuse_is_wrong_usage() {
        assert_eq!((time("60s"), time("5m"), time("90")), (Ok(60), Ok(300), Ok(90)));
        assert_eq!(time("24h"), Ok(86_400));
        for wrong in ["", "0", "25h", "-1s", "1.5s", "99999999999h", "5 m", "1d"] {
            assert!(time(wrong).is_err(), "{wrong:?}");
        }
    }
}

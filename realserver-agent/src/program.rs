//! Runs a program of the operator's, bounded: in time, in what is kept of its output, and in what
//! it leaves behind.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// What is kept of its output, in bytes; more is read and thrown away.
pub const KEPT: usize = 4096;
/// How long its output is read on when it has ended and children of it hold the pipe.
const AFTER: Duration = Duration::from_millis(50);

/// Why it gives nothing that counts.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It cannot be started.
    #[error("cannot run {program}: {source}")]
    Start {
        /// Its path.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It did not end.
    #[error("it did not end within {0:?}, and has been killed")]
    Late(Duration),
    /// It ended as one that failed.
    #[error("{status}{}", said(output))]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The start of what it printed.
        output: Vec<u8>,
    },
    /// The system said no.
    #[error("{0}")]
    System(#[from] io::Error),
}

fn said(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => {
            format!(": {}", line.chars().take(100).collect::<String>())
        }
        _ => String::new(),
    }
}

/// Kills the whole group of processes when it goes, however that comes about.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        // That there is nobody left is as it should be.
        let _ = self.0.map(|group| killpg(group, Signal::SIGKILL));
    }
}

/// Runs it with these variables in addition to the agent's environment, without input, and gives the
/// first [`KEPT`] bytes that it prints on its standard output; what it prints as errors goes nowhere.
///
/// It has a process group of its own, which is killed at the end: what it started does not outlive
/// it. When the future is dropped, all of it is killed as well.
///
/// # Errors
/// When it cannot be started, does not end in time, or does not end with 0.
pub async fn run(
    command: &[String],
    variables: &[(&str, String)],
    limit: Duration,
) -> Result<Vec<u8>, ProgramError> {
    let program = command.first().cloned().unwrap_or_default();
    let mut child = Command::new(&program)
        .args(command.iter().skip(1))
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| ProgramError::Start { program, source })?;
    let group = Group(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw));
    let mut output = Vec::new();
    match timeout(limit, finish(&mut child, &mut output)).await {
        Ok(status) => {
            let status = status?;
            drop(group);
            match status.success() {
                true => Ok(output),
                false => Err(ProgramError::Failed { status, output }),
            }
        }
        Err(_) => {
            drop(group);
            // It is dead; this takes it out of the table of processes.
            child.wait().await?;
            Err(ProgramError::Late(limit))
        }
    }
}

async fn finish(child: &mut Child, output: &mut Vec<u8>) -> io::Result<ExitStatus> {
    let Some(mut pipe) = child.stdout.take() else { return child.wait().await };
    let read = drain(&mut pipe, output);
    tokio::pin!(read);
    tokio::select! {
        result = &mut read => {
            result?;
            return child.wait().await;
        }
        status = child.wait() => {
            let status = status?;
            if let Ok(result) = timeout(AFTER, read).await {
                result?;
            }
            Ok(status)
        }
    }
}

async fn drain(pipe: &mut (impl AsyncRead + Unpin), output: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; KEPT];
    loop {
        let length = pipe.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let room = KEPT - output.len();
        output.extend_from_slice(&buffer[..length.min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> [String; 3] {
        ["/bin/sh", "-c", script].map(str::to_owned)
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn megabytes_are_read_and_four_kilobytes_are_kept() {
        let output = run(&shell("head -c 5000000 /dev/zero; echo end"), &[], LONG).await.unwrap();
        assert_eq!(output.len(), KEPT);
    }

    #[tokio::test]
    async fn what_hangs_is_killed_with_all_that_it_started() {
        let file = std::env::temp_dir().join(format!("agent-program-{}", std::process::id()));
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let command = shell(&script);
        let ended = timeout(LONG, run(&command, &[], Duration::from_millis(500))).await;
        let error = ended.expect("it does not end").unwrap_err();
        assert!(matches!(error, ProgramError::Late(_)), "{error}");
        let grandchild = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        // Orphans are reaped by somebody else: until then they are there, as zombies.
        let stat = format!("/proc/{}/stat", grandchild.trim());
        let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z"));
        let gone = async {
            while !is_gone() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(timeout(LONG, gone).await.is_ok(), "{} is still there", grandchild.trim());
    }

    #[tokio::test]
    async fn a_child_that_holds_the_pipe_does_not_hold_us() {
        let start = std::time::Instant::now();
        let output = run(&shell("sleep 1000 & echo done"), &[], LONG).await.unwrap();
        assert_eq!(output, b"done\n");
        assert!(start.elapsed() < LONG / 2);
    }

    #[tokio::test]
    async fn failures_are_told_with_what_it_printed() {
        let error = run(&shell("echo no database; exit 7"), &[], LONG).await.unwrap_err();
        assert_eq!(error.to_string(), "exit status: 7: no database");
        let error = run(&["/no/such".to_owned()], &[], LONG).await.unwrap_err();
        assert!(error.to_string().starts_with("cannot run /no/such: "), "{error}");
        let script = "test \"$WHO\" = me";
        assert!(run(&shell(script), &[("WHO", "me".to_owned())], LONG).await.is_ok());
    }
}

//! Processes inside a host: started, watched, and stopped by their own pid.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use seccompiler::BpfProgram;

use super::Host;

/// How long a process may take to end after SIGTERM, before SIGKILL.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often a waiting loop looks.
const INTERVAL: Duration = Duration::from_millis(5);

static NUMBER: AtomicU32 = AtomicU32::new(1);

/// A program to start inside a host, like [`std::process::Command`].
#[derive(Debug)]
pub struct Command {
    host: Host,
    inner: std::process::Command,
    piped: bool,
    filter: Option<BpfProgram>,
}

impl Command {
    pub(super) fn new(host: Host, program: &OsStr) -> Command {
        Command { host, inner: std::process::Command::new(program), piped: false, filter: None }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Command {
        self.inner.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        self.inner.args(args);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Command {
        self.inner.env(key, value);
        self
    }

    /// Sets the folder the program starts in.
    #[must_use]
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Command {
        self.inner.current_dir(folder);
        self
    }

    /// Connects standard input and output to pipes ([`Process::take_pipes`]), for a program one
    /// talks with. Otherwise input is empty and output goes to the log.
    #[must_use]
    pub fn piped(mut self) -> Command {
        self.piped = true;
        self
    }

    /// Puts the program and all that it starts under a filter of system calls.
    #[must_use]
    pub fn filtered(mut self, filter: Option<BpfProgram>) -> Command {
        self.filter = filter;
        self
    }

    /// Starts the program. The lab stops it at the latest when it is dropped; the returned handle
    /// may be dropped at any time.
    ///
    /// The program leads a process group of its own, so that a Ctrl-C in the terminal reaches the
    /// lab first, which then stops its processes in order.
    ///
    /// # Errors
    /// When there is no such program or the lab has been torn down.
    pub fn spawn(self) -> Result<Process> {
        self.start(false)
    }

    /// Runs the program to its end. Standard error goes to the log as well.
    ///
    /// # Errors
    /// As for [`spawn`](Command::spawn), or when it takes longer than `limit` (it is stopped then).
    pub fn output(self, limit: Duration) -> Result<Output> {
        let process = self.start(true)?;
        let Some(status) = process.wait(limit)? else {
            process.stop()?;
            bail!("{} did not end within {limit:?}:\n{}", process.title(), process.log());
        };
        let running = &process.running;
        let output = running.output.as_deref().map_or(Ok(Vec::new()), fs::read);
        Ok(Output {
            status,
            stdout: output.context("read the output")?,
            stderr: fs::read(&running.log).context("read the log")?,
        })
    }

    fn start(self, capture: bool) -> Result<Process> {
        use std::os::unix::process::CommandExt;
        let Command { host, mut inner, piped, filter } = self;
        let program = Path::new(inner.get_program());
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
        let title = format!("{name} on {}", host.name());
        let lab = host.lab().clone();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = lab.logs.join(format!("{number:03}-{}-{name}.log", host.name()));
        let create =
            |path: &Path| File::create(path).with_context(|| format!("create {}", path.display()));
        let errors = create(&log)?;
        let output = capture.then(|| log.with_extension("out"));
        inner.stdin(if piped { Stdio::piped() } else { Stdio::null() });
        inner.stdout(match &output {
            Some(path) => create(path)?.into(),
            None if piped => Stdio::piped(),
            None => Stdio::from(errors.try_clone().context("share the log")?),
        });
        inner.stderr(errors).process_group(0);

        // Locked while starting: a tear-down either sees this process or has been seen by us.
        let mut state = lab.lock();
        ensure!(state.record.is_some(), "lab {} has been torn down", lab.name);
        let start = || {
            // Of the thread, which ends with this, and of what it starts.
            if let Some(filter) = &filter {
                seccompiler::apply_filter(filter)?;
            }
            Ok(inner.spawn()?)
        };
        let child: Result<Child> = host.run(start)?;
        let mut child = child.with_context(|| format!("start {title}"))?;
        let id = child.id();
        let pipes = child.stdin.take().zip(child.stdout.take());
        let running = Arc::new(Running { title, log, output, id, child: Mutex::new(child) });
        state.processes.push(running.clone());
        if let Some(record) = &state.record {
            record.child(id)?;
        }
        Ok(Process { running, pipes })
    }
}

/// A process of the lab. Dropping this handle does not stop it.
#[derive(Debug)]
pub struct Process {
    running: Arc<Running>,
    pipes: Option<(ChildStdin, ChildStdout)>,
}

impl Process {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.running.id
    }

    /// "program on host", for messages.
    pub fn title(&self) -> &str {
        &self.running.title
    }

    /// What it has written so far to standard output and error (to standard error only, if it was
    /// started [`piped`](Command::piped)).
    pub fn log(&self) -> String {
        self.running.read_log()
    }

    /// Standard input and output of a [`piped`](Command::piped) process; `None` the second time.
    pub fn take_pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.pipes.take()
    }

    /// Whether it has not ended yet.
    ///
    /// # Errors
    /// When the kernel does not answer for it.
    pub fn is_running(&self) -> Result<bool> {
        Ok(self.running.status()?.is_none())
    }

    /// Waits for its end, at most `limit`; `None` when it is still running then.
    ///
    /// # Errors
    /// When the kernel does not answer for it.
    pub fn wait(&self, limit: Duration) -> Result<Option<ExitStatus>> {
        self.running.wait(Instant::now() + limit)
    }

    /// Waits until the log contains `text`.
    ///
    /// # Errors
    /// When it has ended before, or `limit` has passed; the error shows the log.
    pub fn wait_for_log(&self, text: &str, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            // Status first: what it wrote before it ended is in the log.
            let status = self.running.status()?;
            if self.log().contains(text) {
                return Ok(());
            }
            if let Some(status) = status {
                bail!("{} ended ({status}) without {text:?}:\n{}", self.title(), self.log());
            }
            if Instant::now() >= deadline {
                bail!("{}: no {text:?} within {limit:?}:\n{}", self.title(), self.log());
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// Sends it a signal; nothing happens when it has ended.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.running.signal(signal)
    }

    /// SIGTERM, and SIGKILL when it has not ended 3 s later. Returns how it ended.
    ///
    /// # Errors
    /// When the kernel does not answer for it.
    pub fn stop(&self) -> Result<ExitStatus> {
        self.running.signal(Signal::SIGTERM)?;
        self.running.finish(Instant::now() + PATIENCE)
    }
}

/// A process as the lab holds it.
#[derive(Debug)]
pub(super) struct Running {
    title: String,
    id: u32,
    log: PathBuf,
    output: Option<PathBuf>,
    child: Mutex<Child>,
}

impl Running {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.id.cast_signed())
    }

    fn status(&self) -> Result<Option<ExitStatus>> {
        self.child().try_wait().with_context(|| format!("wait for {}", self.title))
    }

    fn wait(&self, deadline: Instant) -> Result<Option<ExitStatus>> {
        loop {
            match self.status()? {
                None if Instant::now() < deadline => std::thread::sleep(INTERVAL),
                answer => return Ok(answer),
            }
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        // While we hold the lock nobody reaps it, so its number is still its own.
        let mut child = self.child();
        if child.try_wait()?.is_none() {
            kill(self.pid(), signal).with_context(|| format!("signal {}", self.title))?;
        }
        Ok(())
    }

    /// Waits until `deadline`, then kills it and what it started (its process group).
    fn finish(&self, deadline: Instant) -> Result<ExitStatus> {
        if let Some(status) = self.wait(deadline)? {
            return Ok(status);
        }
        let mut child = self.child();
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let _ = killpg(self.pid(), Signal::SIGKILL);
        child.wait().with_context(|| format!("wait for {}", self.title))
    }

    fn read_log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

/// Stops all, the newest first, with one patience for all of them together.
pub(super) fn stop_all(processes: &[Arc<Running>]) {
    for process in processes.iter().rev() {
        let _ = process.signal(Signal::SIGTERM);
    }
    let deadline = Instant::now() + PATIENCE;
    for process in processes.iter().rev() {
        // Runs in Drop: an error has nowhere to go, and the rest must be stopped too.
        let _ = process.finish(deadline);
    }
}

/// Prints the logs, for the reader of a failed test.
pub(super) fn print_logs(lab: &str, processes: &[Arc<Running>]) {
    for process in processes {
        let log = process.read_log();
        if !log.trim().is_empty() {
            eprintln!("--- lab {lab}: {}", process.title);
            eprintln!("{}", log.trim_end());
        }
    }
}

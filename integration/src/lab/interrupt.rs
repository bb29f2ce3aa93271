//! Ctrl-C and SIGTERM tear down the labs of this process before it ends.

use std::sync::{Arc, Mutex, Once, PoisonError};

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::Inner;

/// The labs of this process that are alive.
static LABS: Mutex<Vec<Arc<Inner>>> = Mutex::new(Vec::new());

pub(super) fn register(lab: &Arc<Inner>) {
    labs().push(lab.clone());
}

pub(super) fn forget(lab: &Inner) {
    labs().retain(|other| !std::ptr::eq(&raw const **other, lab));
}

fn labs() -> std::sync::MutexGuard<'static, Vec<Arc<Inner>>> {
    LABS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread that waits for the signals, once per process. When this returns the signals
/// are ours: from then on none of them ends the process without a tear-down.
pub(super) fn watch() -> Result<()> {
    static START: Once = Once::new();
    let mut started = Ok(());
    START.call_once(|| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || wait_for_signal(&ready));
        started = is_ready.recv().unwrap_or(Ok(()));
    });
    started.context("watch for SIGINT and SIGTERM")
}

fn wait_for_signal(ready: &std::sync::mpsc::Sender<std::io::Result<()>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let received = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            let _ = ready.send(Ok(()));
            Ok(tokio::select! {
                _ = interrupt.recv() => Signal::SIGINT,
                _ = terminate.recv() => Signal::SIGTERM,
            })
        })
    });
    match received {
        Ok(signal) => {
            // Not under the lock: each tear-down takes its lab off the list.
            let alive = labs().clone();
            for lab in alive {
                lab.tear_down(false);
            }
            std::process::exit(128 + signal as i32);
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    }
}

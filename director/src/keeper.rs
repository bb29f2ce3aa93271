//! A thread that has the memory of new connections at hand before a worker needs it: to get a huge page
//! takes the kernel longer than a packet should have to wait.
//!
//! It sleeps until the table asks for it, once in some ten thousand new connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use crate::dispatch::Shared;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Keeper {
    thread: Option<JoinHandle<()>>,
    over: Arc<AtomicBool>,
}

impl Keeper {
    /// Starts it for the connections of `shared`, which have no other. `begin` is done first by the thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        shared: &Arc<Shared>,
        begin: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Keeper> {
        let over = Arc::new(AtomicBool::new(false));
        let (connections, end) = (shared.clone(), over.clone());
        let builder = std::thread::Builder::new().name("memory".to_owned());
        let thread = builder.spawn(move || {
            begin();
            while !end.load(Relaxed) {
                connections.connections.prepare();
                std::thread::park();
            }
        })?;
        let sleeper = thread.thread().clone();
        shared.connections.on_growth(Box::new(move || sleeper.unpark()));
        Ok(Keeper { thread: Some(thread), over })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

//! When a check must be over.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::health::outcome::Outcome;

/// A moment that all steps of a check share, so that no server can stretch them one by one.
#[derive(Clone, Copy, Debug)]
pub(in crate::health) struct Deadline(Instant);

impl Deadline {
    /// So long from now.
    pub(in crate::health) fn after(timeout: Duration) -> Deadline {
        Deadline(Instant::now() + timeout)
    }

    /// Does one step of a check.
    ///
    /// # Errors
    /// The server has failed when the deadline comes first; `step` says at what.
    pub(in crate::health) async fn limit<T>(
        self,
        step: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, Outcome> {
        tokio::time::timeout_at(self.0, work)
            .await
            .map_err(|_| Outcome::Failed(format!("{step}: timed out")))
    }

    /// Waits for what need not come; `None` when the deadline comes first.
    pub(in crate::health) async fn wait<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(self.0, work).await.ok()
    }
}

//! One task for each check of each server: waits, has the check made, tells what came of it.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::super::chance::Dice;
use super::super::outcome::Outcome;
use super::super::plan::Check;
use super::{Inner, Task, together};
use crate::control::api::{ServerSpec, ServiceKey};

/// Checks that are due within so long begin together: it saves waking up for each.
const BEAT: Duration = Duration::from_millis(10);
/// How long after its timeout a check is broken off that does not end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// The first checks are made within the interval or so long, not all at once.
const SPREAD: Duration = Duration::from_secs(5);

/// A check under way.
pub type Probing<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Who makes checks.
pub trait Prober: Send + Sync {
    /// Makes one check of one server, which is over when `check.timeout` is.
    fn probe<'a>(
        &'a self,
        check: &'a Check,
        service: &'a ServiceKey,
        server: &'a ServerSpec,
    ) -> Probing<'a>;
}

/// Begins to check a server.
pub(super) fn begin(
    inner: Arc<Inner>,
    service: ServiceKey,
    server: SocketAddr,
    check: Arc<Check>,
) -> Task {
    Task(tokio::spawn(run(inner, service, server, check)))
}

/// Checks until the check is wanted no more. One that takes longer than the interval has the next
/// ones skipped: they never pile up.
async fn run(inner: Arc<Inner>, service: ServiceKey, server: SocketAddr, check: Arc<Check>) {
    let mut dice = Dice::default();
    let mut next = Instant::now() + dice.below(check.interval.min(SPREAD));
    loop {
        sleep_until(inner.epoch + together(next - inner.epoch, BEAT)).await;
        let Some(spec) = inner.spec(service, server) else { return };
        // Never closed.
        let Ok(permit) = inner.permits.acquire().await else { return };
        let start = Instant::now();
        let probing = inner.prober.probe(&check, &service, &spec);
        let outcome = timeout(check.timeout + GRACE, probing).await.unwrap_or_else(|_| {
            Outcome::Unable("the check does not end, and was broken off".to_owned())
        });
        drop(permit);
        let took = start.elapsed();
        if !inner.checked((service, server), &check, &outcome, took) {
            return;
        }
        next = (start + dice.vary(check.interval, check.jitter.into())).max(Instant::now());
    }
}

impl Inner {
    fn spec(&self, service: ServiceKey, server: SocketAddr) -> Option<ServerSpec> {
        let state = self.lock();
        Some(state.services.get(&service)?.members.get(&server)?.spec.clone())
    }
}

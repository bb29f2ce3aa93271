//! The real checks, as the engine has them made.

use std::sync::Arc;

use super::super::checks::{self, Target};
use super::super::path::Path;
use super::super::plan::Check;
use super::runner::{Prober, Probing};
use crate::control::api::{ServerSpec, ServiceKey};

/// Makes checks over the director's own sockets.
#[derive(Debug, Default)]
pub struct Checks {
    /// The way of those that go to the VIP; without one they cannot be made.
    pub path: Option<Arc<Path>>,
}

impl Prober for Checks {
    fn probe<'a>(
        &'a self,
        check: &'a Check,
        service: &'a ServiceKey,
        server: &'a ServerSpec,
    ) -> Probing<'a> {
        let target = Target { service: *service, server: server.clone(), path: self.path.clone() };
        Box::pin(async move { checks::run(check, &target).await })
    }
}

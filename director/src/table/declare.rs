//! The configuration file meets the running table: only what differs between the file as it was
//! and as it is now is changed (`plan/steps.rs`), as far as it can be. The lock of the table is
//! held all the way: nobody sees half a reload, and no command comes in between.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::{Table, check, marks};
use crate::config::DeclaredService;
use crate::control::api::{Refusal, RefusalKind, ServiceKey};
use crate::fwmark::Rule;
use crate::plan::steps::steps;

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Commands carried out.
    pub made: usize,
    /// What could not be done, and why: service, refusal.
    pub refused: Vec<(ServiceKey, Refusal)>,
}

/// What of a file can never be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which service; `None` for the rules that set marks.
    pub service: Option<ServiceKey>,
    /// Why.
    pub refusal: Refusal,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = self.service {
            write!(f, "service {key}: ")?;
        }
        f.write_str(&self.refusal.message)
    }
}

impl Table {
    /// Makes the table follow the file's services and rules for marks; published as one change.
    ///
    /// # Errors
    /// When a service, server or rule of the file can never be accepted; nothing has changed then.
    pub fn declare(
        &self,
        services: &[DeclaredService],
        marks: &[Rule],
        now: Duration,
    ) -> Result<Changes, Refused> {
        check(services, marks).map_err(|refused| *refused)?;
        let mut state = self.lock();
        let before = std::mem::take(&mut state.declared);
        let after: HashMap<_, _> =
            services.iter().map(|declared| (declared.service.key, declared.clone())).collect();
        let mut changes = Changes::default();
        let steps = steps(&before, services, &*state);
        self.carry_out(&mut state, steps, now, |key, answer| match answer {
            Ok(()) => changes.made += 1,
            // Its service was refused, which has been noted.
            Err(refusal) if refusal.error == RefusalKind::NoSuchService => {}
            Err(refusal) => changes.refused.push((key, refusal)),
        });
        for declared in services {
            let (key, fallback) = (&declared.service.key, declared.fallback.as_ref());
            changes.made += usize::from(self.declare_fallback(&mut state, key, fallback, now));
        }
        if state.declared_marks != marks {
            state.declared_marks = marks.to_vec();
            state.set_marks(marks.to_vec());
            changes.made += 1;
        }
        state.declared = after;
        self.publish(&mut state);
        Ok(changes)
    }
}

/// Whether services, servers and rules of a file could be, each by itself.
pub(super) fn check(services: &[DeclaredService], marks: &[Rule]) -> Result<(), Box<Refused>> {
    let fail = |service, refusal| Box::new(Refused { service, refusal });
    marks::check(marks).map_err(|refusal| fail(None, refusal))?;
    for declared in services {
        let key = declared.service.key;
        let fail = |refusal| fail(Some(key), refusal);
        check::service(&declared.service).map_err(fail)?;
        check::scheduler(&declared.service.scheduler).map_err(fail)?;
        for server in declared.servers.iter().chain(&declared.fallback) {
            check::server(&key, server).map_err(fail)?;
            check::server_address(server.address.ip()).map_err(fail)?;
        }
    }
    Ok(())
}

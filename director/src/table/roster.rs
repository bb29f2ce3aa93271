//! Services by name, and in the order of their addition.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::check::refuse;
use crate::control::api::{Refusal, RefusalKind, ServiceKey};
use crate::dispatch::service::Service;

/// See the module.
#[derive(Default)]
pub(super) struct Roster {
    /// By a number that the next one has one higher.
    services: BTreeMap<u64, Arc<Service>>,
    numbers: HashMap<ServiceKey, u64>,
    next: u64,
}

impl Roster {
    /// The service of a name.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn find(&self, key: &ServiceKey) -> Result<&Arc<Service>, Refusal> {
        let service = self.numbers.get(key).and_then(|number| self.services.get(number));
        service.ok_or_else(no_such_service)
    }

    /// Adds a service at the end, in place of one of its name.
    pub(super) fn push(&mut self, service: Arc<Service>) {
        if let Some(number) = self.numbers.insert(service.key, self.next) {
            self.services.remove(&number);
        }
        self.services.insert(self.next, service);
        self.next += 1;
    }

    /// Takes a service out.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(super) fn remove(&mut self, key: &ServiceKey) -> Result<Arc<Service>, Refusal> {
        let number = self.numbers.remove(key);
        let service = number.and_then(|number| self.services.remove(&number));
        service.ok_or_else(no_such_service)
    }

    /// Those that `order` names come first, in that order; the others after them, as they are.
    pub(super) fn reorder(&mut self, order: &[ServiceKey]) {
        let mut services = std::mem::take(&mut self.services);
        let numbers = std::mem::take(&mut self.numbers);
        self.next = 0;
        for number in order.iter().filter_map(|key| numbers.get(key)) {
            services.remove(number).into_iter().for_each(|service| self.push(service));
        }
        services.into_values().for_each(|service| self.push(service));
    }

    /// All of them, the first to be added first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Service>> {
        self.services.values()
    }

    pub(super) fn len(&self) -> usize {
        self.services.len()
    }
}

pub(super) fn no_such_service() -> Refusal {
    refuse(RefusalKind::NoSuchService, "there is no such service")
}

//! Showing workers the services as they now are.
//!
//! What workers are shown next is kept up to date with every change, and a publication is a copy
//! of it, which costs what has changed since the last one (see `Services`). Servers come and go in
//! lists that workers look at anyway: most changes of them need no publication at all.
//!
//! Whoever drops the last reference to a snapshot takes it apart. That must not be a worker in the
//! middle of a breath, so the table holds on to each snapshot until nobody else does.

use std::collections::HashSet;
use std::sync::Arc;

use super::{State, Table};
use crate::control::api::{ServerSpec, ServiceKey};
use crate::dispatch::service::{Service, Services};
use crate::dispatch::settings::Setting;

/// What has happened since it was last told.
#[derive(Default)]
pub(super) struct News {
    /// Workers have to be shown something new.
    pub(super) to_show: bool,
    /// Servers that may call clients have to be looked for.
    pub(super) callers: bool,
    /// Services of which steering may have to know something else.
    pub(super) touched: HashSet<ServiceKey>,
    /// All of them are such.
    pub(super) all_touched: bool,
}

impl State {
    /// Workers find the service from the next publication on.
    pub(super) fn show(&mut self, service: Arc<Service>) {
        self.touch(&service);
        self.shown.insert(service);
        self.news.to_show = true;
    }

    /// Workers do not find the service any more from the next publication on.
    pub(super) fn hide(&mut self, service: &Service) {
        self.touch(service);
        self.shown.remove(&service.key);
        self.news.to_show = true;
    }

    /// Something about the service or its servers has changed.
    pub(super) fn touch(&mut self, service: &Service) {
        self.news.touched.insert(service.key);
        self.news.callers |= service.goes_by_call();
    }

    /// A server has become one of the service, or stays so as `server`.
    pub(super) fn note_server(&mut self, key: &ServiceKey, server: &ServerSpec) {
        if self.notes_nat_servers {
            self.shown.note_nat_server(key, server);
            self.news.to_show = true;
        }
    }

    /// A server is no longer one of the service, or no longer as `server`.
    pub(super) fn forget_server(&mut self, key: &ServiceKey, server: &ServerSpec) {
        if self.notes_nat_servers {
            self.shown.forget_nat_server(key, server);
            self.news.to_show = true;
        }
    }

    /// Notes NAT servers if that is `wanted`, and no longer if it is not.
    pub(super) fn note_nat_servers(&mut self, wanted: bool) {
        if wanted == self.notes_nat_servers {
            return;
        }
        self.notes_nat_servers = wanted;
        self.news.to_show = true;
        self.shown.forget_nat_servers();
        if !wanted {
            return;
        }
        for service in self.services.iter() {
            for member in service.choice().everyone() {
                self.shown.note_nat_server(&service.key, &member.spec);
            }
        }
    }

    /// Takes apart the snapshots that no worker looks at any more.
    pub(super) fn drop_retired(&mut self) {
        self.retired.retain(|services| Arc::strong_count(services) > 1);
    }
}

impl Table {
    /// Shows workers the services as they now are, and tells whoever follows the table.
    pub(super) fn publish(&self, state: &mut State) {
        state.note_nat_servers(self.shared.settings.is_on(Setting::NatIcmpSend));
        if std::mem::take(&mut state.news.callers) {
            state.shown.set_callers(state.services.iter());
            state.news.to_show = true;
        }
        if std::mem::take(&mut state.news.to_show) {
            let before = self.published.swap(Arc::new(Services::clone(&state.shown)));
            state.retired.push(before);
        }
        state.drop_retired();
        self.followed.another();
        self.changed.notify_one();
    }
}

//! The fallback server of a service, which takes new connections when all others have failed. The
//! configuration file alone says which one that is.

use std::time::Duration;

use super::trash::Role;
use super::{State, Table};
use crate::control::api::{ServerSpec, ServiceKey};
use crate::dispatch::service::Member;
use crate::dispatch::transmitter::Transmitter;

impl Table {
    /// Gives the service `key` this fallback server, or none; whether it had another one.
    pub(super) fn declare_fallback(
        &self,
        state: &mut State,
        key: &ServiceKey,
        wanted: Option<&ServerSpec>,
        now: Duration,
    ) -> bool {
        let Ok(service) = state.services.find(key).cloned() else { return false };
        let wanted = wanted.map(|spec| self.settle(spec.clone()));
        let mut choice = service.choice();
        let current = choice.fallback().cloned();
        if current.as_ref().map(|member| &member.spec) == wanted.as_ref() {
            return false;
        }
        let stays = match (&current, &wanted) {
            (Some(member), Some(spec)) => member.spec.address == spec.address,
            _ => false,
        };
        let new = wanted.map(|spec| {
            let server = match &current {
                Some(member) if stays => {
                    if Transmitter::from(&member.spec) != Transmitter::from(&spec) {
                        state.trash.note_former(service.key, member);
                    }
                    member.server.clone()
                }
                _ => match state.trash.find(key, spec.address, Role::Fallback) {
                    Some(removed) => {
                        let (server, former) = (removed.server.clone(), removed.service.clone());
                        self.revive(state, &service, &server, Some(former));
                        server
                    }
                    // It is taken at any weight, and no limit keeps connections from it.
                    None => self.new_server(spec.address, 1),
                },
            };
            let binding = self.bind(&service, &server, &spec);
            state.note_server(key, &spec);
            Member { server, binding, spec }
        });
        choice.set_fallback(new);
        drop(choice);
        if let Some(old) = current {
            state.forget_server(key, &old.spec);
            if !stays {
                state.trash.put_fallback(&service, old, now);
                state.orphaned = true;
            }
        }
        state.touch(&service);
        true
    }
}

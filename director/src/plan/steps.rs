//! From the file as it was and as it is to commands: only what differs between the two is changed.
//!
//! So what an operator or a checker did at run time to a service or server that the file has not
//! changed stays as it is: a reload must not bring a quiesced server back. What runs is asked only
//! whether it is there.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use crate::config::DeclaredService;
use crate::control::api::ServiceKey;
use crate::control::operations::Command;

/// A service of this many old and new servers loses the old ones first: a scheduler's table may not
/// hold both (the least, that of dht with the most variants, holds 512).
const MANY: usize = 512;

/// What there is now.
pub trait Running {
    /// Whether there is such a service.
    fn has_service(&self, service: &ServiceKey) -> bool;
    /// Whether it has such a server.
    fn has_server(&self, service: &ServiceKey, server: SocketAddr) -> bool;
}

/// The commands that lead from the file `before` to the file `after`, in order, each with the service
/// that it is about. Servers come before others go, so that a service whose servers are all exchanged
/// is never without one.
pub fn steps(
    before: &HashMap<ServiceKey, DeclaredService>,
    after: &[DeclaredService],
    running: &impl Running,
) -> Vec<(ServiceKey, Command)> {
    let mut steps = Vec::new();
    let stays: HashSet<ServiceKey> = after.iter().map(|declared| declared.service.key).collect();
    let mut gone: Vec<ServiceKey> =
        before.keys().filter(|key| !stays.contains(key)).copied().collect();
    gone.sort_unstable();
    for key in gone.into_iter().filter(|key| running.has_service(key)) {
        steps.push((key, Command::DeleteService { service: key }));
    }
    for declared in after {
        service(&mut steps, before.get(&declared.service.key), declared, running);
    }
    steps
}

fn service(
    steps: &mut Vec<(ServiceKey, Command)>,
    before: Option<&DeclaredService>,
    declared: &DeclaredService,
    running: &impl Running,
) {
    let key = declared.service.key;
    let is_running = running.has_service(&key);
    let service = declared.service.clone();
    if !is_running {
        steps.push((key, Command::AddService { service }));
    } else if before.is_none_or(|before| before.service != declared.service) {
        steps.push((key, Command::EditService { service }));
    }
    let old_servers = before.map(|before| &before.servers[..]).unwrap_or_default();
    let wanted: HashSet<SocketAddr> =
        declared.servers.iter().map(|server| server.address).collect();
    let old: HashMap<SocketAddr, _> =
        old_servers.iter().map(|server| (server.address, server)).collect();
    let going = old_servers.iter().map(|server| server.address);
    let going = going.filter(|address| !wanted.contains(address));
    let going = going.filter(|address| running.has_server(&key, *address));
    let going = going.map(|server| (key, Command::DeleteServer { service: key, server }));
    let coming = declared.servers.iter().filter_map(|server| {
        if is_running && old.get(&server.address) == Some(&server) {
            return None;
        }
        let (service, server) = (key, server.clone());
        Some(match running.has_server(&key, server.address) {
            true => (key, Command::EditServer { service, server }),
            false => (key, Command::AddServer { service, server }),
        })
    });
    if old_servers.len() + declared.servers.len() > MANY {
        steps.extend(going);
        steps.extend(coming);
    } else {
        steps.extend(coming);
        steps.extend(going);
    }
}

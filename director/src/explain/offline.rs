//! The same from a configuration file alone: no director need run, and what only a machine knows is
//! assumed, and said to be.

use std::time::Duration;

use super::{Link, Scene, Ways, explain};
use crate::config::Config;
use crate::control::explain::Explanation;
use crate::dispatch::verdict::Path;
use crate::world::{Assumed, NoWorld, World};

/// Ways that are assumed, out of the file's first interface.
#[derive(Default)]
pub(super) struct AssumedWays {
    assumed: Assumed,
    interface: String,
}

impl crate::dispatch::Routes for AssumedWays {
    fn path(&mut self, destination: std::net::IpAddr) -> Option<Path> {
        self.assumed.path(destination)
    }
}

impl Ways for AssumedWays {
    fn link(&self, path: &Path) -> Link {
        let destination = Assumed::mac(path.next_hop);
        Link::Known { interface: self.interface.clone(), source: Assumed::MAC, destination }
    }

    fn assumed(&self) -> Vec<String> {
        vec![
            "there are no connections, and all servers are up".to_owned(),
            format!(
                "every address is on the link of {}, with an MTU of {}, and resolved",
                self.interface, self.assumed.mtu
            ),
        ]
    }
}

/// Explains a frame to a director that has just started with this file.
///
/// # Errors
/// What of the file a director would refuse when it starts.
pub fn of_file(
    config: &Config,
    mtu: u32,
    frame: &[u8],
    interface: Option<&str>,
) -> Result<Explanation, NoWorld> {
    let world = World::from_config(config)?;
    let scene = Scene {
        shared: world.shared(),
        services: &world.services(),
        steering: &world.steering(),
        interfaces: &config.interfaces,
        now: Duration::from_secs(1),
    };
    let mut ways = AssumedWays {
        assumed: Assumed { mtu, ..Assumed::default() },
        interface: config.interfaces.first().cloned().unwrap_or_default(),
    };
    Ok(explain(&scene, &mut ways, frame, interface))
}

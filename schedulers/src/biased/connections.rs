//! The scale of connections: what lc, wlc, sed and nq compare, seen as a part of what a server can
//! carry.
//!
//! Knows measures, thresholds and weights. Must not know lists of more than one walk.
//!
//! Nobody says how much a server can carry. It is taken for 1.25 times as much as the most loaded
//! server carries for its weight, so that this one stands at 0.8; without connections in progress
//! the order of servers is then the scheduler's own. An upper threshold makes a server fuller than
//! that when it is nearer, but never emptier: many are set as a last resort, far above all loads,
//! and would make every load look like none.
//!
//! Connections in progress count by weight too: one at a server of half the largest weight counts as
//! two. So weights hold also where more connections are in progress than a load can weigh up.

use super::{Scale, Standing};
use crate::bias::Pressure;
use crate::watched::Measures;
use crate::weight::Measure;
use crate::{Bias, Server};
use std::sync::Arc;

/// How much more than the most loaded server carries a server can carry.
const HEADROOM: f64 = 1.25;

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Connections {
    measure: Measure,
    pressure: Pressure,
    /// What one of weight can carry, as the measure counts.
    capacity: f64,
    /// The largest weight that is eligible; 1 where the measure does not know weights.
    largest_weight: i32,
}

impl Connections {
    /// For servers of which nothing is known yet.
    pub(crate) fn by(measure: Measure, bias: Bias) -> Connections {
        Connections {
            measure,
            pressure: bias.pressure(),
            capacity: f64::MIN_POSITIVE,
            largest_weight: 0,
        }
    }

    /// What a server carries for its weight, and that weight; `None` when it must not be chosen.
    fn carried(&self, server: &Server) -> Option<(f64, i32)> {
        let (load, weight) = (self.measure)(server);
        (weight > 0).then(|| (load as f64 / f64::from(weight), weight))
    }
}

impl Measures<Standing> for Connections {
    fn measure(&self, server: &Server) -> Standing {
        let Some((load, weight)) = self.carried(server) else { return Standing::NONE };
        let mut part = load / self.capacity;
        let upper = server.upper_threshold();
        if upper > 0 {
            part = part.max(server.connections() as f64 / f64::from(upper));
        }
        let in_progress = f64::from(server.in_progress()) * f64::from(self.largest_weight);
        let value = self.pressure.value(part, in_progress / f64::from(weight));
        Standing { value, load, weight }
    }
}

impl Scale for Connections {
    fn fits(&self, whole: Standing) -> bool {
        whole.load <= self.capacity && whole.weight == self.largest_weight
    }

    fn renewed(&self, servers: &[Arc<Server>]) -> Option<Connections> {
        let most = |(load, weight): (f64, i32), other: (f64, i32)| {
            (load.max(other.0), weight.max(other.1))
        };
        let carried = servers.iter().filter_map(|server| self.carried(server));
        let (highest, largest_weight) = carried.fold((0.0, 0), most);
        let capacity = (highest * HEADROOM).max(f64::MIN_POSITIVE);
        let is_new = capacity != self.capacity || largest_weight != self.largest_weight;
        is_new.then_some(Connections { capacity, largest_weight, ..*self })
    }
}

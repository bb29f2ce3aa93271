//! Reported load (load): the server that says it has the most room.
//!
//! Not in the kernel. As the collector of load biasing does, it goes by the loads that servers report
//! ([`Server::report`]) and by the connections opened since, each of which counts as the bias says
//! (ilb:2 when none is given): the next report has them in it, and a server that is idle for the
//! moment is not sent the whole world meanwhile.
//!
//! A server that reports 10000 gets nothing while another is below. When all do, the least biased
//! gets it: to refuse is the business of thresholds. A server whose load is not known is taken for
//! the mean of the others, and its young connections for those that count. Weight matters only as zero
//! or not; who wants shares has wlc.

use crate::bias::{FULL, Pressure};
use crate::biased::{Biased, Scale, Standing};
use crate::watched::Measures;
use crate::{Bias, Change, Entry, Key, Options, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "load",
    summary: "reported load: the lowest that servers report, and what has come since",
    create: |options| Box::new(ReportedLoad::new(options)),
};

/// Half a full load: what servers are taken for when none has reported.
const NOBODY_KNOWS: f64 = 0.5;
/// Added to the value of a full server: more than connections in progress can come to.
const FULL_VALUE: f64 = 1e12;

struct ReportedLoad {
    all: Biased<Reports>,
}

impl ReportedLoad {
    fn new(options: &Options) -> ReportedLoad {
        let bias = match options.bias {
            Bias::None => Bias::Ilb(2),
            bias => bias,
        };
        let scale = Reports { pressure: bias.pressure(), unknown: NOBODY_KNOWS };
        ReportedLoad { all: Biased::by(scale, words, options) }
    }
}

impl Scheduler for ReportedLoad {
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        self.all.follow(servers, change);
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], _: &Key, now: Duration) -> Option<usize> {
        self.all.lightest(servers, now)
    }

    fn fork(&self, servers: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        Box::new(ReportedLoad { all: self.all.over(servers) })
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        self.all.words(server)
    }
}

fn words(server: &Server) -> String {
    match server.reported() {
        Some(load) => {
            let since = server.opened_since_report();
            format!("reports {} % and has had {since} since", f64::from(load) / 100.0)
        }
        None => "reports nothing: taken for the mean".to_owned(),
    }
}

/// The scale of reports.
#[derive(Clone, Copy)]
struct Reports {
    pressure: Pressure,
    /// What a load that is not known is taken for, as a part of a full one.
    unknown: f64,
}

impl Measures<Standing> for Reports {
    fn measure(&self, server: &Server) -> Standing {
        if !server.is_eligible() {
            return Standing::NONE;
        }
        let (load, in_progress) = match server.reported() {
            Some(load) => (part(load), server.opened_since_report() as f64),
            None => (self.unknown, f64::from(server.in_progress())),
        };
        let value = if load < 1.0 {
            self.pressure.value(load, in_progress)
        } else {
            FULL_VALUE + self.pressure.value(0.0, in_progress)
        };
        Standing { value, ..Standing::NONE }
    }
}

impl Scale for Reports {
    fn fits(&self, _: Standing) -> bool {
        true
    }

    fn renewed(&self, servers: &[Arc<Server>]) -> Option<Reports> {
        let known = servers.iter().filter_map(|server| server.reported());
        let (sum, count) =
            known.fold((0_u64, 0_u64), |(sum, count), load| (sum + u64::from(load), count + 1));
        let full = count * u64::from(FULL);
        let unknown = if count == 0 { NOBODY_KNOWS } else { sum as f64 / full as f64 };
        (unknown != self.unknown).then_some(Reports { unknown, ..*self })
    }
}

fn part(load: u16) -> f64 {
    f64::from(load) / f64::from(FULL)
}

#[cfg(test)]
mod tests;

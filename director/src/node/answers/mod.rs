//! What this host answers when an operator asks, whichever way the question came.
//!
//! Commands are membership's to decide (`command`); views are read from it and from the filter:
//! `query` the cluster, `params` what it runs with, `explain` one packet, `held` flows, `dry_run`
//! maps, `cost` the filter's price.

mod command;
mod cost;
mod dry_run;
mod explain;
mod held;
mod params;
mod query;

use std::time::Duration;

use crate::control::nlb::views::{DisplayView, MacsView, NlbView};
use crate::control::nlb::{NlbAnswer, NlbCommand, NlbResult};

use super::about::About;
use super::host::Host;
use super::sockets::Held;

pub(super) use cost::capacity;
pub(super) use params::frames;
pub(super) use query::{own_flows, those, warnings};

/// What a question is answered from.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    /// What does not change.
    pub(super) about: &'a About,
    /// The kernel's connections as they were a moment ago, if the question [needs](needs_sockets)
    /// them.
    pub(super) held: &'a [Held],
    /// Time of `CLOCK_MONOTONIC`.
    pub(super) now: Duration,
}

/// Whether the kernel's table of sockets must be read for this.
pub(super) fn needs_sockets(command: &NlbCommand) -> bool {
    matches!(command, NlbCommand::Filter(_) | NlbCommand::Connections { .. })
}

/// Carries out a command, or answers a question.
pub(super) fn answer(host: &mut Host, command: &NlbCommand, scene: &Scene<'_>) -> NlbAnswer {
    use NlbCommand as C;
    let view = match command {
        C::Query => Ok(NlbView::Query(query::query(host, scene))),
        C::Params => Ok(NlbView::Params(params::params(host, scene))),
        C::Display => Ok(NlbView::Display(Box::new(DisplayView {
            params: params::params(host, scene),
            query: query::query(host, scene),
            history: query::history(host, scene),
        }))),
        C::History => Ok(NlbView::History(query::history(host, scene))),
        C::Ip2mac { address } => {
            Ok(NlbView::Macs(MacsView::of(address.unwrap_or(host.policy().primary))))
        }
        C::Filter(question) => explain::explain(host, question, scene).map(NlbView::Filter),
        C::Connections { limit } => {
            held::connections(host, *limit, scene).map(NlbView::Connections)
        }
        C::Map(what_if) => dry_run::map(host, what_if).map(NlbView::Map),
        C::Capacity => Err(Refused::failed("capacity is measured on the host itself only")),
        _ => return command::command(host, command, scene),
    };
    match view {
        Ok(view) => finish(host, scene, NlbResult::Done, None, Some(view)),
        Err(Refused { result, message }) => finish(host, scene, result, Some(message), None),
    }
}

/// Why there is nothing to show.
#[derive(Debug)]
struct Refused {
    result: NlbResult,
    message: String,
}

impl Refused {
    fn bad(message: impl Into<String>) -> Refused {
        Refused { result: NlbResult::BadParameters, message: message.into() }
    }

    fn failed(error: impl ToString) -> Refused {
        Refused { result: NlbResult::Failed, message: error.to_string() }
    }
}

/// The answer in its envelope.
fn finish(
    host: &Host,
    scene: &Scene<'_>,
    result: NlbResult,
    message: Option<String>,
    view: Option<NlbView>,
) -> NlbAnswer {
    NlbAnswer {
        host: scene.about.host.get(),
        name: scene.about.name.clone(),
        state: host.membership.state().to_string(),
        result,
        message,
        view: view.map(Box::new),
    }
}

//! The scenarios that are compared, by name.

mod clients;
mod schedulers;

use super::step::Scenario;

/// All of them.
pub fn all() -> Vec<Scenario> {
    schedulers::all()
}

/// The one called `name`.
pub fn find(name: &str) -> Option<Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}

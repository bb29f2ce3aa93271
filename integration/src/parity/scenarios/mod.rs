//! The scenarios that are compared, by name.

mod clients;
mod hashing;
mod rules;
mod schedulers;

use super::step::Scenario;

/// All of them.
pub fn all() -> Vec<Scenario> {
    [schedulers::all(), hashing::all()].concat()
}

/// The one called `name`.
pub fn find(name: &str) -> Option<Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}

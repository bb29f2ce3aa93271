//! All sections, by name.

use super::case::{self, Case};
use super::matrix;

/// Cases that belong together. The table is empty before the first of them.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// Whether it is one of the few that run after every save.
    pub quick: bool,
    /// Its cases, in order.
    pub cases: Vec<Case>,
}

macro_rules! written {
    ($($name:literal $quick:literal,)*) => {
        [$(($name, $quick, include_str!(concat!("cases/", $name, ".txt"))),)*]
    };
}

/// All sections.
pub fn all() -> Vec<Section> {
    let written = written![
        "addresses" false,
        "daemon" false,
        "defaults" true,
        "fwmark" false,
        "intended" false,
        "ipv6" false,
        "layouts" true,
        "names" false,
        "options" false,
        "persistence" false,
        "popt" true,
        "refusals" true,
        "restore" true,
        "save" true,
        "schedulers" false,
        "servers" false,
        "sorting" false,
        "timeouts" false,
        "tunnels" false,
        "values" true,
    ];
    let written =
        written.map(|(name, quick, text)| Section { name, quick, cases: case::read(text) });
    let mut sections = written.to_vec();
    sections.extend(matrix::sections());
    sections
}

#[test]
fn there_are_enough_invocations_and_names_are_unique() {
    let sections = all();
    let count: usize = sections.iter().map(|section| section.cases.len()).sum();
    assert!(count >= 400, "{count}");
    assert!(sections.iter().all(|section| !section.cases.is_empty()));
    let mut names: Vec<&str> = sections.iter().map(|section| section.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), sections.len());
}

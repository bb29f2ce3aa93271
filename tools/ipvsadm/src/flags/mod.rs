//! Every flag of the command, each one struct: its names, its value, what it counts as in the
//! legality tables, its help line, and what it does to the draft; its test stands below it. The
//! scanner, the help text and the parser are all made of this table.

use crate::draft::Draft;
use crate::failure::Failure;
use crate::legality::{Action, Opt};

pub mod commands;
pub mod daemon;
pub mod extensions;
pub mod listing;
pub mod scheduling;
pub mod server;
pub mod service;
pub mod tunnel;

/// Whether a flag has a value, and what help calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// None.
    None,
    /// It needs one.
    Required(&'static str),
    /// It may have one.
    Optional(&'static str),
    /// None of its own, but these plain words somewhere on the command line.
    Words(&'static str),
}

impl Argument {
    /// Whether the scanner is to look for a value.
    pub fn is_value(self) -> bool {
        matches!(self, Argument::Required(_) | Argument::Optional(_))
    }
}

/// What sort of flag it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Says what to do; must come first.
    Command(Action),
    /// Asks for help; must come first.
    Help,
    /// Asks for the version; must come first.
    Version,
    /// An option; some are in no table and are legal everywhere.
    Option(Option<Opt>),
}

/// Puts a flag's value on the draft.
pub type Take = fn(&mut Draft, Option<&str>) -> Result<(), Failure>;

/// One flag.
#[derive(Debug)]
pub struct Flag {
    /// Short names, usually one or none.
    pub short: &'static [char],
    /// Long name, without dashes.
    pub long: &'static str,
    /// Its value.
    pub argument: Argument,
    /// What sort of flag it is.
    pub kind: Kind,
    /// What `-h` says of it, line by line, in the words of ipvsadm; nothing = not shown.
    pub help: &'static [&'static str],
    /// What the manual page and the shells' completions say of it, in sentences.
    pub about: &'static str,
    /// What it does.
    pub take: Take,
}

/// A heading of the manual page with its flags.
#[derive(Debug)]
pub struct Group {
    /// Heading.
    pub title: &'static str,
    /// Flags, in the order of the page.
    pub flags: &'static [&'static Flag],
}

/// All flags.
pub const GROUPS: &[Group] = &[
    Group { title: "Commands", flags: commands::ALL },
    Group { title: "Virtual service", flags: service::ADDRESSES },
    Group { title: "Options of a service", flags: service::OPTIONS },
    Group { title: "Options of a real server", flags: server::ALL },
    Group { title: "Options of a tunnel (-i)", flags: tunnel::ALL },
    Group { title: "Options of a listing", flags: listing::ALL },
    Group { title: "Options of the sync daemon", flags: daemon::ALL },
    Group { title: "Options that ipvsadm does not have", flags: extensions::ALL },
];

/// Every flag.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    GROUPS.iter().flat_map(|group| group.flags.iter().copied())
}

/// The flag with this long name.
pub fn by_long(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.long == name)
}

/// The flag with this letter.
pub fn by_short(letter: char) -> Option<&'static Flag> {
    all().find(|flag| flag.short.contains(&letter))
}

/// For flags that only have to be noted.
const NOTHING: Take = |_, _| Ok(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_flags_share_a_name() {
        let mut longs: Vec<_> = all().map(|flag| flag.long).collect();
        let mut shorts: Vec<_> = all().flat_map(|flag| flag.short).collect();
        let count = (longs.len(), shorts.len());
        longs.sort_unstable();
        longs.dedup();
        shorts.sort_unstable();
        shorts.dedup();
        assert_eq!((longs.len(), shorts.len()), count);
    }

    #[test]
    fn every_option_of_the_legality_tables_has_a_flag() {
        for option in Opt::ALL {
            assert!(all().any(|flag| flag.kind == Kind::Option(Some(*option))), "{option:?}");
        }
        for action in Action::ALL {
            assert!(all().any(|flag| flag.kind == Kind::Command(*action)), "{action:?}");
        }
    }
}

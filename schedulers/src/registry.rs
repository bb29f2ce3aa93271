//! Every scheduler by name.

use crate::{Options, Scheduler};

/// One line of the registry.
pub struct Entry {
    /// The name `ipvsadm -s` takes.
    pub name: &'static str,
    /// One line of what it does, for help texts.
    pub summary: &'static str,
    /// Makes one for a service.
    pub create: fn(&Options) -> Box<dyn Scheduler>,
}

/// All schedulers.
pub const REGISTRY: &[Entry] = &[];

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}

/// A scheduler by name, or `None` when there is none of that name.
pub fn create(name: &str, options: &Options) -> Option<Box<dyn Scheduler>> {
    find(name).map(|entry| (entry.create)(options))
}

//! Every scheduler by name.
//!
//! To add one, write `registry/NAME.rs` with a type that implements [`Scheduler`] and a
//! `pub(crate) const ENTRY: Entry`, and add its name to the list below:
//!
//! ```text
//! schedulers! {
//!     rr, wrr, swrr, lc, wlc, sed, nq, fo, ovf, twos, dh, sh, mh, dht, lblc, lblcr, load,
//!     NAME,
//! }
//! ```
//!
//! The one line declares the module and enters it in [`REGISTRY`]; nothing else needs to know.

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

/// Declares the module of each scheduler and lists its entry.
macro_rules! schedulers {
    ($($name:ident),+ $(,)?) => {
        $(mod $name;)+

        /// All schedulers, each name once.
        ///
        /// ```
        /// let names: Vec<&str> = schedulers::REGISTRY.iter().map(|entry| entry.name).collect();
        /// assert!(names.contains(&"wlc"));
        /// ```
        pub const REGISTRY: &[Entry] = &[$($name::ENTRY),+];
    };
}

schedulers! {
    rr,
    wrr,
    swrr,
    lc,
    wlc,
    sed,
    nq,
    fo,
    ovf,
    twos,
    dh,
    sh,
    mh,
    dht,
    lblc,
    lblcr,
    load,
}

/// The most servers that the scheduler called `name` can hold; `None` = any number. Those of dht are
/// fewer with many variants: [`PlacementOptions::most_members`].
///
/// ```
/// assert_eq!(schedulers::most_servers("mh"), Some(4093));
/// assert_eq!(schedulers::most_servers("dht"), Some(65_535));
/// assert_eq!(schedulers::most_servers("rr"), None);
/// ```
///
/// [`PlacementOptions::most_members`]: crate::placement::PlacementOptions::most_members
pub fn most_servers(name: &str) -> Option<usize> {
    let limits = [(mh::ENTRY.name, mh::MOST_SERVERS), (dht::ENTRY.name, dht::MOST_SERVERS)];
    limits.iter().find(|limit| limit.0 == name).map(|limit| limit.1)
}

/// The entry called `name`.
///
/// ```
/// assert_eq!(schedulers::find("wrr").unwrap().name, "wrr");
/// assert!(schedulers::find("WRR").is_none());
/// ```
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}

/// A scheduler by name, or `None` when there is none of that name.
///
/// It must be told of its list by [`Scheduler::changed`] with [`Change::Bound`] before it is asked.
///
/// ```
/// use schedulers::{Change, Key, Options, Server, ServerId, create};
/// use std::{sync::Arc, time::Duration};
///
/// let address = "10.0.0.1".parse().unwrap();
/// let servers = [Arc::new(Server::new(ServerId(1), address, 80, 1))];
/// let mut scheduler = create("rr", &Options::default()).unwrap();
/// scheduler.changed(&servers, Change::Bound).unwrap();
///
/// let key = Key {
///     protocol: 6,
///     source: "198.51.100.7".parse().unwrap(),
///     source_port: 40_000,
///     destination: "192.0.2.10".parse().unwrap(),
///     destination_port: 80,
///     name: None,
/// };
/// assert_eq!(scheduler.choose(&servers, &key, Duration::ZERO), Some(0));
/// ```
///
/// [`Change::Bound`]: crate::Change::Bound
pub fn create(name: &str, options: &Options) -> Option<Box<dyn Scheduler>> {
    find(name).map(|entry| (entry.create)(options))
}

#[cfg(test)]
mod tests;

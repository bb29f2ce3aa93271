//! The interfaces that packets are taken from.

use netio::ethtool::{self, Receiving};
use netio::interface::{self, Queues, State};

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// `None` = there is no such interface.
    pub state: Option<State>,
    /// The name of its driver, when it says so.
    pub driver: Option<String>,
    /// Queues in use.
    pub queues: Option<Queues>,
    /// What it does to what it receives, when it says so.
    pub receiving: Option<Receiving>,
}

/// Asks the interface of this name.
pub fn look(name: &str) -> Card {
    Card {
        name: name.to_owned(),
        state: interface::state(name).ok(),
        driver: interface::driver(name).ok().flatten(),
        queues: interface::queues(name).ok(),
        receiving: ethtool::receiving(name).ok(),
    }
}

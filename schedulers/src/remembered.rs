//! A server remembered from one call to the next.
//!
//! Knows that lists change between calls. Must not know why a server is remembered.

use crate::{Server, ServerId};
use std::sync::Arc;

/// Names a server, with a hint where in the list it was last seen.
///
/// Only the id counts. The hint saves a walk through the list while nothing has been added or
/// removed; when it is wrong the walk is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remembered {
    id: ServerId,
    hint: usize,
}

impl Remembered {
    /// Remembers the server at `index`, or nothing when the list is shorter.
    pub(crate) fn at(servers: &[Arc<Server>], index: usize) -> Option<Remembered> {
        servers.get(index).map(|server| Remembered { id: server.id(), hint: index })
    }

    /// Which server it is.
    pub(crate) fn id(&self) -> ServerId {
        self.id
    }

    /// Where the server stands now; `None` when it is gone.
    pub(crate) fn find(&self, servers: &[Arc<Server>]) -> Option<usize> {
        match servers.get(self.hint) {
            Some(server) if server.id() == self.id => Some(self.hint),
            _ => servers.iter().position(|server| server.id() == self.id),
        }
    }
}

/// Where a search goes on that begins behind a server, in words.
pub(crate) fn after(cursor: Option<Remembered>, servers: &[Arc<Server>]) -> String {
    match cursor.and_then(|cursor| cursor.find(servers)).and_then(|index| servers.get(index)) {
        Some(server) => format!("the next after {}", server.name()),
        None => "from the head of the list".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::servers;

    #[test]
    fn a_server_is_found_again_after_the_list_has_shifted() {
        let mut list = servers(&[1, 1, 1]);
        let second = Remembered::at(&list, 1).unwrap();
        let newcomer = servers(&[1, 1, 1, 1]).remove(3);
        list.insert(0, newcomer);
        assert_eq!(second.find(&list), Some(2));
        list.remove(0);
        list.remove(0);
        assert_eq!(second.find(&list), Some(0));
        list.remove(0);
        assert_eq!(second.find(&list), None, "a successor must not be mistaken for it");
    }

    #[test]
    fn nothing_is_remembered_past_the_end() {
        assert!(Remembered::at(&[], 0).is_none());
    }
}

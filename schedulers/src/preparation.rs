//! Work for a scheduler that is done before a change, without its service's lock.
//!
//! Knows that there is work, and that it has a result. Must not know what: the scheduler that has
//! planned it finds its own in it again.

use std::any::Any;
use std::fmt;

/// Work that a scheduler has planned; see [`Scheduler::plan`](crate::Scheduler::plan). It owns all that
/// it needs.
pub struct Preparation(Box<dyn FnOnce() -> Prepared + Send>);

impl Preparation {
    /// What is to be done.
    pub fn new(work: impl FnOnce() -> Prepared + Send + 'static) -> Preparation {
        Preparation(Box::new(work))
    }

    /// Does it. That may take long: some hundred milliseconds for ten thousand servers.
    pub fn run(self) -> Prepared {
        (self.0)()
    }
}

impl fmt::Debug for Preparation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Preparation")
    }
}

/// What has come of it; see [`Scheduler::offer`](crate::Scheduler::offer).
///
/// ```
/// use schedulers::{Preparation, Prepared};
///
/// let prepared = Preparation::new(|| Prepared::new(vec![1, 2])).run();
/// assert_eq!(prepared.get::<Vec<i32>>(), Some(&vec![1, 2]));
/// assert_eq!(prepared.get::<String>(), None);
/// ```
pub struct Prepared(Box<dyn Any + Send>);

impl Prepared {
    /// Holds a result of any type.
    pub fn new(result: impl Any + Send) -> Prepared {
        Prepared(Box::new(result))
    }

    /// The result, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prepared")
    }
}

//! Health: which servers serve, and what that means for their weights and connections.
//!
//! ```text
//!   plan.rs       what the file asks for
//!   checks/       one file per kind of check: do it once        ──> Outcome
//!   path/         the way of a check to the VIP through a server
//!   tally.rs      rise and fall, counted in a row
//!   direction.rs  the link to a server's agent (connection integrity): UDP, TCP, lost, back
//!   feedback.rs   weights by reported load
//!   judge.rs      all that together: how a server stands in a service
//!   watch.rs      timers and tasks that drive the above, and tell the table
//!   servers.rs    what the table is told of a server
//!   journal.rs    what has happened
//!   memory.rs     what a restart must not forget
//! ```
//!
//! Everything above `watch.rs` but the checks themselves is sans-IO.

mod chance;
pub mod checks;
pub mod direction;
pub mod feedback;
pub mod journal;
pub mod judge;
pub mod memory;
pub mod outcome;
pub mod path;
pub mod plan;
pub mod servers;
pub mod tally;
pub mod watch;

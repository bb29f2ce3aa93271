//! The filter: which frames a host passes up to its own stack and which it drops.
//!
//! The same decision is made twice: by a plain function here, and by a program in the kernel that
//! a test holds to the function, frame by frame. So what is read of a frame is what a small program
//! can read: no checksums, no lengths beyond the headers, which the stack behind it checks anyway.
//!
//! Read it in this order: `frame` (parse), `classify`, `decide`. [`Policy`] is what it decides by, [`Flows`] what it remembers, [`Reason`] what it says.

mod classify;
mod decide;
mod flows;
mod frame;
mod policy;
mod reason;

pub use classify::{CONTROL_PORT, quoted_flow};
pub use decide::{Decision, decide};
pub use flows::{Flows, FragmentKey, Memory, Socket};
pub use frame::{HEARTBEAT, MAX_EXTENSIONS};
pub use policy::{Echo, HostState, Owner, Policy, SlotState};
pub use reason::Reason;

#[cfg(test)]
mod tests;

//! The decision, frame by frame. `cases` says what becomes of each kind of frame, `handover` what
//! of a flow when buckets move, `owners` that exactly one host takes a packet, `fuzz` that nothing
//! makes it panic.

mod cases;
mod cluster;
mod frames;
mod fuzz;
mod handover;
mod owners;

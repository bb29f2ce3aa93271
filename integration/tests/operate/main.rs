//! The operator's tools on real faults: each must name what is wrong, and what to do about it.
//!
//! Needs root; says so and passes otherwise. The programs: `cargo xtask test operate` installs them.
//!
//! Where to start reading: `bed.rs` (what is built).

mod apply;
mod bed;
mod capture;
mod doctor;
mod down;
mod examples;
mod explain;
mod gone;
mod metrics;
mod refused;
mod replay;
mod sandbox;
mod top;
mod trial;
mod tutorial;

//! A cluster without a dispatcher, in the lab: 2 to 8 nodes with nginx on a segment that floods, asked
//! by 64 clients over IPv4 and IPv6, while nodes come, go, die, lose their cable or do not fit.
//!
//! A witness on every port of the bridge (`witness.rs`) tells who answered what, so that a test can
//! say that nothing was answered twice rather than that nobody complained. Tests that take times
//! print a line each, which `cargo xtask test nlb` gathers into a table.
//!
//! Needs root; says so and passes otherwise. The programs: `cargo xtask test nlb` installs them.
//!
//! Where to start reading: `bed.rs` (what is built), `once.rs`.

mod bed;
mod crash;
mod delivery;
mod load;
mod misfits;
mod once;
mod one_file;
mod partition;
mod planned;
mod strangers;
mod table;
mod witness;

const LAB_BINARY: &str = env!("CARGO_BIN_EXE_switchyard-lab");

/// Whether to run; prints why not.
fn can_run() -> bool {
    match integration::lab::supported() {
        Ok(()) => true,
        Err(reason) => {
            println!("skipped: {reason:#}");
            false
        }
    }
}

//! Servers that fail, drain, come back and lie: a director that watches them, agents on them, nginx and
//! HAProxy beside them, by NAT, direct routing and tunnels.
//!
//! What has a time in the specification prints it (`figure: ...`), and `cargo xtask test health`
//! gathers those lines into a table.
//!
//! Needs root; says so and passes otherwise. The programs: `cargo xtask test health` installs them.
//!
//! Where to start reading: `bed.rs` (what is built), `silent.rs`.

mod all_down;
mod bed;
mod drained;
mod feedback;
mod haproxy;
mod hostile;
mod newcomer;
mod path;
mod remembered;
mod restarted;
mod session;
mod silent;
mod stopped;
mod udp;

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

/// A line of the table: what was measured, the figure and what it must not exceed, in seconds.
fn figure(what: &str, seconds: f64, limit: f64) {
    // The test's name stands in the line that this would be the end of.
    println!("\nfigure: {what:<64} {seconds:>7.2} {limit:>7.2}");
    assert!(seconds <= limit, "{what}: {seconds:.2} s, and {limit:.2} s are allowed");
}

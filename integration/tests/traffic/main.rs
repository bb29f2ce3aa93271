//! Real programs through a real director: nginx with curl and wrk, iperf3, dnsmasq with dig,
//! vsftpd with curl, tcpdump to look at checksums; by NAT, tunnel and direct routing, over IPv4 and IPv6, with peers
//! that compute checksums and peers that leave them to a network card that does not exist.
//!
//! Every test looks at the director's counters afterwards: nothing lost without an explanation.
//! Needs root; says so and passes otherwise. The programs: `cargo xtask test lab` installs them.
//!
//! Where to start reading: `bed.rs` (what is built), `http.rs`.

mod bed;
mod bulk;
mod datagrams;
mod ftp;
mod http;
mod modes;
mod sums;
mod web;

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

//! The daemon on a real server.
//!
//! With direct routing and tunnels a real server has the virtual addresses (VIPs) itself and
//! answers clients without the director. This crate gives it the VIPs without telling the
//! neighbours ([`host`]), and unpacks what the director tunnels to it ([`tunnel`]): IP in IP, GUE
//! and GRE ([`kind`]).
//!
//! Knows one server: its own. Must not know the director's tables; `director` may use this crate,
//! never the other way round.
//!
//! The kernel's own `ipip`, `sit`, `ip6tnl` and `gre` devices and its `fou` ports do the unpacking
//! faster where they exist, but are not used yet. Where those modules are loaded and a device of
//! theirs is up, it takes the packets as well (a `fou` port is taken, then, and this daemon does not
//! start): unload them, or use them and run this daemon without `--tunnel`.

#![forbid(unsafe_code)]

pub mod answer;
mod arrival;
pub mod boot;
pub mod checks;
pub mod cli;
pub mod decapsulation;
pub mod device;
pub mod host;
pub mod kind;
mod leftover;
pub mod load;
pub mod program;
pub mod protocol;
pub mod role;
pub mod settings;
pub mod standing;
pub mod tunnel;

//! The daemon on a real server.
//!
//! With direct routing and tunnels a real server has the virtual addresses (VIPs) itself and
//! answers clients without the director. This crate gives it the VIPs without telling the
//! neighbours ([`host`]), and unpacks what the director tunnels to it ([`tunnel`]): IP in IP, GUE
//! and GRE ([`kind`]).
//!
//! It also speaks for the server: it answers directors' probes ([`protocol`], [`answer`]) with the
//! server's state, which local checks decide ([`checks`]), and its load ([`load`]). [`daemon`] puts it
//! all together; what is wanted of it stands in the director's own file ([`settings`], [`role`]).
//!
//! Knows one server: its own. Must not know the director's tables; `director` may use this crate,
//! never the other way round.
//!
//! Where the kernel has devices that unpack, those are used ([`kernel_tunnel`]).

#![forbid(unsafe_code)]

pub mod answer;
mod arrival;
pub mod boot;
pub mod checks;
pub mod cli;
pub mod control;
pub mod daemon;
pub mod decapsulation;
pub mod device;
pub mod host;
pub mod kernel_tunnel;
pub mod key_file;
pub mod kind;
mod leftover;
pub mod load;
pub mod operators_file;
pub mod program;
pub mod protocol;
pub mod role;
pub mod settings;
pub mod standing;
pub mod status;
pub mod tunnel;

//! What an operator does beyond `ipvsadm`. Each subcommand is a file: its arguments, and a pure
//! function from the director's answer to text. Speaking with the director is
//! `director::control::client`'s part; how to print, complain and end is in [`outlet`].

#![forbid(unsafe_code)]

pub mod arguments;
pub mod capture;
pub mod clean;
pub mod columns;
pub mod doctor;
pub mod drops;
pub mod events;
pub mod explain;
pub mod local_time;
pub mod nlb;
pub mod outlet;
pub mod paint;
pub mod plan;
pub mod replay;
pub mod servers;
pub mod settings;
pub mod status;
pub mod top;

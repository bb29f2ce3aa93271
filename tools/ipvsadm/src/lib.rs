//! The `ipvsadm` command over the director's control API: same words, same answers, same exit
//! codes as ipvsadm 1.31 over the kernel's IPVS.
//!
//! ```text
//!   words -> popt -> flags ... -> draft -> order -> commands -> control socket
//!            tokens  one struct   what was  what is      |
//!                    per flag     said      asked for    layout -> text
//!                                           (legality)
//! ```
//!
//! Everything but [`commands`], `listing` and [`restore`] is a pure function: words in, an [`order::Order`] or
//! a [`failure::Failure`] out; views of the API in, text out. A newcomer starts with [`flags`],
//! where each flag is one struct with its names, its help and its test.
//!
//! Names: a host given as a name is looked up by the system's resolver. Going back from addresses
//! and ports to names, as listings without `-n` do, reads `/etc/hosts` and `/etc/services` only:
//! the standard library has no reverse lookup, and a table of a thousand servers should not wait
//! for a name server.

#![forbid(unsafe_code)]

pub mod address;
pub mod commands;
pub mod draft;
pub mod failure;
pub mod flags;
pub mod help;
pub mod layout;
pub mod legality;
mod listing;
pub mod names;
pub mod order;
pub mod pages;
pub mod popt;
pub mod refusals;
pub mod restore;

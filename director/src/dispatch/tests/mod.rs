//! The pipeline in virtual time: clients, director and servers are stepped without a clock.

mod bed;
mod failure;
mod forwarding_methods;
mod fwmark;
mod lifetime;
mod persistence;
mod removal;
mod tunnel_errors;

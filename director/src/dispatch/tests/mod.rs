//! The pipeline in virtual time: clients, director and servers are stepped without a clock.

mod bed;
mod bypass;
mod established;
mod extras;
mod failure;
mod fork;
mod forwarding_methods;
mod fragments;
mod ftp;
mod ftp_services;
mod fwmark;
mod lifetime;
mod lost;
mod lost_lives;
mod malformed;
mod names;
mod one_packet;
mod persistence;
mod refusal;
mod removal;
mod sctp;
mod settings;
mod sip;
mod tunnel_errors;

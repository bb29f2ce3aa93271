//! The real worker over memory ports, in virtual time: what a client, a server and the kernel see
//! of it. Needs no root.

mod accounting;
mod bed;
mod checksums;
mod ending;
mod forwarding_methods;
mod fragments;
mod frames;
mod neighbours;
mod network;
mod passing;
mod port;
mod tapped;

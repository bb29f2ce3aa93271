//! Ports against the kernel: veth pairs in network namespaces that live as long as one test.
//!
//! Needs root; without it every test says so and passes. Nothing outside the namespaces is touched.

mod allocation;
mod frames;
mod interface;
mod lab;
mod packet;
mod program;
mod through;
mod xsk;
mod xsk_failures;

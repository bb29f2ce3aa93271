//! The agent on a kernel that has devices for tunnels: what the director sends arrives through them,
//! what is not ours stays as it is, and nothing stays behind.

mod bed;
mod by_hand;
mod standing;
mod unpacking;

/// The program that serves in the guest.
const LAB_BINARY: &str = env!("CARGO_BIN_EXE_switchyard-lab");

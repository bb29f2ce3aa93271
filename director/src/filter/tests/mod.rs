//! The filter at work in the kernel, packet by packet (`BPF_PROG_TEST_RUN`).
//!
//! Without root there is no program to ask, and these tests have nothing to say.

mod bed;
mod frames;
mod interface;
mod load;
mod memory;
mod packets;
mod policies;
mod property;
mod siphash;
mod sockets;

use netio::bpf::{Insn, LoadError, Program, ProgramType};

/// `None`, with a word about it, when the process may not load programs.
fn load(kind: ProgramType, insns: &[Insn]) -> Option<Program> {
    match Program::load(kind, "test", insns) {
        Err(LoadError::NotPermitted { .. }) => {
            eprintln!("skipped: needs root to load eBPF programs");
            None
        }
        program => Some(program.expect("the verifier takes it")),
    }
}

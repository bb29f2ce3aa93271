//! The filter at work in the kernel, packet by packet (`BPF_PROG_TEST_RUN`).

mod siphash;

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

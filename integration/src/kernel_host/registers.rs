//! Floating-point registers of the guest's programs, on processors with more of them than the
//! guest knows.
//!
//! The guest is a tracer: it saves and restores its programs' registers through `ptrace`, the
//! floating-point ones as one XSAVE area (`NT_X86_XSTATE`) for which it has room for AVX-512 and no
//! more. The machine's kernel accepts such an area only whole, so that on a processor with AMX or
//! APX the very first program of the guest dies. Told that there is no `PTRACE_GETREGSET`, the guest
//! falls back to the older `PTRACE_SETFPREGS`, which is the same on every processor but knows no
//! register wider than SSE's: the wider ones are lost at every page fault. So the guest's programs
//! must not use them; it is glibc that does, and glibc can be told. Our own programs, in a guest that is
//! a real server, cannot: `memchr` looks at the processor by itself, and on such a processor may be wrong.

use anyhow::{Context, Result};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Flags in `/proc/cpuinfo` of registers behind those of AVX-512 in the XSAVE area.
const BEYOND_THE_GUEST: [&str; 2] = ["amx_tile", "apx_f"];

/// `ptrace(PTRACE_GETREGSET, ...)`, from `<linux/ptrace.h>`.
const PTRACE_GETREGSET: u64 = 0x4204;
/// `ptrace`'s number on x86-64.
const PTRACE: i64 = 101;
const EIO: u32 = 5;

/// glibc's functions without AVX; as a boot parameter that the kernel does not know it becomes the
/// environment of the guest's first program, and so of all.
pub(super) const WITHOUT_AVX: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,\
    -AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load";

/// The filter of system calls that the guest needs on this machine's processor; with it go
/// [`WITHOUT_AVX`].
///
/// # Errors
/// When the filter cannot be built.
pub(super) fn filter() -> Result<Option<BpfProgram>> {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if beyond_the_guest(&processor) { refuse_register_sets().map(Some) } else { Ok(None) }
}

fn beyond_the_guest(processor: &str) -> bool {
    let flags = processor.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_whitespace().any(|flag| BEYOND_THE_GUEST.contains(&flag)))
}

fn refuse_register_sets() -> Result<BpfProgram> {
    let request =
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, PTRACE_GETREGSET)?;
    let rules = [(PTRACE, vec![SeccompRule::new(vec![request])?])];
    let filter = SeccompFilter::new(
        rules.into(),
        SeccompAction::Allow,
        SeccompAction::Errno(EIO),
        TargetArch::x86_64,
    )?;
    filter.try_into().context("build the system call filter")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_with_tiles_has_more_registers_than_the_guest_knows() {
        assert!(beyond_the_guest("model : x\nflags\t\t: fpu avx512f amx_tile amx_int8\n"));
        assert!(!beyond_the_guest("model : amx_tile\nflags\t\t: fpu avx512f pku\n"));
        assert!(!beyond_the_guest(""));
    }

    #[test]
    fn the_filter_can_be_built() {
        assert!(!refuse_register_sets().unwrap().is_empty());
    }
}

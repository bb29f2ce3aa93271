//! Closes system calls: those of [`open_calls`](super::open_calls) stay open. Everything else is refused with EPERM: to execute a program (unless there are checks
//! that do), to trace, mount, load modules, change users, namespaces, clocks, keys.
//!
//! New namespaces are refused too. `clone3` hides its flags from filters, so it is answered with
//! ENOSYS, whereupon the C library takes `clone`, whose flags are looked at.

use std::collections::BTreeMap;

use nix::libc::{self, ENOSYS, EPERM, SYS_clone, SYS_clone3, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::open_calls::open_calls;

/// Flags of `clone` that make namespaces.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP) as u64;

/// Closes all other calls for all threads of the process, without a way back, and gives up new privileges. Says how
/// many stay open.
///
/// # Errors
/// When the kernel has no filters, or this processor is not known.
pub(super) fn close(commands: bool) -> Result<usize, Box<dyn std::error::Error>> {
    let hidden = program(BTreeMap::from([(SYS_clone3, Vec::new())]), Hidden)?;
    let mut open: BTreeMap<c_long, Vec<SeccompRule>> =
        open_calls(commands).map(|call| (call, Vec::new())).collect();
    let is_no_namespace =
        SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(NAMESPACES), 0)?;
    open.insert(SYS_clone, vec![SeccompRule::new(vec![is_no_namespace])?]);
    let number = open.len();
    let listed = program(open, Listed)?;
    seccompiler::apply_filter_all_threads(&hidden)?;
    seccompiler::apply_filter_all_threads(&listed)?;
    Ok(number)
}

enum Kind {
    /// The calls of the list answer as if there were none.
    Hidden,
    /// The calls of the list are the only ones.
    Listed,
}
use Kind::{Hidden, Listed};

fn program(
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
    kind: Kind,
) -> Result<BpfProgram, Box<dyn std::error::Error>> {
    let (others, these) = match kind {
        Hidden => (SeccompAction::Allow, SeccompAction::Errno(ENOSYS as u32)),
        Listed => (SeccompAction::Errno(EPERM as u32), SeccompAction::Allow),
    };
    let processor = TargetArch::try_from(std::env::consts::ARCH)?;
    Ok(SeccompFilter::new(rules, others, these, processor)?.try_into()?)
}

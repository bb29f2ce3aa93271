//! Switchyard against the kernel: the same packets to both, and the same answers from both.
//!
//! Each scenario is described in `integration/src/parity/scenarios/` and can be watched with
//! `cargo xtask parity SCENARIO`.

mod kernel_host;

/// Whether the comparison can be made here; says why not.
fn possible() -> bool {
    let reasons = [integration::lab::supported(), integration::kernel_host::supported()];
    for reason in reasons.into_iter().filter_map(Result::err) {
        eprintln!("skipped: {reason:#}");
        return false;
    }
    true
}

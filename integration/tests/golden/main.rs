//! The real `ipvsadm` on the kernel's IPVS, and ours on a director: the same words, streams and exit
//! codes, byte by byte.
//!
//! The invocations are in `integration/src/golden/`. A test that fails shows both sides of every
//! invocation that was answered differently, the real tool's on the left.

mod ldirectord;
mod scripts;

use std::io::Write;

use integration::golden;

/// Whether the comparison can be made here; says why not.
fn possible() -> bool {
    match integration::lab::supported().and_then(|()| integration::kernel_host::supported()) {
        Ok(()) => true,
        Err(reason) => {
            eprintln!("skipped: {reason:#}");
            false
        }
    }
}

fn assert_equal(sections: &[golden::Section]) {
    if !possible() {
        return;
    }
    let report = golden::run(sections).unwrap_or_else(|error| panic!("{error:#}"));
    // To the terminal, also when the test passes.
    let _ = writeln!(std::io::stderr(), "golden: {} invocations equal", report.equal);
    assert!(report.is_equal(), "{report}");
}

#[test]
fn every_invocation_is_answered_as_by_the_real_tool() {
    assert_equal(&golden::all());
}

#[test]
fn what_traffic_has_left_is_listed_as_by_the_real_tool() {
    if !possible() {
        return;
    }
    let report = golden::run_after_traffic().unwrap_or_else(|error| panic!("{error:#}"));
    let _ = writeln!(std::io::stderr(), "golden: {} invocations equal after traffic", report.equal);
    assert!(report.is_equal(), "{report}");
}

#[test]
fn a_selection_is_answered_as_by_the_real_tool_quick() {
    let mut sections = golden::all();
    sections.retain(|section| section.quick);
    assert_equal(&sections);
}

//! A director that is gone.

use integration::topology::Kind;
use integration::written::{top, web};

use crate::bed::{Bed, can_run, dirctl};

/// Every command that asks the director.
const ASKING: [&[&str]; 14] = [
    &["status"],
    &["servers"],
    &["events"],
    &["settings"],
    &["plan", "/dev/null"],
    &["apply", "/dev/null"],
    &["confirm"],
    &["revert"],
    &["doctor"],
    &["drops"],
    &["capture", "-w", "/dev/null"],
    &["replay", "/dev/null"],
    &["explain", "tcp", "198.51.100.7:41000", "192.0.2.10:443"],
    &["top", "--once"],
];

#[test]
fn quick_every_command_says_in_one_line_that_the_director_is_gone() {
    if !can_run() {
        return;
    }
    let bed = Bed::with(Kind::Nat, &(top("copy") + &web(Kind::Nat, "rr", &[1])));
    let socket = bed.director.socket().clone();
    bed.director.stop().unwrap();
    for words in ASKING {
        let said = dirctl(&bed.topology.director, &socket, words);
        assert_eq!(said.code, Some(2), "{words:?}: {said:?}");
        let first = said.err.lines().next().unwrap_or_default();
        assert!(first.starts_with("dirctl: ") && said.out.is_empty(), "{words:?}: {said:?}");
    }
}

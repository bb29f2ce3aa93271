use std::time::{Duration, Instant};

use super::super::tests::{block_on, check, run, target};
use super::*;
use crate::health::plan::{Check, CheckKind};

fn shell(script: &str, timeout: u64) -> Check {
    let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    Check { timeout: Duration::from_millis(timeout), ..check(CheckKind::Exec(command)) }
}

fn address() -> SocketAddr {
    ([10, 0, 0, 11], 8080).into()
}

fn ran(script: &str) -> Outcome {
    run(&shell(script, 10_000), address())
}

fn failed(why: &str) -> Outcome {
    Outcome::Failed(why.to_owned())
}

#[test]
fn the_exit_code_decides_and_the_first_line_is_the_reason() {
    assert_eq!(ran("echo fine"), Outcome::PASSED);
    assert_eq!(ran("exit 1"), failed("exit code 1"));
    assert_eq!(ran("echo; echo disk full; echo more; exit 1"), failed("exit code 1: disk full"));
    assert_eq!(ran("printf '\\033[1mbold\\007' >&2; exit 77"), failed("exit code 77: [1mbold"));
    assert_eq!(ran("echo leaving; exit 2"), Outcome::Soft("exit code 2: leaving".to_owned()));
    assert_eq!(ran("kill -9 $$"), failed("killed by signal 9"));
}

#[test]
fn it_is_told_its_server_and_nothing_of_the_directors_environment() {
    let script = "test \"$SWITCHYARD_SERVER $SWITCHYARD_PORT $SWITCHYARD_VIP $SWITCHYARD_FORWARDING\" = \
                  '10.0.0.11 8080 192.0.2.10 nat' && test -n \"$SWITCHYARD_SERVICE\" && test -n \"$PATH\" && \
                  test -z \"$CARGO_MANIFEST_DIR\" && test -z \"$(cat)\"";
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert_eq!(ran(script), Outcome::PASSED);
}

#[test]
fn megabytes_neither_block_it_nor_are_kept() {
    let script = "head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2; echo late; exit 1";
    assert_eq!(ran(script), failed("exit code 1"));
    assert_eq!(run(&shell("yes", 200), address()), failed("timed out: y"));
}

/// Whether a process is there that has this as an argument. Not this test itself.
fn is_running(argument: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    })
}

#[test]
fn a_command_that_hangs_is_killed_with_all_it_has_started() {
    let begun = Instant::now();
    let script = "trap '' TERM; sleep 3901 & echo waiting; sleep 3902";
    assert_eq!(run(&shell(script, 200), address()), failed("timed out: waiting"));
    assert!(begun.elapsed() < Duration::from_secs(60));
    is_gone(&["3901", "3902"]);
}

#[test]
fn what_it_leaves_behind_is_killed_and_does_not_delay_it() {
    assert_eq!(ran("sleep 3903 & exit 0"), Outcome::PASSED);
    is_gone(&["3903"]);
}

#[test]
fn a_check_that_is_dropped_takes_its_command_along() {
    block_on(async {
        let check = shell("sleep 3904", 10_000);
        let target = target(address());
        let run = super::super::run(&check, &target);
        assert!(tokio::time::timeout(Duration::from_millis(200), run).await.is_err());
    });
    is_gone(&["3904"]);
}

/// A killed process takes its time to go.
fn is_gone(arguments: &[&str]) {
    let begun = Instant::now();
    while arguments.iter().any(|argument| is_running(argument)) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{arguments:?} still run");
        std::thread::yield_now();
    }
}

#[test]
fn what_cannot_be_run_says_nothing_of_the_server() {
    for command in [vec!["no-such-command-here"], vec!["/etc/passwd"], vec!["/"], vec![]] {
        let command = command.into_iter().map(str::to_owned).collect();
        let outcome = run(&check(CheckKind::Exec(command)), address());
        assert!(matches!(outcome, Outcome::Unable(_)), "{outcome:?}");
    }
}

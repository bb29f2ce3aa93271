//! What the command does beyond ipvsadm, against a director whose table is in memory.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::table::Served;

fn run(served: &Served, line: &str, input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ipvsadm"))
        .args(line.split_whitespace())
        .env("SWITCHYARD_SOCKET", &served.path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Standard output of a run that must succeed in silence.
#[track_caller]
fn said(served: &Served, line: &str, input: &str) -> String {
    let output = run(served, line, input);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), complaint.as_str()), (Some(0), ""), "{line}");
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code and standard error.
fn failed(served: &Served, line: &str, input: &str) -> (Option<i32>, String) {
    let output = run(served, line, input);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

const RULES: &str = "\
-A -f 7 -s wlc
-A -t 10.0.0.1:80 -s rr
-a -t 10.0.0.1:80 -r 10.0.0.12:80 -g -w 1
-a -t 10.0.0.1:80 -r 10.0.0.11:80 -g -w 1
";

#[test]
fn a_long_restore_takes_few_requests_and_complains_in_order() {
    let served = Served::new();
    let mut rules = String::new();
    for mark in 1..=5000 {
        rules.push_str(&format!("-A -f {mark}\n"));
    }
    rules.push_str("-A -f 1\n-A -f 5001\n-A -f 2 -s fifo\n-A -f 3\n");
    let (code, complaints) = failed(&served, "-R", &rules);
    let exists = "Service already exists\n";
    assert_eq!((code, complaints), (Some(255), exists.repeat(3)));
    assert_eq!(said(&served, "-Sn", "").lines().count(), 5001);
    let batches = served.batches();
    assert_eq!(batches.iter().sum::<usize>(), 5004);
    assert!(batches.len() <= 10, "{batches:?}");
}

#[test]
fn what_stands_between_changes_sees_those_before_it() {
    let served = Served::new();
    let listed = said(&served, "-R", "-A -f 1\n-Sn\n-A -f 2\n-Sn\n");
    assert_eq!(listed, "-A -f 1 -s wlc\n-A -f 1 -s wlc\n-A -f 2 -s wlc\n");
    // And what stands before a usage error is done.
    assert_eq!(failed(&served, "-R", "-A -f 3\n-A\n-A -f 4\n").0, Some(2));
    assert_eq!(said(&served, "-Sn", "").lines().count(), 3);
}

#[test]
fn commands_that_are_typed_are_carried_out_before_the_next_is_typed() {
    let served = Served::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ipvsadm"))
        .arg("-R")
        .env("SWITCHYARD_SOCKET", &served.path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for (line, count) in [("-A -f 1\n\n", 1), ("-A -f 2\n", 2)] {
        input.write_all(line.as_bytes()).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while said(&served, "-Sn", "").lines().count() != count {
            assert!(std::time::Instant::now() < deadline, "{line}");
        }
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn atomic_restore_does_all_or_nothing_and_names_the_line() {
    let served = Served::new();
    assert_eq!(said(&served, "-R --atomic", RULES), "");
    let before = said(&served, "-Sn", "");
    for (rules, code, place) in [
        ("-C\n\n-A -f 1\n-A -f 1\n", 255, "line 4: Service already exists\n"),
        ("-C\n-A -f 1 -w 1\n", 2, "line 2: Illegal 'weight' option"),
        ("-C\n-A --foo\n", 255, "line 2: --foo: unknown option\n"),
        ("-C\n-Ln\n", 2, "line 2: only changes can be all or nothing\n"),
        ("# saved\n-C\n", 255, "line 1: Try `ipvsadm -h'"),
    ] {
        let (found, complaint) = failed(&served, "-R --atomic", rules);
        assert_eq!(found, Some(code), "{rules}");
        assert!(complaint.starts_with(place), "{complaint}");
        assert!(complaint.ends_with("Nothing has been changed.\n"), "{complaint}");
        assert_eq!(said(&served, "-Sn", ""), before, "{rules}");
    }
    said(&served, "-R --atomic", "-C\n-A -f 1\n");
    assert_eq!(said(&served, "-Sn", ""), "-A -f 1 -s wlc\n");
}

#[test]
fn everything_saved_rebuilds_the_same_table_in_the_same_order() {
    let served = Served::new();
    let rules = "--set 100 200 300\n\
        -A -f 7 -s wlc\n\
        -A -t 10.0.0.1:80 -s rr --service-timeouts 7200,0,0 --gone-server rst --mss-clamp 1400\n\
        -A -t 10.0.0.2:80 -s wlc --bias ilb:4 --bias-window 500 --teardown eager\n\
        -A -u 10.0.0.3:53 -s dht --hash-key dns-name --sticky --variants 64\n\
        -A -t 10.0.0.4:80 -s mh -b mh-port --hash-key tuple\n\
        -a -t 10.0.0.1:80 -r 10.0.0.12:80 -g -w 1 -x 10 -y 5\n\
        -a -t 10.0.0.1:80 -r 10.0.0.11:80 -g -w 1\n";
    said(&served, "-R", rules);
    let saved = said(&served, "-S --full", "");
    let again = Served::new();
    said(&again, "-R", &saved);
    for listing in ["-L --json --nosort", "-L --json --timeout"] {
        assert_eq!(said(&again, listing, ""), said(&served, listing, ""), "{listing}");
    }
    // Without the word everything is as ipvsadm has it.
    assert!(!said(&served, "-Sn", "").contains("-x"));
}

#[test]
fn every_listing_can_be_had_as_json() {
    let served = Served::new();
    let json = |line: &str| -> serde_json::Value {
        serde_json::from_str(&said(&served, line, ""))
            .unwrap_or_else(|error| panic!("{line}: {error}"))
    };
    assert_eq!(json("-L --json"), serde_json::json!([]));
    said(&served, "-R", RULES);
    let services = json("-L --json");
    assert_eq!(services[0]["address"], "10.0.0.1:80");
    assert_eq!(services[0]["servers"].as_array().unwrap().len(), 2);
    assert_eq!(services[1]["fwmark"], 7);
    assert_eq!(json("-L --json --nosort")[0]["fwmark"], 7);
    assert_eq!(json("-L --json -f 7").as_array().unwrap().len(), 1);
    assert_eq!(json("-L --timeout --json")["tcp_fin"], 120);
    assert_eq!(json("-L --daemon --json"), serde_json::json!([]));
    assert_eq!(json("-Lc --json").as_array().unwrap().len(), 2000);
    assert_eq!(json("-Lc --json --state SYN_RECV"), serde_json::json!([]));
}

#[test]
fn connections_are_filtered() {
    let served = Served::new();
    let count = |line: &str| said(&served, line, "").lines().count() - 2;
    assert_eq!(count("-Lnc --client 10.0.0.0/8 --state established"), 2000);
    assert_eq!(count("-Lnc --service 10.0.0.1:80/tcp --server 10.0.0.11"), 2000);
    assert_eq!(count("-Lnc --client 10.0.0.1"), 1000);
    assert_eq!(count("-Lnc --client 10.0.0.201"), 0);
    assert_eq!(count("-Lnc --service 10.0.0.1:80/udp"), 0);
    let (code, complaint) = failed(&served, "-Lnc --client 10.0.0.1/8", "");
    assert_eq!(code, Some(2));
    assert!(complaint.contains("10.0.0.1/8"), "{complaint}");
}

/// Runs the command with so little memory (MiB of address space) that the whole of what it lists, as it
/// comes over the socket, would not fit; gives the number of lines.
fn lines_within(served: &Served, mebibytes: u32, line: &str) -> usize {
    let script = format!("ulimit -v {}; exec \"$0\" {line}", mebibytes * 1024);
    let mut child = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_ipvsadm")])
        .env("SWITCHYARD_SOCKET", &served.path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut count = 0;
    let mut text = Vec::new();
    while std::io::BufRead::read_until(&mut output, b'\n', &mut text).unwrap() > 0 {
        text.clear();
        count += 1;
    }
    assert!(child.wait().unwrap().success(), "{line}");
    count
}

#[test]
fn long_listings_take_no_more_memory_than_short_ones() {
    // 400,000 connections are 60 MiB on the socket.
    let served = Served::with_connections(400);
    for line in ["-Lnc", "-Lnc --persistent-conn", "-Lnc --json"] {
        assert_eq!(lines_within(&served, 24, line), 400_002, "{line}");
    }
    assert_eq!(lines_within(&served, 24, "-Lnc --client 10.0.1.0/24"), 144_002);
    // 2,000 services of 20 servers are 12 MiB on the socket.
    let mut rules = String::new();
    for mark in 1..=2000 {
        rules.push_str(&format!("-A -f {mark}\n"));
        for server in 1..=20 {
            rules.push_str(&format!("-a -f {mark} -r 10.0.0.{server}\n"));
        }
    }
    said(&served, "-R", &rules);
    assert_eq!(lines_within(&served, 24, "-Ln --nosort"), 3 + 42_000);
    assert_eq!(lines_within(&served, 24, "-Ln --nosort --json"), 2 + 2000);
    assert_eq!(lines_within(&served, 24, "-Ln"), 3 + 42_000);
}

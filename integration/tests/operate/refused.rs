//! Files that are not applied, and output that cannot be written.

use std::fs;

use integration::cluster::Cluster;
use integration::programs;
use integration::topology::VIP_V4;

use crate::bed::{can_run, dirctl};
use crate::trial::{PATIENCE, Trial, ends};

#[test]
fn a_bad_file_is_told_as_check_tells_it_and_changes_nothing_and_costs_no_connection() {
    if !can_run() {
        return;
    }
    let trial = Trial::usual();
    let bed = &trial.bed;
    let before = trial.listing();
    let bad = trial.own.replacen("\"rr\"", "\"rrr\"", 1).replacen("weight = 1", "wieght = 1", 1);
    let path = trial.file("bad.toml", &bad);
    let director = bed.topology.director.command(programs::path("director").unwrap());
    let checked = director.args(["--check", "--config", &path]).output(PATIENCE).unwrap();
    let checked = String::from_utf8(checked.stderr).unwrap();
    assert!(checked.contains("bad.toml:") && checked.contains("wieght"), "{checked}");
    let tally = std::thread::scope(|scope| {
        let fetching = scope.spawn(|| bed.fetch(VIP_V4, 80, 500));
        for words in [["plan", &path], ["apply", &path]] {
            let said = bed.dirctl(&words);
            ends(&said, 64);
            assert_eq!(said.err, checked, "{words:?}");
        }
        // The last service cannot be: no part of the file is followed.
        let late = trial.other().replace("weight = 1\n", "weight = 99999999999\n");
        ends(&bed.dirctl(&["apply", &trial.file("late.toml", &late)]), 64);
        ends(&bed.dirctl(&["apply", "/nonexistent.toml"]), 64);
        ends(&bed.dirctl(&["plan", "/"]), 64);
        fetching.join().unwrap()
    });
    assert_eq!((tally.answered(), tally.failed()), (500, 0), "{tally:?}");
    assert_eq!(trial.listing(), before);
    assert_eq!(bed.director.status().unwrap().warnings, [""; 0]);
}

#[test]
fn keys_that_need_a_restart_are_refused_by_name_and_the_rest_can_be_had() {
    if !can_run() {
        return;
    }
    let trial = Trial::usual();
    let bed = &trial.bed;
    let before = trial.listing();
    let config = trial.other().replace("\"copy\"", "\"packet\"");
    let path = trial.file("new.toml", &config);
    bed.dirctl(&["plan", &path]).names(&["! only a restart follows: io"]);
    let refused = bed.dirctl(&["apply", &path]);
    ends(&refused, 1);
    assert!(refused.err.contains("io") && refused.err.contains("--ignore-restart"), "{refused:?}");
    assert_eq!(trial.listing(), before);
    ends(&bed.dirctl(&["apply", &path, "--ignore-restart"]), 0);
    assert!(trial.listing().contains("192.0.2.10:8080"));
    bed.dirctl(&["status"]).names(&["io differ in", "restart the director"]);
    ends(
        &bed.dirctl(&[
            "apply",
            &trial.file("nlb.toml", &config.replace("dispatcher", "nlb")),
            "--ignore-restart",
        ]),
        64,
    );
}

#[test]
fn quick_an_output_that_cannot_be_written_is_an_error_and_a_reader_that_left_is_none() {
    if !can_run() {
        return;
    }
    let trial = Trial::usual();
    let program = programs::path("dirctl").unwrap();
    let path = trial.file("new.toml", &trial.other());
    let shell = |script: &str| {
        let host = &trial.bed.topology.director;
        let command =
            host.command("bash").args(["-c", &format!("{script}; exit ${{PIPESTATUS[0]}}")]);
        let command = command.env("SWITCHYARD_SOCKET", trial.bed.director.socket());
        let output = command.output(PATIENCE).unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for words in [
        "status",
        "servers",
        "settings",
        "drops --all",
        "--help",
        "servers --json",
        &format!("plan {path}"),
    ] {
        let dirctl = program.display();
        let (code, error) = shell(&format!("{dirctl} {words} >/dev/full"));
        assert_eq!(code, Some(3), "{words}: {error}");
        assert!(error.contains("cannot be written"), "{words}: {error}");
        let (code, error) = shell(&format!("{dirctl} {words} | true"));
        assert!(code != Some(3) && error.is_empty(), "{words}: {code:?} {error}");
    }
}

#[test]
fn a_node_of_mode_nlb_refuses_files_by_name_and_says_the_way_to_do_it() {
    if !can_run() {
        return;
    }
    let cluster = Cluster::build("apply", 1).unwrap();
    let config = cluster.config("nlb", "", "");
    let node = cluster.start_node(1, &config).unwrap();
    let path = cluster.lab.logs().join("new.toml");
    fs::write(&path, &config).unwrap();
    let path = path.display().to_string();
    for words in [&["plan", &path][..], &["apply", &path], &["confirm"], &["revert"]] {
        let said = dirctl(&cluster.hosts[0], node.socket(), words);
        ends(&said, 3);
        assert!(
            said.err.contains("mode \"nlb\"") && said.err.contains("dirctl nlb reload"),
            "{said:?}"
        );
    }
}

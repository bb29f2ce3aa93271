//! `dirctl top` on a terminal: keys, sizes, a director that goes and comes, and how it ends.

use std::time::Duration;

use integration::cluster::Cluster;
use integration::glass::Glass;
use integration::programs;
use integration::running::Director;
use integration::topology::{Kind, VIP_V4};
use integration::written::{service, top};
use nix::sys::signal::Signal;

use crate::bed::{Bed, can_run, dirctl};

const SOON: Duration = Duration::from_secs(30);

fn config() -> String {
    top("copy")
        + &service(Kind::Nat, VIP_V4, 80, "rr", "check = \"tcp\"", &[10, 20])
        + &service(Kind::Nat, VIP_V4, 81, "rr", "", &[1])
}

/// The view on a terminal of this size.
fn open(director: &Director, columns: usize, rows: usize) -> Glass {
    let program = programs::path("dirctl").unwrap();
    let [program, socket] = [&program, director.socket()].map(|path| path.to_str().unwrap());
    let command = [program, "--socket", socket, "top", "--interval", "0.2"];
    Glass::start(&command, columns, rows).unwrap()
}

fn line<'a>(text: &'a str, word: &str) -> &'a str {
    text.lines().find(|line| line.contains(word)).unwrap_or_default()
}

#[test]
fn keys_and_sizes_change_the_view_and_a_director_that_returns_is_shown_again() {
    if !can_run() {
        return;
    }
    let bed = Bed::with(Kind::Nat, &config());
    let mut glass = open(&bed.director, 80, 24);
    let has = |word: &'static str| move |text: &str| text.contains(word);
    glass.wait_until(SOON, has("2 services: 2 up")).unwrap();
    assert_eq!(glass.is_taken(), [true, true]);

    // Connections appear, at the service and at its servers.
    assert_eq!(bed.fetch(VIP_V4, 80, 50).failed(), 0);
    let counted = |text: &str| {
        line(text, ":80/tcp").contains("   50 ")
            && line(text, "10.77.0.12:80 ").contains(" up         20     0    25 ")
    };
    let seen = glass.wait_until(SOON, counted).unwrap();

    // Enter hides the servers of the first service, `/` leaves only what is meant, Esc ends that.
    let first = seen.lines().nth(5).unwrap_or_default().to_owned();
    glass.press("\r").unwrap();
    let shorter = |text: &str| text.matches("10.77.0.").count() < seen.matches("10.77.0.").count();
    glass.wait_until(SOON, shorter).unwrap();
    glass.press("\r/:81\r").unwrap();
    glass.wait_until(SOON, |text| !text.contains(":80/tcp") && text.contains(":81/tcp")).unwrap();
    glass.press("\u{1b}").unwrap();
    glass.wait_until(SOON, |text| text.contains(&first[..10])).unwrap();
    glass.press("?").unwrap();
    glass.wait_until(SOON, has("sort by the column")).unwrap();
    glass.press("?d").unwrap();
    glass.wait_until(SOON, |text| line(text, "sent_nat").contains("forwarded")).unwrap();
    glass.press("d").unwrap();

    glass.resize(60, 24).unwrap();
    glass.wait_until(SOON, |text| text.trim() == "needs 80x16, this is 60x24").unwrap();
    glass.resize(120, 40).unwrap();
    glass.wait_until(SOON, has(":81/tcp")).unwrap();

    let Bed { topology, director } = bed;
    director.stop().unwrap();
    glass.wait_until(SOON, has("is not running")).unwrap();
    assert!(glass.text().contains(":81/tcp"), "what was seen last stays:\n{}", glass.text());
    let director = Director::start(&topology.lab, &topology.director, &config()).unwrap();
    glass.wait_until(SOON, |text| !text.contains("trying again")).unwrap();

    glass.press("q").unwrap();
    assert_eq!(glass.ended(SOON).unwrap(), Some(0));
    glass.is_restored(SOON).unwrap();
    director.stop().unwrap();
}

#[test]
fn every_way_to_end_gives_the_terminal_back() {
    if !can_run() {
        return;
    }
    let bed = Bed::with(Kind::Nat, &config());
    let ends: [(&str, Option<Signal>); 4] = [
        ("\u{3}", None),
        ("", Some(Signal::SIGTERM)),
        ("", Some(Signal::SIGINT)),
        ("", Some(Signal::SIGHUP)),
    ];
    for (keys, signal) in ends {
        let mut glass = open(&bed.director, 80, 24);
        glass.wait_until(SOON, |text| text.contains(":81/tcp")).unwrap();
        glass.press(keys).unwrap();
        if let Some(signal) = signal {
            glass.signal(signal).unwrap();
        }
        assert_eq!(glass.ended(SOON).unwrap(), Some(0), "{keys:?} {signal:?}");
        glass.is_restored(SOON).unwrap();
    }
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_script_gets_plain_frames_and_is_told_that_a_view_needs_a_terminal() {
    if !can_run() {
        return;
    }
    let bed = Bed::with(Kind::Nat, &config());
    let said = bed.dirctl(&["top"]);
    assert_eq!(said.code, Some(64), "{said:?}");
    assert!(said.err.contains("dirctl status"), "{said:?}");
    let said = bed.dirctl(&["top", "--batch", "2", "--interval", "0.1", "--sort", "name"]);
    assert_eq!((said.code, said.out.matches("service, server").count()), (Some(0), 2), "{said:?}");
    said.names(&[":80/tcp", ":81/tcp", "10.77.0.12:80", "eth0"]);
    assert!(!said.out.contains('\u{1b}'));
    for wrong in [&["--interval", "0"][..], &["--interval", "inf"], &["--batch", "0"]] {
        let said = bed.dirctl(&[&["top"], wrong].concat());
        assert_eq!(said.code, Some(64), "{said:?}");
    }
    bed.director.stop().unwrap();
}

#[test]
fn a_cluster_shows_hosts_and_shares_and_a_host_that_stops() {
    if !can_run() {
        return;
    }
    let cluster = Cluster::build("top", 3).unwrap();
    let mut nodes = cluster.start_nodes(&cluster.config("nlb", "", "")).unwrap();
    let socket = nodes[0].socket().clone();
    let mut glass = open(&nodes[0], 80, 24);
    // Every host a third, within what cannot be divided.
    let thirds =
        |text: &str| text.matches(" 33.3%").count() == 3 && text.matches(" converged").count() == 4;
    glass.wait_until(SOON, thirds).unwrap();
    let said = dirctl(&cluster.hosts[0], &socket, &["top", "--once"]);
    assert!(said.code == Some(0) && thirds(&said.out), "{said:?}");
    said.names(&["cluster 10.78.0.10, seen by host 1", "tcp 80 ", "enabled"]);

    assert!(nodes.pop().unwrap().process().stop().unwrap().success());
    glass.wait_until(SOON, |text| text.matches(" 50.0%").count() == 2).unwrap();
    glass.press("q").unwrap();
    assert_eq!(glass.ended(SOON).unwrap(), Some(0));
    glass.is_restored(SOON).unwrap();
    for node in nodes {
        assert!(node.process().stop().unwrap().success(), "{}", node.process().log());
    }
}

/// A terminal may claim any size, and every cell of it would be memory.
#[test]
fn quick_a_terminal_that_claims_to_be_enormous_is_refused_in_one_line() {
    if !can_run() {
        return;
    }
    let bed = Bed::with(Kind::Nat, &config());
    let mut glass = open(&bed.director, 80, 24);
    glass.wait_until(SOON, |text| text.contains(":81/tcp")).unwrap();
    glass.resize(65_535, 65_535).unwrap();
    assert_eq!(glass.ended(SOON).unwrap(), Some(3));
    bed.director.stop().unwrap();
}

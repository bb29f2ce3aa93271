//! Another file for a running director: planned, applied, confirmed, rolled back, under traffic.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use director::control::health::HealthState;
use director::control::plan::ApplyRequest;
use integration::http::Plan;
use integration::topology::{DIRECTOR_INSIDE, Kind, VIP_V4, VIP_V6};
use integration::written::{service, top};
use nix::sys::signal::Signal;

use crate::bed::can_run;
use crate::trial::{PATIENCE, Trial, ends};

#[test]
fn a_plan_names_all_that_an_apply_then_does_and_confirmed_and_saved_it_outlives_a_reload() {
    if !can_run() {
        return;
    }
    let trial = Trial::usual();
    let bed = &trial.bed;
    let own = trial.own_path();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o640)).unwrap();
    let same = bed.dirctl(&["plan", &own.display().to_string()]);
    ends(&same, 0);
    same.names(&["nothing would change"]);
    let before = trial.listing();
    let path = trial.file("new.toml", &trial.other());
    let plan = bed.dirctl(&["plan", &path]);
    ends(&plan, 1);
    let changes = [
        "1 service added, 1 service changed",
        "~ service [2001:db8:1::10]:80/tcp",
        "scheduler rr -> wlc",
        "its scheduler begins anew",
        "~ server [fd77::12]:80: weight 2 -> 0",
        "+ server [fd77::13]:80: forwarding nat, weight 5",
        "+ service 192.0.2.10:8080/tcp",
    ];
    plan.names(&changes);
    assert!(!plan.out.contains("192.0.2.10:80/tcp"), "it stays as it is:\n{}", plan.out);
    assert_eq!(trial.listing(), before, "a plan changes nothing");

    let applied = bed.dirctl(&["apply", &path, "--confirm", "1h", "--save"]);
    ends(&applied, 0);
    applied.names(&changes);
    applied.names(&["rolled back in 3600 s", "dirctl confirm", "saved when it is confirmed"]);
    let after = trial.listing();
    assert!(after.contains("192.0.2.10:8080") && after.contains("wlc"), "{after}");
    let status = bed.dirctl(&["status"]);
    ends(&status, 1);
    status.names(&["new.toml waits to be confirmed and is rolled back in 3"]);
    ends(&bed.dirctl(&["apply", &path]), 1);
    assert_ne!(fs::read(&own).unwrap(), fs::read(&path).unwrap(), "not yet");
    let confirmed = bed.dirctl(&["confirm"]);
    ends(&confirmed, 0);
    confirmed.names(&["it stays", "Saved"]);
    assert_eq!(fs::read(&own).unwrap(), fs::read(&path).unwrap());
    assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o640);
    let late = bed.dirctl(&["confirm"]);
    ends(&late, 1);
    assert!(late.err.contains("confirmed already"), "{late:?}");
    bed.director.process().signal(Signal::SIGHUP).unwrap();
    bed.director.process().wait_for_log("reloaded: 0 changes", PATIENCE).unwrap();
    assert_eq!(trial.listing(), after);
    ends(&bed.dirctl(&["status"]), 0);
    let events = bed.dirctl(&["events"]);
    events.names(&["file_applied", "new.toml applied", "file_confirmed", "file_reloaded"]);
}

#[test]
fn unconfirmed_it_is_rolled_back_though_the_client_is_gone_and_a_failed_server_stays_down() {
    if !can_run() {
        return;
    }
    let check =
        r#"check = { type = "tcp", interval = "200ms", timeout = "150ms", rise = 100, fall = 2 }"#;
    let config = top("copy") + &service(Kind::Nat, VIP_V4, 80, "rr", check, &[1, 2]);
    let trial = Trial::of(config);
    let bed = &trial.bed;
    let down = || {
        let servers = bed.director.client().unwrap().servers().unwrap();
        servers
            .iter()
            .any(|it| it.address.to_string() == "10.77.0.11:80" && it.state == HealthState::Down)
    };
    bed.topology.servers[0].set_up("eth0", false).unwrap();
    let begin = Instant::now();
    while !down() {
        assert!(begin.elapsed() < PATIENCE, "nobody is down");
        std::thread::sleep(Duration::from_millis(50));
    }
    bed.director
        .ipvsadm(&["-e", "-t", "192.0.2.10:80", "-r", "10.77.0.12:80", "-m", "-w", "7"])
        .unwrap();
    let before = trial.listing();
    // The service goes, and with it what is known of its servers; a client that never reads the answer.
    let text =
        fs::read_to_string(trial.file("other.toml", &trial.other().replace(":80/tcp", ":81/tcp")))
            .unwrap();
    let request = ApplyRequest {
        file: "other.toml".to_owned(),
        text,
        confirm: Some(4),
        save: true,
        ignore_restart: false,
    };
    let body = serde_json::to_string(&request).unwrap();
    let mut client = UnixStream::connect(bed.director.socket()).unwrap();
    let length = body.len();
    write!(client, "POST /v1/apply HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}")
        .unwrap();
    let begin = Instant::now();
    while !trial.waits() {
        assert!(begin.elapsed() < PATIENCE, "{}", bed.director.process().log());
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(client);
    // It is well again, and must still rise: nothing but memory says that it is down.
    bed.topology.servers[0].set_up("eth0", true).unwrap();
    bed.topology.servers[0].route("0.0.0.0/0", &DIRECTOR_INSIDE[0].to_string()).unwrap();
    let during = trial.listing();
    assert!(during.contains(":81 ") && !during.contains("192.0.2.10:80 "), "{during}");
    trial.wait_for_listing(&before);
    assert!(down(), "it was down, and nobody has found it up");
    let status = bed.dirctl(&["status"]);
    ends(&status, 1);
    status.names(&["other.toml was not confirmed within 4 s and was rolled back"]);
    bed.dirctl(&["events"]).names(&["file_rolled_back", "other.toml was not confirmed"]);
    assert!(!fs::read_to_string(trial.own_path()).unwrap().contains(":81"), "nothing is saved");
    let late = bed.dirctl(&["confirm"]);
    ends(&late, 1);
    assert!(late.err.contains("was rolled back"), "{late:?}");
    let tally = bed.fetch(VIP_V4, 80, 20);
    assert_eq!((tally.answered(), tally.failed()), (20, 0), "{tally:?}");
}

#[test]
fn a_service_that_is_not_concerned_loses_no_request_to_an_apply_and_its_rollback() {
    if !can_run() {
        return;
    }
    let trial = Trial::usual();
    let bed = &trial.bed;
    let before = trial.listing();
    let path = trial.file("new.toml", &trial.other());
    let mut rounds = 0;
    let tally = std::thread::scope(|scope| {
        let fetching = scope.spawn(|| bed.fetch(VIP_V4, 80, 3000));
        while !fetching.is_finished() || rounds == 0 {
            ends(&bed.dirctl(&["apply", &path, "--confirm", "1s"]), 0);
            trial.wait_for_listing(&before);
            rounds += 1;
        }
        fetching.join().unwrap()
    });
    println!("{rounds} rounds during 3000 requests in {:.1} s", tally.seconds);
    assert_eq!((tally.answered(), tally.failed()), (3000, 0), "{tally:?}");
    // What was taken back works as before.
    let tally = bed.fetch(VIP_V6, 80, 60);
    assert_eq!((tally.answered(), tally.failed()), (60, 0), "{tally:?}");
    assert_eq!(tally.by_server["server2"], 30, "{tally:?}");
}

#[test]
fn servers_are_exchanged_without_a_moment_without_one_and_a_removed_ones_connection_is_found_again()
{
    if !can_run() {
        return;
    }
    let trial = Trial::of(top("copy") + &service(Kind::Nat, VIP_V4, 80, "rr", "", &[1]));
    let bed = &trial.bed;
    let second = trial.own.replace("10.77.0.11", "10.77.0.12");
    let path = trial.file("second.toml", &second);
    let vip = SocketAddr::new(VIP_V4, 80);
    let connect = || TcpStream::connect_timeout(&vip, PATIENCE).unwrap();
    let mut old = bed.topology.client.run(connect).unwrap();
    old.set_read_timeout(Some(PATIENCE)).unwrap();
    let tally = std::thread::scope(|scope| {
        let plan = Plan { concurrency: 1, ..Plan::new(vip, 2000) };
        let fetching = scope.spawn(move || bed.topology.fetch(&plan, |_| {}).unwrap());
        while !fetching.is_finished() {
            let said = bed.dirctl(&["apply", &path, "--confirm", "1h"]);
            ends(&said, 0);
            said.names(&[
                "+ server 10.77.0.12:80",
                "- server 10.77.0.11:80",
                "gone_server = \"drop\"",
            ]);
            std::thread::sleep(Duration::from_millis(100));
            ends(&bed.dirctl(&["revert"]), 0);
            std::thread::sleep(Duration::from_millis(100));
        }
        fetching.join().unwrap()
    });
    println!("{:?} in {:.1} s", tally.by_server, tally.seconds);
    // A request whose server goes in the middle of it waits for it to return.
    assert_eq!((tally.answered(), tally.failed()), (2000, 0), "{tally:?}");
    assert_eq!(tally.by_server.len(), 2, "both had their turn: {tally:?}");
    old.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    old.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("server1"), "{answer}");
}

#[test]
fn a_reload_does_not_come_in_between_and_single_changes_stay() {
    if !can_run() {
        return;
    }
    let trial = Trial::usual();
    let bed = &trial.bed;
    let before = trial.listing();
    let path = trial.file("new.toml", &trial.other());
    ends(&bed.dirctl(&["apply", &path, "--confirm", "1h"]), 0);
    let during = trial.listing();
    bed.director.process().signal(Signal::SIGHUP).unwrap();
    bed.director.process().wait_for_log("reload refused", PATIENCE).unwrap();
    assert_eq!(trial.listing(), during);
    bed.dirctl(&["status"]).names(&["the last reload was refused: "]);
    // On a service that the file has not changed, and on one of nobody's.
    bed.director
        .ipvsadm(&["-e", "-t", "192.0.2.10:80", "-r", "10.77.0.11:80", "-m", "-w", "9"])
        .unwrap();
    bed.director.ipvsadm(&["-A", "-t", "192.0.2.10:99", "-s", "rr"]).unwrap();
    let reverted = bed.dirctl(&["revert"]);
    ends(&reverted, 0);
    reverted.names(&["all is as before"]);
    let after = trial.listing();
    assert!(
        after.contains("-r 10.77.0.11:80 -m -w 9") && after.contains("192.0.2.10:99"),
        "{after}"
    );
    let kept: Vec<&str> =
        after.lines().filter(|line| !line.contains("99") && !line.contains("-w 9")).collect();
    let old: Vec<&str> = before.lines().filter(|line| !line.contains("10.77.0.11:80")).collect();
    assert_eq!(kept, old);

    // Both at once, again and again: each is done as a whole or refused.
    std::thread::scope(|scope| {
        let hangups = scope.spawn(|| {
            for _ in 0..50 {
                bed.director.process().signal(Signal::SIGHUP).unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        for _ in 0..10 {
            ends(&bed.dirctl(&["apply", &path, "--confirm", "1h"]), 0);
            assert!(trial.listing().contains("192.0.2.10:8080"), "no reload undoes it");
            ends(&bed.dirctl(&["revert"]), 0);
        }
        hangups.join().unwrap();
    });
    trial.wait_for_listing(&after);
}

#[test]
fn what_runs_is_named_until_it_is_saved_and_what_somebody_wrote_meanwhile_is_not_lost() {
    if !can_run() {
        return;
    }
    let trial = Trial::usual();
    let bed = &trial.bed;
    let (own, path) = (trial.own_path(), trial.file("new.toml", &trial.other()));
    ends(&bed.dirctl(&["apply", &path]), 0);
    let status = bed.dirctl(&["status"]);
    ends(&status, 0);
    status.names(&["new.toml, applied and not saved", &own.display().to_string()]);

    let theirs = format!("{}# by a colleague\n", trial.own);
    fs::write(&own, &theirs).unwrap();
    let refused = bed.dirctl(&["apply", &path, "--save"]);
    ends(&refused, 1);
    refused.names(&["nothing has changed", "NOT saved", "somebody has changed it"]);
    assert_eq!(fs::read_to_string(&own).unwrap(), theirs);

    fs::copy(&path, &own).unwrap();
    let same = bed.dirctl(&["apply", &own.display().to_string()]);
    ends(&same, 0);
    same.names(&["says the same"]);
    let status = bed.dirctl(&["status"]);
    assert!(!status.out.contains("not saved"), "{status:?}");
}

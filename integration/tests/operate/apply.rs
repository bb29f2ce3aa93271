//! Another file for a running director: what is planned, applied, confirmed, rolled back, refused.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use director::control::health::HealthState;
use director::control::plan::ApplyRequest;
use integration::cluster::Cluster;
use integration::http::Plan;
use integration::programs;
use integration::topology::{DIRECTOR_INSIDE, Kind, VIP_V4, VIP_V6};
use integration::written::{service, top, web};
use nix::sys::signal::Signal;

use crate::bed::{Bed, Said, can_run, dirctl};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A bed, and files beside the director's own.
struct Trial {
    bed: Bed,
    own: String,
}

impl Trial {
    /// A director that follows `config`.
    fn of(config: String) -> Trial {
        Trial { bed: Bed::with(Kind::Nat, &config), own: config }
    }

    /// Two services of which tests change one.
    fn usual() -> Trial {
        Trial::of(top("copy") + &web(Kind::Nat, "rr", &[1, 2]))
    }

    fn own_path(&self) -> PathBuf {
        PathBuf::from(self.bed.director.status().unwrap().config.unwrap())
    }

    /// The path of a file with this content, and with the director's control socket.
    fn file(&self, name: &str, config: &str) -> String {
        let path = self.bed.topology.lab.logs().join(name);
        let socket = self.bed.director.socket().display();
        fs::write(&path, format!("control = \"{socket}\"\n{config}")).unwrap();
        path.display().to_string()
    }

    /// The IPv6 service by another scheduler, over other servers; one service more.
    fn other(&self) -> String {
        top("copy")
            + &service(Kind::Nat, VIP_V4, 80, "rr", "", &[1, 2])
            + &service(Kind::Nat, VIP_V6, 80, "wlc", "", &[1, 0, 5])
            + &service(Kind::Nat, VIP_V4, 8080, "rr", "", &[1])
    }

    fn listing(&self) -> String {
        self.bed.director.ipvsadm(&["-S", "-n"]).unwrap()
    }

    fn wait_for_listing(&self, wanted: &str) {
        let begin = Instant::now();
        while self.listing() != wanted {
            assert!(begin.elapsed() < PATIENCE, "still:\n{}", self.listing());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn waits(&self) -> bool {
        let warnings = self.bed.director.status().unwrap().warnings;
        warnings.iter().any(|warning| warning.contains("waits to be confirmed"))
    }
}

#[track_caller]
fn ends(said: &Said, code: i32) {
    assert_eq!(said.code, Some(code), "{said:?}");
}

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
    for words in
        ["status", "servers", "settings", "--help", "servers --json", &format!("plan {path}")]
    {
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

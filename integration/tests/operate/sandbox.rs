//! What a running director has given up, and that it works all the same; and what it tells who started it.

use std::fs;
use std::net::IpAddr;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use integration::lab::Process;
use integration::programs;
use integration::topology::{Kind, Options, VIP_V4, VIP_V6};
use integration::written::{service, top, web};
use nix::sys::signal::Signal;

use crate::bed::{Bed, can_run, lay};

const LIMIT: Duration = Duration::from_secs(20);

/// NET_ADMIN, NET_RAW, PERFMON, BPF (include/uapi/linux/capability.h).
const KEPT: u64 = 1 << 12 | 1 << 13 | 1 << 38 | 1 << 39;

/// A thread as /proc shows it.
#[derive(Debug)]
struct Thread {
    name: String,
    effective: u64,
    permitted: u64,
    bounding: u64,
    filtered: bool,
    no_new_privileges: bool,
}

/// All threads of a process.
fn threads(process: &Process) -> Vec<Thread> {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.id())).unwrap();
    let texts = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    let thread = |text: String| {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim_start_matches(':').trim().to_owned()
        };
        let set = |key| u64::from_str_radix(&value(key), 16).unwrap();
        Thread {
            name: value("Name"),
            effective: set("CapEff"),
            permitted: set("CapPrm"),
            bounding: set("CapBnd"),
            // 2: by a filter.
            filtered: value("Seccomp") == "2",
            no_new_privileges: value("NoNewPrivs") == "1",
        }
    };
    texts.map(thread).collect()
}

/// Packet threads take nothing, and the other ones no more than [`KEPT`].
fn has_only_what_it_takes(thread: &Thread) -> bool {
    let most = if thread.name.starts_with("worker") { 0 } else { KEPT };
    let capabilities = thread.effective & !most == 0 && thread.permitted == thread.effective;
    capabilities && thread.filtered && thread.no_new_privileges
}

/// The threads, once they are so: a thread may not have run yet when the director is ready.
fn threads_when(process: &Process, are_so: impl Fn(&[Thread]) -> bool) -> Vec<Thread> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let seen = threads(process);
        if are_so(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "{seen:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn reload(bed: &Bed, config: &str, said: &str) {
    let before = bed.director.process().log().matches(said).count();
    bed.director.reload(config).unwrap();
    let deadline = Instant::now() + LIMIT;
    while bed.director.process().log().matches(said).count() == before {
        assert!(
            Instant::now() < deadline,
            "{said:?} is not logged:\n{}",
            bed.director.process().log()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn carries(bed: &Bed, vip: IpAddr, port: u16) {
    let tally = bed.fetch(vip, port, 12);
    assert_eq!(
        (tally.answered(), tally.failed()),
        (12, 0),
        "{tally:?}\n{}",
        bed.director.process().log()
    );
}

#[test]
fn quick_a_running_director_has_given_up_what_it_does_not_take_and_works_on() {
    if !can_run() {
        return;
    }
    for io in ["copy", "generic", "packet"] {
        let file = top(io) + &web(Kind::Nat, "rr", &[1, 1]);
        let bed = Bed::with(Kind::Nat, &file);
        let process = bed.director.process();
        let seen = threads_when(process, |seen| seen.iter().all(has_only_what_it_takes));
        let workers = seen.iter().filter(|thread| thread.name.starts_with("worker")).count();
        assert!(workers > 0, "{seen:?}");
        let main = seen.iter().find(|thread| thread.name == "director").unwrap();
        // What a program could have that it executes: NET_RAW.
        assert_eq!((main.effective, main.bounding), (KEPT, 1 << 13), "{main:?}");
        assert!(
            process.log().contains("sandbox: capabilities net_admin net_raw bpf perfmon; no new")
        );
        carries(&bed, VIP_V4, 80);
        carries(&bed, VIP_V6, 80);

        // A new XDP program for the marks, addresses of our own, checks by TCP and with raw sockets, a neighbour
        // that has to be resolved again.
        let marked = format!(
            "\n[[mark]]\nmark = 7\ndestination = \"{VIP_V4}\"\nprotocol = \"tcp\"\nports = [80]\n"
        );
        let by_mark = web(Kind::Nat, "rr", &[1, 1])
            .replacen(&format!("listen = \"{VIP_V4}:80/tcp\""), "fwmark = 7", 1)
            .replace("forwarding = \"nat\"", "forwarding = \"nat\"\ncheck = [\"icmp\", { type = \"tcp\", port = 80, interval = \"200ms\" }]");
        reload(&bed, &(top(io) + &marked + &by_mark), "reloaded: ");
        let flush = |family| {
            let command = bed.topology.director.command("ip");
            command.args([family, "neigh", "flush", "all"]).output(LIMIT).unwrap();
        };
        flush("-4");
        flush("-6");
        carries(&bed, VIP_V4, 80);
        carries(&bed, VIP_V6, 80);
        reload(&bed, &file, "reloaded: ");
        carries(&bed, VIP_V4, 80);
        assert_eq!(bed.dirctl(&["servers"]).code, Some(0));
        let status = bed.director.status().unwrap();
        assert!(status.warnings.is_empty(), "{:?}", status.warnings);
        bed.director.stop().unwrap();
    }
}

#[test]
fn the_sandbox_can_be_left_off() {
    if !can_run() {
        return;
    }
    let file = format!("sandbox = false\n{}{}", top("copy"), web(Kind::Nat, "rr", &[1]));
    let bed = Bed::with(Kind::Nat, &file);
    assert!(threads(bed.director.process()).iter().all(|thread| !thread.filtered));
    assert!(bed.director.process().log().contains("sandbox: off (sandbox = false)"));
}

#[test]
fn quick_commands_of_checks_run_only_when_there_were_some_at_the_start() {
    if !can_run() {
        return;
    }
    let file = |check: &str| top("copy") + &service(Kind::Nat, VIP_V4, 80, "rr", check, &[1]);
    let exec = |command: &str| {
        format!(
            "check = {{ type = \"exec\", command = [\"/bin/sh\", \"-c\", \"{command}\"], \
             interval = \"200ms\", fall = 1, rise = 1 }}"
        )
    };
    let bed = Bed::with(Kind::Nat, &file("check = \"tcp\""));
    reload(
        &bed,
        &file(&exec("true")),
        "reload refused, running on as before: it has a check of type",
    );
    let status = bed.dirctl(&["status"]);
    assert_eq!(status.code, Some(1), "{status:?}");
    status.names(&["restart the director"]);
    let other = bed.topology.lab.logs().join("other.toml");
    fs::write(&other, file(&exec("true"))).unwrap();
    let applied = bed.dirctl(&["apply", other.to_str().unwrap(), "--ignore-restart"]);
    assert!(applied.code != Some(0), "{applied:?}");
    assert!(applied.err.contains("restart the director"), "{applied:?}");
    carries(&bed, VIP_V4, 80);
    bed.director.stop().unwrap();

    // A program that does what programs do, in the box: a child, a pipe, a file.
    let work = "echo up | grep -q up && test -z $(mktemp -u /nowhere/XXXX | grep -v nowhere)";
    let bed = Bed::with(Kind::Nat, &file(&exec(work)));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(bed.dirctl(&["servers"]).code, Some(0), "{}", bed.dirctl(&["servers"]).out);
    carries(&bed, VIP_V4, 80);
    // And one that asks for more than the box has.
    reload(&bed, &file(&exec("unshare -n true || exit 1")), "reloaded: ");
    let deadline = Instant::now() + LIMIT;
    while bed.dirctl(&["servers"]).code != Some(1) {
        assert!(
            Instant::now() < deadline,
            "a command makes namespaces: {}",
            bed.director.process().log()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn quick_a_service_manager_is_told_of_readiness_reloads_and_the_end() {
    if !can_run() {
        return;
    }
    let topology = lay(Kind::Nat, &Options::default());
    let folder = topology.lab.logs();
    let (path, config) = (folder.join("notify"), folder.join("notify.toml"));
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(LIMIT)).unwrap();
    let next = || {
        let mut buffer = [0; 512];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let control = format!("control = \"{}\"\n", folder.join("notify.sock").display());
    fs::write(&config, control + &top("copy") + &web(Kind::Nat, "rr", &[1])).unwrap();
    let command = topology.director.command(programs::path("director").unwrap());
    let process = command.arg("--config").arg(&config).env("NOTIFY_SOCKET", &path).spawn().unwrap();
    assert_eq!(next(), "READY=1\nSTATUS=2 services");
    process.signal(Signal::SIGHUP).unwrap();
    assert!(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(next(), "READY=1\nSTATUS=2 services");
    process.signal(Signal::SIGTERM).unwrap();
    assert_eq!(next(), "STOPPING=1");
}

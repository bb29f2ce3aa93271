//! Nothing stays behind, however a lab ends.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use integration::lab::Lab;
use integration::topology::{Kind, Options, Topology};

use super::{LAB_BINARY, SECOND, can_run};

/// The names in /run/netns with this tag.
fn names_of(tag: &str) -> Vec<String> {
    std::fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(&format!("sy-{tag}-")))
        .collect()
}

fn assert_gone(tag: &str) {
    assert_eq!(names_of(tag), Vec::<String>::new());
    for folder in ["/run/switchyard-lab", &std::env::temp_dir().to_string_lossy()] {
        let left: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.contains(tag))
            .collect();
        assert_eq!(left, Vec::<String>::new(), "left behind in {folder}");
    }
}

fn alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_dropped_lab_leaves_nothing() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("drop").unwrap();
    let tag = lab.tag().to_owned();
    let host = lab.host("client").unwrap();
    let sleeper = host.command("sleep").arg("600").spawn().unwrap();
    // Ignores SIGTERM and has a child of its own: needs SIGKILL for the group.
    let stubborn = host
        .command("sh")
        .args(["-c", "trap '' TERM; sleep 600 & echo $!; wait; sleep 600"])
        .spawn()
        .unwrap();
    stubborn.wait_for_log("\n", SECOND * 5).unwrap();
    let grandchild: u32 = stubborn.log().trim().parse().unwrap();
    assert_eq!(names_of(&tag), [format!("sy-{tag}-client")]);
    drop(lab);
    assert_gone(&tag);
    assert!(!alive(sleeper.id()) && !alive(stubborn.id()));
    let deadline = Instant::now() + SECOND * 5;
    while alive(grandchild) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10)); // until init has reaped it
    }
    assert!(!alive(grandchild), "what a process started outlives the lab");
    assert!(host.run(|| ()).is_err(), "a handle still enters a dropped lab");
}

#[test]
fn a_panicking_test_leaves_nothing() {
    if !can_run() {
        return;
    }
    let (send, receive) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        let topology = Topology::build(Kind::Direct, &Options::default()).unwrap();
        let process = topology.client.command("sleep").arg("600").spawn().unwrap();
        send.send((topology.lab.tag().to_owned(), process.id())).unwrap();
        panic!("on purpose");
    });
    assert!(test.join().is_err());
    let (tag, sleeper) = receive.recv().unwrap();
    assert_gone(&tag);
    assert!(!alive(sleeper));
}

/// Starts `switchyard-lab hold nat` and waits until it stands; its tag comes back too.
fn hold() -> (std::process::Child, String) {
    let mut holder =
        Command::new(LAB_BINARY).args(["hold", "nat"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = String::new();
    let mut pipe = holder.stdout.take().unwrap();
    let mut byte = [0];
    while !output.contains("stands") && pipe.read(&mut byte).unwrap() == 1 {
        output.push(char::from(byte[0]));
    }
    let tag = output.rsplit_once("lab ").unwrap().1.split(' ').next().unwrap().to_owned();
    assert_eq!(names_of(&tag).len(), 6, "client, director, 3 servers, wire: {output}");
    (holder, tag)
}

#[test]
fn an_interrupted_process_leaves_nothing() {
    if !can_run() {
        return;
    }
    use nix::sys::signal::{Signal, kill};
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let (mut holder, tag) = hold();
        kill(nix::unistd::Pid::from_raw(holder.id().cast_signed()), signal).unwrap();
        assert_eq!(holder.wait().unwrap().code(), Some(code));
        assert_gone(&tag);
    }
}

#[test]
fn what_a_killed_process_left_goes_with_the_next_sweep() {
    if !can_run() {
        return;
    }
    let (mut holder, tag) = hold();
    let living = Lab::new("living").unwrap();
    let host = living.host("client").unwrap();
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(names_of(&tag).len(), 6);
    // Another test's new lab may have swept it already.
    integration::lab::sweep().unwrap();
    assert_gone(&tag);
    assert_eq!(names_of(living.tag()), [host.namespace()]);
}

//! What the director gets hold of to carry packets with, and what it says of it: packet memory, cores,
//! busy polling.

use std::time::Duration;

use integration::topology::{Kind, Options};

use super::bed::{Bed, can_run, lay, run_director, top, web};

/// Clock ticks that the process has run for, all its threads together (`/proc/PID/stat`).
fn ticks(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let behind_name = text.rsplit(')').next().unwrap();
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// The cores that the thread of that name may use.
fn cores_of(pid: u32, thread: &str) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let text = tasks.flatten().find_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        (name.trim() == thread)
            .then(|| std::fs::read_to_string(task.path().join("status")).ok())
            .flatten()
    });
    let text = text.expect("a thread of that name");
    let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

#[test]
fn a_worker_stays_on_the_core_it_is_given_and_polls_only_while_there_is_traffic() {
    if !can_run() {
        return;
    }
    let own = "cpus = [1]\nbusy_poll = true\nring_size = 1024\nframes = 4096\n";
    let config = top("copy") + own + &web(Kind::Nat, "rr", &[1, 1, 1]);
    let bed = Bed::with(Kind::Nat, &config);
    let log = bed.director.process().log();
    for said in [
        "packets: AF_XDP copy on eth0",
        "packet memory: 4096 frames of 2048 bytes per worker in ",
        "rings of 1024; busy polling under load",
        "workers: 1, on core 1",
    ] {
        assert!(log.contains(said), "{said}: {log}");
    }
    let pid = bed.director.status().unwrap().pid;
    assert_eq!(cores_of(pid, "worker-0"), "1");
    bed.carries(300);
    // A second of nothing: a hundred ticks if it went on polling.
    std::thread::sleep(Duration::from_millis(200));
    let before = ticks(pid);
    std::thread::sleep(Duration::from_secs(1));
    let used = ticks(pid) - before;
    assert!(used < 25, "{used} hundredths of a second of processor time in a second of rest");
    bed.director.stop().unwrap();
}

#[test]
fn without_a_word_in_the_file_there_is_no_polling_in_copy_mode() {
    if !can_run() {
        return;
    }
    let bed = Bed::new(Kind::Nat, "copy");
    let log = bed.director.process().log();
    assert!(log.contains("rings of 2048\n") && !log.contains("polling"), "{log}");
    bed.director.stop().unwrap();
}

#[test]
fn a_core_that_is_not_there_is_named_at_start() {
    if !can_run() {
        return;
    }
    let topology = lay(Kind::Nat, &Options::default());
    let config = top("copy") + "cpus = [1023]\n";
    let (code, said) = run_director(&topology, "cores", &config, Duration::from_secs(10));
    assert!(code != Some(0) && said.contains("core 1023"), "{code:?} {said}");
}

//! What a director that is not root must be given, and what it says when it is not.

use std::path::{Path, PathBuf};

use integration::programs;
use integration::topology::{Kind, Options, Topology};

use super::bed::{SECOND, WAYS, can_run, fetch, lay, of, top, web};

/// The smallest set that does everything.
const NEEDED: [&str; 5] = ["net_admin", "net_raw", "bpf", "perfmon", "ipc_lock"];

/// A folder that everybody may use, with a copy of the program (the build folder may be closed to
/// others) and a configuration.
fn prepare(topology: &Topology, io: &str) -> (PathBuf, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let folder = topology.lab.logs().join("nobody");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let (program, file) = (folder.join("director"), folder.join("nobody.toml"));
    if !program.exists() {
        std::fs::copy(programs::path("director").unwrap(), &program).unwrap();
    }
    let control = format!("control = \"{}\"\n", folder.join("control.sock").display());
    std::fs::write(&file, control + &top(io) + &web(Kind::Nat, "rr", &[1, 1, 1])).unwrap();
    (program, file)
}

/// The director as nobody with these capabilities only.
fn as_nobody(
    topology: &Topology,
    (program, file): &(PathBuf, PathBuf),
    capabilities: &[&str],
) -> integration::lab::Command {
    let mut command = topology.director.command(Path::new("setpriv")).args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ]);
    if !capabilities.is_empty() {
        let list: Vec<_> = capabilities.iter().map(|name| format!("+{name}")).collect();
        let list = list.join(",");
        command = command.args([format!("--inh-caps={list}"), format!("--ambient-caps={list}")]);
    }
    command.arg(program).arg("--config").arg(file)
}

#[test]
fn quick_without_capabilities_the_message_names_them_all() {
    if !can_run() {
        return;
    }
    let topology = lay(Kind::Nat, &Options::default());
    let program = prepare(&topology, "auto");
    // Each without one that opening needs; without ipc_lock auto falls back to AF_PACKET.
    let mut sets = vec![vec![]];
    for missing in &NEEDED[..4] {
        sets.push(NEEDED.into_iter().filter(|name| name != missing).collect());
    }
    for set in sets {
        let output = as_nobody(&topology, &program, &set).output(SECOND * 10).unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{set:?}: {message}");
        for name in NEEDED {
            let name = format!("CAP_{}", name.to_uppercase());
            assert!(message.contains(&name), "{set:?}: no {name} in:\n{message}");
        }
        let times = message.matches("CAP_PERFMON").count();
        assert!(times <= 2, "said again and again:\n{message}");
    }
}

#[test]
fn nobody_with_five_capabilities_carries_traffic_in_every_mode() {
    if !can_run() {
        return;
    }
    let topology = lay(Kind::Nat, &Options::default());
    for io in WAYS {
        let program = prepare(&topology, io);
        let process = as_nobody(&topology, &program, &NEEDED).spawn().unwrap();
        process.wait_for_log("ready:", SECOND * 10).unwrap();
        let log = process.log();
        assert!(!log.contains("WARN"), "{io}: something is not allowed:\n{log}");
        for vip in super::bed::VIPS {
            let tally = fetch(&topology, vip, 80, 12);
            assert_eq!((1..=3).map(|n| of(&tally, n)).sum::<u64>(), 12, "{io}: {tally:?}\n{log}");
        }
        assert_eq!(process.stop().unwrap().code(), Some(0), "{io}: {}", process.log());
    }
}

#[test]
fn locked_memory_that_does_not_suffice_is_said_with_its_remedy() {
    if !can_run() {
        return;
    }
    let topology = lay(Kind::Nat, &Options::default());
    let set = &NEEDED[..4];
    let limited = |program: &(PathBuf, PathBuf)| {
        let (director, file) = program;
        // prlimit comes with setpriv, in util-linux.
        topology
            .director
            .command(Path::new("prlimit"))
            .args(["--memlock=8388608", "setpriv", "--reuid=65534", "--regid=65534"])
            .arg("--clear-groups")
            .args(
                ["--inh-caps=+", "--ambient-caps=+"].map(|flag| flag.to_owned() + &set.join(",+")),
            )
            .arg(director)
            .arg("--config")
            .arg(file)
    };
    let output = limited(&prepare(&topology, "copy")).output(SECOND * 10).unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    for word in ["RLIMIT_MEMLOCK is 8388608", "CAP_IPC_LOCK", "LimitMEMLOCK=infinity"] {
        assert!(message.contains(word), "no {word} in:\n{message}");
    }
    // With the best that works instead, it says what the better would need.
    let process = limited(&prepare(&topology, "auto")).spawn().unwrap();
    process.wait_for_log("ready:", SECOND * 10).unwrap();
    let log = process.log();
    assert!(log.contains("packets: AF_PACKET") && log.contains("CAP_IPC_LOCK"), "{log}");
    let tally = fetch(&topology, super::bed::VIPS[0], 80, 12);
    assert_eq!((tally.answered(), tally.failed()), (12, 0), "{tally:?}");
    process.stop().unwrap();
}

#[test]
fn the_help_names_the_capabilities() {
    let help = std::process::Command::new(programs::path("director").unwrap());
    let output = { help }.arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for name in NEEDED {
        let name = format!("CAP_{}", name.to_uppercase());
        assert!(text.contains(&name), "no {name} in:\n{text}");
    }
}

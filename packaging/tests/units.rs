//! The units of systemd: what systemd itself thinks of them, and whether what the programs say of them
//! is true. Without systemd that half is left out, and said so.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const UNITS: [&str; 2] = ["switchyard-director.service", "switchyard-agent.service"];

/// systemd-analyze's measure, from 0 (shut) to 10 (open); 3.0 today. Root, the network and the capabilities
/// that the work takes are most of it.
const EXPOSURE: &str = "32";

fn text(unit: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd");
    std::fs::read_to_string(folder.join(unit)).unwrap()
}

/// Units whose programs are there: a folder of its own for each test.
fn copies(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for unit in UNITS {
        let text = text(unit).replace("/usr/sbin/director", "/bin/true");
        let text = text.replace("/usr/sbin/realserver-agent", "/bin/true");
        std::fs::write(folder.join(unit), text).unwrap();
    }
    folder
}

/// `systemd-analyze`; `None` where there is none.
fn analyze(words: &[&str], unit: &Path) -> Option<Output> {
    match Command::new("systemd-analyze").args(words).arg(unit).output() {
        Ok(output) => Some(output),
        Err(error) => {
            println!("skipped: systemd-analyze (package systemd) cannot be run: {error}");
            None
        }
    }
}

#[test]
fn systemd_finds_no_fault_in_the_units() {
    let folder = copies("verify");
    for unit in UNITS {
        let Some(output) = analyze(&["verify", "--man=no"], &folder.join(unit)) else { return };
        let said = String::from_utf8_lossy(&output.stderr);
        // It looks at other units of the machine too.
        let faults: Vec<&str> = said.lines().filter(|line| line.contains("switchyard")).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
}

#[test]
fn the_units_stay_as_closed_as_they_are() {
    let folder = copies("security");
    for unit in UNITS {
        let words = ["security", "--offline=true", "--threshold", EXPOSURE];
        let Some(output) = analyze(&words, &folder.join(unit)) else { return };
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{unit}: {}", said.lines().last().unwrap_or_default());
    }
}

#[test]
fn messages_and_units_agree() {
    let error = director::control::ClientError::NotRunning { path: "/run/x".into() };
    let remedy = error.remedy().unwrap();
    assert!(remedy.contains("systemctl start switchyard-director"), "{remedy}");
    let director = text(UNITS[0]);
    assert!(director.contains(&format!("--config {}", director::cli::CONFIG)));
    let folder = Path::new(director::control::DEFAULT_SOCKET).parent().unwrap();
    let folder = folder.file_name().unwrap().to_str().unwrap();
    assert!(director.contains(&format!("RuntimeDirectory={folder}\n")));
    let folder = Path::new(realserver_agent::settings::CONTROL).parent().unwrap();
    let folder = folder.file_name().unwrap().to_str().unwrap();
    assert!(text(UNITS[1]).contains(&format!("RuntimeDirectory={folder}\n")));
}

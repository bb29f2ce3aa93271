//! The built command against a control server: text, JSON and exit codes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use director::control::api::{ConnectionView, Refusal, RefusalKind, ServiceView, Status, Timeouts};
use director::control::operations::{self, Operations};
use director::control::{server, socket};

/// A director that has nothing but warnings.
struct Worried(Vec<String>);

impl Operations for Worried {
    /// Takes any setting but one.
    fn apply(&self, command: operations::Command) -> Result<(), Refusal> {
        match command {
            operations::Command::SetSettings { settings } if settings.contains_key("no_such") => {
                let message = "there is no setting 'no_such'".to_owned();
                Err(Refusal { error: RefusalKind::Invalid, message })
            }
            _ => Ok(()),
        }
    }

    fn services(&self) -> Vec<ServiceView> {
        vec![]
    }

    fn settings(&self) -> BTreeMap<String, u32> {
        BTreeMap::from([("sloppy_tcp".to_owned(), 1)])
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts { tcp: 900, tcp_fin: 120, udp: 300 }
    }

    fn marks(&self) -> Vec<director::fwmark::Rule> {
        Vec::new()
    }

    fn connections(&self, _: usize) -> Option<Vec<ConnectionView>> {
        None
    }

    fn status(&self) -> Status {
        Status {
            version: "0.1.0".to_owned(),
            pid: 4711,
            uptime: 60.0,
            mode: "dispatcher".to_owned(),
            config: None,
            table_size: 4096,
            connections: 0,
            services: 0,
            ports: vec![],
            overflow: vec![],
            verdicts: vec![],
            warnings: self.0.clone(),
        }
    }
}

/// A directory that goes away with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("dirctl-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `work` while a director with these warnings listens.
fn with_director(test: &str, warnings: &[&str], work: impl FnOnce(&Path)) {
    let directory = Directory::new(test);
    let path = directory.0.join("control.sock");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let warnings = warnings.iter().map(|text| (*text).to_owned()).collect();
    let at = path.clone();
    let thread = std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(async {
            let (listener, _file) = socket::bind(&at).unwrap();
            ready.send(()).unwrap();
            tokio::select! {
                () = server::serve(listener, Arc::new(Worried(warnings))) => {}
                _ = stopped => {}
            }
        });
    });
    is_ready.recv().unwrap();
    work(&path);
    drop(stop);
    thread.join().unwrap();
}

fn dirctl(socket: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dirctl"))
        .args(words)
        .env("SWITCHYARD_SOCKET", socket)
        .output()
        .unwrap()
}

#[test]
fn healthy_director_is_shown_in_plain_text_with_exit_code_0() {
    with_director("healthy", &[], |socket| {
        let output = dirctl(socket, &["status"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let first = "director 0.1.0, dispatcher mode, process 4711, up 1 min 0 s\n";
        assert!(text.starts_with(first), "{text}");
    });
}

#[test]
fn warnings_give_exit_code_1_in_json_too() {
    with_director("worried", &["reload failed"], |socket| {
        let output = dirctl(socket, &["status"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("Warnings\n  reload failed\n"));
        let output =
            dirctl(Path::new(""), &["status", "--json", "--socket", socket.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let status: Status = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(status.warnings, ["reload failed"]);
    });
}

#[test]
fn settings_are_shown_and_set_and_a_refusal_is_wrong_usage() {
    with_director("settings", &[], |socket| {
        let output = dirctl(socket, &["settings"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, "  setting     value  default\n  sloppy_tcp      1        0\n");
        let output = dirctl(socket, &["settings", "sloppy_tcp=0", "am_droprate=20"]);
        assert_eq!((output.status.code(), output.stdout), (Some(0), Vec::new()));
        let output = dirctl(socket, &["settings", "no_such=1"]);
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.contains("no setting 'no_such'"), "{complaint}");
        assert_eq!(dirctl(socket, &["settings", "sloppy_tcp"]).status.code(), Some(64));
    });
}

#[test]
fn absent_director_and_wrong_usage_have_codes_of_their_own() {
    let directory = Directory::new("absent");
    let socket = directory.0.join("control.sock");
    let output = dirctl(&socket, &["status"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.starts_with("dirctl: the director is not running"), "{complaint}");
    assert!(complaint.contains("Start the director"), "{complaint}");
    assert_eq!(dirctl(&socket, &["stats"]).status.code(), Some(64));
    let help = dirctl(&socket, &["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8(help.stdout).unwrap().contains("the director is not running"));
}

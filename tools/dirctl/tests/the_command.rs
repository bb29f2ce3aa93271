//! The built command against a control server: text, JSON and exit codes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use director::control::api::{
    ConnectionView, Protocol, Refusal, RefusalKind, ServiceKey, ServiceView, Status, Timeouts,
};
use director::control::events::{Event, EventKind};
use director::control::health::{HealthState, ServerHealth};
use director::control::operations::{self, Operations};
use director::control::{server, socket};
use director::health::journal::Journal;

/// A director that has nothing but warnings.
struct Worried(Vec<String>, Arc<Journal>);

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

    fn servers(&self) -> Vec<ServerHealth> {
        vec![server(11, HealthState::Up), server(12, HealthState::Down)]
    }

    fn journal(&self) -> Option<Arc<Journal>> {
        Some(Arc::clone(&self.1))
    }

    fn status(&self) -> Status {
        Status {
            workers: vec![],
            max_connections: 0,
            version: "0.1.0".to_owned(),
            pid: 4711,
            uptime: 60.0,
            mode: "dispatcher".to_owned(),
            config: None,
            applied: None,
            table_size: 4096,
            connections: 0,
            services: 0,
            ports: vec![],
            packets: String::new(),
            overflow: vec![],
            health: None,
            verdicts: vec![],
            warnings: self.0.clone(),
        }
    }
}

fn server(last: u8, state: HealthState) -> ServerHealth {
    let vip = SocketAddr::from(([192, 0, 2, last], 80));
    ServerHealth {
        service: ServiceKey::Address { protocol: Protocol::Tcp, address: vip },
        address: SocketAddr::from(([10, 0, 0, last], 80)),
        weight: 1,
        effective_weight: 1,
        state,
        since: 1,
        reason: String::new(),
        kept: false,
        active: 0,
        inactive: 0,
        checks: vec![],
        direction: None,
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
    with_journal(test, warnings, &Arc::default(), work);
}

/// The same with what has happened.
fn with_journal(test: &str, warnings: &[&str], journal: &Arc<Journal>, work: impl FnOnce(&Path)) {
    let directory = Directory::new(test);
    let path = directory.0.join("control.sock");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let warnings = warnings.iter().map(|text| (*text).to_owned()).collect();
    let (at, journal) = (path.clone(), Arc::clone(journal));
    let thread = std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(async {
            let (listener, _file) = socket::bind(&at).unwrap();
            ready.send(()).unwrap();
            tokio::select! {
                () = server::serve(listener, Arc::new(Worried(warnings, journal))) => {}
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
fn servers_that_are_not_up_give_exit_code_1_and_one_service_can_be_asked_for() {
    with_director("servers", &[], |socket| {
        let output = dirctl(socket, &["servers"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("10.0.0.11:80  up ") && text.contains("10.0.0.12:80  down"),
            "{text}"
        );
        let output = dirctl(socket, &["servers", "192.0.2.11", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let servers: Vec<ServerHealth> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(servers, [server(11, HealthState::Up)]);
        let output = dirctl(socket, &["servers", "192.0.2.13:80/tcp"]);
        assert_eq!(output.status.code(), Some(64), "{output:?}");
    });
}

#[test]
fn events_are_shown_and_followed_while_they_happen() {
    let journal = Arc::new(Journal::default());
    let note = |kind| {
        journal.note(kind, Event { reason: "because".to_owned(), ..Event::default() });
    };
    note(EventKind::ServerDown);
    with_journal("events", &[], &journal, |socket| {
        let output = dirctl(socket, &["events"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("  server_down  ") && text.ends_with("  because\n"), "{text}");
        assert_eq!(dirctl(socket, &["events", "--after", "1"]).stdout, b"");
        let mut follower = Command::new(env!("CARGO_BIN_EXE_dirctl"))
            .args(["events", "--follow", "--json"])
            .env("SWITCHYARD_SOCKET", socket)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
        let mut next =
            || -> Event { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        assert_eq!(next().kind, EventKind::ServerDown);
        note(EventKind::ServerUp);
        assert_eq!(next().kind, EventKind::ServerUp);
        follower.kill().unwrap();
        follower.wait().unwrap();
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

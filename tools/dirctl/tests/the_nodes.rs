//! The built command, also under its old names, against a node over its control socket: output and
//! exit codes.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use director::control::api::{ConnectionView, Refusal, RefusalKind, ServiceView, Status, Timeouts};
use director::control::nlb::views::{FilterView, QueryView};
use director::control::nlb::{NlbAnswer, NlbCommand, NlbReply, NlbRequest, NlbResult, NlbView};
use director::control::operations::{self, Operations};
use director::control::{server, socket};

/// Host 1 of two. Host 2 does not answer.
struct Node;

impl Operations for Node {
    fn apply(&self, _: operations::Command) -> Result<(), Refusal> {
        let message = "mode \"nlb\": services come from the file".to_owned();
        Err(Refusal { error: RefusalKind::Unsupported, message })
    }

    fn services(&self) -> Vec<ServiceView> {
        vec![]
    }

    fn settings(&self) -> BTreeMap<String, u32> {
        BTreeMap::new()
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts { tcp: 0, tcp_fin: 0, udp: 0 }
    }

    fn marks(&self) -> Vec<director::fwmark::Rule> {
        Vec::new()
    }

    fn connections(&self, _: usize) -> Option<Vec<ConnectionView>> {
        None
    }

    fn status(&self) -> Status {
        unimplemented!("not asked for")
    }

    fn nlb(&self, request: NlbRequest) -> Result<NlbReply, Refusal> {
        let mut silent = vec![];
        match request.hosts.as_deref() {
            Some("all") => silent.push(2),
            Some("web9") => {
                let message = "\"web9\" is no host of this cluster".to_owned();
                return Err(Refusal { error: RefusalKind::Invalid, message });
            }
            _ => {}
        }
        let result = match request.command {
            NlbCommand::Resume => NlbResult::Already,
            NlbCommand::Drain { .. } => NlbResult::NotFound,
            _ => NlbResult::Done,
        };
        let view = match request.command {
            NlbCommand::Query => Some(NlbView::Query(QueryView {
                cluster: "192.0.2.10".to_owned(),
                members: vec![1, 2],
                ..QueryView::default()
            })),
            NlbCommand::Filter(question) => Some(NlbView::Filter(FilterView {
                passes: question.client_port == 1,
                ..FilterView::default()
            })),
            _ => None,
        };
        let answer = NlbAnswer {
            host: 1,
            name: "web1".to_owned(),
            state: "converged as DEFAULT".to_owned(),
            result,
            message: None,
            view: view.map(Box::new),
        };
        Ok(NlbReply { answers: vec![answer], silent })
    }
}

/// Runs `work` while the node listens.
fn with_node(test: &str, work: impl FnOnce(&Path)) {
    let directory = std::env::temp_dir().join(format!("dirctl-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("control.sock");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let at: PathBuf = path.clone();
    let thread = std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(async {
            let (listener, _file) = socket::bind(&at).unwrap();
            ready.send(()).unwrap();
            tokio::select! {
                () = server::serve(listener, Arc::new(Node)) => {}
                _ = stopped => {}
            }
        });
    });
    is_ready.recv().unwrap();
    work(&path);
    drop(stop);
    thread.join().unwrap();
    let _ = std::fs::remove_dir_all(&directory);
}

/// Runs the command by a name.
fn run(socket: &Path, name: &str, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dirctl"))
        .arg0(name)
        .args(line.split_whitespace())
        .env("SWITCHYARD_SOCKET", socket)
        .output()
        .unwrap()
}

fn said(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn exit_codes_tell_done_refused_silent_and_wrong_usage() {
    with_node("codes", |socket| {
        for (line, code, says) in [
            ("query", 0, "cluster   192.0.2.10, members 1, 2"),
            ("start", 0, "host 1 (web1): done, converged as DEFAULT\n"),
            ("resume", 0, "host 1 (web1): already, converged as DEFAULT\n"),
            ("drain 192.0.2.10:99", 1, "not-found"),
            ("stop --host all", 3, "No answer from host 2\n"),
            ("query --host web9", 64, "\"web9\" is no host of this cluster"),
            ("filter tcp 203.0.113.7:1 192.0.2.10:80", 0, "takes it"),
            ("filter tcp 203.0.113.7:2 192.0.2.10:80", 1, "drops it"),
            ("filter tcp 203.0.113.7 192.0.2.10:80", 64, "needs a port"),
            ("drain http", 64, "VIP:PORT"),
            ("ip2mac 1.2.33.44", 0, "  unicast    02-BF-01-02-21-2C\n"),
            ("query --cluster 192.0.2.10", 64, "--key-file"),
            ("query --cluster 127.0.0.1 --key-file /no/such/key", 64, "key file /no/such/key"),
            ("drainstop --help", 0, "dirctl nlb drainstop --deadline 10m"),
        ] {
            let (found, text) = said(&run(socket, "dirctl", &format!("nlb {line}")));
            assert_eq!(found, Some(code), "{line}: {text}");
            assert!(text.contains(says), "{line}: {text}");
        }
    });
}

#[test]
fn json_is_what_the_control_api_answers() {
    with_node("json", |socket| {
        let output = run(socket, "dirctl", "nlb query --json --host all");
        assert_eq!(output.status.code(), Some(3));
        let reply: NlbReply = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((reply.answers[0].host, &reply.silent[..]), (1, &[2][..]));
    });
}

#[test]
fn old_names_take_old_words() {
    with_node("old", |socket| {
        for (name, line, code, says) in [
            (
                "nlb",
                "query",
                0,
                "Host 1 (web1) is converged as DEFAULT with hosts 1, 2 as members.\n",
            ),
            ("wlbs", "start 192.0.2.10:1 /PASSW x", 0, "Host 1 (web1): it joins the cluster.\n"),
            ("/usr/sbin/wlbs", "stop all global", 3, "No answer from host 2.\n"),
            (
                "nlb",
                "stop 192.0.2.99",
                64,
                "the cluster of this host is 192.0.2.10, not 192.0.2.99",
            ),
            ("nlb", "halt", 64, "nlb: halt is no command"),
            ("nlb", "", 0, "Example: nlb drainstop"),
            ("nlb", "ip2mac 1.2.33.44", 0, "Multicast:       03-BF-01-02-21-2C\n"),
        ] {
            let (found, text) = said(&run(socket, name, line));
            assert_eq!(found, Some(code), "{name} {line}: {text}");
            assert!(text.contains(says), "{name} {line}: {text}");
        }
    });
    let (code, text) = said(&run(Path::new("/no/such/socket"), "nlb", "query"));
    assert_eq!(code, Some(2), "{text}");
}

//! `dirctl doctor` on real faults: it names the fault and the server, and the command that it prints,
//! pasted where it says, makes the finding go away.

mod vip;
mod way;

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use integration::cluster::Cluster;
use integration::lab::{Host, Process};
use integration::programs;
use integration::topology::{Kind, Options, Topology, VIP_V4, VIP_V6, server_addresses};
use integration::written::{service, top, web};
use serde_json::Value;

use crate::bed::{Bed, can_run, dirctl, lay};

const SOON: Duration = Duration::from_secs(30);

/// All findings of `dirctl doctor WORDS --json` on a host, and the exit code.
fn examine(host: &Host, socket: &Path, words: &[&str]) -> (Option<i32>, Vec<Value>) {
    let words = [&["doctor", "--json"], words].concat();
    let said = dirctl(host, socket, &words);
    let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    (said.code, report["findings"].as_array().unwrap().clone())
}

/// Those of a check that somebody has to act on.
fn faults(findings: &[Value], check: &str) -> Vec<Value> {
    let is_one = |finding: &&Value| {
        finding["check"] == check
            && matches!(finding["severity"].as_str(), Some("fault" | "warning"))
    };
    findings.iter().filter(is_one).cloned().collect()
}

/// The one fault of a check whose text has all these words, waited for: counters and neighbours need a
/// moment.
#[track_caller]
fn wait_for(check: &str, words: &[&str], look: impl Fn() -> (Option<i32>, Vec<Value>)) -> Value {
    let deadline = Instant::now() + SOON;
    loop {
        let (code, findings) = look();
        let found = faults(&findings, check);
        let is_it = |it: &&Value| words.iter().all(|word| it.to_string().contains(word));
        if let Some(finding) = found.iter().find(is_it) {
            assert_eq!(code, Some(1), "a fault is an exit code of 1: {findings:#?}");
            return finding.clone();
        }
        assert!(Instant::now() < deadline, "{check} with {words:?} is not found: {findings:#?}");
    }
}

/// Waits until nothing of a check is to be acted on any more.
#[track_caller]
fn wait_until_gone(check: &str, look: impl Fn() -> (Option<i32>, Vec<Value>)) {
    let deadline = Instant::now() + SOON;
    loop {
        let (_, findings) = look();
        if faults(&findings, check).is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{check} is still there: {findings:#?}");
    }
}

/// Runs the commands of a finding's remedy, as somebody would who pastes them.
#[track_caller]
fn paste(host: &Host, finding: &Value) {
    let commands = finding["remedy"].as_array().unwrap();
    assert!(!commands.is_empty(), "no remedy: {finding:#}");
    for command in commands {
        let command = command.as_str().unwrap();
        let output = host.command("sh").args(["-c", command]).output(SOON).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {said}");
    }
}

/// Asks for a connection, and does not mind that nobody answers.
fn knock(client: &Host, vip: IpAddr, times: usize) {
    for _ in 0..times {
        let to = SocketAddr::new(vip, 80);
        let tried = client.run(|| TcpStream::connect_timeout(&to, Duration::from_millis(500)));
        drop(tried.unwrap());
    }
}

/// The configuration that a real server has: the director's, and where its agent's socket is.
fn servers_file(topology: &Topology, number: usize, config: &str, agent: &str) -> PathBuf {
    let (file, socket) = (
        topology.lab.logs().join(format!("doctor{number}.toml")),
        topology.lab.logs().join(format!("doctor{number}.sock")),
    );
    let socket = socket.display();
    std::fs::write(&file, format!("{config}\n[agent]\ncontrol = \"{socket}\"\n{agent}\n")).unwrap();
    file
}

fn start_agent(host: &Host, file: &Path) -> Process {
    let program = programs::path("realserver-agent").unwrap();
    let agent = host.command(program).args(["run", "--config"]).arg(file).spawn().unwrap();
    agent.wait_for_log("ready", SOON).unwrap();
    agent
}

/// Nobody listens there: doctor on a real server asks no director.
fn no_socket() -> &'static Path {
    Path::new("/nonexistent/control.sock")
}

fn on_server<'a>(host: &'a Host, file: &'a Path) -> impl Fn() -> (Option<i32>, Vec<Value>) + 'a {
    let file = file.to_str().unwrap();
    move || examine(host, no_socket(), &["--side", "server", "--config", file])
}

fn one_server() -> Options {
    Options { servers: 1, ..Options::default() }
}

#[test]
fn quick_a_good_director_and_a_good_server_have_nothing_to_act_on() {
    if !can_run() {
        return;
    }
    let config = top("copy") + &web(Kind::Direct, "rr", &[1, 1]);
    let bed = Bed::with(Kind::Direct, &config);
    assert_eq!(bed.fetch(VIP_V4, 80, 20).failed(), 0);
    let said = bed.dirctl(&["doctor", "--verbose"]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    said.names(&["ok       vip-elsewhere: nobody else answers for 192.0.2.10", "AF_XDP copy"]);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    let file = servers_file(&bed.topology, 1, &config, "");
    let words = ["doctor", "-v", "--side", "server", "--config", file.to_str().unwrap()];
    let said = dirctl(&bed.topology.servers[0], no_socket(), &words);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    said.names(&["server-vip: 192.0.2.10 is on lo", "somebody listens on 192.0.2.10:80/tcp"]);
    bed.director.stop().unwrap();
}

#[test]
fn a_file_that_was_not_reloaded_is_told_and_not_after_the_remedy() {
    if !can_run() {
        return;
    }
    let config = top("copy") + &service(Kind::Nat, VIP_V4, 80, "rr", "", &[1]);
    let bed = Bed::of(lay(Kind::Nat, &one_server()), &config);
    let look = || examine(&bed.topology.director, bed.director.socket(), &[]);
    wait_until_gone("file", look);
    let file = PathBuf::from(bed.director.status().unwrap().config.unwrap());
    let text = std::fs::read_to_string(&file).unwrap().replace(":80/tcp", ":8080/tcp");
    std::fs::write(&file, text).unwrap();
    let finding = wait_for(
        "file",
        &["has not been reloaded, and a reload would change: 1 service added"],
        look,
    );
    paste(&bed.topology.director, &finding);
    wait_until_gone("file", look);

    let socket = bed.director.socket();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(socket, open).unwrap();
    let finding = wait_for("control-socket", &["everybody may write"], look);
    paste(&bed.topology.director, &finding);
    wait_until_gone("control-socket", look);
    bed.director.stop().unwrap();
}

#[test]
fn a_server_that_is_down_is_named_with_its_reason() {
    if !can_run() {
        return;
    }
    let check = "check = { type = \"tcp\", interval = \"200ms\", fall = 1 }";
    // Where nobody listens.
    let config = top("copy") + &service(Kind::Nat, VIP_V4, 81, "rr", check, &[1]);
    let bed = Bed::of(lay(Kind::Nat, &one_server()), &config);
    let look = || examine(&bed.topology.director, bed.director.socket(), &[]);
    let words = ["10.77.0.11:81 of 192.0.2.10:81/tcp is down", "connection refused"];
    let _ = wait_for("server-down", &words, look);
    let server = &bed.topology.servers[0];
    let file = servers_file(&bed.topology, 1, &config, "");
    let words = ["nobody listens on 10.77.0.11:81/tcp"];
    let _ = wait_for("server-listener", &words, on_server(server, &file));
    bed.director.stop().unwrap();
}

#[test]
fn an_agent_with_another_key_is_named_on_both_sides() {
    if !can_run() {
        return;
    }
    let topology = lay(Kind::Nat, &one_server());
    let keys = ["ours", "theirs"].map(|name| {
        let path = topology.lab.logs().join(format!("{name}.key"));
        std::fs::write(&path, name.repeat(8)).unwrap();
        path
    });
    let watch = format!(
        "agent = {{ period = \"100ms\", timeout = \"500ms\", key_file = {:?} }}",
        keys[0].display().to_string()
    );
    let config = top("copy") + &service(Kind::Nat, VIP_V4, 80, "rr", &watch, &[1]);
    let key_line = format!("key_file = {:?}", keys[1].display().to_string());
    let file = servers_file(&topology, 1, &config, &key_line);
    let agent = start_agent(&topology.servers[0], &file);
    let bed = Bed::of(topology, &config);
    let look = || examine(&bed.topology.director, bed.director.socket(), &[]);
    let finding = wait_for("agent-key", &["the agent on 10.77.0.11", "another key"], look);
    let copy = finding["remedy"][0].as_str().unwrap();
    assert!(copy.starts_with("scp -p ") && copy.contains("root@10.77.0.11:"), "{finding:#}");
    let server = &bed.topology.servers[0];
    let words = ["refuses questions of directors", "signed with another key"];
    let _ = wait_for("server-key", &words, on_server(server, &file));
    agent.stop().unwrap();
    bed.director.stop().unwrap();
}

#[test]
fn a_node_of_mode_nlb_is_examined_as_a_director_and_as_nothing_else() {
    if !can_run() {
        return;
    }
    let cluster = Cluster::build("doctornlb", 1).unwrap();
    let nodes = cluster.start_nodes(&cluster.config("nlb", "", "")).unwrap();
    let (host, node) = (&cluster.hosts[0], &nodes[0]);
    let said = dirctl(host, node.socket(), &["doctor", "-v"]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    said.names(&["in nlb mode", "link: eth0 is up"]);
    let file = node.status().unwrap().config.unwrap();
    let said = dirctl(host, node.socket(), &["doctor", "--side", "server", "--config", &file]);
    assert_eq!(said.code, Some(64), "{said:?}");
    assert!(said.err.contains("leave --side server out"), "{said:?}");
}

#[test]
fn without_a_director_the_file_is_enough_to_say_what_is_missing() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::Nat, &one_server()).unwrap();
    topology.director.remove_address("eth0", &VIP_V6.to_string()).unwrap();
    let server = server_addresses(1)[0];
    let text = top("auto") + &web(Kind::Nat, "rr", &[1]);
    let file = topology.lab.logs().join("planned.toml");
    std::fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    let look = || examine(&topology.director, no_socket(), &["--config", file]);
    let finding = wait_for("director", &["no director answers", "192.0.2.10"], look);
    assert_eq!(finding["severity"], "fault");
    let finding = wait_for("vip", &["2001:db8:1::10 is on no interface"], look);
    paste(&topology.director, &finding);
    wait_until_gone("vip", look);
    let (_, findings) = look();
    let ways = findings.iter().find(|it| it["check"] == "route").unwrap();
    assert!(ways["found"].as_str().unwrap().contains(&server.to_string()), "{ways:#}");

    std::fs::write(file, text.replace("\"rr\"", "\"rrr\"")).unwrap();
    let words = ["a director would refuse", "scheduler"];
    let finding = wait_for("file", &words, look);
    assert!(finding["remedy"][0].as_str().unwrap().starts_with("director check"));
    let said = dirctl(
        &topology.servers[0],
        no_socket(),
        &["doctor", "--side", "server", "--config", "/no"],
    );
    assert_eq!((said.code, said.out.as_str()), (Some(64), ""), "{said:?}");
    let said =
        dirctl(&topology.client, no_socket(), &["doctor", "--side", "server", "--config", file]);
    assert_eq!(said.code, Some(64), "{said:?}");
    assert!(said.err.contains("no [[service.server]] with an address of this host"), "{said:?}");
}

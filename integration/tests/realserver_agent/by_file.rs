//! The agent by the director's file: it finds its host, keeps it so, answers, drains, and leaves
//! nothing behind.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use integration::lab::{Host, Lab, Process};
use integration::topology::VIP_V4;
use nix::sys::signal::Signal;
use realserver_agent::protocol::{Answer, LEN, PORT, Probe, State};

use super::{LAB_BINARY, SECOND, can_run, state};

/// A director and a server on one segment, and the server's file.
struct Bed {
    _lab: Lab,
    director: Host,
    server: Host,
    file: PathBuf,
    control: PathBuf,
}

const SERVER: &str = "10.77.0.11";

impl Bed {
    /// `service` are keys of the server's entry, `agent` keys of `[agent]`.
    fn new(name: &str, service: &str, agent: &str) -> Bed {
        let lab = Lab::new(name).unwrap();
        let (director, server) = (lab.host("director").unwrap(), lab.host("server").unwrap());
        let wire = lab.segment("wire").unwrap();
        lab.connect(&director, &wire, "eth0", &["10.77.0.1/24"]).unwrap();
        lab.connect(&server, &wire, "eth0", &[&format!("{SERVER}/24")]).unwrap();
        director.route("192.0.2.0/24", SERVER).unwrap();
        let [file, control] = ["switchyard.toml", "control.sock"].map(|it| lab.logs().join(it));
        let bed = Bed { _lab: lab, director, server, file, control };
        bed.write(service, agent, VIP_V4.to_string().as_str());
        bed
    }

    fn write(&self, service: &str, agent: &str, vip: &str) {
        let control = self.control.display();
        let text = format!(
            "[agent]\ncontrol = \"{control}\"\n{agent}\n[[service]]\nlisten = \"{vip}:80/tcp\"\n\
             [[service.server]]\naddress = \"{SERVER}\"\n{service}\n"
        );
        std::fs::write(&self.file, text).unwrap();
    }

    fn start(&self, more: &[&str]) -> Process {
        let file = self.file.to_str().unwrap();
        let run = ["realserver-agent", "run", "--config", file];
        self.server.command(LAB_BINARY).args(run).args(more).spawn().unwrap()
    }

    /// What an operator's command prints.
    fn tell(&self, word: &str) -> String {
        let control = self.control.to_str().unwrap();
        let command = self.server.command(LAB_BINARY);
        let told = command.args(["realserver-agent", word, "--control", control]);
        let output = told.output(SECOND * 5).unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn ask(&self) -> Answer {
        let ask = || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.set_read_timeout(Some(SECOND * 2)).unwrap();
            socket.connect((SERVER, PORT)).unwrap();
            socket.send(&Probe { challenge: 77 }.encode(None)).unwrap();
            let mut answer = [0; LEN];
            socket.recv(&mut answer).unwrap();
            Answer::decode(&answer, None).unwrap()
        };
        self.director.run(ask).unwrap()
    }
}

#[track_caller]
fn until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_host_finds_itself_in_the_file_and_ends_when_its_last_connection_does() {
    if !can_run() {
        return;
    }
    let bed = Bed::new("byfile", "forwarding = \"direct\"", "drain_deadline = \"20s\"");
    let before = state(&bed.server);
    let agent = bed.start(&[]);
    agent.wait_for_log("ready", SECOND * 5).unwrap();
    assert!(
        agent.log().contains("this host is 10.77.0.11: server of 1 service"),
        "{}",
        agent.log()
    );
    assert!(state(&bed.server).contains(&VIP_V4.to_string()));
    let first = bed.ask();
    assert_eq!(first.state, State::Up);

    let at = SocketAddr::new(VIP_V4, 80);
    let service = bed.server.run(|| TcpListener::bind(at)).unwrap().unwrap();
    let mut client = bed.director.run(|| TcpStream::connect(at)).unwrap().unwrap();
    let (mut served, _) = service.accept().unwrap();
    until("the connection is not reported", SECOND * 5, || bed.ask().connections == 1);
    let waiting = bed.director.run(|| TcpStream::connect(at)).unwrap().unwrap();
    until("the accept queue is not reported", SECOND * 5, || bed.ask().queue == 1);
    drop(waiting);
    drop(service);

    assert_eq!(bed.tell("drain"), "draining: drained by the operator\n");
    assert_eq!(bed.ask().state, State::Draining);
    assert_eq!(bed.tell("undrain"), "up\n");
    assert!(bed.tell("status").contains("asked by     10.77.0.1 over udp"));

    agent.signal(Signal::SIGTERM).unwrap();
    until("SIGTERM does not drain", SECOND * 2, || bed.ask().state == State::Draining);
    // Longer than it takes to count: the connection is what keeps it.
    assert_eq!(agent.wait(SECOND * 3).unwrap(), None, "{}", agent.log());
    client.write_all(b"still here").unwrap();
    let mut heard = [0; 10];
    served.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"still here");
    drop((client, served));
    until("it does not end", SECOND * 10, || agent.wait(Duration::ZERO).unwrap().is_some());
    assert!(agent.wait(SECOND).unwrap().unwrap().success(), "{}", agent.log());
    assert_eq!(state(&bed.server), before);
    assert!(!bed.control.exists());

    // The host has not started anew, so its boot nonce is the old one.
    let again = bed.start(&[]);
    again.wait_for_log("ready", SECOND * 5).unwrap();
    assert_eq!(bed.ask().boot, first.boot);
}

#[test]
fn what_somebody_undoes_is_made_again_and_what_was_there_before_is_not_ours() {
    if !can_run() {
        return;
    }
    let bed = Bed::new("keeps", "forwarding = \"direct\"", "drain_deadline = 0");
    bed.server.sysctl("net.ipv4.conf.all.arp_announce", "2").unwrap();
    let before = state(&bed.server);
    let agent = bed.start(&[]);
    agent.wait_for_log("ready", SECOND * 5).unwrap();
    let prepared = state(&bed.server);
    for _ in 0..2 {
        bed.server.remove_address("lo", &VIP_V4.to_string()).unwrap();
        bed.server.sysctl("net.ipv4.conf.all.arp_ignore", "0").unwrap();
        until("it stays undone", SECOND * 6, || state(&bed.server) == prepared);
    }
    assert!(bed.tell("status").contains("made again   4 times"), "{}", bed.tell("status"));
    assert_eq!(agent.log().matches("somebody has undone").count(), 2, "{}", agent.log());
    // This one it has not made.
    bed.server.sysctl("net.ipv4.conf.all.arp_announce", "1").unwrap();
    std::thread::sleep(SECOND * 3);
    assert_eq!(bed.server.read_sysctl("net.ipv4.conf.all.arp_announce").unwrap(), "1");
    bed.server.sysctl("net.ipv4.conf.all.arp_announce", "2").unwrap();
    assert!(agent.stop().unwrap().success(), "{}", agent.log());
    assert_eq!(state(&bed.server), before);
}

#[test]
fn a_file_that_is_read_again_moves_the_vip_and_a_wrong_one_changes_nothing() {
    if !can_run() {
        return;
    }
    let (service, agent) = ("forwarding = \"direct\"", "drain_deadline = 0");
    let bed = Bed::new("again", service, agent);
    let before = state(&bed.server);
    let process = bed.start(&[]);
    process.wait_for_log("ready", SECOND * 5).unwrap();
    bed.write(service, agent, "192.0.2.99");
    process.signal(Signal::SIGHUP).unwrap();
    process.wait_for_log("the file has been read again", SECOND * 5).unwrap();
    let moved = state(&bed.server);
    assert!(moved.contains("192.0.2.99") && !moved.contains(&VIP_V4.to_string()), "{moved}");
    bed.write("forwarding = \"drect\"", agent, "192.0.2.98");
    process.signal(Signal::SIGHUP).unwrap();
    process.wait_for_log("did you mean \"direct\"?", SECOND * 5).unwrap();
    assert_eq!(state(&bed.server), moved);
    assert_eq!(bed.ask().state, State::Up);
    assert!(process.stop().unwrap().success(), "{}", process.log());
    assert_eq!(state(&bed.server), before);
}

#[test]
fn a_host_that_the_file_does_not_name_is_told_and_not_changed() {
    if !can_run() {
        return;
    }
    let bed = Bed::new("other", "forwarding = \"direct\"", "");
    let before = state(&bed.director);
    let run = ["realserver-agent", "run", "--config", bed.file.to_str().unwrap()];
    let process = bed.director.command(LAB_BINARY).args(run).spawn().unwrap();
    let status = process.wait(SECOND * 5).unwrap().unwrap();
    assert!(
        !status.success() && process.log().contains("which has 10.77.0.1:"),
        "{}",
        process.log()
    );
    assert_eq!(state(&bed.director), before);
}

/// Whichever this kernel has: its own device, or none and a clear word about it.
#[test]
fn the_kernel_unpacks_where_it_can_and_else_the_agent_says_why_it_does() {
    if !can_run() {
        return;
    }
    let bed = Bed::new("kernel", "forwarding = \"tunnel\"", "drain_deadline = 0");
    let before = state(&bed.server);
    let agent = bed.start(&["--tunnel-by", "kernel"]);
    match agent.wait(SECOND * 2).unwrap() {
        Some(status) => {
            assert!(!status.success());
            let log = agent.log();
            assert!(log.contains("it has no devices of type ipip"), "{log}");
            assert!(log.contains("--tunnel-by own"), "{log}");
            println!("this kernel has none: {}", log.lines().last().unwrap_or_default());
        }
        None => {
            assert!(state(&bed.server).contains("swtun0"));
            assert!(agent.stop().unwrap().success(), "{}", agent.log());
        }
    }
    assert_eq!(state(&bed.server), before);
    let agent = bed.start(&["--tunnel-by", "own"]);
    agent.wait_for_log("ready", SECOND * 5).unwrap();
    assert!(state(&bed.server).contains("switchyard0"));
    assert!(agent.stop().unwrap().success(), "{}", agent.log());
    assert_eq!(state(&bed.server), before);
}

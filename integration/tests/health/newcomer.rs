//! An empty server comes beside twenty busy ones: what load bias is for.
//!
//! The scenario of the load-biasing papers, five times as fast: 80 sessions on each of twenty servers,
//! ten logons a second, each of which needs 0.8 seconds of a core of a server with two.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use integration::lab::Process;
use integration::logons::{IDLE, LOGON};
use integration::programs;
use integration::running::Director;
use integration::topology::{Kind, Options, Topology, VIP_V4, server_addresses};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::can_run;

const SERVERS: usize = 20;
const SESSIONS: usize = 80;
const PORT: u16 = 80;
const LOGONS: u32 = 180;
const PACE: Duration = Duration::from_millis(100);

/// The most logons that were in progress on the newcomer at once.
fn peak(bias: &str) -> usize {
    let options = Options { servers: SERVERS + 1, ..Options::default() };
    let topology = Topology::build(Kind::Nat, &options).unwrap();
    let program = programs::path("switchyard-lab").unwrap();
    let servers: Vec<Process> = (1..=SERVERS + 1)
        .map(|number| {
            let listen = address(number).to_string();
            let process = topology.servers[number - 1]
                .command(&program)
                .args(["serve-logons", "--work", "0.8", "--listen", &listen])
                .spawn()
                .unwrap();
            process.wait_for_log("serves", Duration::from_secs(10)).unwrap();
            process
        })
        .collect();
    let vip = SocketAddr::new(VIP_V4, PORT);
    let mut config = format!(
        "interfaces = [\"eth0\"]\nio = \"copy\"\n[[service]]\nlisten = \"{vip}/tcp\"\n\
         scheduler = \"wlc\"\nforwarding = \"nat\"\nbias = \"{bias}\"\nbias_window = \"2s\"\n"
    );
    for number in 1..=SERVERS {
        config += &format!("  [[service.server]]\n  address = \"{}\"\n", address(number));
    }
    let director = Director::start(&topology.lab, &topology.director, &config).unwrap();

    let open = |first: u8| -> TcpStream {
        let mut stream = TcpStream::connect(vip).unwrap();
        stream.write_all(&[first]).unwrap();
        stream
    };
    let mut sessions: Vec<TcpStream> =
        topology.client.run(|| (0..SERVERS * SESSIONS).map(|_| open(IDLE)).collect()).unwrap();
    // What is young is no more when the newcomer comes.
    std::thread::sleep(Duration::from_millis(2500));
    let newcomer = address(SERVERS + 1).to_string();
    let service = vip.to_string();
    director.ipvsadm(&["-a", "-t", &service, "-r", &newcomer, "-m", "-w", "1"]).unwrap();
    let start = Instant::now();
    topology
        .client
        .run(|| {
            for number in 0..LOGONS {
                std::thread::sleep(
                    (start + PACE * number).saturating_duration_since(Instant::now()),
                );
                sessions.push(open(LOGON));
            }
        })
        .unwrap();
    // The last of them must be done some time: no session is lost.
    let last = sessions.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    last.read_exact(&mut [0]).unwrap();
    let log = servers[SERVERS].log();
    let peaks = log.lines().filter_map(|line| line.strip_prefix("peak ")?.parse().ok());
    let peak = peaks.max().unwrap_or(0);
    println!("{bias}: {peak} logons at once on the newcomer");
    director.stop().unwrap();
    peak
}

fn address(number: usize) -> SocketAddr {
    SocketAddr::new(server_addresses(number)[0], PORT)
}

#[test]
fn a_newcomer_beside_twenty_loaded_servers_is_not_drowned() {
    if !can_run() {
        return;
    }
    // 1,780 connections are open at once.
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(4096).min(hard), hard).unwrap();
    let (plain, biased) = (peak("none"), peak("ilb:2"));
    println!("\nfigure: {:<64} {plain:>7} {:>7}", "newcomer, plain wlc: logons at once", "> 60");
    println!("figure: {:<64} {biased:>7} {:>7}", "newcomer, ilb:2: logons at once", 4);
    // Others stand at four fifths of the capacity: three, and one more.
    assert!(biased <= 4, "{biased} logons at once on the newcomer");
    assert!(plain > 60, "plain wlc has only {plain}: the scenario does not show what it is for");
}

//! Real traffic, replayed: the capture goes where the director sent it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use integration::http::Plan;
use integration::lab::Host;
use integration::topology::{Kind, VIP_V4};
use integration::written::{service, top};
use netio::{PacketOptions, PacketPort, Pool, Port, Trace};
use pcap_file::pcap::PcapReader;
use serde_json::Value;

use crate::bed::{Bed, Said, can_run};

/// What arrives on an interface, written into a pcap file until it is stopped.
struct Recorder {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl Recorder {
    /// Its socket is there when this returns.
    fn start(host: &Host, interface: &str, path: &Path) -> Recorder {
        let options = PacketOptions::new(interface);
        let port = host.run(|| PacketPort::open(options)).unwrap().unwrap();
        let mut trace = Trace::new(port, path).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut pool = Pool::new(256, 2048).unwrap();
            let mut batch = Vec::new();
            loop {
                let last = stopped.load(Relaxed);
                let received = trace.receive(&mut pool, &mut batch, 64).unwrap();
                batch.drain(..).for_each(|frame| pool.release(frame));
                match (received, last) {
                    (0, true) => return,
                    (0, false) => std::thread::sleep(Duration::from_millis(1)),
                    _ => {}
                }
            }
        });
        Recorder { thread, stop }
    }

    fn stop(self) {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap();
    }
}

/// Which server each client's port was answered by, as the recorded replies show.
fn answered(path: &Path) -> BTreeMap<u16, SocketAddr> {
    let mut reader = PcapReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut servers = BTreeMap::new();
    while let Some(packet) = reader.next_packet() {
        let Ok(headers) = forwarding::parse(&packet.unwrap().data) else { continue };
        if headers.is_tcp() && headers.source_port == 80 && headers.source != VIP_V4 {
            let server = SocketAddr::new(headers.source, headers.source_port);
            let before = servers.insert(headers.destination_port, server);
            assert!(before.is_none_or(|before| before == server), "two servers, one client port");
        }
    }
    servers
}

/// Where a replay sends the clients' packets, by their ports.
fn sent(said: &Said) -> BTreeMap<u16, SocketAddr> {
    let mut servers = BTreeMap::new();
    for line in said.out.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        if object["reason"] != "nat" {
            continue;
        }
        let from: SocketAddr = object["flow"]["from"].as_str().unwrap().parse().unwrap();
        let server = object["server"].as_str().unwrap().parse().unwrap();
        let before = servers.insert(from.port(), server);
        assert!(before.is_none_or(|before| before == server), "a flow has moved: {line}");
    }
    servers
}

/// A director with this scheduler, some requests, and what arrived meanwhile.
fn live(scheduler: &str) -> (Bed, PathBuf) {
    // The recorder has a clock of its own: what young connections are must not matter.
    let bias = if scheduler == "wlc" { "bias = \"none\"" } else { "" };
    // Nor who of two workers was first.
    let top = top("packet") + "workers = 1\n";
    let config = top + &service(Kind::Nat, VIP_V4, 80, scheduler, bias, &[1, 2, 1]);
    let bed = Bed::with(Kind::Nat, &config);
    let path = bed.topology.lab.logs().join("in.pcap");
    let recorder = Recorder::start(&bed.topology.director, "eth0", &path);
    let mut plan = Plan::new(SocketAddr::new(VIP_V4, 80), 40);
    plan.concurrency = 1;
    let tally = bed.topology.fetch(&plan, |_| {}).unwrap();
    assert_eq!(tally.answered(), 40, "{tally:?}");
    recorder.stop();
    (bed, path)
}

#[test]
fn quick_a_capture_of_real_traffic_goes_to_the_servers_that_the_director_chose() {
    if !can_run() {
        return;
    }
    for scheduler in ["rr", "sh", "wlc"] {
        let (bed, path) = live(scheduler);
        let file = path.to_str().unwrap();
        let chosen = answered(&path);
        assert_eq!(chosen.len(), 40);
        // Without --config: by the file of the director that runs.
        let said = bed.dirctl(&["replay", file, "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(sent(&said), chosen, "{scheduler}");
        assert_eq!(bed.dirctl(&["replay", file, "--json"]).out, said.out, "not the same again");
        let used: std::collections::BTreeSet<_> = chosen.values().collect();
        assert!(scheduler == "sh" || used.len() == 3, "{scheduler} used {used:?}");
    }
}

#[test]
fn another_file_is_compared_flow_by_flow_and_what_would_leave_is_written() {
    if !can_run() {
        return;
    }
    let (bed, path) = live("rr");
    let (file, folder) = (path.to_str().unwrap(), bed.topology.lab.logs());
    let other = folder.join("other.toml");
    let config = top("packet") + &service(Kind::Nat, VIP_V4, 80, "rr", "", &[1, 2]);
    std::fs::write(&other, config).unwrap();
    let out = folder.join("out.pcap");
    let said = bed.dirctl(&[
        "replay",
        file,
        "--quiet",
        "--compare",
        other.to_str().unwrap(),
        "-w",
        out.to_str().unwrap(),
    ]);
    assert_eq!(said.code, Some(1), "flows move: {said:?}");
    said.names(&["of 40 flows would go to somebody else", "from 10.77.0.13:80 to 10.77.0.1"]);
    // What would leave is what the servers got: as many packets each as the summary says.
    let mut reader = PcapReader::new(std::fs::File::open(&out).unwrap()).unwrap();
    let mut to_servers = 0;
    while let Some(packet) = reader.next_packet() {
        let headers = forwarding::parse(&packet.unwrap().data).unwrap();
        to_servers += u64::from(headers.destination_port == 80 && headers.destination != VIP_V4);
    }
    let stats = bed.director.services().unwrap()[0].stats;
    assert_eq!(to_servers, stats.in_packets);
}

#[test]
fn quick_a_capture_that_is_none_or_cut_short_is_said_in_one_line() {
    if !can_run() {
        return;
    }
    let (bed, path) = live("rr");
    let whole = std::fs::read(&path).unwrap();
    let cut = bed.topology.lab.logs().join("cut.pcap");
    std::fs::write(&cut, &whole[..whole.len() - 7]).unwrap();
    let said = bed.dirctl(&["replay", cut.to_str().unwrap(), "--quiet"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("cut short") && said.err.contains("after packet "), "{said:?}");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    said.names(&["192.0.2.10:80/tcp", "forwarded"]);
    for nothing in ["/proc/self/status", "/nowhere", "/"] {
        let said = bed.dirctl(&["replay", nothing]);
        assert_eq!((said.code, said.err.lines().count()), (Some(64), 1), "{nothing}: {said:?}");
        assert!(said.out.is_empty() && said.err.contains(nothing), "{said:?}");
    }
}

/// What the director could not send on a narrow path a replay over such a path names, packet by packet.
#[test]
fn a_path_that_is_too_narrow_is_named_by_the_replay_of_what_did_not_fit() {
    if !can_run() {
        return;
    }
    let config = top("packet") + "workers = 1\n" + &service(Kind::Nat, VIP_V4, 80, "rr", "", &[1]);
    let bed = Bed::with(Kind::Nat, &config);
    let ip = bed.topology.director.command("ip");
    let narrow = ["route", "add", "10.77.0.11/32", "dev", "eth0", "mtu", "1280"];
    assert!(ip.args(narrow).output(Duration::from_secs(10)).unwrap().status.success());
    std::thread::sleep(Duration::from_millis(500));
    let path = bed.topology.lab.logs().join("in.pcap");
    let recorder = Recorder::start(&bed.topology.director, "eth0", &path);
    let vip = SocketAddr::new(VIP_V4, 80);
    let patience = Duration::from_secs(10);
    let connect = || std::net::TcpStream::connect_timeout(&vip, patience).unwrap();
    let mut stream = bed.topology.client.run(connect).unwrap();
    std::io::Write::write_all(&mut stream, &[b'x'; 1400]).unwrap();
    let begun = std::time::Instant::now();
    while bed.director.verdicts("too_big").unwrap() == 0 {
        assert!(begun.elapsed() < patience, "it went through");
        std::thread::sleep(Duration::from_millis(20));
    }
    recorder.stop();
    let lost = bed.director.verdicts("too_big").unwrap();
    let file = path.to_str().unwrap();
    let said = bed.dirctl(&["replay", file, "--quiet", "--mtu", "1280"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.names(&["Larger than the path's MTU", "assumed: "]);
    let line = said.out.lines().find(|line| line.contains("too_big")).unwrap_or_default();
    assert!(line.trim().starts_with(&format!("{lost} ")), "{lost}: {said:?}");
    let wide = bed.dirctl(&["replay", file, "--quiet"]);
    assert!(!wide.out.contains("too_big"), "{wide:?}");
    let refused = bed.dirctl(&["replay", file, "-w", "-"]);
    assert_eq!(
        (refused.code, refused.err.contains("name a file")),
        (Some(64), true),
        "{refused:?}"
    );
}

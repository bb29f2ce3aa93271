//! Packets from a running director, with what became of each, on real faults.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use integration::lab::Process;
use integration::programs;
use integration::topology::{Kind, VIP_V4, VIP_V6};
use integration::written::{service, top, web};
use nix::sys::signal::Signal;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::Value;

use crate::bed::{Bed, can_run};

const SOON: Duration = Duration::from_secs(30);

/// A capture that runs beside the test.
struct Capturing {
    process: Process,
    path: PathBuf,
}

impl Capturing {
    /// Returns when the director has begun it.
    fn start(bed: &Bed, name: &str, words: &[&str]) -> Capturing {
        let path = bed.topology.lab.logs().join(name);
        let command = bed.topology.director.command(programs::path("dirctl").unwrap());
        let command = command.arg("capture").args(words).arg("-w").arg(&path);
        let process = command.env("SWITCHYARD_SOCKET", bed.director.socket()).spawn().unwrap();
        let deadline = Instant::now() + SOON;
        while std::fs::metadata(&path).map_or(0, |file| file.len()) == 0 {
            assert!(process.is_running().unwrap(), "{}", process.log());
            assert!(Instant::now() < deadline, "no capture:\n{}", process.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Capturing { process, path }
    }

    /// Ends by itself. Returns the exit code.
    fn wait(&self) -> Option<i32> {
        self.process.wait(SOON).unwrap().and_then(|status| status.code())
    }

    /// Until the file has so many packets.
    fn wait_for(&self, packets: usize) {
        let deadline = Instant::now() + SOON;
        while read(&self.path).len() < packets {
            assert!(Instant::now() < deadline, "{:?}\n{}", read(&self.path), self.process.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Packets of a capture: bytes and comment. Fails when the file is not whole.
fn read(path: &Path) -> Vec<(Vec<u8>, String)> {
    let mut reader = PcapNgReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            let comment = packet.options.iter().find_map(|option| match option {
                EnhancedPacketOption::Comment(text) => Some(text.to_string()),
                _ => None,
            });
            packets.push((packet.data.to_vec(), comment.unwrap_or_default()));
        }
    }
    assert!(!reader.interfaces().is_empty());
    packets
}

#[test]
fn quick_what_a_director_drops_is_captured_with_the_reason_that_names_the_fault() {
    if !can_run() {
        return;
    }
    // The second service's server is in a network that the director has no route to.
    let lost = "\n[[service]]\nlisten = \"192.0.2.10:81/udp\"\nscheduler = \"rr\"\nforwarding = \"nat\"\n\
                \n  [[service.server]]\n  address = \"203.0.113.9:81\"\n";
    let bed = Bed::with(Kind::Nat, &(top("copy") + &web(Kind::Nat, "rr", &[1]) + lost));
    let capturing = Capturing::start(&bed, "drops.pcapng", &["--drops", "--count", "4"]);
    bed.topology
        .client
        .run(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            for _ in 0..3 {
                let _ = socket.send_to(b"lost", SocketAddr::new(VIP_V4, 81));
            }
            // A TTL that runs out at the director.
            let _ = std::net::TcpStream::connect_timeout(&SocketAddr::new(VIP_V4, 80), SOON);
            socket.set_ttl(1).unwrap();
            let _ = socket.send_to(b"late", SocketAddr::new(VIP_V4, 81));
        })
        .unwrap();
    assert_eq!(capturing.wait(), Some(0), "{}", capturing.process.log());
    let packets = read(&capturing.path);
    let count =
        |reason: &str| packets.iter().filter(|(_, comment)| comment.contains(reason)).count();
    assert_eq!(packets.len(), 4, "{packets:?}");
    assert!(count("dropped no_route") >= 3, "{packets:?}");
    assert!(packets[0].1.contains("routing table has no way"), "{packets:?}");
    assert!(packets[0].1.contains("192.0.2.10:81/udp"), "{packets:?}");
    assert!(capturing.process.log().contains("4 packets in"), "{}", capturing.process.log());

    let said = bed.dirctl(&["drops"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    said.names(&["no_route", "The kernel's routing table has no way to the destination."]);
    let said = bed.dirctl(&["drops", "--json", "--all"]);
    let reasons: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let of = |reason: &str| reasons.iter().find(|it| it["reason"] == reason).unwrap();
    assert_eq!(of("too_big")["packets"], 0);
    assert!(of("no_route")["packets"].as_u64().unwrap() >= 3);
}

#[test]
fn quick_a_packet_whose_ttl_runs_out_is_named_so() {
    if !can_run() {
        return;
    }
    let bed =
        Bed::with(Kind::Nat, &(top("copy") + &service(Kind::Nat, VIP_V4, 80, "rr", "", &[1])));
    let words = ["--drops", "ttl_exceeded,no_route", "--count", "1"];
    let capturing = Capturing::start(&bed, "ttl.pcapng", &words);
    bed.topology
        .client
        .run(|| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let socket = tokio::net::TcpSocket::new_v4().unwrap();
                nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::Ipv4Ttl, &1)
                    .unwrap();
                let connect = socket.connect(SocketAddr::new(VIP_V4, 80));
                let _ = tokio::time::timeout(Duration::from_secs(1), connect).await;
            });
        })
        .unwrap();
    assert_eq!(capturing.wait(), Some(0), "{}", capturing.process.log());
    let packets = read(&capturing.path);
    assert!(packets[0].1.contains("dropped ttl_exceeded"), "{packets:?}");
}

#[test]
fn quick_a_capture_of_what_is_forwarded_replays_to_the_same_servers() {
    if !can_run() {
        return;
    }
    for io in ["copy", "packet"] {
        // Between two workers nobody knows which packet was first.
        let config = top(io) + "workers = 1\n" + &web(Kind::Nat, "wlc", &[1, 2, 1]);
        let bed = Bed::with(Kind::Nat, &config);
        let capturing = Capturing::start(&bed, "in.pcapng", &["--verdict", "forwarded"]);
        for vip in [VIP_V4, VIP_V6] {
            assert_eq!(bed.fetch(vip, 80, 20).answered(), 20);
        }
        let stats = || {
            bed.director.services().unwrap().iter().fold((0, 0), |sum, view| {
                (sum.0 + view.stats.in_packets, sum.1 + view.stats.out_packets)
            })
        };
        let (came, went) = stats();
        capturing.wait_for((came + went) as usize);
        capturing.process.signal(Signal::SIGINT).unwrap();
        assert_eq!(capturing.wait(), Some(0), "{}", capturing.process.log());
        let log = capturing.process.log();
        assert!(log.contains(" packets in ") && !log.contains("lost"), "{log}");

        let chosen: BTreeMap<SocketAddr, String> = read(&capturing.path)
            .iter()
            .filter_map(|(bytes, comment)| {
                let headers = forwarding::parse(bytes).unwrap();
                let server = comment.strip_prefix("forwarded nat: server ")?;
                let server = server.split_once(' ')?.0.to_owned();
                Some((SocketAddr::new(headers.source, headers.source_port), server))
            })
            .collect();
        assert_eq!(chosen.len(), 40, "the long way and the short one");
        let said = bed.dirctl(&["replay", capturing.path.to_str().unwrap(), "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let replayed: BTreeMap<SocketAddr, String> = said
            .out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|it| it["reason"] == "nat")
            .map(|it| {
                let word = |value: &Value| value.as_str().unwrap().to_owned();
                (word(&it["flow"]["from"]).parse().unwrap(), word(&it["server"]))
            })
            .collect();
        let others: Vec<_> =
            chosen.iter().filter(|(from, it)| replayed.get(from) != Some(it)).collect();
        assert!(others.is_empty(), "{io}: {others:?} went to {replayed:?}");
    }
}

#[test]
fn a_director_that_is_killed_leaves_a_capture_that_can_be_read() {
    if !can_run() {
        return;
    }
    let bed = Bed::with(Kind::Nat, &(top("copy") + &web(Kind::Nat, "rr", &[1])));
    let capturing = Capturing::start(&bed, "killed.pcapng", &["--both", "-s", "96"]);
    assert_eq!(bed.fetch(VIP_V4, 80, 5).answered(), 5);
    capturing.wait_for(10);
    bed.director.process().signal(Signal::SIGKILL).unwrap();
    assert_eq!(capturing.wait(), Some(3), "{}", capturing.process.log());
    assert!(capturing.process.log().contains("the director has ended"));
    let packets = read(&capturing.path);
    assert!(packets.iter().all(|(bytes, _)| bytes.len() <= 96));
    assert!(packets.iter().any(|(_, comment)| comment.starts_with("forwarded nat: server ")));
    assert!(packets.iter().any(|(_, comment)| comment == "left, forwarded nat"));
}

/// Sends so many datagrams of a kilobyte that the director has to drop.
fn flood(bed: &Bed, datagrams: usize) {
    bed.topology
        .client
        .run(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            for number in 0..datagrams {
                let _ = socket.send_to(&[7; 1000], SocketAddr::new(VIP_V4, 81));
                if number % 32 == 0 {
                    std::thread::sleep(Duration::from_micros(500));
                }
            }
        })
        .unwrap();
}

#[test]
fn what_a_capture_has_lost_is_told_and_a_full_disk_cuts_no_block() {
    if !can_run() {
        return;
    }
    let lost = "\n[[service]]\nlisten = \"192.0.2.10:81/udp\"\nscheduler = \"rr\"\nforwarding = \"nat\"\n\
                \n  [[service.server]]\n  address = \"203.0.113.9:81\"\n";
    let bed = Bed::with(Kind::Nat, &(top("copy") + &web(Kind::Nat, "rr", &[1]) + lost));
    let dirctl = programs::path("dirctl").unwrap();
    let shell = |script: &str| {
        let command = bed.topology.director.command(PathBuf::from("bash"));
        let command =
            command.args(["-c", script, "bash"]).arg(&dirctl).arg(bed.topology.lab.logs());
        command.env("SWITCHYARD_SOCKET", bed.director.socket()).spawn().unwrap()
    };
    let ends = |process: &Process| process.wait(SOON).unwrap().and_then(|status| status.code());

    // A reader that does not read, until after the capture was interrupted.
    let stuck = shell(
        "timeout --preserve-status -s INT 5 \"$1\" capture --drops -w - | \
         (touch \"$2/began\"; sleep 7; cat > \"$2/stuck.pcapng\"); exit ${PIPESTATUS[0]}",
    );
    let began = bed.topology.lab.logs().join("began");
    while !began.exists() {
        assert!(stuck.is_running().unwrap(), "{}", stuck.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    flood(&bed, 20_000);
    assert_eq!(ends(&stuck), Some(1), "{}", stuck.log());
    assert!(stuck.log().contains("lost because they came too fast"), "{}", stuck.log());
    assert!(!read(&bed.topology.lab.logs().join("stuck.pcapng")).is_empty());

    let full = shell(
        "mkdir \"$2/small\" && exec unshare --mount bash -c 'mount -t tmpfs -o size=64k small \"$2/small\"; \
         \"$1\" capture --drops --seconds 20 -w \"$2/small/f\"; code=$?; cp \"$2/small/f\" \"$2/full.pcapng\"; \
         exit $code' bash \"$1\" \"$2\"",
    );
    std::thread::sleep(Duration::from_secs(1));
    flood(&bed, 500);
    assert_eq!(ends(&full), Some(64), "{}", full.log());
    let packets = read(&bed.topology.lab.logs().join("full.pcapng")).len();
    let said = format!("what came before is whole: {packets} packet");
    assert!(full.log().contains(&said), "{said}\n{}", full.log());
    bed.director.stop().unwrap();
}

#[test]
fn a_few_captures_run_at_once_and_clients_that_leave_make_room() {
    if !can_run() {
        return;
    }
    let bed = Bed::with(Kind::Nat, &(top("copy") + &web(Kind::Nat, "rr", &[1])));
    let start = |number: usize| Capturing::start(&bed, &format!("{number}.pcapng"), &["--drops"]);
    let four: Vec<Capturing> = (0..4).map(start).collect();
    let fifth = bed.topology.lab.logs().join("5.pcapng");
    let words = ["capture", "--seconds", "1", "-w", fifth.to_str().unwrap()];
    let said = bed.dirctl(&words);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.err.contains("4 captures run already") && !fifth.exists(), "{said:?}");
    // However they leave.
    for capturing in &four {
        capturing.process.signal(Signal::SIGKILL).unwrap();
    }
    let deadline = Instant::now() + SOON;
    while bed.dirctl(&words).code != Some(0) {
        assert!(Instant::now() < deadline, "nobody's place is free");
    }
    let said = bed.dirctl(&["capture", "--drops", "no_such_reason", "-w", "/dev/null"]);
    assert_eq!(said.code, Some(64), "{said:?}");
    assert!(said.err.contains("no_such_reason") && said.err.contains("dirctl drops --all"));
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_sample_is_one_of_so_many_packets_and_ends_whole_when_it_is_interrupted() {
    if !can_run() {
        return;
    }
    let config = top("copy") + "workers = 1\n" + &service(Kind::Nat, VIP_V4, 80, "rr", "", &[1, 1]);
    let bed = Bed::with(Kind::Nat, &config);
    let forwarded = || {
        let verdicts = bed.director.status().unwrap().verdicts;
        let counts = verdicts.iter().filter(|count| count.verdict == "forwarded");
        counts.map(|count| count.packets).sum::<u64>()
    };
    let before = forwarded();
    let words = ["--verdict", "forwarded", "--sample", "10"];
    let capturing = Capturing::start(&bed, "sample.pcapng", &words);
    assert_eq!(bed.fetch(VIP_V4, 80, 200).failed(), 0);
    let expected = (forwarded() - before) / 10;
    assert!(expected > 100, "{expected}");
    capturing.wait_for(usize::try_from(expected).unwrap().saturating_sub(2));
    capturing.process.signal(Signal::SIGINT).unwrap();
    assert_eq!(capturing.wait(), Some(0), "{}", capturing.process.log());
    let packets = read(&capturing.path);
    // The last packets of the last connection may have come after the count.
    assert!((packets.len() as u64).abs_diff(expected) <= 2, "{} of {expected}", packets.len());
    assert!(packets.iter().all(|(_, comment)| comment.contains("forwarded")), "{packets:?}");
}

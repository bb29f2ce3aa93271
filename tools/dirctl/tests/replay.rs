//! `dirctl replay` on captures that are made here: no network, no director.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use etherparse::PacketBuilder;
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use serde_json::Value;

const NAT: &str = r#"
mode = "dispatcher"
interfaces = ["eth0"]
[[service]]
listen = "192.0.2.10:80/tcp"
scheduler = "rr"
forwarding = "FORWARDING"
  [[service.server]]
  address = "10.0.0.11:80"
  [[service.server]]
  address = "10.0.0.12:80"
"#;

const NLB: &str = r#"
mode = "nlb"
interfaces = ["eth0"]
[nlb]
key = "0123456789abcdef"
[[service]]
listen = "192.0.2.10:80/tcp"
  [[service.server]]
  address = "10.0.0.11"
  [[service.server]]
  address = "10.0.0.12"
  [[service.server]]
  address = "10.0.0.13"
  weight = 0
"#;

/// A folder with a file in it for `--config`.
struct Bed {
    folder: tempfile::TempDir,
}

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    /// Packets in the order of the capture, and the summary.
    fn objects(&self) -> (Vec<Value>, Value) {
        let mut all: Vec<Value> =
            self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let last = all.pop().unwrap();
        (all, last["summary"].clone())
    }

    /// The reason of each packet.
    fn reasons(&self) -> Vec<String> {
        let reason = |packet: &Value| packet["reason"].as_str().unwrap().to_owned();
        self.objects().0.iter().map(reason).collect()
    }
}

impl Bed {
    fn new(config: &str) -> Bed {
        let bed = Bed { folder: tempfile::tempdir().unwrap() };
        bed.write("a.toml", config);
        bed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// A capture of these packets: seconds, bytes, and how many of them are captured.
    fn capture(&self, link: DataLink, packets: &[(u64, Vec<u8>, usize)]) {
        let file = std::fs::File::create(self.path("in.pcap")).unwrap();
        let header = PcapHeader { datalink: link, ..PcapHeader::default() };
        let mut writer = PcapWriter::with_header(file, header).unwrap();
        for (seconds, bytes, captured) in packets {
            let time = Duration::from_secs(*seconds);
            let captured = &bytes[..(*captured).min(bytes.len())];
            writer.write_packet(&PcapPacket::new(time, bytes.len() as u32, captured)).unwrap();
        }
    }

    /// `dirctl replay in.pcap --config a.toml WORDS`
    fn replay(&self, words: &[&str]) -> Said {
        let output = Command::new(env!("CARGO_BIN_EXE_dirctl"))
            .current_dir(self.folder.path())
            .args(["replay", "in.pcap", "--config", "a.toml"])
            .args(words)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

fn tcp(port: u16, syn: bool, body: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([198, 51, 100, 7], [192, 0, 2, 10], 64)
        .tcp(port, 80, 1, 1000);
    let builder = if syn { builder.syn() } else { builder.ack(7) };
    let mut frame = Vec::new();
    builder.write(&mut frame, &vec![7; body]).unwrap();
    frame
}

fn whole(seconds: u64, frame: Vec<u8>) -> (u64, Vec<u8>, usize) {
    let length = frame.len();
    (seconds, frame, length)
}

/// Length on the wire, and bytes, of all packets of a file.
fn read(path: &Path) -> Vec<(u32, Vec<u8>)> {
    let mut reader = PcapReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet.unwrap();
        packets.push((packet.orig_len, packet.data.to_vec()));
    }
    packets
}

#[test]
fn a_connection_ends_when_its_time_in_the_capture_is_over() {
    let bed = Bed::new(&NAT.replace("FORWARDING", "nat"));
    let packets = [(0, true), (1, false), (2, false), (5000, false)];
    let packets: Vec<_> = packets.iter().map(|&(at, syn)| whole(at, tcp(4000, syn, 0))).collect();
    bed.capture(DataLink::ETHERNET, &packets);
    let said = bed.replay(&["--json"]);
    assert_eq!(said.reasons(), ["nat", "nat", "nat", "passed_no_connection"], "{}", said.err);
    assert_eq!(said.code, Some(0));
}

#[test]
fn where_only_bodies_are_missing_headers_decide_and_where_headers_are_missing_it_is_truncated() {
    let bed = Bed::new(&NAT.replace("FORWARDING", "nat"));
    let packets = [
        (0, tcp(4000, true, 0), 96),
        (0, tcp(4000, false, 500), 96),
        (0, tcp(4000, false, 500), 14 + 20 + 12),
    ];
    bed.capture(DataLink::ETHERNET, &packets);
    let said = bed.replay(&["--json", "-w", "out.pcap"]);
    assert_eq!(said.reasons(), ["nat", "nat", "truncated"]);
    assert_eq!(said.objects().1["captured_in_part"], 2);
    let out = read(&bed.path("out.pcap"));
    let lengths: Vec<_> = out.iter().map(|(length, bytes)| (*length, bytes.len())).collect();
    assert_eq!(lengths, [(54, 54), (554, 96)], "what is missing is not made up");
    assert!(bed.replay(&["-q"]).out.contains("bodies are missing"));
}

#[test]
fn packets_without_ethernet_headers_are_replayed_too() {
    let bed = Bed::new(&NAT.replace("FORWARDING", "nat"));
    let packet = tcp(4000, true, 0)[14..].to_vec();
    bed.capture(DataLink::RAW, &[whole(0, packet)]);
    assert_eq!(bed.replay(&["--json"]).reasons(), ["nat"]);
    bed.capture(DataLink::IEEE802_11, &[]);
    let said = bed.replay(&[]);
    assert_eq!((said.code, said.err.lines().count()), (Some(64), 1));
    assert!(said.err.contains("link type 105"), "{}", said.err);
}

#[test]
fn what_would_leave_is_written_tunnels_and_own_answers_too() {
    let bed = Bed::new(&NAT.replace("FORWARDING", "tunnel"));
    let mut large = tcp(4000, false, 1460);
    large[14 + 6] |= 0x40; // Don't fragment.
    large[14 + 10..14 + 12].fill(0);
    let sum = forwarding::checksum::Sum::default().bytes(&large[14..34]).checksum();
    large[14 + 10..14 + 12].copy_from_slice(&sum.to_be_bytes());
    bed.capture(DataLink::ETHERNET, &[whole(0, tcp(4000, true, 0)), whole(1, large)]);
    let said = bed.replay(&["--json", "-w", "out.pcap"]);
    assert_eq!(said.reasons(), ["tunnel", "too_big"]);
    assert_eq!(said.objects().0[1]["answered"], true);
    let out = read(&bed.path("out.pcap"));
    let [first, second] = [&out[0].1, &out[1].1];
    assert_eq!((first[14 + 9], &first[14 + 16..14 + 20]), (4, &[10, 0, 0, 12][..]), "IP in IP");
    assert_eq!(first[..6], [2, 4, 10, 0, 0, 12], "an address that is plainly made up");
    assert_eq!((second[14 + 9], second[34], second[35]), (1, 3, 4), "fragmentation needed");
    let same = bed.replay(&["-w", "in.pcap"]);
    assert_eq!(same.code, Some(64));
    assert_eq!(read(&bed.path("in.pcap")).len(), 2, "the capture is as it was");
}

#[test]
fn times_that_run_backwards_or_jump_are_told_and_harm_nothing() {
    let bed = Bed::new(&NAT.replace("FORWARDING", "nat"));
    let times = [1000, 10, 3_000_000_000, 20];
    let packets: Vec<_> = times.iter().map(|&at| whole(at, tcp(4000, true, 0))).collect();
    bed.capture(DataLink::ETHERNET, &packets);
    let summary = bed.replay(&["--json"]).objects().1;
    assert_eq!((&summary["times_backwards"], &summary["gaps_shortened"]), (&2.into(), &1.into()));
    let text = bed.replay(&["-q"]).out;
    assert!(text.contains("ran backwards") && text.contains("more than a day"), "{text}");
}

#[test]
fn without_a_director_each_packet_is_one_hosts_and_a_third_host_takes_its_share() {
    let bed = Bed::new(NLB);
    bed.write("b.toml", &NLB.replace("weight = 0", ""));
    let mut packets: Vec<_> = (1..=300).map(|port| whole(0, tcp(port, true, 0))).collect();
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    packets.push(whole(0, arp));
    bed.capture(DataLink::ETHERNET, &packets);
    let said = bed.replay(&["--json"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let (packets, summary) = said.objects();
    assert!(packets[..300].iter().all(|it| it["verdict"] == "taken"));
    assert_eq!(packets[300]["verdict"], "passed", "every host takes ARP");
    let hosts: Vec<u64> = summary["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["packets"].as_u64().unwrap())
        .collect();
    assert_eq!((hosts.len(), hosts.iter().sum::<u64>()), (2, 300));
    assert!(hosts.iter().all(|packets| *packets > 100), "{hosts:?}");

    let said = bed.replay(&["--json", "--compare", "b.toml"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let compared = said.objects().1["compare"].clone();
    let moved = compared["moved"].as_u64().unwrap();
    assert!(compared["flows"] == 300 && (60..160).contains(&moved), "{compared}");
    let first = compared["first"].as_array().unwrap();
    assert!(
        first.iter().filter(|it| it["after"] == "host 3 (10.0.0.13)").count() > first.len() / 2
    );
    bed.write("b.toml", &NAT.replace("FORWARDING", "nat"));
    assert_eq!(bed.replay(&["--compare", "b.toml"]).code, Some(64), "hosts are no servers");
}

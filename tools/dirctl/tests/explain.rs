//! `dirctl explain` on packets from files and standard input: no network, no director.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use etherparse::PacketBuilder;
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use serde_json::Value;

const FILE: &str = r#"
mode = "dispatcher"
interfaces = ["eth0"]
[[service]]
listen = "192.0.2.10:80/tcp"
scheduler = "rr"
forwarding = "nat"
  [[service.server]]
  address = "10.0.0.11:8080"
[[service]]
listen = "192.0.2.10:81/tcp"
forwarding = "nat"
  [[service.server]]
  address = "10.0.0.11:8081"
"#;

/// A folder with the configuration in it.
struct Bed {
    folder: tempfile::TempDir,
}

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Bed {
    fn new() -> Bed {
        let bed = Bed { folder: tempfile::tempdir().unwrap() };
        std::fs::write(bed.path("a.toml"), FILE).unwrap();
        bed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn explain(&self, words: &[&str], input: &str) -> Said {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dirctl"))
            .arg("explain")
            .args(words)
            .args(["--config", "a.toml"])
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It may have refused its words before it has read anything.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// An IP packet of a client.
fn syn(port: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ipv4([198, 51, 100, 7], [192, 0, 2, 10], 64);
    builder.tcp(41_000, port, 1, 1000).syn().write(&mut bytes, &[]).unwrap();
    bytes
}

#[test]
fn the_packet_of_a_capture_that_is_named_is_explained_and_no_other() {
    let bed = Bed::new();
    let header = PcapHeader { datalink: DataLink::RAW, ..PcapHeader::default() };
    let file = std::fs::File::create(bed.path("in.pcap")).unwrap();
    let mut writer = PcapWriter::with_header(file, header).unwrap();
    for port in [80, 443] {
        let bytes = syn(port);
        let packet = PcapPacket::new(Duration::from_secs(1), bytes.len() as u32, &bytes);
        writer.write_packet(&packet).unwrap();
    }
    drop(writer);
    let first = bed.explain(&["--pcap", "in.pcap"], "");
    assert_eq!(first.code, Some(0), "{}{}", first.out, first.err);
    assert!(first.out.contains("-> 192.0.2.10:80, 40 bytes"), "{}", first.out);
    let second = bed.explain(&["--pcap", "in.pcap", "--packet", "2"], "");
    assert_eq!(second.code, Some(4), "{}{}", second.out, second.err);
    assert!(second.out.contains("has services on 80/tcp, 81/tcp"), "{}", second.out);
    let third = bed.explain(&["--pcap", "in.pcap", "--packet", "3"], "");
    assert_eq!(
        (third.code, third.err.as_str()),
        (Some(64), "dirctl: in.pcap: there is no packet 3: it has 2\n")
    );
    let none = bed.explain(&["--pcap", "in.pcap", "--packet", "0"], "");
    assert_eq!(none.code, Some(64), "{}", none.out);
}

#[test]
fn hexadecimal_comes_from_standard_input_as_dumps_have_it() {
    let bed = Bed::new();
    let bytes = syn(80);
    let lines: Vec<String> = bytes
        .chunks(16)
        .map(|line| line.iter().map(|byte| format!("{byte:02x} ")).collect())
        .collect();
    let said = bed.explain(&["--hex", "-", "--json"], &lines.join("\n"));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&told["outcome"], &told["reason"]), (&"forwarded".into(), &"sent_nat".into()));
    let endless = bed.explain(&["--hex", "-"], &"00".repeat(500_000));
    assert_eq!(endless.code, Some(64), "{}", endless.out);
    assert!(endless.err.contains("longer than 65536 bytes"), "{}", endless.err);
}

#[test]
fn scripts_learn_from_the_exit_code_that_a_packet_is_dropped() {
    let bed = Bed::new();
    let mut bytes = syn(80);
    // The checksum of the IP header.
    bytes[10] ^= 1;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let said = bed.explain(&["--hex", &hex], "");
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.out.contains("(bad_ip_checksum)"), "{}", said.out);
}

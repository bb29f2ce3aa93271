//! tcpdump -vv as a judge of checksums: it computes every sum of every packet itself, also inside
//! tunnels and ICMP errors.
//!
//! Only with checksum offload off on every interface, the director's as well: with offload on a
//! sender's frames legitimately carry partial sums, all the way over veth to the receiver. Captured
//! where packets arrive: on the servers what the director has rewritten, on the client what came
//! back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration::lab::{Host, Process};
use integration::topology::Kind;
use netio::ethtool::Offload;

use crate::bed::{Bed, FAMILIES, Plan};
use crate::{can_run, datagrams, web};

/// Packets captured on each host at most.
const PACKETS: u32 = 3000;

/// A capture that runs.
struct Capture<'a> {
    host: &'a Host,
    process: Process,
    file: std::path::PathBuf,
}

/// What tcpdump thinks of the sums.
#[derive(Debug, Default)]
struct Judgement {
    right: usize,
    wrong: Vec<String>,
}

impl Capture<'_> {
    fn start<'a>(bed: &Bed, host: &'a Host) -> Result<Capture<'a>> {
        let file = bed.topology.lab.logs().join(format!("{}.pcap", host.name()));
        let process = host
            .command("tcpdump")
            .args(["-n", "-i", "eth0", "-c", &PACKETS.to_string(), "-Z", "root", "-w"])
            .arg(&file)
            .spawn()?;
        process.wait_for_log("listening on", Duration::from_secs(10))?;
        Ok(Capture { host, process, file })
    }

    /// Ends it and lets tcpdump read what it has written.
    fn judge(self) -> Result<Judgement> {
        self.process.stop()?;
        let output = self
            .host
            .command("tcpdump")
            .args(["-n", "-vv", "-r"])
            .arg(&self.file)
            .output(Duration::from_secs(60))?;
        ensure!(output.status.success(), "tcpdump -r: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).context("tcpdump prints no text")?;
        Ok(judgement(&text))
    }
}

/// tcpdump's words: `cksum 0x1234 (correct)`, `[udp sum ok]`, `[icmp6 sum ok]`;
/// `(incorrect -> 0x1234)`, `bad cksum 1234 (->4321)!`, `[bad udp cksum 0x12 -> 0x34!]`.
fn judgement(text: &str) -> Judgement {
    let mut judgement = Judgement::default();
    for line in text.lines() {
        if ["(incorrect", "bad cksum", "[bad ", "(wrong "].iter().any(|word| line.contains(word)) {
            judgement.wrong.push(line.to_owned());
        } else if line.contains("(correct)") || line.contains("sum ok") {
            judgement.right += 1;
        }
    }
    judgement
}

/// HTTP, DNS and datagrams in fragments, over both families, under the eyes of tcpdump.
fn all_sums_are_right(kind: Kind) {
    let bed = Bed::build(Plan::new(kind, false)).unwrap();
    bed.topology.director.offload("eth0", Offload::TxChecksum, false).unwrap();
    let _web = web::start(&bed).unwrap();
    let _dns = datagrams::start_dns(&bed).unwrap();
    let _echo = datagrams::start_echo(&bed, kind).unwrap();
    for (family, vip) in FAMILIES {
        let hosts = [bed.client()].into_iter().chain(bed.servers());
        let captures: Vec<_> = hosts.map(|host| Capture::start(&bed, host).unwrap()).collect();
        datagrams::echo(&bed, vip, 30, 3000).unwrap();
        datagrams::dig(&bed, vip).unwrap();
        web::wrk(&bed, vip, 500).unwrap();
        for capture in captures {
            let name = capture.host.name();
            let judgement = capture.judge().unwrap();
            let title = format!("{}, {family}, on {name}", bed.title());
            println!("{title}: {} right sums, {} wrong", judgement.right, judgement.wrong.len());
            let first: Vec<_> = judgement.wrong.iter().take(5).collect();
            assert!(first.is_empty(), "{title}: wrong sums\n{first:#?}");
            assert!(judgement.right > 500, "{title}: only {} sums seen", judgement.right);
        }
    }
    bed.director.stop().unwrap();
}

#[test]
fn tcpdump_finds_no_wrong_checksum_with_nat() {
    if can_run() {
        all_sums_are_right(Kind::Nat);
    }
}

#[test]
fn tcpdump_finds_no_wrong_checksum_in_tunnels() {
    if can_run() {
        all_sums_are_right(Kind::Tunnel);
    }
}

#[test]
fn tcpdump_finds_no_wrong_checksum_with_direct_routing() {
    if can_run() {
        all_sums_are_right(Kind::Direct);
    }
}

#[test]
fn quick_a_wrong_sum_is_recognised_in_tcpdumps_words() {
    let text = "a > b: Flags [S], cksum 0x1 (correct), seq 1\n\
                a > b: Flags [S], cksum 0x1 (incorrect -> 0x2), seq 1\n\
                IP (tos 0x0, proto UDP (17), length 60, bad cksum 1 (->2)!)\n\
                a > b: [bad udp cksum 0x1 -> 0x2!] 1+ A?\n\
                a > b: [udp sum ok] 1+ TXT? x. (1)\n";
    let judgement = judgement(text);
    assert_eq!((judgement.right, judgement.wrong.len()), (2, 3), "{judgement:?}");
}

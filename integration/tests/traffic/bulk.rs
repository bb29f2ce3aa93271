//! iperf3: a gigabyte through the director by every method, over both families, with peers'
//! checksum offload on and off. Prints throughput and does not judge it: both ends, the director
//! and the wire share this machine's cores.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration::lab::Process;
use integration::topology::Kind;
use serde_json::Value;

use crate::bed::{BULK, Bed, FAMILIES, Plan};
use crate::can_run;

/// 2^30 bytes, as the issue asks for each method, family and setting.
const GIGABYTE: u64 = 1 << 30;

/// About so many segments that is.
const SEGMENTS: u64 = GIGABYTE / 1448;

/// iperf3 ends when the last byte is sent, and the receiver does not wait for what is under way
/// then: so much more is sent that this cannot matter.
const UNDER_WAY: u64 = 32 << 20;

/// What iperf3 reports at its end.
#[derive(Clone, Copy, Debug)]
struct Report {
    received: u64,
    retransmits: u64,
    gigabits: f64,
}

/// Starts the server; it serves one client after the other.
fn start_server(bed: &Bed) -> Result<Process> {
    let server = &bed.servers()[0];
    let process = server
        .command("iperf3")
        .args(["--server", "--forceflush", "--port", &BULK.to_string()])
        .spawn()?;
    // Not by connecting: it would take that for its one client, and be busy when ours comes.
    process.wait_for_log("Server listening", Duration::from_secs(10))?;
    Ok(process)
}

/// Sends `bytes` to the VIP, or fetches them (`--reverse`).
fn transfer(bed: &Bed, vip: IpAddr, bytes: u64, reverse: bool) -> Result<Report> {
    let mut command = bed
        .client()
        .command("iperf3")
        .args(["--json", "--client", &vip.to_string(), "--port", &BULK.to_string()])
        .args(["--bytes", &(bytes + UNDER_WAY).to_string()]);
    if reverse {
        command = command.arg("--reverse");
    }
    let output = command.output(Duration::from_secs(120))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "iperf3: {text}");
    let report: Value = serde_json::from_str(&text).context("iperf3 printed no JSON")?;
    let end = &report["end"];
    let number = |side: &str, field: &str| {
        end[side][field]
            .as_u64()
            .with_context(|| format!("iperf3 tells no {side}.{field}:\n{text}"))
    };
    Ok(Report {
        received: number("sum_received", "bytes")?,
        retransmits: number("sum_sent", "retransmits")?,
        gigabits: end["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0) / 1e9,
    })
}

fn carry(plan: Plan, amount: u64) {
    let bed = Bed::build(plan).unwrap();
    let _server = start_server(&bed).unwrap();
    for (family, vip) in FAMILIES {
        // Only with NAT do answers pass the director, so only there is a download its work.
        let ways: &[bool] = if plan.kind == Kind::Nat { &[false, true] } else { &[false] };
        for &reverse in ways {
            let bytes = if reverse { amount / 4 } else { amount };
            let report = transfer(&bed, vip, bytes, reverse).unwrap_or_else(|error| {
                panic!("{}, {family}: {error:#}\n{}", bed.title(), bed.counters())
            });
            println!(
                "{}, {family}{}: {:.2} Gbit/s, {} retransmits",
                bed.title(),
                if reverse { ", download" } else { "" },
                report.gigabits,
                report.retransmits
            );
            assert!(report.received >= bytes, "{report:?}");
            // TCP probes for the limit of the path; that it finds it seldom shows that the buffers
            // on the way hold what a sender may have under way.
            assert!(report.retransmits <= SEGMENTS / 100, "{report:?}\n{}", bed.counters());
        }
    }
    println!("{}", bed.counters());
    bed.nothing_was_lost().unwrap();
    bed.director.stop().unwrap();
}

/// With AF_PACKET the sender's super-frames of up to 64 KiB arrive whole and are cut by us; with
/// generic XDP the far end of the cable cuts them.
#[test]
fn bulk_is_carried_by_the_ways_that_do_not_cut_super_frames_in_the_kernel() {
    if can_run() {
        for io in ["generic", "packet"] {
            carry(Plan { io, ..Plan::new(Kind::Nat, true) }, GIGABYTE / 8);
        }
    }
}

macro_rules! a_gigabyte_arrives {
    ($($name:ident: $kind:ident, $offload:literal;)*) => {$(
        #[test]
        fn $name() {
            if can_run() {
                carry(Plan::new(Kind::$kind, $offload), GIGABYTE);
            }
        }
    )*};
}

a_gigabyte_arrives! {
    a_gigabyte_arrives_through_nat_with_peers_offload_on: Nat, true;
    a_gigabyte_arrives_through_nat_with_peers_offload_off: Nat, false;
    a_gigabyte_arrives_through_tunnels_with_peers_offload_on: Tunnel, true;
    a_gigabyte_arrives_through_tunnels_with_peers_offload_off: Tunnel, false;
    a_gigabyte_arrives_by_direct_routing_with_peers_offload_on: Direct, true;
    a_gigabyte_arrives_by_direct_routing_with_peers_offload_off: Direct, false;
}

//! FTP: vsftpd on every server, curl on the client, through NAT. Each session lists a folder, fetches
//! a file twice and stores it, in passive and active mode, with the old commands and the extended
//! ones. The virtual addresses are longer and shorter than the servers', so that rewritten replies
//! are as well.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration::lab::Process;
use integration::topology::{Kind, server_addresses};
use integration::vsftpd;

use crate::bed::{Bed, Plan};
use crate::can_run;

const FTP: u16 = 21;
/// Bytes of the file: some thousand segments.
const FILE: usize = 5_000_003;

/// As text shorter than a server's address, longer, and IPv6.
const VIPS: [&str; 3] = ["192.0.2.8", "192.0.2.234", "2001:db8:1::21"];

/// How curl is to open data connections, and in which families it can.
const MODES: [(&str, &[&str], bool); 4] = [
    // curl would rather not believe the address in a 227: that it must be believed is the point.
    ("PASV", &["--disable-epsv", "--no-ftp-skip-pasv-ip"], false),
    ("EPSV", &[], true),
    ("PORT", &["--ftp-port", "-", "--disable-eprt"], false),
    ("EPRT", &["--ftp-port", "-"], true),
];

/// Starts vsftpd on every server, for both families, and waits until it accepts connections.
fn start(bed: &Bed) -> Result<Vec<Process>> {
    let mut processes = Vec::new();
    for (server, number) in bed.servers().iter().zip(1..) {
        let folder = vsftpd::prepare(&bed.topology.lab, server, &contents())?;
        for address in server_addresses(number) {
            processes.push(vsftpd::start(server, &folder, address)?);
        }
    }
    Ok(processes)
}

/// Bytes that are not the same anywhere.
fn contents() -> Vec<u8> {
    (0..FILE).map(|index| (index % 251) as u8 ^ (index / 1000) as u8).collect()
}

/// A session over one control connection: list, fetch, fetch, store.
fn session(bed: &Bed, vip: IpAddr, (mode, options): (&str, &[&str])) -> Result<()> {
    let name = format!("{vip}-{mode}").replace(':', "-");
    let folder = bed.topology.lab.logs();
    let [list, first, second] =
        ["list", "first", "second"].map(|file| folder.join(format!("{name}-{file}")));
    let url = |path: &str| format!("ftp://{}/{path}", SocketAddr::new(vip, FTP));
    let output = bed
        .client()
        .command("curl")
        .args(["--silent", "--show-error", "--verbose", "--globoff", "--max-time", "60"])
        .args(options)
        .arg("--output")
        .arg(&list)
        .arg(url(""))
        .arg("--output")
        .arg(&first)
        .arg(url("file"))
        .arg("--output")
        .arg(&second)
        .arg(url("file"))
        .args(["--next", "--silent", "--show-error", "--verbose", "--globoff", "--max-time", "60"])
        .args(options)
        .arg("--upload-file")
        .arg(folder.join("vsftpd-server1/files/file"))
        .arg(url(&format!("incoming/{name}")))
        .output(Duration::from_secs(200))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    ensure!(said.contains(&format!("> {mode}")), "another mode:\n{said}");
    let listing = std::fs::read_to_string(list)?;
    ensure!(listing.contains("file") && listing.contains("incoming"), "listed: {listing}");
    for file in [first, second] {
        ensure!(std::fs::read(&file)? == contents(), "{} is another file", file.display());
    }
    let stored = bed.servers().iter().find_map(|server| {
        let file = format!("vsftpd-{}/files/incoming/{name}", server.name());
        std::fs::read(folder.join(file)).ok()
    });
    ensure!(stored.context("no server has it")? == contents(), "another file is stored");
    Ok(())
}

fn carry(plan: Plan) {
    let bed = Bed::build(plan).unwrap();
    let _servers = start(&bed).unwrap();
    for vip in VIPS.map(|vip| vip.parse::<IpAddr>().unwrap()) {
        bed.topology.director.add_address("eth0", &vip.to_string()).unwrap();
        let service = SocketAddr::new(vip, FTP).to_string();
        bed.director.ipvsadm(&["-A", "-t", &service, "-s", "rr"]).unwrap();
        for number in 1..=bed.servers().len() {
            let address = server_addresses(number)[usize::from(vip.is_ipv6())];
            let server = SocketAddr::new(address, FTP).to_string();
            bed.director.ipvsadm(&["-a", "-t", &service, "-r", &server, "-m"]).unwrap();
        }
        for (mode, options, both) in MODES {
            if vip.is_ipv6() && !both {
                continue;
            }
            session(&bed, vip, (mode, options)).unwrap_or_else(|error| {
                panic!("{}, {vip}, {mode}: {error:#}\n{}", bed.title(), bed.counters())
            });
        }
        // Data connections are no connections of their own: one session, one connection.
        let sessions: u64 = if vip.is_ipv6() { 2 } else { 4 };
        let services = bed.director.services().unwrap();
        let of_vip = services.iter().find(|view| view.spec.key.vip() == Some(vip));
        let stats = of_vip.map(|view| view.stats).unwrap();
        assert!(stats.connections <= 2 * sessions, "{stats:?}");
        assert!(stats.in_bytes > sessions * FILE as u64, "{stats:?}");
    }
    bed.nothing_was_lost().unwrap();
    bed.director.stop().unwrap();
}

#[test]
fn quick_ftp_through_nat_lists_fetches_and_stores_in_every_mode() {
    if can_run() {
        carry(Plan::new(Kind::Nat, true));
    }
}

#[test]
fn ftp_through_nat_works_without_checksum_offload_and_over_two_interfaces() {
    if can_run() {
        carry(Plan::new(Kind::Nat, false));
        carry(Plan::new(Kind::NatTwoArmed, true));
    }
}

#[test]
fn ftp_through_nat_works_on_two_queues_and_by_the_ways_that_see_super_frames() {
    if can_run() {
        carry(Plan { queues: 2, workers: 2, ..Plan::new(Kind::Nat, true) });
        for io in ["generic", "packet"] {
            carry(Plan { io, ..Plan::new(Kind::Nat, true) });
        }
    }
}

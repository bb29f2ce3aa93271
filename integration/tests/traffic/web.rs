//! nginx on the servers; curl and wrk on the client.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use integration::lab::{Host, Process};
use integration::nginx;

use crate::bed::{Bed, HTTP};

/// Bytes of the page: three segments.
const PAGE: usize = 4000;

/// wrk's script: who answered, and whether the page was whole.
const SCRIPT: &str = r#"
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init(args) served = {}; wrong = 0 end
function response(status, headers, body)
    local name = headers["X-Server"] or "nobody"
    served[name] = (served[name] or 0) + 1
    if status ~= 200 or #body ~= BYTES then wrong = wrong + 1 end
end
function done(summary, latency, requests)
    local e = summary.errors
    io.write(string.format("lab errors %d\n", e.connect + e.read + e.write + e.status + e.timeout))
    for _, thread in ipairs(threads) do
        io.write(string.format("lab wrong %d\n", thread:get("wrong")))
        for name, count in pairs(thread:get("served")) do
            io.write(string.format("lab served %s %d\n", name, count))
        end
    end
end
"#;

/// Starts nginx on every server and waits until it accepts connections.
pub(crate) fn start(bed: &Bed) -> Result<Vec<Process>> {
    bed.servers().iter().map(|server| start_on(bed, server)).collect()
}

fn start_on(bed: &Bed, server: &Host) -> Result<Process> {
    let files = vec![("page", "x".repeat(PAGE))];
    let site = nginx::Site { port: HTTP, lines: String::new(), files };
    nginx::start(&bed.topology.lab, server, &site)
}

fn url(vip: IpAddr) -> String {
    format!("http://{}/page", SocketAddr::new(vip, HTTP))
}

/// Fetches the page once with curl; returns the name of the server that sent it.
pub(crate) fn curl(client: &Host, vip: IpAddr) -> Result<String> {
    let output = client
        .command("curl")
        .args(["--silent", "--show-error", "--fail", "--globoff", "--include", "--max-time", "5"])
        .arg(url(vip))
        .output(Duration::from_secs(10))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "curl: {}", String::from_utf8_lossy(&output.stderr));
    let (head, body) = text.split_once("\r\n\r\n").context("curl printed no header")?;
    ensure!(body.len() == PAGE, "a page of {} bytes instead of {PAGE}", body.len());
    let name = head.lines().find_map(|line| line.strip_prefix("X-Server: "));
    Ok(name.context("no X-Server in the answer")?.to_owned())
}

/// Fetches the page with wrk, each time on a new connection, until `wanted` requests have been
/// answered; returns how many each server answered.
///
/// wrk runs for a time, not for a number, hence in rounds.
pub(crate) fn wrk(bed: &Bed, vip: IpAddr, wanted: u64) -> Result<BTreeMap<String, u64>> {
    let script = bed.topology.lab.logs().join("wrk.lua");
    std::fs::write(&script, SCRIPT.replace("BYTES", &PAGE.to_string()))?;
    let mut served = BTreeMap::new();
    for _ in 0..40 {
        round(bed.client(), vip, &script, &mut served)
            .with_context(|| format!("{}:\n{}", bed.title(), bed.counters()))?;
        if served.values().sum::<u64>() >= wanted {
            return Ok(served);
        }
    }
    bail!("{}: wrk is too slow: {served:?}\n{}", bed.title(), bed.counters())
}

fn round(
    client: &Host,
    vip: IpAddr,
    script: &Path,
    served: &mut BTreeMap<String, u64>,
) -> Result<()> {
    let output = client
        .command("wrk")
        .args(["--threads", "1", "--connections", "24", "--duration", "1s", "--timeout", "5s"])
        .args(["--header", "Connection: close", "--script"])
        .arg(script)
        .arg(url(vip))
        .output(Duration::from_secs(20))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "wrk: {text}{}", String::from_utf8_lossy(&output.stderr));
    let mut reported = false;
    for line in text.lines().filter_map(|line| line.strip_prefix("lab ")) {
        match *line.split(' ').collect::<Vec<_>>() {
            ["errors" | "wrong", "0"] => reported = true,
            ["served", name, count] => {
                *served.entry(name.to_owned()).or_default() += count.parse::<u64>()?;
            }
            _ => bail!("wrk met errors:\n{text}"),
        }
    }
    ensure!(reported, "wrk said nothing of errors:\n{text}");
    Ok(())
}

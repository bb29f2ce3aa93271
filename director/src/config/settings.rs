//! The keys at the top of the file: everything but marks and services.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use realserver_agent::settings::key::{KeySpec, key, names, seconds};

use super::fields::{Field, Fields};
use super::health;
use super::kernel_settings;
use super::nlb::Nlb;
use super::problem::Report;
use super::{Config, Io, Mode};
use crate::control::DEFAULT_SOCKET;
use crate::control::api::Timeouts;
use crate::dispatch::connections::MOST;
use crate::dispatch::ftp::Ports;

/// All keys at the top of the file.
pub(super) const KEYS: &[KeySpec] = &[
    key("mode", "one machine forwards for all, or every node filters")
        .words(|| names(MODES))
        .default("`\"dispatcher\"`"),
    key("interfaces", "the interfaces packets come in and go out on; one for one-arm")
        .of("array of texts")
        .required()
        .note("1 or more, each once"),
    key("io", "how packets are taken from the interfaces, see below")
        .words(|| names(IO))
        .default("`\"auto\"`"),
    key("workers", "packet threads")
        .numbers(1, 1024)
        .default("one per queue, at most one per core"),
    key("cpus", "the cores that workers run on, in their order")
        .numbers(0, MOST_CORES - 1)
        .of("array of numbers")
        .default("see below")
        .note("each once, one for each worker"),
    key(
        "busy_poll",
        "under load, look for packets in the card itself rather than wait for its interrupts",
    )
    .boolean()
    .default("`true` with zero-copy"),
    key("ring_size", "descriptors in each ring between kernel and worker")
        .numbers(64, 32_768)
        .default("`2048`")
        .note("a power of two"),
    key(
        "rx_ring_size",
        "the same for frames received only: how long a burst may be that comes while the worker is busy",
    )
    .numbers(64, 32_768)
    .default("`ring_size`")
    .note("a power of two"),
    key(
        "tx_ring_size",
        "the same for frames to transmit only. What finds no place there waits for the kernel a little, then is dropped and counted",
    )
    .numbers(64, 32_768)
    .default("`ring_size`")
    .note("a power of two"),
    key("frames", "chunks of packet memory per worker")
        .numbers(64, 1 << 22)
        .default("enough for all rings")
        .note("at least `rx_ring_size`"),
    key(
        "own_addresses",
        "put the addresses under `listen` on an interface at start, announce them, remove them at exit. Addresses that were there before stay. Leave it `false` where keepalived, BIRD or FRR moves them",
    )
    .boolean()
    .default("`false`"),
    key("control", "socket of the control API")
        .default("`\"/run/director/control.sock\"`")
        .note("absolute path, at most 107 bytes"),
    key("metrics", "where `/metrics` is served over TCP as well, see [metrics](metrics.md)")
        .note("an address as numbers, and a port"),
    key(
        "sandbox",
        "give up after the start what is not needed any more: capabilities, and system calls such as those that execute programs ([more](packaging.md#the-sandbox))",
    )
    .boolean()
    .default("`true`"),
    key("max_connections", "most connections in the table, 80 bytes each")
        .numbers(1, MOST as i64)
        .default("`1048576`"),
    key("timeouts", "how long an idle connection lives")
        .of("table")
        .default("the kernel's")
        .note("see below"),
    key(
        "ftp_ports",
        "ports of FTP services: what control connections through NAT to them announce is followed. `[]` switches that off",
    )
    .numbers(1, 65_535)
    .of("array of numbers")
    .default("`[21]`")
    .note("at most 8, each once"),
    key("settings", "what kernel IPVS has as sysctls")
        .of("table")
        .default("the kernel's")
        .note("see [`[settings]`](#settings)"),
    key("health", "what is the same for the servers of all services")
        .of("table")
        .note("see [`[health]`](#health)"),
    key(
        "agent",
        "settings of `realserver-agent`, which reads the same file on the real servers",
    )
    .of("table")
    .note("see [`[agent]`](#agent)"),
    key("mark", "rules that give packets a firewall mark, one `[[mark]]` each")
        .of("array of tables")
        .note("at most 128"),
    key("nlb", "what mode `\"nlb\"` needs beside the services")
        .of("table")
        .note("see [`[nlb]`](#nlb)"),
    key("service", "the services, one `[[service]]` each").of("array of tables"),
];

/// Keys of `timeouts`.
pub(super) const TIMEOUTS: &[KeySpec] = &[
    key("tcp", "TCP connections in state ESTABLISHED")
        .times(seconds(1), LONGEST_TIMEOUT)
        .default("`\"15m\"`"),
    key("tcp_fin", "TCP connections in state FIN_WAIT")
        .times(seconds(1), LONGEST_TIMEOUT)
        .default("`\"2m\"`"),
    key("udp", "connections of UDP: the datagrams of one client port")
        .times(seconds(1), LONGEST_TIMEOUT)
        .default("`\"5m\"`"),
];

const MODES: &[(&str, Mode)] = &[("dispatcher", Mode::Dispatcher), ("nlb", Mode::Nlb)];

const IO: &[(&str, Io)] = &[
    ("auto", Io::Auto),
    ("zero-copy", Io::ZeroCopy),
    ("copy", Io::Copy),
    ("generic", Io::Generic),
    ("packet", Io::Packet),
];

/// The kernel's timeouts (`ipvsadm -L --timeout`), seconds.
const KERNEL_TIMEOUTS: Timeouts = Timeouts { tcp: 900, tcp_fin: 120, udp: 300 };

/// The kernel refuses timeouts above INT_MAX/HZ; this is that limit at the usual HZ of 1000.
const LONGEST_TIMEOUT: Duration = seconds(2_147_483);

/// More cores than that sched_setaffinity(2) does not know by default.
const MOST_CORES: i64 = 1024;

/// Longest name of an interface: IFNAMSIZ without the final zero.
const LONGEST_INTERFACE_NAME: usize = 15;

/// Descriptors in a ring where the file says nothing.
const RING_SIZE: u32 = 2048;

const INTERFACES: &str = "interfaces = [\"eth0\"], the names that `ip link` shows";

/// Reads everything but the services; `None` only when a key that has no default is missing or
/// wrong. Every problem is in the report.
pub(super) fn read(root: &Fields<'_>, report: &mut Report<'_>) -> Option<Config> {
    let mode = word(root, "mode", MODES, Mode::Dispatcher, report);
    let io = word(root, "io", IO, Io::Auto, report);
    let workers = number(root, "workers", " packet threads", report);
    let cpus = cpus(root, workers, report);
    let busy_poll = root.get("busy_poll").and_then(|field| field.boolean(report));
    let both = ring_size(root, "ring_size", report).unwrap_or(RING_SIZE);
    let rx_ring_size = ring_size(root, "rx_ring_size", report).unwrap_or(both);
    let tx_ring_size = ring_size(root, "tx_ring_size", report).unwrap_or(both);
    let frames = frames(root, rx_ring_size, report);
    let max_connections = number(root, "max_connections", "", report);
    let own_addresses = root.get("own_addresses").and_then(|field| field.boolean(report));
    let control = control(root, report);
    let metrics = metrics(root, report);
    let sandbox = root.get("sandbox").and_then(|field| field.boolean(report));
    let timeouts = timeouts(root, report);
    let ftp_ports = ftp_ports(root, report);
    let settings = kernel_settings::read(root, report);
    let health = health::read_settings(root, Path::new(&control), report);
    let interfaces = interfaces(root, report)?;
    Some(Config {
        mode,
        interfaces,
        io,
        workers: workers.map(|workers| workers as usize),
        cpus,
        busy_poll,
        rx_ring_size,
        tx_ring_size,
        frames,
        own_addresses: own_addresses.unwrap_or(false),
        control: control.into(),
        metrics,
        sandbox: sandbox.unwrap_or(true),
        timeouts,
        ftp_ports,
        settings,
        max_connections: max_connections.map_or(1 << 20, |most| most as usize),
        marks: Vec::new(),
        health,
        nlb: Nlb::default(),
        services: Vec::new(),
    })
}

fn word<T: Copy>(
    root: &Fields<'_>,
    key: &str,
    words: &[(&'static str, T)],
    default: T,
    report: &mut Report<'_>,
) -> T {
    root.get(key).and_then(|field| field.word(words, report)).unwrap_or(default)
}

/// A number, when the key is there and right.
fn number(root: &Fields<'_>, key: &str, meaning: &str, report: &mut Report<'_>) -> Option<u32> {
    root.get(key)?.number(meaning, report)
}

/// Numbers of cores; empty when the key is not there.
fn cpus(root: &Fields<'_>, workers: Option<u32>, report: &mut Report<'_>) -> Vec<usize> {
    let example = "cpus = [2, 3], a core for each worker";
    let mut cores = Vec::new();
    let Some(field) = root.get("cpus") else { return cores };
    let Some(items) = field.items(example, report) else { return cores };
    for item in &items {
        let Some(core) = item.number(", the number of a core", report) else { continue };
        if cores.contains(&core) {
            item.wrong(format!("core {core} is listed twice"), "list each core once", report);
        }
        cores.push(core);
    }
    if items.is_empty() {
        field.wrong("names no core", format!("write {example}, or leave cpus out"), report);
    } else if let Some(workers) = workers.filter(|&workers| workers as usize > items.len()) {
        field.wrong(
            format!("{} cores are too few for {workers} workers", items.len()),
            "name a core for each worker, or lower workers",
            report,
        );
    }
    cores
}

/// The size of a ring, when the key is there and right.
fn ring_size(root: &Fields<'_>, key: &str, report: &mut Report<'_>) -> Option<u32> {
    let size = number(root, key, ", a power of two", report)?;
    if !size.is_power_of_two() {
        let above = size.next_power_of_two();
        root.get(key)?.wrong(
            format!("{size} is not a power of two"),
            format!("rings are powers of two; write {} or {above}", above / 2),
            report,
        );
        return None;
    }
    Some(size)
}

fn frames(root: &Fields<'_>, rx_ring_size: u32, report: &mut Report<'_>) -> Option<u32> {
    let frames = number(root, "frames", " per worker", report)?;
    if frames < rx_ring_size {
        root.get("frames")?.wrong(
            format!("{frames} frames cannot fill a ring of {rx_ring_size}"),
            "give at least as many as the RX ring has, better four times as many, or leave frames out",
            report,
        );
    }
    Some(frames)
}

fn control(root: &Fields<'_>, report: &mut Report<'_>) -> String {
    let Some(field) = root.get("control") else {
        return DEFAULT_SOCKET.to_owned();
    };
    let Some(path) = field.text("the path of the socket in quotes", report) else {
        return DEFAULT_SOCKET.to_owned();
    };
    // A socket's path must fit sockaddr_un; without this the bind fails long after the parse.
    if !path.starts_with('/') || path.len() > 107 || path.contains('\0') {
        field.wrong(
            format!("{path:?} cannot be the path of a socket"),
            format!("give an absolute path of at most 107 bytes, such as {DEFAULT_SOCKET}"),
            report,
        );
    }
    path.to_owned()
}

fn metrics(root: &Fields<'_>, report: &mut Report<'_>) -> Option<SocketAddr> {
    let field = root.get("metrics")?;
    let text = field.text("an address and a port, \"127.0.0.1:9090\"", report)?;
    let address: Option<SocketAddr> = text.parse().ok().filter(|it: &SocketAddr| it.port() != 0);
    if address.is_none() {
        field.wrong(
            format!("{text:?} is not an address with a port"),
            "write one as \"127.0.0.1:9090\" or \"[::1]:9090\", as numbers",
            report,
        );
    }
    address
}

fn timeouts(root: &Fields<'_>, report: &mut Report<'_>) -> Option<Timeouts> {
    let example = "timeouts = { tcp = \"15m\", tcp_fin = \"2m\", udp = \"5m\" }";
    let fields = root.get("timeouts")?.table(&[TIMEOUTS], example, report)?;
    let mut seconds = |key, default| {
        fields.get(key).and_then(|field: Field<'_>| field.seconds(report)).unwrap_or(default)
    };
    Some(Timeouts {
        tcp: seconds("tcp", KERNEL_TIMEOUTS.tcp),
        tcp_fin: seconds("tcp_fin", KERNEL_TIMEOUTS.tcp_fin),
        udp: seconds("udp", KERNEL_TIMEOUTS.udp),
    })
}

fn ftp_ports(root: &Fields<'_>, report: &mut Report<'_>) -> Ports {
    let example = "ftp_ports = [21], or [] for none";
    let Some(field) = root.get("ftp_ports") else { return Ports::default() };
    let Some(items) = field.items(example, report) else { return Ports::default() };
    if items.len() > Ports::MOST {
        field.wrong(
            format!("{} ports are too many", items.len()),
            format!("give at most {}", Ports::MOST),
            report,
        );
    }
    let mut ports = Vec::new();
    for item in &items {
        let Some(port) = item.number(", the port of an FTP service", report) else { continue };
        if ports.contains(&port) {
            item.wrong(format!("port {port} is listed twice"), "list each port once", report);
        }
        ports.push(port);
    }
    Ports::new(&ports)
}

fn interfaces(root: &Fields<'_>, report: &mut Report<'_>) -> Option<Vec<String>> {
    let Some(field) = root.get("interfaces") else {
        root.missing("interfaces", format!("write {INTERFACES}"), report);
        return None;
    };
    let items = field.items(INTERFACES, report)?;
    if items.is_empty() {
        field.wrong("names no interface", format!("write {INTERFACES}"), report);
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for item in &items {
        let Some(name) = item.text("the interface's name in quotes", report) else {
            continue;
        };
        // The rule of the kernel's dev_valid_name(), and nothing that steers a terminal.
        let possible = !name.is_empty()
            && name.len() <= LONGEST_INTERFACE_NAME
            && name != "."
            && name != ".."
            && !name.contains(|letter: char| {
                letter == '/' || letter == ':' || letter.is_whitespace() || letter.is_control()
            });
        if !possible {
            item.wrong(
                format!("{name:?} cannot be the name of an interface"),
                "give a name that `ip link` shows, at most 15 bytes",
                report,
            );
        } else if names.iter().any(|known| known == name) {
            item.wrong(format!("{name:?} is listed twice"), "list each interface once", report);
        }
        names.push(name.to_owned());
    }
    Some(names)
}

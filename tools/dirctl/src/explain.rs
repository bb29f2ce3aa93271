//! `dirctl explain`: what would become of a packet, and why.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use director::config::{self, Mode};
use director::control::client::Client;
use director::control::explain::{Change, Explanation, Outcome, Question};
use director::explain::build::{Complaint, Transport, Wanted, error, frame};
use director::explain::{LONGEST, cluster, frame_from_hex, offline, to_hex};

use crate::clean::clean;
use crate::columns::{Side, columns};
use crate::outlet::{USAGE, complain, paint, print};
use crate::paint::Paint;
use crate::replay::file::Capture;

/// What stands below the options.
pub const HELP: &str = "\
The packet is decided on by the code that forwards, on a copy of what it could meet: nothing is
changed, and nothing is sent. Where a scheduler would be asked, each server is shown with what it
comes to.

Examples:
  dirctl explain tcp 198.51.100.7:41000 192.0.2.10:443            # a SYN
  dirctl explain tcp 198.51.100.7:41000 192.0.2.10:443 --ack --data 1460
  dirctl explain tcp 10.0.0.11:8080 198.51.100.7:41000 --syn --ack   # a NAT server's answer
  dirctl explain udp 198.51.100.7:5353 192.0.2.10:53 --config new.toml
  dirctl explain icmp 203.0.113.1 192.0.2.10 --error 1300 \\
                 --about tcp 192.0.2.10:443 198.51.100.7:41000
  dirctl explain --pcap drops.pcapng --packet 3
  dirctl explain --hex 4500003c... | less

Exit codes:
  0   it is forwarded
  1   it is dropped
  2   the director is not running
  3   the director cannot be asked
  4   the host's own stack gets it
  5   it goes no further, and its sender is told: by an ICMP error, or a reset
  64  wrong usage of this command, or a file or packet that cannot be read";

/// Exit code: dropped.
const DROPPED: u8 = 1;
/// Exit code: the host's stack gets it.
const PASSED: u8 = 4;
/// Exit code: it goes no further, and its sender is told.
const ANSWERED: u8 = 5;

/// Room for an Ethernet header before a packet that was captured without one.
const ROOM: usize = 32;
/// TCP's flag of a segment in the midst of a connection.
const ACK: u8 = 16;
/// SCTP's chunk of one.
const DATA: u8 = 0;
/// To whom it goes then: nobody in particular.
const DIRECTOR: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// What is asked.
#[derive(Debug, Args)]
pub struct Explain {
    /// tcp, udp, sctp, or icmp for an echo request
    #[arg(required_unless_present_any = ["hex", "pcap"])]
    protocol: Option<Protocol>,
    /// Where it comes from: 198.51.100.7:41000; an IPv6 address before a port stands in brackets
    #[arg(required_unless_present_any = ["hex", "pcap"], value_parser = address)]
    source: Option<SocketAddr>,
    /// Where it goes to
    #[arg(required_unless_present_any = ["hex", "pcap"], value_parser = address)]
    destination: Option<SocketAddr>,
    /// TCP: SYN; without any flag it is a SYN
    #[arg(long)]
    syn: bool,
    /// TCP: ACK
    #[arg(long)]
    ack: bool,
    /// TCP: FIN
    #[arg(long)]
    fin: bool,
    /// TCP: RST
    #[arg(long)]
    rst: bool,
    /// Bytes of data
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    data: u16,
    /// TTL or hop limit
    #[arg(long, default_value_t = 64)]
    ttl: u8,
    /// IPv4: may be fragmented
    #[arg(long)]
    may_fragment: bool,
    /// ICMP: an error of the source about this packet: its protocol, source and destination
    ///
    /// The packet that it is about was sent by who gets the error: mostly an answer, from the virtual
    /// address to the client.
    #[arg(long, num_args = 3, value_names = ["PROTOCOL", "SOURCE", "DESTINATION"])]
    about: Option<Vec<String>>,
    /// What the error says: unreachable, time-exceeded, or the bytes that go through
    #[arg(long, value_name = "WHAT", default_value = "unreachable", requires = "about", value_parser = complaint)]
    error: Complaint,
    /// A packet in hexadecimal, from IP or Ethernet header on; - reads standard input
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["protocol", "pcap"])]
    hex: Option<String>,
    /// A packet of a capture, pcap or pcapng
    #[arg(long, value_name = "FILE", conflicts_with = "protocol")]
    pcap: Option<PathBuf>,
    /// Which packet of it, from 1 on
    #[arg(long, value_name = "N", default_value_t = 1, requires = "pcap")]
    packet: u64,
    /// The interface it arrives on
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Ask a configuration file instead of the running director
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// With --config: the MTU of every path
    #[arg(long, value_name = "BYTES", default_value_t = 1500, requires = "config")]
    mtu: u32,
    /// Print what the control API answers, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    Tcp,
    Udp,
    Sctp,
    Icmp,
}

fn complaint(text: &str) -> Result<Complaint, String> {
    match text {
        "unreachable" => Ok(Complaint::Unreachable),
        "time-exceeded" => Ok(Complaint::TimeExceeded),
        bytes => bytes.parse().map(Complaint::TooBig).map_err(|_| {
            "say unreachable, time-exceeded, or the bytes that go through (too big)".to_owned()
        }),
    }
}

/// An address with a port, or without one.
fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = || text.parse().map(|address| SocketAddr::new(address, 0));
    text.parse().or_else(|_| bare()).map_err(|_| {
        "write an address with its port, 192.0.2.10:443 or [2001:db8::10]:443".to_owned()
    })
}

/// `dirctl explain`; gives the exit code.
pub fn run(socket: &Path, words: &Explain) -> u8 {
    let packet = match packet(words) {
        Ok(packet) => packet,
        Err(problem) => return refuse(&problem),
    };
    let explanation = match &words.config {
        Some(file) => match of_file(words, file, &packet) {
            Ok(explanation) => explanation,
            Err(problem) => return refuse(&problem),
        },
        None => {
            let question = Question { packet: to_hex(&packet), interface: words.interface.clone() };
            match Client::connect(socket).and_then(|mut client| client.explain(&question)) {
                Ok(explanation) => explanation,
                Err(error) => return complain(&error),
            }
        }
    };
    if words.json {
        print(&(serde_json::to_string_pretty(&explanation).unwrap_or_default() + "\n"));
    } else {
        print(&text(&explanation, paint()));
    }
    match explanation.outcome {
        Outcome::Forwarded => 0,
        Outcome::Answered => ANSWERED,
        Outcome::Dropped => DROPPED,
        Outcome::Passed => PASSED,
    }
}

fn refuse(problem: &str) -> u8 {
    let problem: Vec<String> = problem.lines().map(clean).collect();
    let _ = writeln!(io::stderr(), "dirctl: {}", problem.join("\n"));
    USAGE
}

/// The frame that is meant.
fn packet(words: &Explain) -> Result<Vec<u8>, String> {
    if let Some(hex) = &words.hex {
        let mut text = hex.clone();
        if hex == "-" {
            text.clear();
            let limit = 4 * LONGEST as u64;
            let read = io::stdin().take(limit).read_to_string(&mut text);
            read.map_err(|error| format!("standard input: {error}"))?;
        }
        return frame_from_hex(&text).map_err(|problem| format!("--hex: {problem}"));
    }
    if let Some(file) = &words.pcap {
        return of_capture(file, words.packet);
    }
    let (Some(protocol), Some(source), Some(destination)) =
        (words.protocol, words.source, words.destination)
    else {
        return Err("name protocol, source and destination".to_owned());
    };
    let flags = [(words.fin, 1), (words.syn, 2), (words.rst, 4), (words.ack, 16)];
    let flags = flags.iter().filter(|(set, _)| *set).fold(0, |all, (_, bit)| all | bit);
    let transport = match protocol {
        Protocol::Tcp => Transport::Tcp(if flags == 0 { 2 } else { flags }),
        _ if flags != 0 => return Err("flags are TCP's".to_owned()),
        Protocol::Udp => Transport::Udp,
        Protocol::Sctp => Transport::Sctp(1),
        Protocol::Icmp => Transport::Echo,
    };
    let wanted = Wanted {
        transport,
        source,
        destination,
        data: words.data.into(),
        ttl: words.ttl,
        dont_fragment: !words.may_fragment,
    };
    let Some(about) = &words.about else {
        has_ports(&wanted)?;
        return frame(&wanted);
    };
    if protocol != Protocol::Icmp {
        return Err("--about is of an ICMP error: icmp ROUTER DESTINATION --about ...".to_owned());
    }
    let about = quoted(about, &wanted)?;
    if about.source.ip() != destination.ip() {
        let (told, sender) = (destination.ip(), about.source.ip());
        return Err(format!("an error goes to who sent the packet, to {sender}, not to {told}"));
    }
    error(source.ip(), words.error, &about)
}

/// Echo requests have no ports, all else has.
fn has_ports(wanted: &Wanted) -> Result<(), String> {
    let Wanted { source, destination, .. } = wanted;
    let lacks = source.port() == 0 || destination.port() == 0;
    match wanted.transport != Transport::Echo && lacks {
        true => Err(format!("{source} -> {destination}: give both ports")),
        false => Ok(()),
    }
}

/// The packet that an error is about, of its three words; the rest as of `like`.
fn quoted(words: &[String], like: &Wanted) -> Result<Wanted, String> {
    let [protocol, source, destination] = words else {
        return Err("--about takes protocol, source and destination".to_owned());
    };
    let transport = match protocol.as_str() {
        "tcp" => Transport::Tcp(ACK),
        "udp" => Transport::Udp,
        "sctp" => Transport::Sctp(DATA),
        "icmp" => Transport::Echo,
        other => return Err(format!("--about {other:?}: say tcp, udp, sctp or icmp")),
    };
    let end = |text| address(text).map_err(|problem| format!("--about {text:?}: {problem}"));
    let wanted =
        Wanted { transport, source: end(source)?, destination: end(destination)?, ..*like };
    has_ports(&wanted)?;
    Ok(wanted)
}

/// Packet `number` of a capture.
fn of_capture(file: &Path, number: u64) -> Result<Vec<u8>, String> {
    let name = file.display();
    let mut capture = Capture::open(file).map_err(|problem| format!("{name}: {problem}"))?;
    let mut seen = 0;
    while let Some(packet) =
        capture.next_packet().map_err(|problem| format!("{name}: {problem}"))?
    {
        seen += 1;
        if seen == number {
            let mut room = vec![0; packet.bytes.len() + ROOM];
            let made = packet.link.frame(packet.bytes, packet.length, DIRECTOR, &mut room);
            let Some((length, _)) = made else {
                return Err(format!("{name}: packet {number} is no Ethernet frame or IP packet"));
            };
            room.truncate(length);
            return Ok(room);
        }
    }
    Err(format!("{name}: there is no packet {number}: it has {seen}"))
}

fn of_file(words: &Explain, file: &Path, packet: &[u8]) -> Result<Explanation, String> {
    let config = config::load(file).map_err(|error| error.to_string())?;
    let explained = match config.mode {
        Mode::Nlb => cluster::of_cluster(&config, packet),
        Mode::Dispatcher => {
            offline::of_file(&config, words.mtu, packet, words.interface.as_deref())
        }
    };
    explained.map_err(|error| format!("{}: {error}", file.display()))
}

/// For a person.
pub fn text(explanation: &Explanation, paint: Paint) -> String {
    let mut lines = vec![paint.heading(&clean(&explanation.packet))];
    let width = explanation.steps.iter().map(|step| step.stage.chars().count()).max().unwrap_or(0);
    for step in &explanation.steps {
        let stage = clean(&step.stage);
        lines.push(format!("  {stage:<width$}  {}", clean(&step.text)));
        for detail in &step.details {
            lines.push(format!("  {:<width$}    {}", "", clean(detail)));
        }
    }
    if !explanation.changes.is_empty() {
        lines.push(String::new());
        lines.push(paint.heading("What is changed"));
        lines.extend(changes(&explanation.changes));
    }
    lines.push(String::new());
    let word = match explanation.outcome {
        Outcome::Forwarded => "forwarded",
        Outcome::Answered => "answered",
        Outcome::Passed => "left to the host",
        Outcome::Dropped => "dropped",
    };
    let verdict =
        format!("=> {word}: {} ({})", clean(&explanation.meaning), clean(&explanation.reason));
    lines.push(match explanation.outcome {
        Outcome::Forwarded => paint.heading(&verdict),
        Outcome::Answered | Outcome::Passed => paint.warning(&verdict),
        Outcome::Dropped => paint.loss(&verdict),
    });
    if let Some(answer) = &explanation.answer {
        lines.push(format!("   its sender gets: {}", clean(answer)));
    }
    for assumed in &explanation.assumed {
        lines.push(format!("   assumed: {}", clean(assumed)));
    }
    lines.join("\n") + "\n"
}

fn changes(changes: &[Change]) -> Vec<String> {
    let cell = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), clean);
    let rows: Vec<[String; 4]> = changes
        .iter()
        .map(|change| {
            [clean(&change.field), cell(&change.before), "->".to_owned(), cell(&change.after)]
        })
        .collect();
    columns([Side::Left, Side::Right, Side::Left, Side::Left], &rows)
}

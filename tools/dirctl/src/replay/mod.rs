//! `dirctl replay`: a capture through the pipeline of a director that is made from a file.
//!
//! [`file`] reads packets, [`link`] makes frames of them and [`clock`] the director's time. [`pipeline`]
//! (or [`hosts`], for `mode = "nlb"`) decides, [`fate`] is what came of it, [`moves`] compares two
//! files, [`summary`] and [`lines`] say it all. One packet is in memory at a time.

pub mod clock;
pub mod fate;
pub mod file;
pub mod hosts;
pub mod lines;
pub mod link;
pub mod moves;
pub mod output;
pub mod pipeline;
pub mod summary;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use director::config::{self, Config, Mode};
use director::control::client::Client;
use director::world::Assumed;
use forwarding::Headers;
use forwarding::wire::protocol;

use crate::clean::clean;
use crate::outlet::{self, USAGE, WARNINGS, paint};
use crate::paint::Paint;
use clock::Clock;
use fate::{Fate, Flow};
use file::{Capture, Captured, LONGEST, Problem};
use hosts::Hosts;
use lines::Line;
use moves::Moves;
use output::Output;
use pipeline::{HEADROOM, Pipeline, Room, Sink};
use summary::Summary;

/// Runs a capture through the pipeline, and tells what becomes of each packet
#[derive(Debug, Args)]
pub struct Replay {
    /// The capture, pcap or pcapng; - is standard input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Write the packets as they would leave to this pcap file
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Configuration file; without it, the file of the running director
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Another configuration file: tell which flows would go to somebody else with it
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// MTU of the director's interfaces, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=65_535))]
    mtu: u32,
    /// Print a JSON object to a line: packets, and the summary last
    #[arg(long)]
    json: bool,
    /// Print only the summary
    #[arg(long, short)]
    quiet: bool,
}

/// Help below the options.
pub const HELP: &str = "\
The director of the file has just started, its servers are all up, and every next hop answers.
Times are those of the capture: connections expire as they would have. A time that runs backwards
stands still, and a gap of more than a day counts as a day. Nothing is sent, and no running
director is changed.

Capture what arrives: `tcpdump -Q in -i eth0 -w in.pcap`. Where the director takes packets by
AF_XDP, tcpdump on the same card does not see them: `dirctl capture -w in.pcapng` does.

Examples:
  dirctl replay in.pcap                                    # through the running director's file
  dirctl replay in.pcap --config new.toml --quiet          # only counts
  dirctl replay in.pcap -w out.pcap --config new.toml      # and the packets as they would leave
  dirctl replay in.pcap --config old.toml --compare new.toml --quiet
  dirctl replay in.pcap --json | jq -c 'select(.verdict == \"dropped\")'

Exit codes:
  0   the whole capture was replayed; with --compare no flow moves
  1   the capture is cut short or damaged (what came before it is told), or flows move
  2   the director is not running (without --config)
  3   the director cannot be asked (without --config)
  64  wrong usage, a file that cannot be read or written, no capture, a wrong configuration";

/// What decides.
enum Decider {
    Director(Box<Pipeline>),
    Cluster(Box<Hosts>),
}

impl Decider {
    fn new(config: &Config, mtu: u32) -> Result<Decider, String> {
        match config.mode {
            Mode::Dispatcher => {
                Pipeline::new(config, mtu).map(|it| Decider::Director(Box::new(it)))
            }
            Mode::Nlb => Hosts::new(config).map(|it| Decider::Cluster(Box::new(it))),
        }
        .map_err(|error| error.to_string())
    }

    /// To whom frames go whose Ethernet header was not captured.
    fn mac(&self) -> [u8; 6] {
        match self {
            Decider::Director(_) => Assumed::MAC,
            Decider::Cluster(hosts) => hosts.mac(),
        }
    }

    fn judge(
        &mut self,
        now: Duration,
        room: Room<'_>,
        headers: Option<&Headers>,
        out: Option<&mut Sink<'_>>,
    ) -> Fate {
        match self {
            Decider::Director(pipeline) => pipeline.judge(now, room, headers, out),
            Decider::Cluster(hosts) => {
                hosts.judge(&room.chunk[HEADROOM..HEADROOM + room.length], headers)
            }
        }
    }
}

/// `dirctl replay`; gives the exit code.
pub fn run(socket: &Path, words: &Replay) -> u8 {
    let path = match &words.config {
        Some(path) => path.clone(),
        None => match running_file(socket) {
            Ok(path) => path,
            Err(code) => return code,
        },
    };
    match prepare(words, &path) {
        Ok((capture, run)) => run.through(capture, words),
        Err(problem) => {
            // Quotes file names and their contents.
            let problem: Vec<_> = problem.lines().map(clean).collect();
            let _ = writeln!(io::stderr(), "dirctl: {}", problem.join("\n"));
            USAGE
        }
    }
}

/// The file of the running director.
fn running_file(socket: &Path) -> Result<PathBuf, u8> {
    let status = Client::connect(socket).and_then(|mut client| client.status());
    match status {
        Ok(status) => status.config.map(PathBuf::from).ok_or_else(|| {
            let _ = writeln!(
                io::stderr(),
                "dirctl: the director does not say which file it has: name it with --config"
            );
            outlet::CANNOT_ASK
        }),
        Err(error) => Err(outlet::complain(&error)),
    }
}

/// Reads what is to be read, and opens what is to be written.
fn prepare(words: &Replay, path: &Path) -> Result<(Capture, Run), String> {
    let load = |path: &Path| config::load(path).map_err(|error| error.to_string());
    let decider = |config: &Config, path: &Path| {
        Decider::new(config, words.mtu).map_err(|error| format!("{}: {error}", path.display()))
    };
    let config = load(path)?;
    let mut deciders = vec![decider(&config, path)?];
    if let Some(other) = &words.compare {
        let second = load(other)?;
        if second.mode != config.mode {
            return Err(format!(
                "{} and {} have different modes: servers and hosts cannot be compared",
                path.display(),
                other.display()
            ));
        }
        deciders.push(decider(&second, other)?);
    }
    if words.write.is_some() && config.mode == Mode::Nlb {
        return Err("-w: in mode nlb packets stay as they are, each host takes its own".to_owned());
    }
    let capture = Capture::open(&words.capture)
        .map_err(|problem| format!("{}: {problem}", words.capture.display()))?;
    let output = words.write.as_deref().map(|to| create(to, &words.capture)).transpose()?;
    Ok((capture, Run { deciders, output }))
}

/// Makes the file for what leaves, which must not be the one that is read.
fn create(to: &Path, from: &Path) -> Result<Output, String> {
    let is_same =
        fs::canonicalize(to).is_ok_and(|to| fs::canonicalize(from).is_ok_and(|from| from == to));
    if is_same {
        return Err(format!("-w: {} is the capture itself", to.display()));
    }
    Output::create(to).map_err(|error| format!("{}: {error}", to.display()))
}

/// A replay that is about to begin.
struct Run {
    /// One, or two to compare.
    deciders: Vec<Decider>,
    output: Option<Output>,
}

impl Run {
    fn through(mut self, mut capture: Capture, words: &Replay) -> u8 {
        let mut printer = Printer::new(words);
        let mut clock = Clock::default();
        let mut summary = Summary::default();
        let mut moves = Moves::default();
        let mut rooms: Vec<Vec<u8>> =
            self.deciders.iter().map(|_| vec![0; LONGEST + 2 * HEADROOM + 64]).collect();
        let ended = loop {
            let captured = match capture.next_packet() {
                Ok(Some(captured)) => captured,
                Ok(None) => break None,
                Err(problem) => break Some(problem),
            };
            let now = clock.at(captured.time);
            let frame = place(&captured, self.deciders[0].mac(), &mut rooms);
            summary.packets += 1;
            summary.cut += u64::from(frame.is_cut);
            summary.note_time(captured.time);
            let headers = frame.headers;
            let mut fates: [Option<Fate>; 2] = [None; 2];
            for (place, decider) in self.deciders.iter_mut().enumerate() {
                let room = Room { chunk: &mut rooms[place], length: frame.length };
                let missing = frame.missing;
                let out = self.output.as_mut().filter(|_| place == 0);
                let fate = match out {
                    Some(out) => {
                        let mut write = |bytes: &[u8]| out.write(captured.time, bytes, missing);
                        decider.judge(now, room, headers.as_ref(), Some(&mut write))
                    }
                    None => decider.judge(now, room, headers.as_ref(), None),
                };
                fates[place] = Some(fate);
            }
            let Some(fate) = fates[0] else { continue };
            summary.note(&fate);
            let flow = headers.as_ref().map(Flow::of);
            if let (Some(flow), [Some(one), Some(other)]) = (flow, &fates) {
                moves.note(flow, [one, other]);
            }
            let line = Line {
                number: summary.packets,
                time: clock.shown(captured.time),
                flow,
                fate: &fate,
                other: fates[1].as_ref(),
                is_cut: frame.is_cut,
            };
            if !printer.packet(&line) {
                return 0;
            }
        };
        self.end(words, printer, &clock, &summary, &moves, capture.path(), ended)
    }

    /// Says what came of all.
    #[allow(clippy::too_many_arguments)]
    fn end(
        mut self,
        words: &Replay,
        mut printer: Printer,
        clock: &Clock,
        summary: &Summary,
        moves: &Moves,
        path: &Path,
        ended: Option<Problem>,
    ) -> u8 {
        let compared = words.compare.is_some().then_some(moves);
        let views = match &self.deciders[0] {
            Decider::Director(pipeline) => pipeline.world().table().service_views(),
            Decider::Cluster(_) => Vec::new(),
        };
        printer.summary(&summary::Whole { summary, clock, views: &views, moves: compared });
        if let Some(problem) = &ended {
            let _ = writeln!(
                io::stderr(),
                "dirctl: {}: after packet {} it {problem}; all before it was replayed",
                clean(&path.display().to_string()),
                summary.packets
            );
        }
        let written = self.output.as_mut().map_or(Ok(()), Output::finish);
        if let (Err(error), Some(path)) = (&written, &words.write) {
            let path = clean(&path.display().to_string());
            let _ = writeln!(io::stderr(), "dirctl: {path}: {error}; what it holds is not all");
            return USAGE;
        }
        let moves = compared.is_some_and(|moves| moves.moved().next().is_some());
        if ended.is_some() || moves { WARNINGS } else { 0 }
    }
}

/// A packet as it lies in the rooms.
struct Placed {
    /// Bytes of the frame.
    length: usize,
    /// Bytes at its end that were not captured and stand as zeros.
    missing: usize,
    /// Whether not all of it was captured.
    is_cut: bool,
    headers: Option<Headers>,
}

/// Puts a packet as a frame into every room. Where all headers were captured and only data is missing, that is
/// taken for zeros: what becomes of a packet does not depend on it, but for a few protocols.
fn place(captured: &Captured<'_>, mac: [u8; 6], rooms: &mut [Vec<u8>]) -> Placed {
    let mut placed = Placed { length: 0, missing: 0, is_cut: false, headers: None };
    for room in rooms {
        let Some(room) = room.get_mut(HEADROOM..HEADROOM + LONGEST) else { continue };
        let framed = captured.link.frame(captured.bytes, captured.length, mac, room);
        let Some((length, whole)) = framed else { return placed };
        placed = Placed { length, missing: 0, is_cut: whole > length, headers: None };
        if whole > length && whole <= room.len() {
            room[length..whole].fill(0);
            if let Ok(headers) = forwarding::parse(&room[..whole])
                && headers.l4 + needed(&headers) <= length
            {
                placed.missing = whole - length;
                placed.length = whole;
                placed.headers = Some(headers);
                continue;
            }
        }
        placed.headers = forwarding::parse(&room[..length]).ok();
    }
    placed
}

/// Bytes of a transport header, without which nothing can be said of a packet.
fn needed(headers: &Headers) -> usize {
    match headers.protocol {
        _ if headers.is_later_fragment() => 0,
        protocol::TCP => 20,
        protocol::SCTP => 16,
        // An error quotes a header and eight bytes more.
        protocol::ICMP | protocol::ICMPV6 => 8 + 40 + 8,
        _ => 8,
    }
}

/// Standard output, for people or programs.
struct Printer {
    to: BufWriter<io::Stdout>,
    json: bool,
    quiet: bool,
    paint: Paint,
}

impl Printer {
    fn new(words: &Replay) -> Printer {
        let to = BufWriter::with_capacity(1 << 16, io::stdout());
        Printer { to, json: words.json, quiet: words.quiet, paint: paint() }
    }

    /// False when the reader has left.
    fn packet(&mut self, line: &Line<'_>) -> bool {
        self.quiet
            || match self.json {
                true => lines::json(&mut self.to, line),
                false => lines::text(&mut self.to, line, self.paint),
            }
            .is_ok()
    }

    fn summary(&mut self, whole: &summary::Whole<'_>) {
        let text = match self.json {
            true => summary::json(whole),
            false => summary::text(whole, self.paint, !self.quiet),
        };
        let _ = self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush());
    }
}

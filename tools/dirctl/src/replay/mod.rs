//! `dirctl replay`: a capture through the pipeline of a director that is made from a file.
//!
//! [`mod@file`] reads packets, [`link`] makes frames of them and [`clock`] the director's time. [`pipeline`]
//! (or [`hosts`], for `mode = "nlb"`) decides, [`fate`] is what came of it, [`moves`] compares two
//! files, [`summary`] and [`lines`] say it all. One packet is in memory at a time.

mod arguments;
pub mod clock;
mod decider;
pub mod fate;
pub mod file;
pub mod hosts;
pub mod lines;
pub mod link;
pub mod moves;
pub mod output;
pub mod pipeline;
mod placed;
mod printer;
pub mod summary;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use director::config::{self, Config, Mode};
use director::control::client::Client;

use crate::clean::clean;
use crate::outlet::{self, USAGE, WARNINGS};
pub use arguments::{HELP, Replay};
use clock::Clock;
use decider::Decider;
use fate::{Fate, Flow};
use file::{Capture, LONGEST, Problem};
use lines::Line;
use moves::Moves;
use output::Output;
use pipeline::{HEADROOM, Room};
use placed::place;
use printer::Printer;
use summary::Summary;

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
    if to == Path::new("-") {
        return Err("-w: standard output has the lines and the summary: name a file".to_owned());
    }
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
            printer.packet(&line);
            if printer.is_over() && self.output.is_none() {
                return printer.code();
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
        if printer.is_over() {
            return printer.code();
        }
        let moves = compared.is_some_and(|moves| moves.moved().next().is_some());
        if ended.is_some() || moves { WARNINGS } else { 0 }
    }
}

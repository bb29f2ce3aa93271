//! `dirctl capture`: packets from the running director into a file, with what became of each.
//!
//! The director sends a pcapng file that grows. It is written block by block, each as a whole, so the file
//! can be read whenever and however the capture ends.

mod blocks;

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use director::control::ClientError;
use director::control::api::RefusalKind;
use director::control::client::Client;

use crate::clean::{clean, count};
use crate::outlet::{CANNOT_ASK, USAGE, WARNINGS, complain};
use blocks::Blocks;

/// Captures packets from the running director
#[derive(Debug, Args)]
pub struct Capture {
    /// Write to this pcapng file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,
    /// Only packets that are dropped, for one of these reasons if any are named (`dirctl drops --all`)
    #[arg(long, value_name = "REASON", num_args = 0.., value_delimiter = ',')]
    drops: Option<Vec<String>>,
    /// Only packets with this verdict; may be given several times
    #[arg(long, value_name = "VERDICT", value_enum)]
    verdict: Vec<Verdict>,
    /// Only one in so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// Only packets to this service, and its answers: 192.0.2.10, 192.0.2.10:80 or 192.0.2.10:80/tcp
    #[arg(long, value_name = "SERVICE")]
    service: Option<String>,
    /// End after so many packets
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so many seconds
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Only the first bytes of each packet, 64 to 65535
    #[arg(long, short, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..=65_535))]
    snaplen: Option<u32>,
    /// Each packet also as it leaves
    #[arg(long)]
    both: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Verdict {
    /// It went on.
    Forwarded,
    /// The kernel's stack got it.
    Passed,
    /// It ended there.
    Dropped,
}

/// Help below the options.
pub const HELP: &str = "\
Packets are captured as they arrive, before anything is changed in them; each has a comment with its
verdict, the reason and the server. Only packets that reach the director are seen: what steering
leaves to the kernel is for tcpdump. Forwarding is never held up: packets that come faster than they
are read are lost to the capture, and counted. At most 4 captures run at a time. Ctrl-C ends one.

Examples:
  dirctl capture --drops -w drops.pcapng                  # whatever is dropped, and why
  dirctl capture --drops no_route,ttl_exceeded -w x.pcapng --count 100
  dirctl capture --service 192.0.2.10:80/tcp --both -s 128 -w web.pcapng
  dirctl capture --verdict forwarded --sample 1000 --seconds 60 -w sample.pcapng
  dirctl capture -w - | tcpdump -n -r -

Exit codes:
  0   done: count or time is reached, or it was interrupted
  1   done, but packets were lost to the capture
  2   the director is not running
  3   the director cannot be asked, has ended meanwhile, or has 4 captures already
  64  wrong usage, an unknown reason, or a file that cannot be written";

impl Capture {
    /// As the control API wants it.
    fn query(&self) -> Result<String, String> {
        let mut query = Vec::new();
        let mut verdicts: Vec<&str> = self
            .verdict
            .iter()
            .map(|verdict| match verdict {
                Verdict::Forwarded => "forwarded",
                Verdict::Passed => "passed",
                Verdict::Dropped => "dropped",
            })
            .collect();
        if let Some(reasons) = &self.drops {
            if reasons.is_empty() {
                verdicts.push("dropped");
            }
            for reason in reasons {
                query.push(format!("reason={}", word(reason, "a reason")?));
            }
        }
        query.extend(verdicts.iter().map(|verdict| format!("verdict={verdict}")));
        if let Some(service) = &self.service {
            query.push(format!("service={}", word(service, "a service")?));
        }
        let mut number = |name: &str, number: Option<u64>| {
            query.extend(number.map(|number| format!("{name}={number}")));
        };
        number("sample", self.sample.map(u64::from));
        number("snaplen", self.snaplen.map(u64::from));
        number("count", self.count);
        number("seconds", self.seconds);
        if self.both {
            query.push("both=true".to_owned());
        }
        Ok(query.join("&"))
    }
}

/// A word that may stand in a query as it is.
fn word<'a>(text: &'a str, what: &str) -> Result<&'a str, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._:/[]".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(text),
        false => Err(format!("{:?} is not {what}", clean(text))),
    }
}

/// `dirctl capture`; gives the exit code.
pub fn run(socket: &Path, words: &Capture) -> u8 {
    let to = clean(&words.write.display().to_string());
    let say = |text: String| {
        let _ = writeln!(io::stderr(), "dirctl: {text}");
    };
    let query = match words.query() {
        Ok(query) => query,
        Err(problem) => {
            say(problem);
            return USAGE;
        }
    };
    let mut client = match Client::connect(socket) {
        Ok(client) => client,
        Err(error) => return complain(&error),
    };
    let mut output: Option<Output> = None;
    let mut blocks = Blocks::default();
    // That have been written.
    let mut packets = 0;
    let mut trouble: Option<io::Error> = None;
    // The file is made when the director has agreed: a refusal leaves what is there as it is.
    let outcome = client.capture(&query, |bytes| {
        let written = open(&mut output, &words.write).and_then(|output| {
            let whole = blocks.take(bytes).map_err(io::Error::other)?;
            output.write(whole)
        });
        match written {
            Ok(()) => {
                packets = blocks.packets();
                ControlFlow::Continue(())
            }
            Err(error) => {
                trouble = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    if let Some(error) = &trouble
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        say(format!("{to}: {error}"));
        if output.is_some() {
            say(format!("what came before is whole: {}", count(packets, "packet")));
        }
        return USAGE;
    }
    let lost = match blocks.lost() {
        0 => String::new(),
        lost => format!(", {lost} lost because they came too fast"),
    };
    if output.is_some() {
        say(format!("{} in {to}{lost}", count(blocks.packets(), "packet")));
    }
    match outcome {
        Ok(()) if blocks.lost() > 0 => WARNINGS,
        Ok(()) => 0,
        Err(error) => ended(&error, output.is_some()),
    }
}

/// Says why it has ended too early.
fn ended(error: &ClientError, has_begun: bool) -> u8 {
    match error {
        ClientError::System { .. } if has_begun => {
            let _ =
                writeln!(io::stderr(), "dirctl: the director has ended; what came before is whole");
            CANNOT_ASK
        }
        ClientError::Refused { refusal, .. } if refusal.error == RefusalKind::BadRequest => {
            let _ = complain(error);
            USAGE
        }
        _ => complain(error),
    }
}

/// Where the blocks go.
enum Output {
    Standard,
    File {
        file: File,
        /// Bytes of it that are whole blocks.
        whole: u64,
    },
}

impl Output {
    /// Writes whole blocks: all of them, or, to a file, none.
    fn write(&mut self, blocks: &[u8]) -> io::Result<()> {
        match self {
            Output::Standard => {
                let mut output = io::stdout();
                output.write_all(blocks).and_then(|()| output.flush())
            }
            Output::File { file, whole } => {
                let written = file.write_all(blocks);
                match written {
                    Ok(()) => *whole += blocks.len() as u64,
                    // A pipe or a device cannot be cut.
                    Err(_) => drop(file.set_len(*whole)),
                }
                written
            }
        }
    }
}

/// The file, made with the first bytes. It holds what clients said: only its owner reads it.
fn open<'a>(output: &'a mut Option<Output>, path: &Path) -> io::Result<&'a mut Output> {
    if output.is_none() {
        *output = Some(match path.as_os_str() == "-" {
            true => Output::Standard,
            false => Output::File {
                file: File::options()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(path)?,
                whole: 0,
            },
        });
    }
    output.as_mut().ok_or_else(|| io::Error::other("no output"))
}

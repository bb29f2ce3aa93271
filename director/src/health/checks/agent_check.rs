//! HAProxy's agent-check: the server says in a line of text how it is (`configuration.txt` of HAProxy,
//! "agent-check").
//!
//! ```text
//!   up ready                passed, and undoes what was said before
//!   down failed stopped     failed: what the line says behind #, or the word
//!   maint                   failed
//!   drain, 0%               soft: no new connections
//!   75%                     passed with that share of the weight
//!   maxconn:30              nothing
//! ```
//!
//! Blanks and commas stand between words. Of several that contradict each other the worst counts. A
//! line with an unknown word says nothing at all: whoever sent it speaks something else.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Deadline, Outcome, stream, trouble, words};
use crate::health::outcome::Advice;
use crate::health::plan::AgentCheck;

/// Bytes of a line at most.
const LINE: usize = 256;
/// The largest share of a weight, percent: HAProxy's weights end at 256, ours are shares.
const MOST: u16 = 1000;

pub(super) async fn run(
    address: SocketAddr,
    agent: &AgentCheck,
    deadline: Deadline,
) -> Result<Outcome, Outcome> {
    let mut stream = stream::by_kernel(address, false, deadline).await?;
    if let Some(send) = &agent.send {
        let sent = deadline.limit("send", stream.write_all(send.as_bytes())).await?;
        sent.map_err(|error| trouble::outcome("send", &error))?;
    }
    let line = deadline.limit("answer", read_line(&mut stream)).await?;
    let line = line.map_err(|error| trouble::outcome("answer", &error))?;
    Ok(match line {
        Some(line) => verdict(&line),
        None => Outcome::Unable(format!("the agent's line is longer than {LINE} bytes")),
    })
}

/// The first line: LF, CR or the end ends it. `None` when it is too long.
async fn read_line(stream: &mut TcpStream) -> std::io::Result<Option<Vec<u8>>> {
    let mut buffer = [0; LINE + 1];
    let mut length = 0;
    loop {
        let count = stream.read(&mut buffer[length..]).await?;
        let end = buffer[..length + count].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        length += count;
        match end {
            Some(end) => return Ok(Some(buffer[..end].to_vec())),
            None if count == 0 && length <= LINE => return Ok(Some(buffer[..length].to_vec())),
            None if length > LINE => return Ok(None),
            None => {}
        }
    }
}

/// What a line says.
fn verdict(line: &[u8]) -> Outcome {
    let (said, reason) = match line.iter().position(|byte| *byte == b'#') {
        Some(at) => (&line[..at], words::first_line(&line[at + 1..])),
        None => (line, String::new()),
    };
    let shown = || words::first_line(line);
    let Ok(said) = str::from_utf8(said) else {
        return Outcome::Unable(format!("the agent says what is no text: {:?}", shown()));
    };
    let mut percent = None;
    let mut is_drained = false;
    let mut failure = None;
    let mut is_empty = true;
    for word in said.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
        is_empty = false;
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            "up" | "ready" => {}
            "down" | "failed" | "stopped" | "maint" => failure = failure.or(Some(word)),
            "drain" => is_drained = true,
            _ => match (share(&word), word.strip_prefix("maxconn:")) {
                (Some(share), _) => percent = Some(share),
                (None, Some(most)) if is_number(most) => {}
                _ => return Outcome::Unable(format!("the agent says {:?}", shown())),
            },
        }
    }
    if is_empty {
        return Outcome::Unable("the agent says nothing".to_owned());
    }
    let because = |word: &str| match reason.as_str() {
        "" => format!("the agent says {word}"),
        reason => format!("the agent says {word}: {reason}"),
    };
    match (failure, percent) {
        (Some(word), _) => Outcome::Failed(because(&word)),
        (None, _) if is_drained => Outcome::Soft(because("drain")),
        (None, Some(0)) => Outcome::Soft(because("0%")),
        (None, percent) => Outcome::Passed(Advice { percent }),
    }
}

/// The number before `%`.
fn share(word: &str) -> Option<u16> {
    let number = word.strip_suffix('%').filter(|number| is_number(number))?;
    number.parse::<u16>().ok().filter(|share| *share <= MOST)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;

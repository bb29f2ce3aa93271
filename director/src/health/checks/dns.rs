//! A DNS question is answered, over UDP.
//!
//! That a name does not exist is an answer: the server works. That it refuses, or could not find
//! out, is a failure. What is no answer to this very question is not looked at, whoever sent it.

mod message;

use std::hash::{BuildHasher, Hasher, RandomState};

use super::datagram::exchange;
use super::{Deadline, Outcome, Way};
use crate::health::plan::Dns;
use message::{Answer, Question};

pub(super) async fn run(way: &Way<'_>, dns: &Dns, deadline: Deadline) -> Result<Outcome, Outcome> {
    // Keyed at random by the system.
    let id = RandomState::new().build_hasher().finish() as u16;
    let question = Question::new(id, &dns.name, dns.record).ok_or_else(|| {
        Outcome::Unable(format!(
            "{:?} is no domain name: labels of 1 to 63 letters with dots between, 253 in all",
            dns.name
        ))
    })?;
    let answer =
        exchange(way, question.bytes(), deadline, |datagram| question.answer(datagram)).await?;
    let Some(answer) = answer else {
        return Err(Outcome::Failed("no answer: timed out".to_owned()));
    };
    Ok(match answer {
        Answer::Found | Answer::NoSuchName => Outcome::PASSED,
        Answer::Failure(code) => Outcome::Failed(match code {
            1 => "the server takes the question for malformed (FORMERR)".to_owned(),
            2 => "the server could not find out (SERVFAIL)".to_owned(),
            4 => "the server does not know such questions (NOTIMP)".to_owned(),
            5 => "the server refuses to answer (REFUSED)".to_owned(),
            code => format!("response code {code}"),
        }),
    })
}

#[cfg(test)]
mod tests;

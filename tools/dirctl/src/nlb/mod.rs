//! `dirctl nlb`: questions and commands to the nodes of a cluster without a dispatcher.
//!
//! [`arguments`] the words, [`way`] how a node is reached, [`text`] what is shown of its answer,
//! [`progress`] a drain that is watched, [`verdict`] the exit code.

pub mod arguments;
pub mod capacity;
pub mod old_words;
pub mod progress;
pub mod rules;
pub mod text;
pub mod verdict;
pub mod way;

pub use arguments::{Nlb, Words};

use director::control::nlb::views::MacsView;
use director::control::nlb::{NlbAnswer, NlbCommand, NlbReply, NlbRequest, NlbResult, NlbView};

use crate::paint::Paint;

/// What needs no node: the Ethernet addresses of an address that is given.
pub fn local(request: &NlbRequest) -> Option<NlbReply> {
    let NlbCommand::Ip2mac { address: Some(address) } = request.command else { return None };
    let answer = NlbAnswer {
        host: 0,
        name: String::new(),
        state: String::new(),
        result: NlbResult::Done,
        message: None,
        view: Some(Box::new(NlbView::Macs(MacsView::of(address)))),
    };
    Some(NlbReply { answers: vec![answer], silent: vec![] })
}

/// Whether to watch what has begun: a drain, on a terminal, unless it is told not to.
pub fn waits(words: &Nlb, reply: &NlbReply) -> bool {
    let begun = reply.answers.iter().any(|answer| answer.result.is_good());
    let wanted = matches!(words.command, Words::Drainstop { no_wait: false, .. });
    wanted && begun && !words.json && progress::is_watched()
}

/// What is printed of an answer.
pub fn show(words: &Nlb, reply: &NlbReply, paint: Paint) -> String {
    if words.json {
        // Our types have string keys and finite numbers only.
        return serde_json::to_string_pretty(reply).unwrap_or_default() + "\n";
    }
    let served = match words.command {
        Words::Capacity { served } => served,
        _ => None,
    };
    text::text(reply, served, paint)
}

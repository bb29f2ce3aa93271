//! Several changes in one request, and what is answered to them.

use serde::{Deserialize, Serialize};

use super::api::Refusal;
use super::operations::Command;

/// Answer to `POST /v1/commands` when every command was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// How many commands that were.
    pub applied: usize,
}

/// Answer to `POST /v1/commands` when a command was refused: the refusal and its place. The
/// commands before it stay carried out, those after it were not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRefusal {
    /// Why.
    #[serde(flatten)]
    pub refusal: Refusal,
    /// Which command of the array, counted from 0.
    pub index: usize,
}

/// What becomes of a batch when one of its commands is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRefusal {
    /// Those before it stay carried out, those after it are not looked at.
    #[default]
    Stop,
    /// The others are carried out all the same.
    Continue,
    /// Nothing is carried out at all: all or nothing.
    Undo,
}

/// Body of `POST /v1/batch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// What becomes of it when one is refused.
    #[serde(default)]
    pub on_refusal: OnRefusal,
    /// In the order in which they are carried out.
    pub commands: Vec<Command>,
}

/// Answer to `POST /v1/batch`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchOutcome {
    /// How many commands were carried out.
    pub applied: usize,
    /// Those that were refused, in order.
    pub refused: Vec<CommandRefusal>,
}

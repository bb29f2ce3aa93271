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

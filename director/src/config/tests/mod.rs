//! Tests of the whole file: what right files mean, what wrong files are told, and that no text
//! whatever makes the parser panic.

mod arbitrary;
mod health;
mod nlb;
mod reference;
mod right;
mod wrong;

use super::{Config, ConfigError, KERNEL_SCHEDULERS, parse_with};

/// Parses a text against the kernel's schedulers and dht, whichever are linked in.
fn parse(text: &str) -> Result<Config, ConfigError> {
    let known = [KERNEL_SCHEDULERS, &["dht"]].concat();
    parse_with(text, "switchyard.toml", &known)
}

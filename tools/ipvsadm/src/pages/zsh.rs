//! Completion for zsh.

use super::{choices, names, value};
use crate::flags::{self, Flag};

/// For a folder of `$fpath`.
pub(super) fn completion() -> String {
    let mut text = String::from("#compdef ipvsadm\n_arguments -s \\\n");
    for flag in flags::all() {
        let about = quoted(flag.about);
        for name in names(flag) {
            let equals = if flag.argument.is_value() && name.starts_with("--") { "=" } else { "" };
            text.push_str(&format!("    '{name}{equals}[{about}]{}' \\\n", offered(flag)));
        }
    }
    text.push_str("    '*:word:'\n");
    text
}

/// What is offered for the value.
fn offered(flag: &Flag) -> String {
    let Some((name, optional)) = value(flag).filter(|_| flag.argument.is_value()) else {
        return String::new();
    };
    let colons = if optional { "::" } else { ":" };
    let choices = choices(flag);
    let list = if choices.is_empty() { " ".to_owned() } else { format!("({})", choices.join(" ")) };
    format!("{colons}{}:{list}", quoted(name))
}

/// Without what ends a description or a quotation.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
    escaped.replace(':', "\\:").replace('\'', "'\\''")
}

//! Completion for fish: commands while there is none, then the options that are legal with it.

use super::{choices, options_of};
use crate::flags::{self, Flag, Kind};

/// For `/usr/share/fish/vendor_completions.d/ipvsadm.fish`.
pub(super) fn completion() -> String {
    let mut text = String::from("complete -c ipvsadm -f\n");
    for flag in flags::all() {
        if !matches!(flag.kind, Kind::Option(_)) {
            text.push_str(&line("test (count (commandline -opc)) -eq 1", flag));
        }
    }
    for command in flags::all() {
        if let Kind::Command(action) = command.kind {
            let given: Vec<String> =
                super::names(command).iter().map(|name| format!("\"{name}\"")).collect();
            let condition = format!("contains -- (commandline -opc)[2] {}", given.join(" "));
            for option in options_of(action) {
                text.push_str(&line(&condition, option));
            }
        }
    }
    text
}

fn line(condition: &str, flag: &Flag) -> String {
    let mut text = format!("complete -c ipvsadm -n '{condition}'");
    for letter in flag.short {
        text.push_str(&format!(" -s {letter}"));
    }
    text.push_str(&format!(" -l {}", flag.long));
    if flag.argument.is_value() {
        text.push_str(" -r");
        let choices = choices(flag);
        if !choices.is_empty() {
            text.push_str(&format!(" -a '{}'", choices.join(" ")));
        }
    }
    format!("{text} -d '{}'\n", flag.about.replace('\'', "\\'"))
}

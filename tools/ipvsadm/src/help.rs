//! The help text and the version line. The help is made of the flag table, so it cannot forget a
//! flag.

use std::fmt::Write;

use crate::flags::{Argument, Flag, GROUPS};

/// The line of `-v`, which scripts compare: the version of the command that this one stands for.
pub const VERSION: &str = "ipvsadm v1.31 2019/12/24 (compiled with popt and IPVS v1.2.1)";

const USAGE: &[&str] = &[
    "-A|E virtual-service [-s scheduler] [-b flags] [-p [seconds]] [-M mask] [--pe engine] [-o]",
    "-D virtual-service",
    "-C",
    "-R",
    "-S [-n]",
    "-a|e virtual-service -r host[:port] [-g|i|m] [-w weight] [-x upper] [-y lower] [tunnel]",
    "-d virtual-service -r host[:port]",
    "-L|l [virtual-service | -c | --timeout | --daemon] [listing]",
    "-Z [virtual-service]",
    "--set tcp tcpfin udp",
    "--start-daemon master|backup [daemon]",
    "--stop-daemon master|backup [--syncid id]",
    "-h | -v",
];

/// The text of `-h`.
pub fn text() -> String {
    let mut text = format!("{VERSION}\nUsage:\n");
    for form in USAGE {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "  ipvsadm {form}");
    }
    for group in GROUPS {
        let _ = writeln!(text, "\n{}:", group.title);
        for flag in group.flags.iter().filter(|flag| !flag.help.is_empty()) {
            let _ = writeln!(text, "  {:<33} {}", names(flag), flag.help);
        }
    }
    text.push_str(
        "\nThe table is the Switchyard director's. Its control socket is expected at\n\
         /run/director/control.sock, or where SWITCHYARD_SOCKET says.\n",
    );
    text
}

fn names(flag: &Flag) -> String {
    let mut text: String = flag.short.iter().map(|letter| format!("-{letter}, ")).collect();
    if text.is_empty() {
        text.push_str("    ");
    }
    text.push_str("--");
    text.push_str(flag.long);
    match flag.argument {
        Argument::None => {}
        Argument::Required(value) => text.push_str(&format!(" {value}")),
        Argument::Optional(value) => text.push_str(&format!(" [{value}]")),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_starts_as_ipvsadms_does_and_shows_every_flag_but_the_hidden_one() {
        let text = text();
        assert!(text.starts_with(&format!("{VERSION}\nUsage:\n  ipvsadm -A|E ")));
        assert_eq!(text.lines().filter(|line| line.starts_with("  ipvsadm ")).count(), 13);
        for flag in GROUPS.iter().flat_map(|group| group.flags) {
            let shown = text.contains(&format!("--{} ", flag.long));
            assert_eq!(shown, flag.long != "exact", "{}", flag.long);
        }
        assert!(text.contains(director::control::DEFAULT_SOCKET));
    }

    #[test]
    fn help_fits_a_screen_of_a_hundred_columns() {
        for line in text().lines() {
            assert!(line.len() <= 100, "{line}");
        }
    }
}

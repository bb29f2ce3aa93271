//! The help text and the version line, to the byte of ipvsadm's: the forms and the order of the
//! flags are here, their names and what is said of them comes from the flags.

use std::fmt::Write;

use crate::flags::{self, Argument, Flag};

/// The line of `-v`, which scripts compare: the version of the command that this one stands for.
pub const VERSION: &str = "ipvsadm v1.31 2019/12/24 (compiled with popt and IPVS v1.2.1)";

const USAGE: &[&str] = &[
    "-A|E virtual-service [-s scheduler] [-p [timeout]] [-M netmask] [--pe persistence_engine] [-b sched-flags]",
    "-D virtual-service",
    "-C",
    "-R",
    "-S [-n]",
    "-a|e virtual-service -r server-address [options]",
    "-d virtual-service -r server-address",
    "-L|l [virtual-service] [options]",
    "-Z [virtual-service]",
    "--set tcp tcpfin udp",
    "--start-daemon {master|backup} [daemon-options]",
    "--stop-daemon {master|backup}",
    "-h",
];

/// How the names of a flag stand before what is said of it.
#[derive(Clone, Copy)]
enum Heads {
    /// `--list            -L|-l     `
    Commands,
    /// `--tcp-service|-t  service-address   `
    Services,
    /// `--scheduler    -s scheduler         `
    Options,
    /// `--syncid sid                        `
    Daemon,
}

/// What stands above the flags of a section, how their names are written, and their order.
const SECTIONS: &[(&str, Heads, &[&str])] = &[
    (
        "\nCommands:\nEither long or short options are allowed.\n",
        Heads::Commands,
        &[
            "add-service",
            "edit-service",
            "delete-service",
            "clear",
            "restore",
            "save",
            "add-server",
            "edit-server",
            "delete-server",
            "list",
            "zero",
            "set",
            "start-daemon",
            "stop-daemon",
            "help",
        ],
    ),
    (
        "\nvirtual-service:\n",
        Heads::Services,
        &["tcp-service", "udp-service", "sctp-service", "fwmark-service"],
    ),
    (
        "\nOptions:\n",
        Heads::Options,
        &[
            "ipv6",
            "scheduler",
            "pe",
            "persistent",
            "netmask",
            "real-server",
            "gatewaying",
            "ipip",
            "masquerading",
            "tun-type",
            "tun-port",
            "tun-nocsum",
            "tun-csum",
            "tun-remcsum",
            "weight",
            "u-threshold",
            "l-threshold",
            "connection",
            "timeout",
            "daemon",
            "stats",
            "rate",
            "exact",
            "thresholds",
            "persistent-conn",
            "tun-info",
            "nosort",
            "sort",
            "ops",
            "numeric",
            "sched-flags",
        ],
    ),
    (
        "Daemon Options:\n",
        Heads::Daemon,
        &["syncid", "sync-maxlen", "mcast-interface", "mcast-group", "mcast-port", "mcast-ttl"],
    ),
];

/// The text of `-h`.
pub fn text() -> String {
    let mut text = format!("{VERSION}\nUsage:\n");
    for form in USAGE {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "  ipvsadm {form}");
    }
    for (title, heads, order) in SECTIONS {
        text.push_str(title);
        for flag in order.iter().filter_map(|name| flags::by_long(name)) {
            let mut head = head(flag, *heads);
            for line in flag.help {
                let _ = writeln!(text, "  {head}{line}");
                head = " ".repeat(head.len());
            }
        }
    }
    text
}

fn head(flag: &Flag, heads: Heads) -> String {
    let long = format!("--{}", flag.long);
    // The one hidden letter is that of a flag which is shown.
    let shorts: Vec<String> = flag
        .short
        .iter()
        .filter(|&&letter| letter != 'X')
        .map(|letter| format!("-{letter}"))
        .collect();
    let short = shorts.join("|");
    let value = match flag.argument {
        Argument::None => String::new(),
        Argument::Required(value) | Argument::Words(value) => value.to_owned(),
        Argument::Optional(value) => format!("[{value}]"),
    };
    match heads {
        Heads::Commands => match flag.argument {
            Argument::Words(words) => format!("{:<28}", format!("{long} {words}")),
            _ => format!("{long:<18}{short:<10}"),
        },
        Heads::Services => {
            let names = if short.is_empty() { long } else { format!("{long}|{short}") };
            // The longest of the names leaves one blank.
            format!("{:<36}", format!("{names:<17} {value}"))
        }
        Heads::Options if short.is_empty() => {
            format!("{:<36}", format!("{long:<15} {value}").trim_end())
        }
        Heads::Options => format!("{long:<15}{:<21}", format!("{short} {value}")),
        Heads::Daemon => format!("{:<36}", format!("{long} {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_that_has_help_is_shown_once() {
        let text = text();
        for flag in flags::all() {
            let shown = SECTIONS.iter().filter(|(.., names)| names.contains(&flag.long)).count();
            assert_eq!(shown, usize::from(!flag.help.is_empty()), "{}", flag.long);
            for line in flag.help {
                assert!(text.contains(line), "{line}");
            }
        }
    }

    #[test]
    fn names_stand_in_columns_that_differ_from_section_to_section() {
        let text = text();
        for line in [
            "  --list            -L|-l     list the table\n",
            "  --set tcp tcpfin udp        set connection timeout values\n",
            "  --sctp-service    service-address   service-address is host[:port]\n",
            "  --persistent   -p [timeout]         persistent service\n",
            "  --tun-port      port                tunnel destination port\n",
            "  --exact                             expand numbers (display exact values)\n",
            "  --mcast-ttl ttl                     Multicast TTL (default=1)\n",
        ] {
            assert!(text.contains(line), "{line}in:\n{text}");
        }
    }
}

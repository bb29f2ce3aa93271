//! What a packager installs beside the command: the manual page, and completions for bash, zsh and
//! fish. All of it is made of the flags, so it cannot forget one. `cargo xtask pages` writes the
//! files.

mod bash;
mod fish;
mod man;
mod zsh;

use crate::flags::{Argument, Flag, Kind};
use crate::legality::{Action, Opt, tables};

/// A file with its name.
pub type Page = (&'static str, fn() -> String);

/// All of them, by the names under which they are installed.
pub const ALL: &[Page] = &[
    ("ipvsadm.8", man::page),
    ("ipvsadm.bash", bash::completion),
    ("_ipvsadm", zsh::completion),
    ("ipvsadm.fish", fish::completion),
];

/// `-L`, `-l`, `--list`: all names, as they are typed.
fn names(flag: &Flag) -> Vec<String> {
    let shorts = flag.short.iter().map(|letter| format!("-{letter}"));
    shorts.chain([format!("--{}", flag.long)]).collect()
}

/// What its value is called: `timeout`, and whether it may be left out.
fn value(flag: &Flag) -> Option<(&'static str, bool)> {
    match flag.argument {
        Argument::None => None,
        Argument::Required(name) | Argument::Words(name) => Some((name, false)),
        Argument::Optional(name) => Some((name, true)),
    }
}

/// The words that its value may be, where there are a few: `{master|backup}` says so by itself.
fn choices(flag: &Flag) -> Vec<&'static str> {
    match (flag.long, flag.argument) {
        ("scheduler", _) => schedulers(),
        ("sched-flags", _) => {
            vec![
                "flag-1",
                "flag-2",
                "flag-3",
                "sh-fallback",
                "sh-port",
                "mh-fallback",
                "mh-port",
                "dht-sticky",
                "dht-port",
                "dht-dns-name",
            ]
        }
        ("pe", _) => vec!["sip"],
        ("tun-type", _) => vec!["ipip", "gue", "gre"],
        ("state", _) => vec![
            "ESTABLISHED",
            "SYN_SENT",
            "SYN_RECV",
            "FIN_WAIT",
            "TIME_WAIT",
            "CLOSE",
            "CLOSE_WAIT",
            "LAST_ACK",
            "LISTEN",
            "UDP",
            "NONE",
            "ASSURED",
        ],
        (_, Argument::Required(name)) => match name.strip_prefix('{') {
            Some(list) => list.trim_end_matches('}').split('|').collect(),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn schedulers() -> Vec<&'static str> {
    // In the words of the flag itself, which says them all.
    let about = crate::flags::scheduling::SCHEDULER.about;
    let list = about.split([':', ';']).nth(1).unwrap_or_default();
    list.split([',', ' ']).filter(|word| !word.is_empty() && *word != "or").collect()
}

/// The options that go with a command.
fn options_of(action: Action) -> impl Iterator<Item = &'static Flag> {
    crate::flags::all().filter(move |flag| match flag.kind {
        Kind::Option(Some(option)) => tables::allows(action, option),
        // In no table: what names the family of a mark, and what does nothing.
        Kind::Option(None) => match flag.long {
            "ipv6" => tables::allows(action, Opt::Service),
            _ => action == Action::List,
        },
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags;

    #[test]
    fn every_page_knows_every_flag() {
        for (name, page) in ALL {
            let page = page().replace("\\-", "-");
            for flag in flags::all() {
                // fish leaves the dashes out.
                let long = if *name == "ipvsadm.fish" { "" } else { "--" };
                assert!(page.contains(&format!("{long}{}", flag.long)), "{name}: {}", flag.long);
            }
            assert!(page.ends_with('\n') && !page.contains("\n\n\n"), "{name}");
        }
    }

    #[test]
    fn schedulers_and_roles_are_offered_by_name() {
        assert_eq!(schedulers().first(), Some(&"rr"));
        assert_eq!(schedulers().last(), Some(&"load"));
        let mut offered = schedulers();
        let mut there_are: Vec<_> = schedulers::REGISTRY.iter().map(|entry| entry.name).collect();
        offered.sort_unstable();
        there_are.sort_unstable();
        assert_eq!(offered, there_are);
        assert_eq!(choices(&flags::commands::START_DAEMON), ["master", "backup"]);
    }

    #[test]
    fn options_are_offered_where_they_are_legal() {
        let of = |action| options_of(action).map(|flag| flag.long).collect::<Vec<_>>();
        assert_eq!(of(Action::Flush), Vec::<&str>::new());
        assert_eq!(of(Action::Restore), ["atomic"]);
        assert!(of(Action::AddServer).contains(&"tun-type"));
        assert!(!of(Action::AddService).contains(&"weight"));
        assert!(of(Action::DeleteService).contains(&"ipv6"));
    }
}

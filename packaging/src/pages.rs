//! All manual pages and completions, by the names under which they are installed.

use std::io;

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};

use crate::{file_format, manual};

/// The programs whose command lines are clap's; `ipvsadm` has its own table of flags and makes its
/// own pages.
fn programs() -> [Command; 3] {
    [
        director::cli::Arguments::command(),
        dirctl::arguments::Arguments::command(),
        realserver_agent::cli::Cli::command(),
    ]
}

/// The shells, and how the name of a file with completions begins and ends.
const SHELLS: [(Shell, &str, &str); 3] =
    [(Shell::Bash, "", ".bash"), (Shell::Zsh, "_", ""), (Shell::Fish, "", ".fish")];

/// Every file with its name: `switchyard.toml.5`, `dirctl-status.8`, `dirctl.bash`, `_dirctl`, `dirctl.fish`.
///
/// # Errors
/// Those of writing; a text that is not UTF-8 is one.
pub fn all() -> io::Result<Vec<(String, String)>> {
    let mut files: Vec<(String, String)> =
        ipvsadm::pages::ALL.iter().map(|(name, page)| ((*name).to_owned(), page())).collect();
    files.push((file_format::NAME.to_owned(), file_format::page()));
    for command in programs() {
        let name = command.get_name().to_owned();
        files.extend(manual::pages(command.clone())?);
        for (shell, before, after) in SHELLS {
            let mut text = Vec::new();
            generate(shell, &mut command.clone(), &name, &mut text);
            let text = String::from_utf8(text).map_err(io::Error::other)?;
            files.push((format!("{before}{name}{after}"), text));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command as Process, Stdio};

    fn file(name: &str) -> String {
        let files = all().unwrap();
        let found = files.into_iter().find(|(file, _)| file == name);
        found.unwrap_or_else(|| panic!("there is no {name}")).1
    }

    /// Commands that are meant to be seen, with those below.
    fn each(command: &Command, seen: &mut Vec<Command>) {
        seen.push(command.clone());
        let below = command.get_subcommands();
        below
            .filter(|it| !it.is_hide_set() && it.get_name() != "help")
            .for_each(|it| each(it, seen));
    }

    #[test]
    fn no_page_forgets_a_command_or_an_option() {
        for mut program in programs() {
            program.build();
            let mut commands = Vec::new();
            each(&program, &mut commands);
            for command in commands {
                let name = command.get_display_name().unwrap_or(command.get_name());
                let page = file(&format!("{name}.8")).replace("\\-", "-");
                for option in command.get_arguments().filter(|it| !it.is_hide_set()) {
                    let Some(long) = option.get_long() else { continue };
                    assert!(page.contains(&format!("--{long}")), "{name}.8 lacks --{long}");
                }
            }
        }
    }

    #[test]
    fn every_program_has_a_page_and_completions_for_three_shells() {
        for program in ["director", "dirctl", "ipvsadm", "realserver-agent"] {
            let names = [
                format!("{program}.8"),
                format!("{program}.bash"),
                format!("_{program}"),
                format!("{program}.fish"),
            ];
            names.iter().for_each(|name| {
                assert!(file(name).replace("\\-", "-").contains(program), "{name}");
            });
        }
    }

    #[test]
    fn bash_accepts_every_completion_and_offers_the_subcommands() {
        for program in ["director", "dirctl", "ipvsadm", "realserver-agent"] {
            let text = file(&format!("{program}.bash"));
            let mut bash = Process::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            bash.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            assert!(bash.wait().unwrap().success(), "{program}.bash");
        }
        let script = file("dirctl.bash")
            + "\nCOMP_WORDS=(dirctl stat); COMP_CWORD=1; _dirctl dirctl stat dirctl; echo ${COMPREPLY[@]}";
        let output = Process::new("bash").arg("-c").arg(script).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "status\n");
    }
}

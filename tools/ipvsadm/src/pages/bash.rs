//! Completion for bash: commands first, then the options that are legal with the command.

use super::{choices, names, options_of, value};
use crate::flags::{self, Kind};

/// For `/usr/share/bash-completion/completions/ipvsadm`.
pub(super) fn completion() -> String {
    let mut commands = Vec::new();
    let mut options = String::new();
    for flag in flags::all() {
        let names = names(flag);
        match flag.kind {
            Kind::Command(action) => {
                let words: Vec<String> = options_of(action).flat_map(super::names).collect();
                options.push_str(&format!(
                    "        {}) options=\"{}\" ;;\n",
                    names.join("|"),
                    words.join(" ")
                ));
            }
            Kind::Help | Kind::Version => {}
            Kind::Option(_) => continue,
        }
        commands.extend(names);
    }
    let mut values = String::new();
    for flag in flags::all().filter(|flag| flag.argument.is_value()) {
        let words = choices(flag);
        // Of an optional value without a list nothing is offered, and options may follow.
        if words.is_empty() && value(flag).is_some_and(|(_, optional)| optional) {
            continue;
        }
        values.push_str(&format!(
            "        {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n",
            names(flag).join("|"),
            words.join(" ")
        ));
    }
    format!(
        "# bash completion for ipvsadm\n\
         _ipvsadm() {{\n    \
             local word=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\" options=\"\"\n    \
             COMPREPLY=()\n    \
             if [ \"$COMP_CWORD\" -eq 1 ]; then\n        \
                 COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n        \
                 return\n    \
             fi\n    \
             case \"$before\" in\n{values}    \
             esac\n    \
             case \"${{COMP_WORDS[1]}}\" in\n{options}    \
             esac\n    \
             COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n\
         }}\n\
         complete -F _ipvsadm ipvsadm\n",
        commands.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// What bash offers behind these words, the last of which is being typed.
    fn offered(words: &[&str]) -> Option<Vec<String>> {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            "{}\nCOMP_WORDS=({}); COMP_CWORD={}; _ipvsadm; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            super::completion(),
            words.join(" "),
            words.len() - 1
        );
        let output = Command::new("bash").args(["-c", &script]).output().ok()?;
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        Some(text.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn bash_offers_what_is_legal() {
        let Some(commands) = offered(&["ipvsadm", "--a"]) else {
            eprintln!("skipped: there is no bash");
            return;
        };
        assert_eq!(commands, ["--add-service", "--add-server"]);
        assert_eq!(offered(&["ipvsadm", "-R", "--"]).unwrap(), ["--atomic"]);
        assert_eq!(offered(&["ipvsadm", "-A", "-s", "lbl"]).unwrap(), ["lblc", "lblcr"]);
        assert_eq!(offered(&["ipvsadm", "-A", "-t", ""]).unwrap(), Vec::<String>::new());
        let listing = offered(&["ipvsadm", "-L", "--p"]).unwrap();
        assert_eq!(listing, ["--persistent-conn"]);
    }
}

//! How cases are written down: one command line per line, `#` begins a comment line, and lines that
//! begin with `<` are the standard input of the command above them.
//!
//! ```text
//! # A rule that is there already does not end a restore.
//! ipvsadm -R
//! < -A -t 10.0.0.1:80
//! < -A -t 10.0.0.1:80
//! ```
//!
//! A command line is shell: words may be quoted, and environment may stand before the command.
//! Commands that are not `ipvsadm` prepare something and are compared all the same. A line that
//! begins with `!` is a command that is to be answered differently: `docs/ipvsadm.md` has a row for
//! it. In the input, `\r` is a carriage return and `\c` at the end of the last line leaves its newline out.

/// One invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The command line.
    pub line: String,
    /// Its standard input.
    pub input: String,
    /// Whether the answers are meant to differ.
    pub differs: bool,
}

impl Case {
    /// A command without input.
    pub fn new(line: impl Into<String>) -> Case {
        Case { line: line.into(), input: String::new(), differs: false }
    }
}

/// Reads cases.
pub(super) fn read(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix('<'), cases.last_mut()) {
            (Some(input), Some(case)) => {
                let input = input.strip_prefix(' ').unwrap_or(input).replace("\\r", "\r");
                match input.strip_suffix("\\c") {
                    Some(last) => case.input.push_str(last),
                    None => case.input.push_str(&format!("{input}\n")),
                }
            }
            _ => cases.push(match line.strip_prefix("! ") {
                Some(line) => Case { differs: true, ..Case::new(line) },
                None => Case::new(line),
            }),
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_belongs_to_the_command_above_it_and_comments_to_nobody() {
        let cases = read("# first\nipvsadm -R\n< -A -f 1\\r\n<\n< -A -f 2\\c\n\nipvsadm -Sn\n");
        let input = "-A -f 1\r\n\n-A -f 2".to_owned();
        let restore = Case { input, ..Case::new("ipvsadm -R") };
        assert_eq!(cases, [restore, Case::new("ipvsadm -Sn")]);
        assert!(read("! ipvsadm -b ,")[0].differs);
    }
}

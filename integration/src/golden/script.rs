//! The shell script that carries out a section, the same for both sides, and how its output is cut
//! into answers again. It uses what a shell has built in: in the guest every further process costs
//! more than the command that is looked at.

use anyhow::{Context, Result, ensure};

use super::Case;

/// Begins the line behind each answer. No program here prints it.
const MARK: char = '\u{2}';
/// Between all that went to standard output and all that went to standard error.
const BETWEEN: &str = "\u{3}\n";
/// Ends the input of a command.
const END: &str = "END-OF-INPUT";

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
    /// Exit code.
    pub code: i32,
}

/// A script that carries out `cases`. It keeps its two files in the folder `$1`.
pub(super) fn script(cases: &[Case]) -> String {
    let mut text = String::from("exec 4>\"$1/output\" 5>\"$1/errors\"\n");
    for (number, Case { line, input, .. }) in cases.iter().enumerate() {
        let redirected = if input.is_empty() {
            format!("{line} >&4 2>&5 </dev/null\n")
        } else {
            let open = if input.ends_with('\n') { "" } else { "\n" };
            format!("{line} >&4 2>&5 <<'{END}'\n{input}{open}{END}\n")
        };
        let mark = format!("\\n\\002 {number} %s\\n");
        text.push_str(&redirected);
        text.push_str(&format!("code=$?; printf '{mark}' $code >&4; printf '{mark}' $code >&5\n"));
    }
    text.push_str("exec 4>&- 5>&-; cat \"$1/output\"; printf '\\003\\n'; cat \"$1/errors\"\n");
    text
}

/// The answers in what such a script of so many cases has printed.
///
/// # Errors
/// When it did not come to its end.
pub(super) fn answers(printed: &str, cases: usize) -> Result<Vec<Answer>> {
    let (outputs, errors) = printed
        .split_once(BETWEEN)
        .with_context(|| format!("the script did not end: {printed:.400}"))?;
    let (outputs, errors) = (cut(outputs)?, cut(errors)?);
    ensure!(
        outputs.len() == cases && errors.len() == cases,
        "{cases} cases, and {} and {} answers",
        outputs.len(),
        errors.len()
    );
    let both = outputs.into_iter().zip(errors);
    Ok(both.map(|((output, code), (errors, _))| Answer { output, errors, code }).collect())
}

/// Texts with the exit codes behind them.
fn cut(printed: &str) -> Result<Vec<(String, i32)>> {
    let mut parts = Vec::new();
    let mut rest = printed;
    while let Some((text, behind)) = rest.split_once(&format!("\n{MARK} ")) {
        let (mark, next) = behind.split_once('\n').unwrap_or((behind, ""));
        let code = mark.split(' ').nth(1).and_then(|code| code.parse().ok());
        parts.push((text.to_owned(), code.with_context(|| format!("odd mark {mark:?}"))?));
        rest = next;
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::super::case;
    use super::*;

    #[test]
    fn output_errors_and_codes_come_back_apart_from_each_other() {
        let cases = case::read(
            "echo one; echo two >&2\nprintf none\n(exit 3)\ncat\n< 'quoted' $HOME\n<\nsh -c 'exit 255'\n",
        );
        let folder = std::env::temp_dir().join(format!("switchyard-script-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("script");
        // A list is no simple command; cases that need one say so.
        let cases: Vec<Case> = cases
            .into_iter()
            .map(|case| Case { line: format!("{{ {}; }}", case.line), ..case })
            .collect();
        std::fs::write(&file, script(&cases)).unwrap();
        let output =
            std::process::Command::new("sh").arg(&file).arg(&folder).output().unwrap().stdout;
        std::fs::remove_dir_all(&folder).unwrap();
        let answers = answers(&String::from_utf8(output).unwrap(), cases.len()).unwrap();
        let expected = [
            ("one\n", "two\n", 0),
            ("none", "", 0),
            ("", "", 3),
            ("'quoted' $HOME\n\n", "", 0),
            ("", "", 255),
        ];
        for (answer, (output, errors, code)) in answers.iter().zip(expected) {
            let found = (answer.output.as_str(), answer.errors.as_str(), answer.code);
            assert_eq!(found, (output, errors, code));
        }
        assert_eq!(answers.len(), expected.len());
    }
}

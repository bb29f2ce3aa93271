//! Every file in `wrong/` is a wrong configuration that ends with what the operator is told about
//! it, in lines that start with `#=`. `UPDATE_GOLDEN=1 cargo test -p director wrong` writes those
//! lines anew; read the difference before committing it.

use std::fs;
use std::path::{Path, PathBuf};

use super::parse;

const MARK: &str = "#=";

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/tests/wrong");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of wrong files")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

/// The text without the expectation, and the expectation.
fn split(file: &str) -> (&str, String) {
    let start = file.find(MARK).unwrap_or(file.len());
    let expected: Vec<&str> = file[start..]
        .lines()
        .map(|line| line.strip_prefix(MARK).unwrap_or(line).trim_start_matches(' '))
        .collect();
    (&file[..start], expected.join("\n"))
}

#[test]
fn an_operator_is_told_line_key_fault_and_remedy_of_every_wrong_file() {
    let files = files();
    assert!(files.len() >= 20, "golden files have gone missing");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for path in files {
        let file = fs::read_to_string(&path).expect("a golden file");
        let (text, expected) = split(&file);
        let error =
            parse(text).expect_err(&format!("{} must be refused", path.display())).to_string();
        if update {
            let lines: Vec<String> = error.lines().map(|line| format!("{MARK} {line}")).collect();
            fs::write(&path, format!("{text}{}\n", lines.join("\n"))).expect("write");
            continue;
        }
        let error: Vec<&str> = error.lines().map(str::trim_start).collect();
        assert_eq!(error.join("\n"), expected, "{}", path.display());
    }
}

#[test]
fn every_problem_names_a_line_of_the_file_and_a_remedy() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return; // the files are being written by the test above
    }
    for path in files() {
        let file = fs::read_to_string(&path).expect("a golden file");
        let (text, _) = split(&file);
        let error = parse(text).expect_err("wrong");
        assert!(!error.problems().is_empty());
        for problem in error.problems() {
            assert!((1..=text.lines().count()).contains(&problem.line), "{problem}");
            assert!(problem.column >= 1 && problem.remedy.len() > 5, "{problem}");
            assert!(!problem.what.is_empty(), "{problem}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = crate::config::load(Path::new("/nowhere/switchyard.toml")).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/nowhere/switchyard.toml"), "{text}");
    assert!(error.problems().is_empty());
}

#[test]
fn what_is_no_file_is_refused_and_nobody_waits_for_who_writes_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let said = crate::config::load(&pipe).unwrap_err().to_string();
    assert!(said.contains("pipe: it is not a file"), "{said}");
}

#[test]
fn a_name_that_would_steer_a_terminal_is_no_interface() {
    let said = parse("interfaces = [\"\\u001b[31mx\"]").unwrap_err().to_string();
    assert!(said.contains("cannot be the name of an interface"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

//! The tutorial's commands, run as they stand in its text.
//!
//! Every block that is marked `sh` is run, in order and by one shell; a block marked `text` right after
//! it is what it prints, where `…` stands for anything within a line. The shell has network, mounts and
//! processes of its own, so that what the text puts into `/etc` and `/run` is nobody else's.

use std::path::Path;
use std::process::{Command, Stdio};

use integration::programs;

use crate::bed::can_run;

/// A block of commands, and what it should print.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// Where it begins in the text, from 1 on.
    line: usize,
    commands: String,
    printed: Option<String>,
}

/// Printed between two blocks.
const MARK: &str = "@@ next block";

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut just_after = false;
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.trim_start().strip_prefix("```") else {
            just_after &= line.trim().is_empty();
            continue;
        };
        let body: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| !line.trim_start().starts_with("```"))
            .collect();
        let body = body.join("\n") + "\n";
        match (kind.trim(), blocks.last_mut()) {
            ("sh", _) => {
                blocks.push(Block { line: number + 1, commands: body, printed: None });
                just_after = true;
                continue;
            }
            ("text", Some(block)) if just_after => block.printed = Some(body),
            _ => {}
        }
        just_after = false;
    }
    blocks
}

/// Whether a line is as the text has it.
fn is_as(line: &str, wanted: &str) -> bool {
    let mut parts = wanted.trim_end().split('…');
    let Some(mut rest) = line.trim_end().strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Where output and text part, if they do.
fn difference(printed: &str, wanted: &str) -> Option<String> {
    let (printed, wanted): (Vec<_>, Vec<_>) =
        (printed.trim_end().lines().collect(), wanted.trim_end().lines().collect());
    let alike =
        printed.iter().zip(&wanted).take_while(|(line, wanted)| is_as(line, wanted)).count();
    if alike == printed.len() && alike == wanted.len() {
        return None;
    }
    let at = |lines: &[&str]| lines.get(alike).copied().unwrap_or("(the end)").to_owned();
    Some(format!("line {}: printed {:?}, the text has {:?}", alike + 1, at(&printed), at(&wanted)))
}

/// What the shell does before the first block: an `/etc/switchyard`, a `/run` and a folder to work in
/// that are its own.
const BEFORE: &str = "set -e\n\
    mount --make-rprivate /\n\
    mount -t tmpfs tmpfs /run\n\
    mkdir -p /run/netns /run/etc /run/home /etc/switchyard\n\
    mount --bind /run/etc /etc/switchyard\n\
    cd /run/home\n";

#[test]
fn the_tutorial_can_be_followed_to_the_letter() {
    if !can_run() {
        return;
    }
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tutorial.md");
    let blocks = blocks(&std::fs::read_to_string(text).unwrap());
    assert!(blocks.len() > 5, "the tutorial has lost its commands");
    let mut script = BEFORE.to_owned();
    for block in &blocks {
        script += &format!("echo '{MARK}'\n{}", block.commands);
    }
    script += &format!("echo '{MARK}'\n");
    let folder = programs::path("director").unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}:/usr/sbin:/sbin", folder.parent().unwrap().display());
    let child = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["timeout", "--kill-after", "5", "240", "bash", "-c", &script])
        .env("PATH", path)
        .env_remove("SWITCHYARD_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let parts: Vec<&str> = printed.split(&format!("{MARK}\n")).collect();
    let reached = parts.len().saturating_sub(2);
    if let Some(stopped) = blocks.get(reached) {
        let said = parts.last().unwrap_or(&"");
        panic!(
            "the block in line {} of the tutorial fails:\n{}\nprinted:\n{said}\n{errors}",
            stopped.line, stopped.commands
        );
    }
    for (block, printed) in blocks.iter().zip(&parts[1..]) {
        let Some(wanted) = &block.printed else { continue };
        if let Some(difference) = difference(printed, wanted) {
            panic!(
                "after line {} of the tutorial, {difference}; all of it:\n{printed}",
                block.line
            );
        }
    }
}

#[test]
fn quick_what_follows_commands_is_their_output() {
    let text = "a\n```sh\nls\n```\n\n```text\nx\n```\n```sh\ntrue\n```\nb\n```text\ny\n```\n";
    let wanted = [
        Block { line: 2, commands: "ls\n".to_owned(), printed: Some("x\n".to_owned()) },
        Block { line: 9, commands: "true\n".to_owned(), printed: None },
    ];
    assert_eq!(blocks(text), wanted);
}

#[test]
fn quick_an_ellipsis_stands_for_anything_and_nothing_else_does() {
    assert!(is_as("up 3 s, load 5", "up … s, load …"));
    assert!(is_as("  a", "  a") && is_as("abc", "a…c") && is_as("ac", "a…c"));
    assert!(!is_as("up 3 m, load 5", "up … s, load …") && !is_as("ab", "a") && !is_as("b", "a…"));
    assert!(difference("a\nb\n", "a\nb").is_none() && difference("a\n", "a\nb\n").is_some());
}

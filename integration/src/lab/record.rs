//! Who owns which lab: one small file per lab in `/run/switchyard-lab`, so that a later run can
//! remove what a killed process left behind.
//!
//! A line is `owner <pid> <start time>`, `child <pid> <start time>` or `name <word>`. The start
//! time (field 22 of `/proc/<pid>/stat`) tells a process from a later one with the same number.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::namespace;

const FOLDER: &str = "/run/switchyard-lab";

/// What the names of a lab's namespaces begin with.
pub(super) fn namespace_prefix(tag: &str) -> String {
    format!("sy-{tag}")
}

/// The record of a lab that is alive.
#[derive(Clone, Debug)]
pub(super) struct Record {
    tag: String,
}

impl Record {
    /// Takes a random tag that no other lab of this machine has.
    pub(super) fn create(name: &str) -> Result<Record> {
        fs::create_dir_all(FOLDER).with_context(|| format!("create {FOLDER}"))?;
        let start = start_time(std::process::id()).context("read /proc/self/stat")?;
        let text = format!("owner {} {start}\nname {name}\n", std::process::id());
        loop {
            let random = RandomState::new().build_hasher().finish();
            let tag = format!("{:06x}", random & 0xff_ffff);
            // Linked into place whole: a sweep never sees a record without its owner.
            let draft = Path::new(FOLDER).join(format!(".{tag}.{}", std::process::id()));
            fs::write(&draft, &text).with_context(|| format!("write {}", draft.display()))?;
            let linked = fs::hard_link(&draft, path(&tag));
            fs::remove_file(&draft).with_context(|| format!("remove {}", draft.display()))?;
            match linked {
                Ok(()) => return Ok(Record { tag }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("write in {FOLDER}")),
            }
        }
    }

    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    /// Notes a process that was started in the lab.
    pub(super) fn child(&self, pid: u32) -> Result<()> {
        let Some(start) = start_time(pid) else {
            return Ok(()); // It has ended already.
        };
        let mut file = OpenOptions::new()
            .append(true)
            .open(path(&self.tag))
            .with_context(|| format!("open the record of lab {}", self.tag))?;
        writeln!(file, "child {pid} {start}").context("write to the record")
    }

    pub(super) fn remove(&self) {
        let _ = fs::remove_file(path(&self.tag));
    }
}

/// Removes namespaces, processes and logs of labs whose owner has died without cleaning up, and
/// returns their tags. Labs of living processes are not touched.
///
/// # Errors
/// When `/run/switchyard-lab` exists and cannot be read.
pub fn sweep() -> Result<Vec<String>> {
    let entries = match fs::read_dir(FOLDER) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("read {FOLDER}")),
    };
    let mut swept = Vec::new();
    for entry in entries {
        let Ok(tag) = entry.context("read a record")?.file_name().into_string() else {
            continue;
        };
        if tag.starts_with('.') {
            continue;
        }
        // Gone since we listed it: its owner has removed it.
        let Ok(text) = fs::read_to_string(path(&tag)) else {
            continue;
        };
        let processes = parse(&text);
        if processes.iter().any(|entry| entry.owner && entry.alive()) {
            continue;
        }
        for child in processes.iter().filter(|entry| !entry.owner && entry.alive()) {
            let _ = kill(Pid::from_raw(child.pid.cast_signed()), Signal::SIGKILL);
        }
        for name in namespace::names(&format!("{}-", namespace_prefix(&tag))) {
            namespace::remove(&name);
        }
        let _ = fs::remove_dir_all(std::env::temp_dir().join(format!("switchyard-lab-{tag}")));
        let _ = fs::remove_file(path(&tag));
        swept.push(tag);
    }
    Ok(swept)
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    owner: bool,
    pid: u32,
    start: u64,
}

impl Entry {
    fn alive(&self) -> bool {
        start_time(self.pid) == Some(self.start)
    }
}

/// The processes of a record. A torn last line (the owner died while writing) is skipped.
fn parse(text: &str) -> Vec<Entry> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let owner = match words.next()? {
                "owner" => true,
                "child" => false,
                _ => return None,
            };
            Some(Entry {
                owner,
                pid: words.next()?.parse().ok()?,
                start: words.next()?.parse().ok()?,
            })
        })
        .collect()
}

fn path(tag: &str) -> PathBuf {
    Path::new(FOLDER).join(tag)
}

/// When a process started, in clock ticks since boot. `None` when there is no such process, or
/// only its zombie.
fn start_time(pid: u32) -> Option<u64> {
    let stat = io::read_to_string(File::open(format!("/proc/{pid}/stat")).ok()?).ok()?;
    // The second field is the program's name in parentheses and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_a_later_one_of_the_same_number_is_not_it() {
        let pid = std::process::id();
        let start = start_time(pid).unwrap();
        let own = |start| Entry { owner: true, pid, start };
        assert!(own(start).alive());
        assert!(!own(start + 1).alive());
    }

    #[test]
    fn a_torn_last_line_does_not_hide_the_owner() {
        let entries = parse("owner 17 4711\nname nat v4\nchild 18 4712\nchild 1");
        let expected = [
            Entry { owner: true, pid: 17, start: 4711 },
            Entry { owner: false, pid: 18, start: 4712 },
        ];
        assert_eq!(entries, expected);
    }
}

//! `command` of an exec check.

use super::super::fields::Fields;
use super::super::problem::Report;

const EXAMPLE: &str = "command = [\"/usr/local/bin/check\", \"argument\"]";

/// Most words of a command, and bytes of each.
const MOST: usize = 64;
const LONGEST: usize = 4096;

/// The command and its arguments, at least one word.
pub(super) fn command(table: &Fields<'_>, report: &mut Report<'_>) -> Option<Vec<String>> {
    let Some(field) = table.get("command") else {
        table.missing("command", format!("add {EXAMPLE}"), report);
        return None;
    };
    let items = field.items(EXAMPLE, report)?;
    if items.is_empty() || items.len() > MOST {
        let what = format!("{} words are no command", items.len());
        field.wrong(what, format!("write {EXAMPLE}, 1 to {MOST} words"), report);
        return None;
    }
    let mut words = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let word = item.text("text in quotes, numbers too", report)?;
        if place == 0 && !word.starts_with('/') {
            // No shell and no search: what runs is what stands there.
            let what = format!("{word:?} is not an absolute path");
            item.wrong(what, format!("write {EXAMPLE}"), report);
        }
        if word.contains('\0') || word.len() > LONGEST {
            let remedy = format!("give at most {LONGEST} bytes, none of them 0");
            item.wrong("cannot be given to a command", remedy, report);
        }
        words.push(word.to_owned());
    }
    Some(words)
}

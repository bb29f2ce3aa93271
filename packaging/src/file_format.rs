//! The manual page of the configuration file, `switchyard.toml(5)`: the reference that the parser goes
//! by, as a page.

use director::config::reference::{TABLES, Table};
use realserver_agent::settings::key::KeySpec;

use crate::manual::escaped;

/// The page's name.
pub const NAME: &str = "switchyard.toml.5";

const HEAD: &str = r#".SH NAME
switchyard.toml \- configuration of the director, of the nodes of mode "nlb", and of realserver\-agent
.SH SYNOPSIS
/etc/switchyard/switchyard.toml
.SH DESCRIPTION
One TOML file describes a Switchyard cluster. The same file lies on the director and on every real server.
A file with anything wrong in it is not used at all: \fBdirector check\fR(8) tells everything that is wrong, each with
line, key and remedy, and \fBdirctl plan\fR(8) what another file would change.
.PP
Times are a whole number with a unit, "500ms", "90s", "15m", "2h", "1d", or a plain number of seconds. Shares are a number with
a percent sign in quotes. Addresses are written as numbers; names are not looked up.
.PP
What is said to stand below or above, and examples of everything, are in the page that has these tables too:
/usr/share/doc/switchyard/docs/configuration.md.
.SH EXAMPLES
The smallest useful file:
.PP
.nf
interfaces = ["eth0"]

[[service]]
listen = "192.0.2.10:80/tcp"
forwarding = "nat"

    [[service.server]]
    address = "10.0.0.11"

    [[service.server]]
    address = "10.0.0.12"
.fi
"#;

const FOOT: &str = r#".SH FILES
/usr/share/doc/switchyard/examples has a file for each way to forward.
.SH "SEE ALSO"
\fBdirector\fR(8),
\fBdirctl\fR(8),
\fBrealserver\-agent\fR(8)
"#;

/// The page.
pub fn page() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page =
        format!(".TH SWITCHYARD.TOML 5 \"\" \"Switchyard {version}\" Switchyard\n{HEAD}");
    TABLES.iter().for_each(|table| add(table, &mut page));
    page + FOOT
}

fn add(table: &Table, page: &mut String) {
    let heading = match table.path {
        "" => "AT THE TOP OF THE FILE",
        path => path,
    };
    *page += &format!(".SH \"{}\"\n", escaped(heading));
    for (of, key) in table.rows() {
        let KeySpec { name, kind, default, does, .. } = key;
        let of = if of.is_empty() { String::new() } else { format!(" (type {of})") };
        let values = match key.values().as_str() {
            "" => String::new(),
            values => format!("; {values}"),
        };
        let default = match *default {
            "required" => "required".to_owned(),
            default => format!("default: {default}"),
        };
        let head = escaped(&format!("`{name}`{of}: {kind}{values}; {default}"));
        // The dot of a sentence that ends with one of its own is not doubled.
        let does = escaped(does.trim_end_matches('.'));
        *page += &format!(".TP\n{}\n{}.\n", plain(&head), plain(&does));
    }
}

/// Markdown of one line as the formatter has it: code is bold, and of a link the words stay.
fn plain(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((_, after)) = after.split_once(')') else { break };
        let (before, link) = before.rsplit_once('[').unwrap_or((before, ""));
        // `[`[health]`](#health)`: a bracket within the words.
        let (before, bracket) = match before.strip_suffix("[`") {
            Some(before) => (before, "`["),
            None => (before, ""),
        };
        words += &format!("{before}{bracket}{link}");
        rest = after;
    }
    words += rest;
    let mut parts = words.split('`');
    let mut page = parts.next().unwrap_or_default().to_owned();
    for (place, part) in parts.enumerate() {
        page += if place % 2 == 0 { "\\fB" } else { "\\fR" };
        page += part;
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn markdown_becomes_bold_words_and_links_keep_theirs() {
        for (text, expected) in [
            ("a `b` c", "a \\fBb\\fR c"),
            ("see [below](#there), and [more](x.md)", "see below, and more"),
            ("see [`[health]`](#health)", "see \\fB[health]\\fR"),
            ("as in `[200, 1]`", "as in \\fB[200, 1]\\fR"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn every_key_is_on_the_page_and_the_formatter_takes_every_line() {
        let page = page();
        for (_, key) in TABLES.iter().flat_map(Table::rows) {
            assert!(page.contains(&format!(".TP\n\\fB{}\\fR", key.name)), "{}", key.name);
        }
        // Where there is no groff the formatter is not asked.
        let mut groff = Command::new("groff");
        groff.args(["-man", "-Tutf8", "-ww", "-z"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let Ok(mut groff) = groff.spawn() else { return };
        groff.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let said = groff.wait_with_output().unwrap();
        assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    }
}

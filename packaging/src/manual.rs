//! A manual page of a command line: clap_mangen's sections, and the examples and tables that stand
//! below a command's help, which must keep their lines.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;

/// The section of the manual: commands of the system's administrator.
const SECTION: &str = "8";

/// Pages of the command and of all its subcommands, each with its name: `dirctl-nlb-query.8`.
///
/// # Errors
/// None that a vector could have; those of writing.
pub fn pages(command: Command) -> io::Result<Vec<(String, String)>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, &[], &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, above: &[String], pages: &mut Vec<(String, String)>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .section(SECTION)
        .source(format!("Switchyard {}", env!("CARGO_PKG_VERSION")))
        .manual("Switchyard");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    let below: Vec<&Command> =
        command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    if !below.is_empty() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        as_it_stands(&text.to_string(), &mut page)?;
    }
    see_also(&below, &name, above, &mut page)?;
    let text = String::from_utf8(page).map_err(io::Error::other)?;
    pages.push((format!("{name}.{SECTION}"), text));
    let above = [above, &[name]].concat();
    below.iter().try_for_each(|command| add(command, &above, pages))
}

/// Lines that end with a colon at the margin are headings; everything else keeps its lines.
fn as_it_stands(text: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let mut heading = None;
    let mut body: Vec<&str> = Vec::new();
    for line in text.lines() {
        match line.strip_suffix(':') {
            Some(title) if !line.starts_with(' ') && title.split(' ').count() <= 3 => {
                section(heading, &body, page)?;
                heading = Some(title);
                body.clear();
            }
            _ => body.push(line),
        }
    }
    section(heading, &body, page)
}

fn section(heading: Option<&str>, body: &[&str], page: &mut Vec<u8>) -> io::Result<()> {
    let from = body.iter().position(|line| !line.trim().is_empty());
    let to = body.iter().rposition(|line| !line.trim().is_empty());
    let (Some(from), Some(to)) = (from, to) else { return Ok(()) };
    writeln!(page, ".SH {}\n.nf", heading.unwrap_or("Notes").to_uppercase())?;
    for line in &body[from..=to] {
        writeln!(page, "{}", escaped(line))?;
    }
    writeln!(page, ".fi")
}

pub(crate) fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    // A line that begins with one of these would be a request.
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

fn see_also(below: &[&Command], own: &str, above: &[String], page: &mut Vec<u8>) -> io::Result<()> {
    let programs = ["director", "dirctl", "ipvsadm", "realserver-agent"];
    let others =
        programs.into_iter().filter(|&name| name != own && !above.iter().any(|it| it == name));
    let mut names: Vec<String> = above.to_vec();
    names.extend(below.iter().map(|command| format!("{own}-{}", command.get_name())));
    names.extend(others.map(str::to_owned));
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("\\fB{}\\fR({SECTION})", name.replace('-', "\\-")))
        .collect();
    writeln!(page, ".SH \"SEE ALSO\"\n{}", names.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn page(after: &'static str) -> String {
        let command = Command::new("tool").about("Does it").after_help(after);
        pages(command).unwrap().remove(0).1
    }

    #[test]
    fn examples_keep_their_lines_and_exit_codes_are_a_section() {
        let page = page("A note\n\nExamples:\n  tool -x\n  tool .\n\nExit codes:\n  0  good");
        assert!(page.contains(".SH NOTES\n.nf\nA note\n.fi\n"), "{page}");
        assert!(page.contains(".SH EXAMPLES\n.nf\n  tool \\-x\n  tool .\n.fi\n"), "{page}");
        assert!(page.contains(".SH EXIT CODES\n.nf\n  0  good\n.fi\n"), "{page}");
    }

    #[test]
    fn no_text_becomes_a_request_of_the_formatter() {
        let page = page("Examples:\n.so /etc/passwd\n'br\na\\nb");
        assert!(page.contains("\n\\&.so /etc/passwd\n\\&'br\na\\enb\n"), "{page}");
    }

    #[test]
    fn every_subcommand_has_a_page_and_hidden_ones_have_none() {
        let query = Command::new("query").arg(Arg::new("host").long("host"));
        let command = Command::new("tool")
            .subcommand(Command::new("nlb").subcommand(query))
            .subcommand(Command::new("secret").hide(true));
        let names: Vec<_> = pages(command).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["tool.8", "tool-nlb.8", "tool-nlb-query.8"]);
    }
}

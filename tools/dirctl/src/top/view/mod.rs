//! A frame: a pure function from what is known to lines. The screen shows them and `--batch` prints
//! them, so both say the same. Whatever comes from outside is cleaned where it becomes text.

mod head;
mod node;
mod panels;
mod services;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::keys::KEYS;
use super::numbers::fit;
use super::state::{Page, Top};

/// The smallest screen that shows something sensible: columns, lines.
pub const NEEDED: (u16, u16) = (80, 16);

/// A frame in exactly `height` lines, none longer than `width` columns. `usize::MAX`: as many lines as
/// there are things to show.
pub fn lines(top: &Top, width: usize, height: usize) -> Vec<Line<'static>> {
    let bound = height != usize::MAX;
    if bound && (width < NEEDED.0.into() || height < NEEDED.1.into()) {
        let (columns, rows) = NEEDED;
        let text = format!("needs {columns}x{rows}, this is {width}x{height}");
        return vec![Line::from(text.chars().take(width).collect::<String>())];
    }
    let mut lines = head::lines(top, width);
    let mut below = if top.help { vec![] } else { panels::below(top, width, height) };
    let room = middle(height, lines.len(), below.len());
    lines.extend(match (&top.snapshot, top.page) {
        _ if top.help => help(),
        (None, _) => vec![],
        (Some(snapshot), Page::Drops) => panels::fates(top, snapshot, width, room),
        (Some(snapshot), Page::Ports) => panels::ports(top, snapshot, room),
        (Some(snapshot), Page::Services) => match &snapshot.node {
            Some(node) => node::lines(top, node, width, room),
            None => services::lines(top, width, room),
        },
    });
    if bound {
        lines.resize(height - below.len() - 1, Line::default());
        below.push(foot(top, width));
    } else if !below.is_empty() {
        lines.push(Line::default());
    }
    lines.extend(below);
    lines
}

/// How many rows of the table fit a screen: what a page is for the keys.
pub fn page_height(top: &Top, width: usize, height: usize) -> usize {
    let below = panels::below(top, width, height).len();
    // Its heading is none.
    middle(height, head::lines(top, width).len(), below).saturating_sub(1)
}

fn middle(height: usize, above: usize, below: usize) -> usize {
    if height == usize::MAX { height } else { height.saturating_sub(above + below + 1) }
}

fn help() -> Vec<Line<'static>> {
    let mut lines = vec![heading("Keys".to_owned())];
    lines.extend(KEYS.iter().map(|(key, does)| Line::from(format!("  {} {does}", fit(key, 33)))));
    lines
}

fn foot(top: &Top, width: usize) -> Line<'static> {
    if top.typing {
        return Line::from(format!("filter: {}_", crate::clean::clean(&top.filter)));
    }
    let mut text = "q quit  ? help  / filter  < > sort  Tab page  p pause".to_owned();
    if !top.filter.is_empty() {
        text = format!("filter: {} (Esc ends it)  ? help", crate::clean::clean(&top.filter));
    }
    let column = format!("{:?}", top.column).to_lowercase();
    let sorted = format!("by {column}{}", if top.reverse { ", reversed" } else { "" });
    let rest = width.saturating_sub(sorted.chars().count() + 1);
    Line::styled(format!("{} {sorted}", fit(&text, rest)), dim())
}

/// Rows of a page: the one in which the cursor is.
fn page_of<T>(rows: &[T], cursor: usize, room: usize) -> (usize, &[T]) {
    if rows.len() <= room || room == 0 {
        return (0, &rows[..rows.len().min(room)]);
    }
    let first = cursor / room * room;
    (first, &rows[first..rows.len().min(first + room)])
}

fn heading(text: String) -> Line<'static> {
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn span(text: String, style: Style) -> Span<'static> {
    Span::styled(text, style)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn warning() -> Style {
    Style::new().fg(Color::Yellow)
}

fn loss() -> Style {
    Style::new().fg(Color::Red)
}

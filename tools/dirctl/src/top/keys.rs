//! What the keys do. One table, which `?` also shows.

use clap::ValueEnum;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::state::{Column, Page, Top};

/// A filter is not longer than this.
const LONGEST: usize = 60;

/// Every key, and what it does.
pub const KEYS: [(&str, &str); 13] = [
    ("q, Ctrl-C", "quit"),
    ("up, down, PgUp, PgDn, Home, End", "move (also k and j)"),
    ("Enter, right, left", "show or hide the servers of a service"),
    ("e", "show or hide the servers of all services"),
    ("< >", "sort by the column to the left, to the right"),
    ("r", "sort the other way round"),
    ("/", "only what has this in its name or state"),
    ("Enter, Esc", "keep that filter; end it"),
    ("Tab", "services, drops by reason, ports"),
    ("d", "drops by reason"),
    ("o", "ports"),
    ("p, Space", "pause: the view stands still"),
    ("?, h", "this help"),
];

/// What is to happen after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Draw again.
    Draw,
    /// End.
    Quit,
}

/// Does what a key says. Others do nothing.
pub fn press(top: &mut Top, key: KeyEvent) -> After {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { After::Quit } else { After::Draw };
    }
    if top.typing {
        type_filter(top, key.code);
        return After::Draw;
    }
    let page = isize::try_from(top.page_height.max(1)).unwrap_or(1);
    match key.code {
        KeyCode::Char('q') => return After::Quit,
        KeyCode::Char('?' | 'h') => top.help = !top.help,
        KeyCode::Esc if top.help => top.help = false,
        KeyCode::Esc => filter(top, String::new()),
        KeyCode::Char('/') => {
            top.typing = true;
            top.turn(Page::Services);
        }
        KeyCode::Char('p' | ' ') => top.paused = !top.paused,
        KeyCode::Char('e') => top.toggle_all(),
        KeyCode::Enter => top.open(None),
        KeyCode::Right | KeyCode::Char('l') => top.open(Some(true)),
        KeyCode::Left => top.open(Some(false)),
        KeyCode::Char('<' | ',') => sort(top, -1),
        KeyCode::Char('>' | '.') => sort(top, 1),
        KeyCode::Char('r') => {
            top.reverse = !top.reverse;
            top.follow();
        }
        KeyCode::Tab => top.turn(match top.page {
            Page::Services => Page::Drops,
            Page::Drops => Page::Ports,
            Page::Ports => Page::Services,
        }),
        KeyCode::Char('d') => turn(top, Page::Drops),
        KeyCode::Char('o') => turn(top, Page::Ports),
        KeyCode::Up | KeyCode::Char('k') => top.walk(-1),
        KeyCode::Down | KeyCode::Char('j') => top.walk(1),
        KeyCode::PageUp => top.walk(-page),
        KeyCode::PageDown => top.walk(page),
        KeyCode::Home => top.walk(isize::MIN),
        KeyCode::End => top.walk(isize::MAX),
        _ => {}
    }
    After::Draw
}

/// To a page, and back again.
fn turn(top: &mut Top, page: Page) {
    top.turn(if top.page == page { Page::Services } else { page });
}

fn type_filter(top: &mut Top, code: KeyCode) {
    match code {
        KeyCode::Enter => top.typing = false,
        KeyCode::Esc => {
            top.typing = false;
            filter(top, String::new());
        }
        KeyCode::Backspace => {
            let mut text = top.filter.clone();
            text.pop();
            filter(top, text);
        }
        KeyCode::Char(letter) if !letter.is_control() && top.filter.chars().count() < LONGEST => {
            filter(top, format!("{}{letter}", top.filter));
        }
        _ => {}
    }
}

fn filter(top: &mut Top, text: String) {
    top.filter = text;
    top.follow();
}

fn sort(top: &mut Top, step: isize) {
    let columns = Column::value_variants();
    let place = columns.iter().position(|column| *column == top.column).unwrap_or_default();
    let place = (place + columns.len()).saturating_add_signed(step) % columns.len();
    top.column = columns[place];
    top.follow();
}

//! What is shown, and how: the latest answer, and what the keys have made of the view. Neither
//! terminal nor clock: answers and keys come in, [`super::view`] draws.

use std::collections::HashSet;

use clap::ValueEnum;
use director::control::api::ServiceKey;

use super::rates::{Id, Meter, fates};
use super::rows::{self, Row};
use super::snapshot::Snapshot;

/// Services up to so many are shown with their servers from the beginning.
const FEW: usize = 20;

/// What fills the middle of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// Services and servers; in mode nlb hosts and port rules.
    #[default]
    Services,
    /// What packets have met.
    Drops,
    /// Packet ports.
    Ports,
}

/// What rows are sorted by. Numbers begin with the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Column {
    /// As the director lists them
    #[default]
    Order,
    /// Name or address
    Name,
    /// Down first
    State,
    /// Weight in effect
    Weight,
    /// Active connections
    Active,
    /// Inactive connections
    Inactive,
    /// Connections per second
    Cps,
    /// Packets per second from clients
    InPps,
    /// Packets per second to clients
    OutPps,
    /// Bits per second from clients
    InBps,
    /// Bits per second to clients
    OutBps,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Top {
    /// The latest answer.
    pub snapshot: Option<Snapshot>,
    /// Rates.
    pub meter: Meter,
    /// Why there is no newer one, and for how many attempts.
    pub trouble: Option<(String, u32)>,
    /// What the middle shows.
    pub page: Page,
    /// Sorted by.
    pub column: Column,
    /// The other way round.
    pub reverse: bool,
    /// Only what has this in its name, address or state.
    pub filter: String,
    /// Whether keys go into the filter.
    pub typing: bool,
    /// Whether the view stands still.
    pub paused: bool,
    /// Whether the keys are explained.
    pub help: bool,
    /// Whether services are shown with servers; nothing as long as that goes by how many there are.
    pub expanded: Option<bool>,
    /// Services that are shown the other way.
    pub toggled: HashSet<ServiceKey>,
    /// The line of the cursor, and what stands there.
    pub cursor: usize,
    /// See there.
    pub chosen: Option<Id>,
    /// How many lines a page has: what PgDn goes by. The screen says so.
    pub page_height: usize,
}

impl Top {
    /// A new answer, or why there is none.
    pub fn take(&mut self, answer: Result<Snapshot, String>) {
        match answer {
            Err(reason) => {
                let attempts = self.trouble.as_ref().map_or(0, |(_, attempts)| *attempts);
                self.trouble = Some((reason, attempts.saturating_add(1)));
            }
            Ok(snapshot) => {
                self.trouble = None;
                if self.paused {
                    return;
                }
                let before = self.snapshot.as_ref().filter(|before| is_same(before, &snapshot));
                self.meter.read(before, &snapshot);
                self.snapshot = Some(snapshot);
                self.follow();
            }
        }
    }

    /// Whether a service is shown with its servers.
    pub fn is_expanded(&self, service: &ServiceKey) -> bool {
        self.expands_all() ^ self.toggled.contains(service)
    }

    fn expands_all(&self) -> bool {
        let services = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.services.len());
        self.expanded.unwrap_or(services <= FEW)
    }

    /// All services the other way.
    pub(super) fn toggle_all(&mut self) {
        self.expanded = Some(!self.expands_all());
        self.toggled.clear();
        self.follow();
    }

    /// The service of the cursor: open, closed, or the other way.
    pub(super) fn open(&mut self, wanted: Option<bool>) {
        let Some((service, _)) = self.chosen else { return };
        let now = self.is_expanded(&service);
        if wanted.unwrap_or(!now) == now {
            return;
        }
        // Fixed from here on: services that come or go do not turn others round.
        self.expanded = Some(self.expands_all());
        if !self.toggled.remove(&service) {
            self.toggled.insert(service);
        }
        if now {
            self.chosen = Some((service, None));
        }
        self.follow();
    }

    /// The cursor goes so many lines down, or up.
    pub(super) fn walk(&mut self, lines: isize) {
        let rows: Vec<Id> = self.rows().iter().map(Row::id).collect();
        let there = if self.page == Page::Services { rows.len() } else { self.lines() };
        let last = there.saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(lines).min(last);
        if self.page == Page::Services {
            self.chosen = rows.get(self.cursor).copied();
        }
    }

    /// The cursor stays with what it stands on, or else where it is.
    pub(super) fn follow(&mut self) {
        if self.page != Page::Services {
            return;
        }
        let rows: Vec<Id> = self.rows().iter().map(Row::id).collect();
        let place = self.chosen.and_then(|chosen| rows.iter().position(|id| *id == chosen));
        self.cursor = place.unwrap_or(self.cursor).min(rows.len().saturating_sub(1));
        self.chosen = rows.get(self.cursor).copied();
    }

    /// To another page, from its first line; on the first page to where the cursor was.
    pub(super) fn turn(&mut self, page: Page) {
        self.page = page;
        self.cursor = 0;
        self.follow();
    }

    /// How many lines the other pages have.
    fn lines(&self) -> usize {
        let Some(snapshot) = &self.snapshot else { return 0 };
        match self.page {
            Page::Services => 0,
            Page::Drops => fates(snapshot).count(),
            Page::Ports => snapshot.status.ports.len(),
        }
    }

    /// What the middle shows of services and servers.
    pub fn rows(&self) -> Vec<Row<'_>> {
        self.snapshot.as_ref().map(|snapshot| rows::rows(self, snapshot)).unwrap_or_default()
    }
}

/// Whether two answers are of one process: another one has counted from 0.
fn is_same(before: &Snapshot, now: &Snapshot) -> bool {
    before.status.pid == now.status.pid && before.status.uptime <= now.status.uptime
}

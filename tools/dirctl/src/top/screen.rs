//! The terminal: who asks, who reads keys, and who draws. It is left as it was found whatever ends the
//! view: a key, a signal, or a defect (ratatui's panic hook).

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use director::control::ClientError;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::terminal::{disable_raw_mode, size};
use ratatui::text::Text;
use tokio::signal::unix::{SignalKind, signal};

use super::keys::{After, press};
use super::snapshot::Snapshot;
use super::state::Top;
use super::view;
use crate::outlet::{CANNOT_ASK, USAGE};

/// How long a signal waits for the view to end.
const STUBBORN: Duration = Duration::from_secs(2);

/// What the drawing thread waits for.
enum News {
    /// An answer.
    Answer(Box<Result<Snapshot, ClientError>>),
    /// A key, or another size.
    Input(Event),
    /// Time to end: a signal.
    End,
    /// One of the other threads has ended, which none of them should.
    Broken(&'static str),
}

/// Shows the view until it is ended; gives the exit code.
pub(super) fn show(socket: &Path, interval: Duration, mut top: Top) -> u8 {
    // Answers wait for a terminal that takes its time; they do not pile up.
    let (sender, news) = sync_channel(8);
    let begun = can_be_drawn().and_then(|()| prepare(&sender)).and_then(|()| ratatui::try_init());
    let terminal = match begun {
        Ok(terminal) => terminal,
        Err(error) => {
            let _ = writeln!(io::stderr(), "dirctl: top cannot use this terminal: {error}");
            return USAGE;
        }
    };
    start("keys", &sender, read_keys);
    let socket = PathBuf::from(socket);
    start("answers", &sender, move |sender| ask(&socket, interval, sender));
    let outcome = follow(terminal, &news, &mut top);
    // A terminal that is gone need not be restored.
    let _ = ratatui::try_restore();
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "dirctl: top ends: {error}");
            CANNOT_ASK
        }
    }
}

/// Cells of a terminal at most: every one of them is kept in memory, twice.
const MOST_CELLS: u32 = 4_000_000;

fn can_be_drawn() -> io::Result<()> {
    let (width, height) = size()?;
    if u32::from(width).saturating_mul(height.into()) > MOST_CELLS {
        let message =
            format!("it says that it has {width} columns and {height} lines: make it smaller");
        return Err(io::Error::other(message));
    }
    Ok(())
}

/// Draws after all that comes, until something ends it.
fn follow(mut terminal: DefaultTerminal, news: &Receiver<News>, top: &mut Top) -> io::Result<()> {
    loop {
        can_be_drawn()?;
        terminal.draw(|frame| {
            let area = frame.area();
            let (width, height) = (area.width.into(), area.height.into());
            top.page_height = view::page_height(top, width, height);
            frame.render_widget(Text::from(view::lines(top, width, height)), area);
        })?;
        match news.recv() {
            Ok(News::Answer(answer)) => top.take(answer.map_err(|error| error.to_string())),
            Ok(News::Input(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                if press(top, key) == After::Quit {
                    return Ok(());
                }
            }
            // Drawing looks at the size itself.
            Ok(News::Input(_)) => {}
            Ok(News::End) => return Ok(()),
            Ok(News::Broken(who)) => return Err(io::Error::other(format!("no more {who}"))),
            Err(_) => return Err(io::Error::other("nothing is left to show")),
        }
    }
}

/// Signals are caught before the terminal is changed.
fn prepare(sender: &SyncSender<News>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        let kinds = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::quit(),
        ];
        kinds.map(signal).into_iter().collect::<io::Result<Vec<_>>>()?
    };
    start("signals", sender, move |sender| {
        runtime.block_on(async {
            if let [terminate, hangup, interrupt, quit] = signals.as_mut_slice() {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                    _ = interrupt.recv() => {}
                    _ = quit.recv() => {}
                }
            }
        });
        // A terminal that takes nothing more must not keep a process that was told to end.
        let stubborn = Instant::now() + STUBBORN;
        let mut told = false;
        while Instant::now() < stubborn {
            told = told || sender.try_send(News::End).is_ok();
            std::thread::sleep(STUBBORN / 40);
        }
        let _ = disable_raw_mode();
        std::process::exit(CANNOT_ASK.into());
    });
    Ok(())
}

fn read_keys(sender: &SyncSender<News>) {
    while let Ok(event) = event::read() {
        if sender.send(News::Input(event)).is_err() {
            return;
        }
    }
}

/// Asks again and again, whether or not there is an answer.
fn ask(socket: &Path, interval: Duration, sender: &SyncSender<News>) {
    let began = Instant::now();
    loop {
        let answer = Snapshot::ask(socket, began.elapsed());
        if sender.send(News::Answer(Box::new(answer))).is_err() {
            return;
        }
        std::thread::sleep(interval);
    }
}

/// A thread that says so when it ends, for whatever reason.
fn start(
    name: &'static str,
    sender: &SyncSender<News>,
    work: impl FnOnce(&SyncSender<News>) + Send + 'static,
) {
    let farewell = Farewell(name, sender.clone());
    std::thread::spawn(move || work(&farewell.1));
}

struct Farewell(&'static str, SyncSender<News>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.1.send(News::Broken(self.0));
    }
}

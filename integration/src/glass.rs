//! A terminal of a test's own: what a program draws on it can be read as a person would see it, and keys
//! go the other way. It understands as much of the language of terminals as programs here speak.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, ttyname};

/// A program on a terminal.
#[derive(Debug)]
pub struct Glass {
    child: Child,
    keys: File,
    /// Kept, so that what it is set to can be asked for after the program has ended.
    device: PathBuf,
    _slave: OwnedFd,
    /// How it was set before the program began.
    settings: String,
    screen: Arc<Mutex<Screen>>,
}

impl Glass {
    /// Starts a program on a new terminal of `columns` x `rows`, of which it is the only one.
    ///
    /// # Errors
    /// When there is no terminal, or no such program (`setsid` and `stty` among them).
    pub fn start(command: &[&str], columns: usize, rows: usize) -> Result<Glass> {
        let OpenptyResult { master, slave } = openpty(None, None)?;
        let device = ttyname(&slave)?;
        resize(&device, columns, rows)?;
        let settings = settings(&device)?;
        let half = || slave.try_clone().map(Stdio::from);
        // A session of its own, or else the terminal of who runs the test would be asked for its size.
        let child = Command::new("setsid")
            .arg("--ctty")
            .args(command)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(half()?)
            .stdout(half()?)
            .stderr(half()?)
            .spawn()
            .context("setsid")?;
        let screen = Arc::new(Mutex::new(Screen::new(columns, rows)));
        let mut output = File::from(master.try_clone()?);
        let seen = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                seen.lock().unwrap_or_else(PoisonError::into_inner).show(&piece[..length]);
            }
        });
        Ok(Glass { child, keys: File::from(master), device, _slave: slave, settings, screen })
    }

    /// Presses keys, as the bytes that a terminal sends for them.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn press(&mut self, keys: &str) -> Result<()> {
        Ok(self.keys.write_all(keys.as_bytes())?)
    }

    /// Makes it another size, of which the program is told (SIGWINCH).
    ///
    /// # Errors
    /// When `stty` fails.
    pub fn resize(&mut self, columns: usize, rows: usize) -> Result<()> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).resize(columns, rows);
        resize(&self.device, columns, rows)
    }

    /// What is seen now.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Waits until what is seen is as wanted.
    ///
    /// # Errors
    /// When it is not after `limit`: the error shows what is.
    pub fn wait_until(&self, limit: Duration, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let deadline = Instant::now() + limit;
        loop {
            let text = self.text();
            if wanted(&text) {
                return Ok(text);
            }
            ensure!(Instant::now() < deadline, "the screen stays at\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends the program a signal.
    ///
    /// # Errors
    /// When it is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.child.id().try_into()?), signal)?)
    }

    /// Waits for the end of the program; its exit code.
    ///
    /// # Errors
    /// When it does not end within `limit`.
    pub fn ended(&mut self, limit: Duration) -> Result<Option<i32>> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code());
            }
            if Instant::now() >= deadline {
                bail!("the program does not end; the screen is\n{}", self.text());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Fails unless the program has left the terminal as it was.
    ///
    /// # Errors
    /// It says what is different; also when `stty` fails.
    pub fn is_restored(&self, limit: Duration) -> Result<()> {
        let now = settings(&self.device)?;
        ensure!(now == self.settings, "set to {now}, it was {}", self.settings);
        // What the program wrote last may still be on its way.
        let deadline = Instant::now() + limit;
        while self.is_taken() != [false; 2] {
            ensure!(Instant::now() < deadline, "alternate screen, hidden: {:?}", self.is_taken());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Whether a program has the whole screen to itself, and whether it hides the cursor.
    pub fn is_taken(&self) -> [bool; 2] {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        [screen.alternate, screen.hidden]
    }
}

impl Drop for Glass {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(device: &std::path::Path, columns: usize, rows: usize) -> Result<()> {
    let words = ["rows".to_owned(), rows.to_string(), "cols".to_owned(), columns.to_string()];
    stty(device, &words).map(drop)
}

fn settings(device: &std::path::Path) -> Result<String> {
    stty(device, &["-g".to_owned()])
}

fn stty(device: &std::path::Path, words: &[String]) -> Result<String> {
    let output = Command::new("stty").arg("-F").arg(device).args(words).output().context("stty")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "stty {words:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

/// What is on the glass.
#[derive(Debug)]
struct Screen {
    rows: Vec<Vec<char>>,
    /// Row and column of the cursor.
    cursor: [usize; 2],
    alternate: bool,
    hidden: bool,
    /// What has come of something that is not whole yet.
    rest: Vec<u8>,
}

impl Screen {
    fn new(columns: usize, rows: usize) -> Screen {
        let rows = vec![vec![' '; columns]; rows];
        Screen { rows, cursor: [0; 2], alternate: false, hidden: false, rest: vec![] }
    }

    fn resize(&mut self, columns: usize, rows: usize) {
        self.rows.resize(rows, vec![]);
        self.rows.iter_mut().for_each(|row| row.resize(columns, ' '));
    }

    fn text(&self) -> String {
        let lines = self.rows.iter().map(|row| row.iter().collect::<String>());
        lines.map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    fn show(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
        let bytes = std::mem::take(&mut self.rest);
        let whole = match std::str::from_utf8(&bytes) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text: Vec<char> = String::from_utf8_lossy(&bytes[..whole]).chars().collect();
        let mut place = 0;
        while place < text.len() {
            match (text[place], text.get(place + 1)) {
                ('\u{1b}', Some('[')) => {
                    let end =
                        text[place + 2..].iter().position(|letter| ('@'..='~').contains(letter));
                    let Some(end) = end.map(|end| place + 2 + end) else { break };
                    let words: String = text[place + 2..end].iter().collect();
                    self.obey(text[end], &words);
                    place = end + 1;
                }
                ('\u{1b}', None) => break,
                ('\u{1b}', Some(_)) => place += 2,
                (letter, _) => {
                    self.write(letter);
                    place += 1;
                }
            }
        }
        self.rest = text[place..].iter().collect::<String>().into_bytes();
        self.rest.extend_from_slice(&bytes[whole..]);
    }

    fn write(&mut self, letter: char) {
        let [row, column] = self.cursor;
        match letter {
            '\r' => self.cursor[1] = 0,
            '\n' => self.cursor[0] += 1,
            letter if !letter.is_control() => {
                if let Some(cell) = self.rows.get_mut(row).and_then(|row| row.get_mut(column)) {
                    *cell = letter;
                }
                self.cursor[1] += 1;
            }
            _ => {}
        }
    }

    fn obey(&mut self, command: char, words: &str) {
        let mut numbers = words.split(';').map(|word| word.parse::<usize>().unwrap_or_default());
        match (command, words) {
            ('H', _) => {
                let mut next = || numbers.next().unwrap_or_default().max(1) - 1;
                self.cursor = [next(), next()];
            }
            ('J', "2") => self.rows.iter_mut().for_each(|row| row.fill(' ')),
            ('h' | 'l', "?1049") => {
                self.alternate = command == 'h';
                self.rows.iter_mut().for_each(|row| row.fill(' '));
            }
            ('h' | 'l', "?25") => self.hidden = command == 'l',
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_pieces_is_shown_as_what_comes_at_once() {
        let all = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[2;3Ha▄\u{1b}[1mb\u{1b}[0mc\r\nd".as_bytes();
        for length in 1..all.len() {
            let mut screen = Screen::new(6, 3);
            all.chunks(length).for_each(|piece| screen.show(piece));
            assert_eq!(screen.text(), "\n  a▄bc\nd\n");
            assert!(screen.alternate && screen.hidden);
        }
    }
}

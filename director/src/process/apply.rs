//! Which file is in force: the director's own, or one that an operator has applied, which may wait to
//! be confirmed.
//!
//! ```text
//!             follow(confirm)                     settle(Confirm)
//!   settled ------------------> waiting N s ------------------------> settled, with the new file
//!      ^                           |   settle(Revert), or N s over
//!      +---------------------------+
//! ```
//!
//! Who waits is the director, not the client: no client need live, and no connection last, for what was
//! applied to be taken back. While something waits no other file is followed, neither by `follow` nor
//! by a reload; single changes (`ipvsadm`) are made, and stay when their service or server was not one
//! that the file changed. Time is an argument.
//!
//! One lock; whoever holds it may take the table's and health's, never the other way round.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::sandbox::Sandbox;
use crate::config::Config;
use crate::control::api::{Refusal, RefusalKind};
use crate::control::plan::{CONFIRM, Plan, Verdict};
use crate::health::memory::Remembered;
use crate::plan::{self, Now};
use crate::table::{Table, Undo};

/// Health, as far as a change of files concerns it.
pub(super) trait Watcher {
    /// From now on servers are watched as the file says.
    fn follow(&self, config: &Config);
    /// Which servers are not up.
    fn not_up(&self) -> Vec<Remembered>;
    /// Servers that were not, and may come back with the next file.
    fn remember(&self, servers: Vec<Remembered>);
}

/// What a change of files is made with.
pub(super) struct Scene<'a> {
    pub(super) table: &'a Table,
    pub(super) watcher: &'a dyn Watcher,
    /// What has been given up at the start, and so cannot be asked for.
    pub(super) sandbox: Sandbox,
    /// Time since start.
    pub(super) now: Duration,
}

/// A file that is to be followed.
pub(super) struct NextFile {
    /// What it is called.
    pub(super) file: String,
    pub(super) config: Config,
    pub(super) confirm: Option<u32>,
    pub(super) ignore_restart: bool,
    /// As it is written.
    pub(super) text: String,
    /// Whether the director's own file is to be that.
    pub(super) save: bool,
}

/// A file that is in force and need not be confirmed any more. Of two the one with the higher number is
/// newer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) number: u64,
    pub(super) file: String,
    pub(super) text: String,
    /// Whether the director's own file is to be that.
    pub(super) save: bool,
}

/// What was done.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) plan: Plan,
    /// Seconds within which it must be confirmed.
    pub(super) confirm: Option<u32>,
    /// What stays, when nobody need confirm it.
    pub(super) kept: Option<Kept>,
}

/// See the module.
pub(super) struct Course {
    state: Mutex<State>,
    /// When what waits is due. Apart, for the loop looks at it all the time, and a large file takes a
    /// while to be followed.
    deadline: Mutex<Option<Duration>>,
    /// That may be another time now.
    changed: Notify,
}

struct State {
    /// What is followed. Keys that need a restart are as they were at the start.
    config: Config,
    waiting: Option<Waiting>,
    /// What became of the last one that waited.
    last: Option<String>,
    kept: u64,
}

struct Waiting {
    file: String,
    seconds: u32,
    deadline: Duration,
    undo: Undo,
    before: Config,
    not_up: Vec<Remembered>,
    text: String,
    save: bool,
}

impl Course {
    pub(super) fn new(config: Config) -> Course {
        let state = State { config, waiting: None, last: None, kept: 0 };
        Course { state: Mutex::new(state), deadline: Mutex::default(), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is in force.
    pub(super) fn config(&self) -> Config {
        self.lock().config.clone()
    }

    /// Changes what is in force by a reload.
    ///
    /// # Errors
    /// When a file waits to be confirmed; says which.
    pub(super) fn reload(&self, reload: impl FnOnce(&mut Config)) -> Result<(), String> {
        let mut state = self.lock();
        match state.waiting.as_ref() {
            Some(waiting) => Err(waiting.file.clone()),
            None => {
                reload(&mut state.config);
                Ok(())
            }
        }
    }

    /// What would change with another file.
    pub(super) fn plan(&self, file: &str, config: &Config, table: &Table) -> Plan {
        plan::plan(file, &self.config(), config, &running(table))
    }

    /// Follows another file, all of it or none.
    ///
    /// # Errors
    /// A refusal changes nothing.
    pub(super) fn follow(&self, wanted: NextFile, scene: &Scene<'_>) -> Result<Followed, Refusal> {
        let refuse = |error, message| Err(Refusal { error, message });
        if wanted.confirm.is_some_and(|seconds| !CONFIRM.contains(&seconds)) {
            let (least, most) = (CONFIRM.start(), CONFIRM.end());
            let message = format!("the time to confirm is {least} to {most} seconds");
            return refuse(RefusalKind::Invalid, message);
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(waiting) = &state.waiting {
            let message = format!("busy: {}", waiting.sentence(scene.now));
            return refuse(RefusalKind::Busy, message);
        }
        let NextFile { file, config, confirm, ignore_restart, text, save } = wanted;
        let plan = plan::plan(&file, &state.config, &config, &running(scene.table));
        let other_mode = config.mode != state.config.mode;
        if other_mode || !(plan.restart.is_empty() || ignore_restart) {
            let keys = plan.restart.join(", ");
            let other = match other_mode {
                true => "write it to the director's file and restart the director",
                false => {
                    "leave them as they are, or have the rest applied without them (--ignore-restart) \
                     and restart the director for them later"
                }
            };
            let message = format!("only a restart follows {keys}: nothing has changed; {other}");
            return refuse(RefusalKind::NeedsRestart, message);
        }
        if let Err(why) = scene.sandbox.allows(&config) {
            let message = format!("{file}: {why}: nothing has changed");
            return refuse(RefusalKind::NeedsRestart, message);
        }
        let not_up = scene.watcher.not_up();
        let undo = match scene.table.follow(&state.config, &config, scene.now) {
            Ok(undo) => undo,
            Err(refused) => {
                let message = format!("{file}: {refused}: nothing has changed");
                return refuse(refused.refusal.error, message);
            }
        };
        let before = state.config.clone();
        take_over(&mut state.config, config);
        scene.watcher.follow(&state.config);
        // What changes nothing need not be taken back.
        let confirm = confirm.filter(|_| !plan.is_empty());
        let Some(seconds) = confirm else {
            state.last = Some(format!("{file} is in force and needs no confirmation"));
            let kept = Some(state.keep(file, text, save));
            return Ok(Followed { plan, confirm, kept });
        };
        let deadline = scene.now + Duration::from_secs(seconds.into());
        state.waiting = Some(Waiting { file, seconds, deadline, undo, before, not_up, text, save });
        self.set_deadline(Some(deadline));
        Ok(Followed { plan, confirm, kept: None })
    }

    /// Confirms what waits, or takes it back: its name, and with confirmation what stays.
    ///
    /// # Errors
    /// When nothing waits.
    pub(super) fn settle(
        &self,
        verdict: Verdict,
        scene: &Scene<'_>,
    ) -> Result<(String, Option<Kept>), Refusal> {
        let mut state = self.lock();
        // One that is due is taken back, though the loop has not come to it.
        let waiting = state.waiting.take_if(|waiting| scene.now < waiting.deadline);
        let Some(waiting) = waiting else {
            let last = state.last.as_ref().map(|last| format!(": {last}")).unwrap_or_default();
            let message = format!("no applied file waits to be confirmed{last}");
            return Err(Refusal { error: RefusalKind::NothingWaits, message });
        };
        self.set_deadline(None);
        let file = waiting.file.clone();
        match verdict {
            Verdict::Confirm => {
                state.last = Some(format!("{file} was confirmed already"));
                let kept = state.keep(waiting.file, waiting.text, waiting.save);
                Ok((file, Some(kept)))
            }
            Verdict::Revert => {
                state.go_back(waiting, scene);
                state.last = Some(format!("{file} was reverted already"));
                Ok((file, None))
            }
        }
    }

    /// Takes back what was not confirmed in time; says so if there was such.
    pub(super) fn expire(&self, scene: &Scene<'_>) -> Option<String> {
        let mut state = self.lock();
        let waiting = state.waiting.take_if(|waiting| waiting.deadline <= scene.now)?;
        self.set_deadline(None);
        let Waiting { file, seconds, .. } = &waiting;
        let message = format!(
            "{file} was not confirmed within {seconds} s and was rolled back; told until the next apply or reload"
        );
        state.go_back(waiting, scene);
        state.last = Some(message.clone());
        Some(message)
    }

    /// What waits, in words.
    pub(super) fn waiting(&self, now: Duration) -> Option<String> {
        self.lock().waiting.as_ref().map(|waiting| waiting.sentence(now))
    }

    fn set_deadline(&self, deadline: Option<Duration>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
        self.changed.notify_one();
    }

    /// Waits until something is due. `epoch`: when time was 0.
    pub(super) async fn due(&self, epoch: Instant) {
        loop {
            let Some(deadline) = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
            else {
                self.changed.notified().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until((epoch + deadline).into()) => return,
                () = self.changed.notified() => {}
            }
        }
    }
}

impl State {
    fn keep(&mut self, file: String, text: String, save: bool) -> Kept {
        self.kept += 1;
        Kept { number: self.kept, file, text, save }
    }

    fn go_back(&mut self, waiting: Waiting, scene: &Scene<'_>) {
        scene.table.go_back(waiting.undo, scene.now);
        self.config = waiting.before;
        scene.watcher.remember(waiting.not_up);
        scene.watcher.follow(&self.config);
    }
}

impl Waiting {
    fn sentence(&self, now: Duration) -> String {
        let left = self.deadline.saturating_sub(now);
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        format!(
            "{} waits to be confirmed and is rolled back in {seconds} s: `dirctl confirm` keeps it, \
             `dirctl revert` takes it back at once",
            self.file
        )
    }
}

/// Puts what can be followed at run time in place of what is in force.
pub(super) fn take_over(config: &mut Config, new: Config) {
    config.services = new.services;
    config.settings = new.settings;
    config.marks = new.marks;
    config.timeouts = new.timeouts;
}

fn running(table: &Table) -> Now {
    Now {
        services: table.service_views(),
        settings: table.shared().settings.all(),
        timeouts: table.shared().timeouts.get(),
        marks: table.marks(),
    }
}

#[cfg(test)]
mod tests;

//! The director's own configuration file: what of it is known, and what an operator has applied in
//! its place, which may be written over it. As a whole or not at all; owner, group and permissions stay,
//! where its name is a link, the file that this leads to is the one, and what somebody has changed in it
//! since it was read is not lost.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing::{info, warn};

use super::apply::Kept;
use crate::config;
use crate::control::plan::Saved;

/// See the module.
pub(super) struct OwnFile {
    path: PathBuf,
    known: Mutex<Known>,
}

/// What stands for a text. `None`: it could not be read.
pub(super) type Mark = Option<u64>;

#[derive(Default)]
struct Known {
    /// The file as it was read or written last.
    mark: Mark,
    /// The number of the newest that was applied.
    newest: u64,
    /// What is in force in its place: its name, and what stands for its text.
    applied: Option<(String, Mark)>,
}

impl OwnFile {
    /// The file at `path`, which was like `mark` before it was read.
    pub(super) fn new(path: PathBuf, mark: Mark) -> OwnFile {
        let known = Known { mark, ..Known::default() };
        OwnFile { path, known: Mutex::new(known) }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it is now, for [`is_followed`](OwnFile::is_followed).
    pub(super) fn look(&self) -> Mark {
        look(&self.path)
    }

    /// It was like that, and what it says is in force.
    pub(super) fn is_followed(&self, mark: Mark) {
        let mut known = self.known();
        (known.mark, known.applied) = (mark, None);
    }

    /// The file that is in force in its place, unless somebody has copied it there.
    pub(super) fn applied(&self) -> Option<String> {
        let (file, mark) = self.known().applied.clone()?;
        (self.look() != mark).then_some(file)
    }

    /// What was applied is in force for good: writes it here if that is wanted, unless something newer
    /// was applied meanwhile. Blocks.
    pub(super) fn keep(&self, kept: Kept) -> Saved {
        let mut known = self.known();
        let path = self.path.display().to_string();
        if kept.number < known.newest {
            let reason = "a file that was applied later is in force".to_owned();
            return Saved::Failed { path, reason };
        }
        known.newest = kept.number;
        let (now, wanted) = (self.look(), mark(kept.text.as_bytes()));
        if now == Some(wanted) {
            (known.mark, known.applied) = (now, None);
            return Saved::Same { path };
        }
        known.applied = Some((kept.file, Some(wanted)));
        if !kept.save {
            return Saved::NotAsked;
        }
        let written = unchanged(now, known.mark)
            .and_then(|()| write(&self.path, kept.text.as_bytes(), known.mark));
        match written {
            Ok(()) => {
                (known.mark, known.applied) = (Some(wanted), None);
                info!("{path} has been written: what was applied is the director's own file now");
                Saved::Done { path }
            }
            Err(error) => {
                warn!("{path} could not be written: {error}");
                Saved::Failed { path, reason: error.to_string() }
            }
        }
    }
}

/// Whether a file is as it was.
fn unchanged(now: Mark, before: Mark) -> io::Result<()> {
    match now {
        _ if now == before => Ok(()),
        None => Err(io::Error::other(
            "it cannot be read any more: it is gone, not a file, or not text; put it right, then reload",
        )),
        Some(_) => Err(io::Error::other(
            "somebody has changed it since the director read it, and that would be lost: see what \
             (dirctl plan with that file), and bring both together by hand",
        )),
    }
}

/// What stands for the text of a file as it is now.
pub(super) fn look(path: &Path) -> Mark {
    config::read(path).ok().map(|text| mark(text.as_bytes()))
}

fn mark(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    hasher.finish()
}

/// Exchanges the file for one with this text, if it is still what `before` stands for.
fn write(path: &Path, text: &[u8], before: Mark) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let old = fs::metadata(&path)?;
    if !old.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let fresh = unused(&path)?;
    let written = fill(&fresh, text, &old)
        // Writing took a while.
        .and_then(|()| unchanged(look(&path), before))
        .and_then(|()| fs::rename(&fresh, &path));
    if written.is_err() {
        // The error says more than that this could not be removed either.
        let _ = fs::remove_file(&fresh);
        return written;
    }
    // Else a power failure could bring the old file back.
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// A name beside the file that nobody has: whatever stands there is somebody else's.
fn unused(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let names = (0..100).map(|number| format!(".{name}.{}.{number}", std::process::id()));
    let mut paths = names.map(|name| path.with_file_name(name));
    let free = paths.find(|path| fs::symlink_metadata(path).is_err());
    free.ok_or_else(|| io::Error::other("there is no name for a new file beside it"))
}

fn fill(path: &Path, text: &[u8], old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    // It may hold secrets: until it has the old one's permissions nobody else reads it.
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    fchown(&file, Some(old.uid()), Some(old.gid())).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => io::Error::other(format!(
            "in its sandbox the director cannot write a file for user {} and group {}: chown root:root it, or copy \
             the file there and reload (SIGHUP)",
            old.uid(),
            old.gid()
        )),
        _ => error,
    })?;
    file.set_permissions(old.permissions())?;
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn text(number: u64, text: &str) -> Kept {
        Kept { number, file: format!("{text}.toml"), text: text.to_owned(), save: true }
    }

    #[test]
    fn a_link_stays_a_link_and_permissions_stay_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.toml"), folder.path().join("link.toml"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "theirs").unwrap();
        symlink(&other, folder.path().join("real.toml.new")).unwrap();
        let own = OwnFile::new(link.clone(), look(&link));
        assert!(matches!(own.keep(text(2, "new")), Saved::Done { .. }));
        assert!(matches!(own.keep(text(1, "older")), Saved::Failed { .. }));
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "what was there, and no more");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_of_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnFile::new(folder.path().to_path_buf(), None);
        assert!(matches!(own.keep(text(1, "new")), Saved::Failed { .. }));
        let gone = OwnFile::new(folder.path().join("missing.toml"), None);
        assert!(matches!(gone.keep(text(1, "new")), Saved::Failed { .. }));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_somebody_wrote_into_it_meanwhile_is_not_lost_and_until_then_it_is_not_what_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.toml");
        fs::write(&path, "old").unwrap();
        let own = OwnFile::new(path.clone(), look(&path));
        assert_eq!(own.keep(Kept { save: false, ..text(1, "new") }), Saved::NotAsked);
        assert_eq!(own.applied().as_deref(), Some("new.toml"));
        fs::write(&path, "theirs").unwrap();
        let refused = own.keep(text(2, "newer"));
        assert!(
            matches!(&refused, Saved::Failed { reason, .. } if reason.starts_with("somebody")),
            "{refused:?}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(own.applied().as_deref(), Some("newer.toml"));
        assert!(matches!(own.keep(text(3, "theirs")), Saved::Same { .. }));
        assert_eq!(own.applied(), None);
        assert!(matches!(own.keep(text(4, "last")), Saved::Done { .. }));
        assert_eq!((own.applied(), fs::read_to_string(&path).unwrap()), (None, "last".to_owned()));
        own.keep(Kept { save: false, ..text(5, "copied") });
        assert_eq!(own.applied().as_deref(), Some("copied.toml"));
        fs::write(&path, "copied").unwrap();
        assert_eq!(own.applied(), None, "somebody has followed the advice");
        fs::remove_file(&path).unwrap();
        let gone = own.keep(text(6, "newest"));
        assert!(
            matches!(&gone, Saved::Failed { reason, .. } if reason.contains("gone")),
            "{gone:?}"
        );
        own.keep(Kept { save: false, ..text(7, "new") });
        own.is_followed(own.look());
        assert_eq!(own.applied(), None, "a reload goes back to it");
    }
}

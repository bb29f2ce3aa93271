//! The director's own configuration file, written anew. As a whole or not at all; owner, group and
//! permissions stay, and where its name is a link, the file that this leads to is the one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing::{info, warn};

use super::apply::ToSave;
use crate::control::plan::Saved;

/// See the module.
pub(super) struct OwnFile {
    path: PathBuf,
    /// The number of the newest text that was written.
    newest: Mutex<u64>,
}

impl OwnFile {
    pub(super) fn new(path: PathBuf) -> OwnFile {
        OwnFile { path, newest: Mutex::default() }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a text, unless a newer one has been written. Blocks.
    pub(super) fn save(&self, text: ToSave) -> Saved {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path.display().to_string();
        if text.number < *newest {
            let reason = "a file that was applied later has been saved".to_owned();
            return Saved::Failed { path, reason };
        }
        match write(&self.path, text.text.as_bytes()) {
            Ok(()) => {
                *newest = text.number;
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

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let old = fs::metadata(&path)?;
    if !old.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    // What stands there is left over, and whatever it is (a link, a pipe), nothing is written to it.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = fill(&fresh, text, &old).and_then(|()| fs::rename(&fresh, &path));
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

    fn text(number: u64, text: &str) -> ToSave {
        ToSave { number, text: text.to_owned() }
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
        let own = OwnFile::new(link.clone());
        assert!(matches!(own.save(text(2, "new")), Saved::Done { .. }));
        assert!(matches!(own.save(text(1, "older")), Saved::Failed { .. }));
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_of_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnFile::new(folder.path().to_path_buf());
        assert!(matches!(own.save(text(1, "new")), Saved::Failed { .. }));
        let gone = OwnFile::new(folder.path().join("missing.toml"));
        assert!(matches!(gone.save(text(1, "new")), Saved::Failed { .. }));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

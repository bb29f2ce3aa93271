//! Files: the configuration, keys, the control socket.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use director::config::{self, Config};

/// A configuration file, and what is in it.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// Which.
    pub path: PathBuf,
    /// Its text, when it can be read.
    pub text: Option<String>,
    /// What it says, or what is wrong with it.
    pub config: Result<Config, String>,
}

impl ConfigFile {
    /// Reads it as a director would.
    pub fn read(path: &Path) -> ConfigFile {
        let config = config::load(path).map_err(|error| error.to_string());
        // What the director's own reader refuses (a pipe, no end) is not read here.
        let text = config.as_ref().ok().and_then(|_| std::fs::read_to_string(path).ok());
        ConfigFile { path: path.to_owned(), text, config }
    }
}

/// A file that not everybody should see, or write to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// Which.
    pub path: PathBuf,
    /// Its permissions, or why they are not known.
    pub mode: Result<u32, String>,
    /// Why it is no key, when it should be one and is not.
    pub fault: Option<String>,
    /// Whether we may not read it; then it may be as good as any.
    pub denied: bool,
}

impl Guarded {
    /// Any file.
    pub fn look(path: &Path) -> Guarded {
        let found = std::fs::metadata(path);
        let denied = found.as_ref().is_err_and(is_denied);
        let mode = found.map(|found| found.permissions().mode() & 0o777);
        let mode = mode.map_err(|error| error.to_string());
        Guarded { path: path.to_owned(), mode, fault: None, denied }
    }

    /// A file with a secret.
    pub fn key(path: &Path) -> Guarded {
        let guarded = Guarded::look(path);
        // To open a pipe would wait for whoever writes to it.
        let is_closed = path.is_file() && std::fs::File::open(path).as_ref().is_err_and(is_denied);
        if guarded.denied || is_closed {
            return Guarded { denied: true, ..guarded };
        }
        let fault = realserver_agent::key_file::read(path).err();
        Guarded { fault: fault.map(|error| format!("{error:#}")), ..guarded }
    }
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

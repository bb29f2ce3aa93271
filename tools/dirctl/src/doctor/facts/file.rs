//! Files: the configuration, keys, the control socket.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use director::config::{self, Config};

/// A configuration file, and what is in it.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// Which.
    pub path: PathBuf,
    /// What it says, or what is wrong with it.
    pub config: Result<Config, String>,
}

impl ConfigFile {
    /// Reads it as a director would.
    pub fn read(path: &Path) -> ConfigFile {
        let config = config::load(path).map_err(|error| error.to_string());
        ConfigFile { path: path.to_owned(), config }
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
}

impl Guarded {
    /// Any file.
    pub fn look(path: &Path) -> Guarded {
        let mode = std::fs::metadata(path).map(|found| found.permissions().mode() & 0o777);
        Guarded { path: path.to_owned(), mode: mode.map_err(|it| it.to_string()), fault: None }
    }

    /// A file with a secret.
    pub fn key(path: &Path) -> Guarded {
        let fault = realserver_agent::key_file::read(path).err();
        Guarded { fault: fault.map(|error| format!("{error:#}")), ..Guarded::look(path) }
    }
}

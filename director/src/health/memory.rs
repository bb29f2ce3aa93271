//! What a restart must not forget: which servers were not up. A file of JSON, written anew as a whole.
//!
//! Without it a director that starts would send the first connections to servers that it knew to be
//! dead. A file that cannot be read, or is not ours, is told of and left alone until the next change.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use realserver_agent::operators_file;
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::control::api::ServiceKey;
use crate::control::health::HealthState;

/// The way the file is written.
const VERSION: u32 = 1;
/// Largest file that is read, bytes: some fifty thousand servers.
const LARGEST: u64 = 16 << 20;

/// A server of a service that was not up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// The service.
    pub service: ServiceKey,
    /// The server.
    pub server: SocketAddr,
    /// Down or draining.
    pub state: HealthState,
    /// Why.
    pub reason: String,
    /// Since when, seconds since 1970-01-01 UTC.
    pub since: u64,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    servers: Vec<Remembered>,
}

/// The file.
#[derive(Debug)]
pub struct Memory {
    path: PathBuf,
    /// The number of the newest list that was written, and whether the last attempt failed.
    written: Mutex<(u64, bool)>,
}

impl Memory {
    /// The file at `path`, whose directory must be there when something is written.
    pub fn new(path: PathBuf) -> Memory {
        Memory { path, written: Mutex::default() }
    }

    /// What the file says; nothing, with a warning, if it cannot be read or is not ours.
    pub fn read(&self) -> Vec<Remembered> {
        match self.try_read() {
            Ok(servers) => servers,
            Err(error) => {
                let path = self.path.display();
                warn!("{path}: {error}: which servers were down is not known, all start as up");
                Vec::new()
            }
        }
    }

    fn try_read(&self) -> io::Result<Vec<Remembered>> {
        let file = match operators_file::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut text = Vec::new();
        if file.take(LARGEST + 1).read_to_end(&mut text)? as u64 > LARGEST {
            return Err(io::Error::other("it is too large to be ours"));
        }
        let content: Content = serde_json::from_slice(&text)?;
        if content.version != VERSION {
            let version = content.version;
            return Err(io::Error::other(format!("it is of version {version}, not {VERSION}")));
        }
        let mut servers = content.servers;
        servers.retain(|one| matches!(one.state, HealthState::Down | HealthState::Draining));
        Ok(servers)
    }

    /// Writes the list, unless one with a higher number has been written: lists may come from several
    /// threads. Blocks. What cannot be written is told of once.
    pub fn write(&self, number: u64, servers: Vec<Remembered>) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if number <= written.0 {
            return;
        }
        written.0 = number;
        let outcome = self.try_write(servers);
        if let Err(error) = &outcome
            && !written.1
        {
            let path = self.path.display();
            warn!("{path}: {error}: a restart will not know which servers are down");
        }
        written.1 = outcome.is_err();
    }

    fn try_write(&self, servers: Vec<Remembered>) -> io::Result<()> {
        let text = serde_json::to_vec(&Content { version: VERSION, servers })?;
        let fresh = fresh(&self.path);
        // What stands there is left over, and whatever it is (a link, a pipe), nothing is written to it.
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::create_new(&fresh)?;
        file.write_all(&text)?;
        // Else the name could be there after a power failure, and the content not.
        file.sync_all()?;
        fs::rename(&fresh, &self.path)
    }
}

/// Where the new content is made before it takes the file's name.
fn fresh(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(state: HealthState) -> Remembered {
        Remembered {
            service: ServiceKey::Fwmark { fwmark: 7, ipv6: false },
            server: "10.0.0.1:80".parse().unwrap(),
            state,
            reason: "tcp: connection refused".to_owned(),
            since: 1_700_000_000,
        }
    }

    #[test]
    fn what_was_written_last_is_read_whatever_the_order_of_the_writers() {
        let directory = tempfile::tempdir().unwrap();
        let memory = || Memory::new(directory.path().join("health.json"));
        assert_eq!(memory().read(), [], "no file yet");
        let (down, draining) = (server(HealthState::Down), server(HealthState::Draining));
        let writer = memory();
        writer.write(1, vec![down.clone()]);
        writer.write(3, vec![down.clone(), draining.clone(), server(HealthState::Up)]);
        writer.write(2, vec![]);
        assert_eq!(memory().read(), [down, draining]);
        let names = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(names, 1, "nothing else is left behind");
    }

    #[test]
    fn a_file_that_is_not_ours_is_as_none_and_is_replaced_by_the_next_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("health.json");
        let memory = Memory::new(path.clone());
        let service = r#"{"fwmark":7,"ipv6":false}"#;
        let entry = format!(
            r#"{{"service":{service},"server":"10.0.0.1:80","state":"down","reason":"","since":1}}"#
        );
        fs::write(&path, format!(r#"{{"version":1,"servers":[{entry}]}}"#)).unwrap();
        assert_eq!(memory.read().len(), 1);
        let other_version = format!(r#"{{"version":2,"servers":[{entry}]}}"#);
        for wrong in ["", "null", r#"{"version":1,"servers":[{}]}"#, "\u{0}\u{1}", &other_version] {
            fs::write(&path, wrong).unwrap();
            assert_eq!(memory.read(), [], "{wrong:?}");
        }
        memory.write(1, vec![server(HealthState::Down)]);
        assert_eq!(memory.read(), [server(HealthState::Down)]);
        // What stands where the new content is made is not written to.
        let other = directory.path().join("other");
        fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, directory.path().join("health.json.new")).unwrap();
        memory.write(2, vec![]);
        assert_eq!(
            (fs::read_to_string(&other).unwrap().as_str(), memory.read()),
            ("theirs", vec![])
        );
        let folder = Memory::new(directory.path().to_path_buf());
        assert_eq!(folder.read(), [], "not a file");
        let nowhere = Memory::new(directory.path().join("missing/health.json"));
        nowhere.write(1, vec![]);
        assert!(nowhere.written.lock().unwrap().1, "it is known not to be written");
    }
}

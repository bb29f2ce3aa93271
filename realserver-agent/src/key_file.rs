//! The file with the secret that directors and agents share, or the hosts of a cluster.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::operators_file;
use crate::protocol::Key;

/// Bytes of it at most that count.
const LONGEST: u64 = 64 << 10;

/// Reads it, for director and agent alike: white space around the secret does not count, for an editor
/// may have left a line end of one kind or another. Says in the log when everybody can read it.
///
/// # Errors
/// When it cannot be read, is not a file, or is empty.
pub fn read(path: &Path) -> Result<Key> {
    let shown = path.display();
    let remedy = || {
        format!(
            "read the key file {shown}: make it with `openssl rand -hex 32`, the same everywhere"
        )
    };
    let bytes = bytes(path).with_context(remedy)?;
    if path.metadata().is_ok_and(|found| found.permissions().mode() & 0o007 != 0) {
        tracing::warn!("the key file {shown} can be read by everybody: chmod 600 {shown}");
    }
    Key::new(bytes.trim_ascii())
        .with_context(|| format!("the key file {shown} is empty: `openssl rand -hex 32` makes one"))
}

/// What stands in a file with a secret, as far as that may be long.
///
/// # Errors
/// When it cannot be read, or is not a file.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    operators_file::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Probe;

    #[test]
    fn the_line_end_is_not_part_of_the_secret_and_an_empty_file_is_none() {
        let path = std::env::temp_dir().join(format!("agent-key-{}", std::process::id()));
        std::fs::write(&path, "secret\n").unwrap();
        let bytes = Probe { challenge: 1 }.encode(Some(&read(&path).unwrap()));
        assert!(Probe::decode(&bytes, Key::new(b"secret").as_ref()).is_ok());
        std::fs::write(&path, "secret \r\n").unwrap();
        let same = Probe { challenge: 1 }.encode(Some(&read(&path).unwrap()));
        assert_eq!(same, bytes, "another editor's line end");
        std::fs::write(&path, "\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("empty"));
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("openssl"));
    }
}

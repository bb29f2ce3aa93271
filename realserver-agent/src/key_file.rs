//! The file with the secret that directors and agents share.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::protocol::Key;

/// Reads it; one line end at its end does not count. Says in the log when everybody can read it.
///
/// # Errors
/// When it cannot be read, or is empty.
pub fn read(path: &Path) -> Result<Key> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| {
        format!(
            "read the key file {shown}: make it with `openssl rand -hex 32`, the same everywhere"
        )
    })?;
    if path.metadata().is_ok_and(|file| file.permissions().mode() & 0o007 != 0) {
        tracing::warn!("the key file {shown} can be read by everybody: chmod 600 {shown}");
    }
    Key::new(bytes.strip_suffix(b"\n").unwrap_or(&bytes))
        .with_context(|| format!("the key file {shown} is empty: `openssl rand -hex 32` makes one"))
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
        std::fs::write(&path, "\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("empty"));
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("openssl"));
    }
}

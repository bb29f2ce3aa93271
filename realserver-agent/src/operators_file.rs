//! Files that an operator names: configuration, keys, certificates.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file for reading, if it is one.
///
/// To open a pipe would wait for whoever writes to it, and whoever reads a file anew has no time for
/// that: packets and checks go on meanwhile.
///
/// # Errors
/// When it cannot be opened, or is something else than a file (a folder, a pipe, a device).
pub fn open(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is not a file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_not_opened() {
        let folder = std::env::temp_dir().join(format!("operators-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (pipe, file) = (folder.join("pipe"), folder.join("file"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        std::fs::write(&file, "x").unwrap();
        for other in [&pipe, &folder, Path::new("/dev/null")] {
            assert_eq!(open(other).unwrap_err().to_string(), "it is not a file", "{other:?}");
        }
        assert!(open(&file).is_ok());
        assert_eq!(open(&folder.join("no")).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

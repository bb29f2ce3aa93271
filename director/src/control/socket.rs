//! The socket in the file system: who may have it, with which mode, and how a stale one is told
//! from one that a live director holds. It knows nothing of what is spoken on it.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// Owner and group may speak to the director, nobody else: whoever can write here owns the table.
pub const MODE: u32 = 0o660;

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another director listens there.
    #[error(
        "another director{} answers on the control socket {}: stop it first, or give this one a \
         socket of its own", by(.pid), .path.display()
    )]
    InUse {
        /// The socket.
        path: PathBuf,
        /// The process that listens there, when the kernel says.
        pid: Option<i32>,
    },
    /// Something that is not a socket has the name.
    #[error(
        "{} exists and is not a socket: remove it, or give the control socket another path",
        .path.display()
    )]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refused one step.
    #[error("cannot {step} {}: {error}", .path.display())]
    System {
        /// What was tried, as a verb phrase.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

fn by(pid: &Option<i32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// The socket's name in the file system. Dropping it removes the name, unless somebody else has
/// put another socket there meanwhile.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// Where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|found| found.dev() == self.device && found.ino() == self.inode);
        if ours {
            // Nothing is lost when this fails: the next start finds the socket stale.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on `path`: creates its directory, replaces a socket that nobody listens on any more,
/// and gives it mode [`MODE`]. To be called inside a tokio runtime.
///
/// The socket is made under a name of its own and then renamed, so that nobody ever finds it with
/// another mode, and a client that comes during a restart finds either the old or the new one.
///
/// # Errors
/// [`BindError`], whose text tells the operator what to do.
pub fn bind(path: &Path) -> Result<(UnixListener, SocketFile), BindError> {
    let system = |step, at: &Path| {
        let path = at.to_path_buf();
        move |error| BindError::System { step, path, error }
    };
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(directory).map_err(system("create the directory", directory))?;
    }
    refuse_if_taken(path)?;

    let mut fresh = path.as_os_str().to_owned();
    fresh.push(format!(".{}", std::process::id()));
    let fresh = PathBuf::from(fresh);
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(system("remove the old socket", &fresh)(error));
        }
        _ => {}
    }
    let listener = UnixListener::bind(&fresh).map_err(system("listen on", &fresh))?;
    let placed = fs::set_permissions(&fresh, fs::Permissions::from_mode(MODE))
        .and_then(|()| fs::rename(&fresh, path))
        .and_then(|()| fs::symlink_metadata(path));
    match placed {
        Ok(found) => {
            let file =
                SocketFile { path: path.to_path_buf(), device: found.dev(), inode: found.ino() };
            Ok((listener, file))
        }
        Err(error) => {
            let _ = fs::remove_file(&fresh);
            Err(system("put the control socket in place at", path)(error))
        }
    }
}

/// A socket is stale exactly when connecting to it is refused.
fn refuse_if_taken(path: &Path) -> Result<(), BindError> {
    let path_buf = || path.to_path_buf();
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            let step = "look at";
            return Err(BindError::System { step, path: path_buf(), error });
        }
        Ok(found) if !found.file_type().is_socket() => {
            return Err(BindError::NotASocket { path: path_buf() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(stream) => Err(BindError::InUse { path: path_buf(), pid: peer(&stream) }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        // The other one went away between our two looks.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Its backlog is full: alive, and busy.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(BindError::InUse { path: path_buf(), pid: None })
        }
        Err(error) => {
            let step = "find out whether a director lives behind";
            Err(BindError::System { step, path: path_buf(), error })
        }
    }
}

fn peer(stream: &UnixStream) -> Option<i32> {
    let credentials = nix::sys::socket::sockopt::PeerCredentials;
    nix::sys::socket::getsockopt(stream, credentials).ok().map(|peer| peer.pid())
}

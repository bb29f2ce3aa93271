//! What a daemon tells who started it: that it is ready, reads its configuration again, or ends
//! (sd_notify(3): lines of text in a datagram to the socket that `NOTIFY_SOCKET` names).
//!
//! Nobody may be there, and nothing depends on being heard: what cannot be sent is forgotten.

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The way to the service manager, if there is one.
///
/// ```
/// let manager = netio::ServiceManager::from_environment();
/// manager.ready("3 services"); // does nothing when no service manager has asked for it
/// ```
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
}

impl ServiceManager {
    /// The one that the environment names.
    pub fn from_environment() -> ServiceManager {
        let name = std::env::var_os("NOTIFY_SOCKET");
        name.and_then(|name| ServiceManager::at(&name).ok()).unwrap_or_default()
    }

    /// The one that listens on `name`: an absolute path, or `@` and an abstract name.
    ///
    /// # Errors
    /// When that is neither, or no socket can be opened.
    pub fn at(name: &OsStr) -> io::Result<ServiceManager> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(name)?,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let socket = UnixDatagram::unbound()?;
        // A manager that does not read must not stop us.
        socket.set_nonblocking(true)?;
        Ok(ServiceManager { socket: Some((socket, address)) })
    }

    /// It works; `status` is shown beside its state.
    pub fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// The configuration is being read again; [`ready`](ServiceManager::ready) ends that.
    pub fn reloading(&self) {
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_microseconds()));
    }

    /// It is ending.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    fn say(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

/// A line break would begin another assignment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn monotonic_microseconds() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to room for a timespec, which the call fills when it returns 0.
    let filled = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr()) } == 0;
    if !filled {
        return 0;
    }
    // SAFETY: just filled.
    let now = unsafe { now.assume_init() };
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn next(listener: &UnixDatagram) -> String {
        let mut buffer = [0; 1024];
        let length = listener.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    fn hears_all(listener: &UnixDatagram, manager: &ServiceManager) {
        listener.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        manager.ready("3 services\nMAINPID=1");
        assert_eq!(next(listener), "READY=1\nSTATUS=3 services MAINPID=1");
        manager.reloading();
        let said = next(listener);
        let time = said.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(time.parse::<u64>().unwrap() > 0, "{said}");
        manager.stopping();
        assert_eq!(next(listener), "STOPPING=1");
    }

    #[test]
    fn a_manager_hears_what_its_daemon_is_about() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        hears_all(&listener, &ServiceManager::at(path.as_os_str()).unwrap());
        let name = format!("switchyard-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixDatagram::bind_addr(&address).unwrap();
        hears_all(&listener, &ServiceManager::at(OsStr::new(&format!("@{name}"))).unwrap());
    }

    #[test]
    fn a_manager_that_is_gone_or_does_not_read_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let manager = ServiceManager::at(path.as_os_str()).unwrap();
        for _ in 0..10_000 {
            manager.ready("again");
        }
        drop(listener);
        manager.stopping();
        ServiceManager::default().ready("to nobody");
        assert!(ServiceManager::at(OsStr::new("relative")).is_err());
    }
}

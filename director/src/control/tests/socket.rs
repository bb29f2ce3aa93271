//! Who may have the socket.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use crate::control::socket::{BindError, bind};

fn in_runtime<T>(work: impl FnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    work()
}

#[test]
fn socket_gets_its_directory_and_mode_and_leaves_no_name_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run/director/control.sock");
    in_runtime(|| {
        let (_listener, file) = bind(&path).unwrap();
        assert_eq!(file.path(), path);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o660);
        drop(file);
        let left: Vec<_> = path.parent().unwrap().read_dir().unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

#[test]
fn stale_socket_is_replaced_and_a_live_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control.sock");
    drop(UnixListener::bind(&path).unwrap());
    in_runtime(|| {
        let (_listener, _file) = bind(&path).unwrap();
        let error = bind(&path).unwrap_err();
        assert!(matches!(error, BindError::InUse { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        assert!(text.contains(&format!("(process {})", std::process::id())), "{text}");
    });
}

#[test]
fn file_that_is_no_socket_survives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control.sock");
    std::fs::write(&path, "precious").unwrap();
    let error = in_runtime(|| bind(&path)).unwrap_err();
    assert!(matches!(error, BindError::NotASocket { .. }), "{error:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn dropping_an_old_socket_does_not_remove_its_successors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control.sock");
    in_runtime(|| {
        let (listener, old) = bind(&path).unwrap();
        drop(listener);
        let (_listener, _new) = bind(&path).unwrap();
        drop(old);
        assert!(path.exists());
    });
}

//! The control API: HTTP and JSON on a unix socket, the same for `ipvsadm`, `dirctl` and
//! `curl --unix-socket`.

pub mod api;
pub mod operations;

/// Where the director listens unless its configuration says otherwise.
pub const DEFAULT_SOCKET: &str = "/run/director/control.sock";

//! Runs rtnetlink requests in the namespace of the calling thread.

use anyhow::{Context, Result};
use rtnetlink::Handle;

/// Opens a netlink socket here, gives it to `work` and waits. Call it on a thread that has no
/// tokio runtime of its own.
pub(super) fn request<T>(work: impl AsyncFnOnce(Handle) -> Result<T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start a runtime")?;
    runtime.block_on(async {
        let (connection, handle, _) =
            rtnetlink::new_connection().context("open a netlink socket")?;
        tokio::spawn(connection);
        work(handle).await
    })
}

/// The index of an interface of this namespace.
pub(super) fn index(interface: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(interface).with_context(|| format!("no interface {interface}"))
}

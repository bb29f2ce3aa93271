//! When a client's packet ends the connection that it was found to belong to, and is scheduled as
//! if there were none: `conn_reuse_mode` and `expire_nodest_conn` (`ip_vs_in_hook`'s behaviour).

use super::connection::Connection;
use super::settings::{Setting, Settings};
use super::state::State;

/// Whether `connection` ends with a packet of its client; `opens`: it is one that connections begin
/// with.
pub(super) fn ends(connection: &Connection, opens: bool, settings: &Settings) -> bool {
    let server = connection.server();
    let is_orphan = !server.is_available() || opens && server.load.weight() == 0;
    is_orphan && settings.is_on(Setting::ExpireNodestConn) || opens && is_over(connection, settings)
}

/// Whether a client that opens anew has done with the connection, as `conn_reuse_mode` sees it.
/// Bit 2 takes FIN_WAIT for an end where the server's side is never seen.
fn is_over(connection: &Connection, settings: &Settings) -> bool {
    let mode = settings.get(Setting::ConnReuseMode);
    if mode == 0 || connection.is_controlled() {
        return false;
    }
    let is_half_closed = connection.state == State::FinWait && connection.is_half_seen();
    connection.state.may_be_reused() || mode & 2 != 0 && is_half_closed
}

//! The connection listing of `-L -c`: rows in the order in which the director gives them.

use std::fmt::Write;

use director::control::api::{ConnectionView, EngineData};

use super::{Format, protocol_name};
use crate::names::Names;

/// Both header lines.
pub fn header(format: &Format) -> String {
    let titles = if format.persistent {
        format!("{:<18} {:<16} pe_data", "destination", "pe name")
    } else {
        "destination".to_owned()
    };
    format!(
        "IPVS connection entries\npro expire {:<11} {:<18} {:<18} {titles}\n",
        "state", "source", "virtual"
    )
}

/// Adds the row of one connection. What its persistence engine goes by stands in two more columns,
/// which do not line up with their titles, as in ipvsadm.
///
/// There may be millions of them, so nothing is made that is thrown away again.
pub fn row(text: &mut String, connection: &ConnectionView, names: &Names, format: &Format) {
    let ConnectionView { protocol, client, virtual_address, server, state, expires, engine } =
        connection;
    let engine = engine.as_ref().filter(|_| format.persistent);
    column(text, 3, |text| text.push_str(protocol.map_or("IP", protocol_name)));
    // Writing into a `String` cannot fail.
    column(text, 6, |text| _ = write!(text, "{:02}:{:02}", expires / 60, expires % 60));
    column(text, 11, |text| text.push_str(state));
    column(text, 18, |text| names.write(text, *client, *protocol));
    column(text, 18, |text| names.write(text, *virtual_address, *protocol));
    match engine {
        Some(EngineData { name, data }) => {
            column(text, 16, |text| names.write(text, *server, *protocol));
            column(text, 18, |text| text.push_str(name));
            text.push_str(data);
        }
        None => names.write(text, *server, *protocol),
    }
    text.push('\n');
}

/// Adds what `write` adds, blanks up to `width`, and one more.
fn column(text: &mut String, width: usize, write: impl FnOnce(&mut String)) {
    let start = text.len();
    write(text);
    let written = text[start..].chars().count();
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(written) + 1));
}

//! The connection listing of `-L -c`: rows in the order in which the director gives them.

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

/// One connection. What its persistence engine goes by stands in two more columns, which do not
/// line up with their titles, as in ipvsadm.
pub fn row(connection: &ConnectionView, names: &Names, format: &Format) -> String {
    let ConnectionView { protocol, client, virtual_address, server, state, expires, engine } =
        connection;
    let name = protocol.map_or("IP", protocol_name);
    let expires = format!("{:02}:{:02}", expires / 60, expires % 60);
    let client = names.show(*client, *protocol);
    let virtual_address = names.show(*virtual_address, *protocol);
    let server = names.show(*server, *protocol);
    let ends = format!("{client:<18} {virtual_address:<18}");
    match engine.as_ref().filter(|_| format.persistent) {
        Some(EngineData { name: engine, data }) => {
            format!("{name:<3} {expires:<6} {state:<11} {ends} {server:<16} {engine:<18} {data}\n")
        }
        None => format!("{name:<3} {expires:<6} {state:<11} {ends} {server}\n"),
    }
}

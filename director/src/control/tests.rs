//! A control server over a table in memory, spoken to over real sockets.

mod exporter;
mod fake;
mod health;
mod over_the_wire;
mod socket;
mod with_the_client;

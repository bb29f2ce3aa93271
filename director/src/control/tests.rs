//! A control server over a table in memory, spoken to over real sockets.

mod fake;
mod over_the_wire;
mod socket;
mod with_the_client;

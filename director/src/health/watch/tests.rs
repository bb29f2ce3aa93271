//! The whole engine, with a table and a prober of the tests' own, in virtual time. Agents are real
//! sockets on the loopback, where a datagram has arrived when it has been sent.

mod agents;
mod changes;
mod checks;
mod fake;
mod fake_agent;
mod services;

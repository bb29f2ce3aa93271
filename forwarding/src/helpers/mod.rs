//! Application helpers, in IPVS's sense of the word: protocols that carry addresses or identities in
//! their data, where forwarding by headers alone is not enough.
//!
//! Knows the text of those protocols, and what a changed text does to the packet and the TCP
//! connection around it. Must not know services or connections: which text is looked at, and what
//! is announced instead, is the director's to decide.
//!
//! | helper | looks at | so that |
//! |---|---|---|
//! | [`ftp`] | the control connection (NAT) | data connections reach the right server and client |
//! | [`dns`] | queries over UDP | queries for one name reach one server |
//! | [`sip`] | requests and responses over UDP | all messages of a call reach one server |

pub mod dns;
pub mod ftp;
pub mod sip;

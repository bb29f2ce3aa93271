//! The real `ipvsadm` and ours, asked the same: what they print, where they print it and how they
//! end, compared to the byte.
//!
//! ```text
//!   cases/*.txt, matrix --> script --> kernel host: the real ipvsadm on the kernel's IPVS
//!                                  \-> our host:    our ipvsadm on a director
//!                                            both answers --> report
//! ```
//!
//! A [`Section`] is a list of command lines that both sides carry out one after the other, so that
//! the table is in the same state on both whenever it is listed. All of them go to one boot of the
//! kernel, as one shell script per section: starting a kernel takes longer than a thousand
//! invocations. Nothing is normalised. `traffic` has packets come in between, and says what time makes
//! different then.
//!
//! Knows command lines and what came of them. Must not know what any option means.

mod alike;
mod case;
mod matrix;
mod report;
mod run;
mod script;
mod sections;
mod traffic;

pub use case::Case;
pub use report::Report;
pub use run::run;
pub use sections::{Section, all};
pub use traffic::run_after_traffic;

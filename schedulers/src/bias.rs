//! Load bias: a connection in progress adds to its server's load before that shows in any count.
//!
//! The rules are those of load biasing and intelligent load biasing, in which a load is a number of
//! 0..=10000 (full).

/// How much each connection in progress adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bias {
    /// Nothing.
    #[default]
    None,
    /// So many ten-thousandths of a full load.
    Linear(u16),
    /// This part, 1/m, of what the server still has room for; m >= 2.
    Ilb(u16),
}

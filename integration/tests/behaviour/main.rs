//! How the director behaves as a neighbour of the kernel's stack, as a program of an operator, and
//! when things go wrong. Needs root; says so and passes otherwise.
//!
//! Start reading at [`bed`]: what every test lies in.

mod absurd;
mod addresses;
mod bed;
mod beyond;
mod capabilities;
mod choice;
mod control;
mod death;
mod many;
mod means;
mod neighbour;
mod operator;
mod path;
mod refusals;
mod reload;
mod wire;

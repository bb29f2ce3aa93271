//! The table of the module's head, row by row, and how long each takes, in virtual time.

mod table;
mod times;
mod world;

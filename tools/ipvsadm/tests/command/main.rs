//! The command as a program, against a director whose table is in memory.

mod as_ipvsadm;
mod beyond;
mod table;

//! What is installed beside the programs: manual pages and completions, made of the command lines
//! themselves so that they cannot forget a word. The units of systemd, the scripts of the Debian package
//! and what else is installed as it stands lie beside this folder.
//!
//! Knows the command lines. Must not know what the commands do.

#![forbid(unsafe_code)]

pub mod file_format;
pub mod manual;
pub mod pages;

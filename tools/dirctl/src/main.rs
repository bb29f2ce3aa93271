//! dirctl
fn main() {}

//! ipvsadm
fn main() {}

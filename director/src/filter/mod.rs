//! The filter of `mode = "nlb"`: an XDP program that passes this host's share of the traffic and
//! drops what other hosts take.

mod siphash;

#[cfg(test)]
mod tests;

//! nlb

//! Ownership: which node of a cluster without a dispatcher takes a packet. **Not built yet**; the
//! director refuses `mode = "nlb"` by name.
//!
//! What will be here, without I/O and without a clock: port rules and their affinity, the map from
//! a packet to its bucket and from buckets to hosts, membership by heartbeats and how a cluster
//! converges on the hosts that are alive, and the filter's decision (`filter`) as a plain function
//! that the eBPF program is held to packet by packet. It may use `forwarding::wire`; it must not
//! know interfaces, sockets or eBPF.

#![forbid(unsafe_code)]

//! What servers and clients receive, byte by byte, and what the listings then say.

crate::same! {
    nat_over_ipv4_writes_the_kernels_bytes: "nat-v4",
    nat_over_ipv6_writes_the_kernels_bytes: "nat-v6",
    direct_routing_over_ipv4_writes_the_kernels_bytes: "direct-v4",
    direct_routing_over_ipv6_writes_the_kernels_bytes: "direct-v6",
    ipv4_in_ipv4_writes_the_kernels_bytes: "ipip-4in4",
    ipv6_in_ipv6_writes_the_kernels_bytes: "ipip-6in6",
    ipv4_in_ipv6_writes_the_kernels_bytes: "ipip-4in6",
    ipv6_in_ipv4_writes_the_kernels_bytes: "ipip-6in4",
}

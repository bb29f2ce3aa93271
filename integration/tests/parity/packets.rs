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
    gre_with_ipv4_in_ipv4_writes_the_kernels_bytes: "gre-4in4",
    gre_with_ipv6_in_ipv6_writes_the_kernels_bytes: "gre-6in6",
    gre_with_a_checksum_and_ipv4_in_ipv6_writes_the_kernels_bytes: "gre-csum-4in6",
    gre_with_a_checksum_and_ipv6_in_ipv4_writes_the_kernels_bytes: "gre-csum-6in4",
    gue_with_ipv4_in_ipv4_writes_the_kernels_bytes: "gue-4in4",
    gue_with_ipv6_in_ipv6_writes_the_kernels_bytes: "gue-6in6",
    gue_with_a_checksum_writes_the_kernels_bytes: "gue-csum-4in4",
    gue_with_remote_checksums_writes_the_kernels_bytes: "gue-remcsum-6in4",
}

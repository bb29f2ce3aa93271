//! SCTP: packets byte by byte, states and counters.

crate::same! {
    sctp_through_nat_over_ipv4_is_the_kernels: "sctp-nat-v4",
    sctp_through_nat_over_ipv6_is_the_kernels: "sctp-nat-v6",
    sctp_by_direct_routing_over_ipv4_is_the_kernels: "sctp-direct-v4",
    sctp_by_direct_routing_over_ipv6_is_the_kernels: "sctp-direct-v6",
    sctp_in_ipip_is_the_kernels: "sctp-ipip-4in6",
    sctp_in_gue_is_the_kernels: "sctp-gue-6in6",
    sctp_states_of_both_directions_are_the_kernels: "sctp-states-nat",
    sctp_states_of_the_clients_direction_alone_are_the_kernels: "sctp-states-direct",
}

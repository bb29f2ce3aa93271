//! What settings change, against the kernel with the same sysctls.

crate::same! {
    a_port_used_again_goes_where_the_kernel_sends_it_in_every_mode: "conn-reuse-mode",
    connections_of_a_quiesced_or_removed_server_end_as_the_kernels: "expire-nodest-conn",
    persistent_clients_leave_a_quiesced_server_as_the_kernels: "expire-quiescent-template",
    connections_that_begin_anyhow_are_the_kernels: "sloppy-tcp",
    associations_that_begin_anyhow_are_the_kernels: "sloppy-sctp",
    answers_to_nobody_are_refused_as_the_kernel_does: "nat-icmp-send",
    errors_about_unknown_connections_go_where_the_kernel_sends_them: "schedule-icmp",
    tunnels_without_path_mtu_discovery_write_the_kernels_bytes: "pmtu-disc",
    packets_that_no_server_takes_go_on_as_the_kernels: "cache-bypass",
    the_packets_that_the_kernel_drops_are_dropped: "drop-packet",
    sets_of_servers_shrink_when_the_kernels_do: "lblcr-expiration",
    tcp_states_under_attack_are_the_kernels_from_both_sides: "secure-tcp-states-nat",
    tcp_states_under_attack_are_the_kernels_from_the_clients: "secure-tcp-states-direct",
}

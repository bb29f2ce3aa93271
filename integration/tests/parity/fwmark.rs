//! Services that are named by a firewall mark.

crate::same! {
    rr_over_a_network_of_addresses_is_the_kernels: "fwmark-rr",
    wlc_over_a_network_of_addresses_is_the_kernels: "fwmark-wlc",
    lblc_over_a_network_of_addresses_is_the_kernels: "fwmark-lblc",
    lblcr_over_a_network_of_addresses_is_the_kernels: "fwmark-lblcr",
    dh_over_a_network_of_addresses_is_the_kernels: "fwmark-dh",
    sh_over_a_network_of_addresses_is_the_kernels: "fwmark-sh",
    sh_with_ports_over_a_network_of_addresses_is_the_kernels: "fwmark-sh-port",
    mh_over_a_network_of_addresses_is_the_kernels: "fwmark-mh",
    several_ports_in_one_persistent_mark_do_as_in_the_kernel: "fwmark-persistence",
    rules_mark_packets_as_those_of_iptables_do: "fwmark-rules",
}

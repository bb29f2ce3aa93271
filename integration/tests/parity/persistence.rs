//! Clients that stay with their server.

crate::same! {
    clients_who_come_again_have_the_kernels_server: "persistence",
    networks_of_clients_have_the_kernels_server: "persistence-netmask",
    a_service_for_every_port_does_as_the_kernels: "persistence-every-port",
    changes_move_persistent_clients_as_in_the_kernel: "persistence-changes",
    datagrams_of_one_call_have_the_kernels_server: "sip",
    changes_move_calls_as_in_the_kernel: "sip-changes",
    templates_end_when_the_kernels_do: "persistence-expiry",
}

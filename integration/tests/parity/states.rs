//! States, remaining times and counters of connections, as `ipvsadm` lists them.

crate::same! {
    tcp_states_of_both_directions_are_the_kernels: "tcp-states-nat",
    tcp_states_of_the_clients_direction_alone_are_the_kernels: "tcp-states-direct",
    a_port_used_again_and_set_timeouts_do_as_in_the_kernel: "reuse",
}

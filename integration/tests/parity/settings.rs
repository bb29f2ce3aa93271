//! What settings change, against the kernel with the same sysctls.

crate::same! {
    a_port_used_again_goes_where_the_kernel_sends_it_in_every_mode: "conn-reuse-mode",
    connections_of_a_quiesced_or_removed_server_end_as_the_kernels: "expire-nodest-conn",
}

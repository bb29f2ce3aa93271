//! One-packet scheduling, of which no connection remains.

crate::same! {
    datagrams_through_nat_are_scheduled_and_answered_as_in_the_kernel: "ops-nat",
    datagrams_by_load_leave_nothing_as_in_the_kernel: "ops-wlc",
    fragmented_datagrams_go_where_the_kernel_sends_them: "ops-fragments",
    one_packet_scheduling_with_persistence_is_the_kernels: "ops-persistent",
}

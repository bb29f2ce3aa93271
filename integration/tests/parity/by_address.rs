//! Schedulers that decide by an address: each connection goes where the kernel sends it.

crate::same! {
    sh_chooses_as_the_kernel: "sh",
    sh_port_chooses_as_the_kernel: "sh-port",
    sh_fallback_chooses_as_the_kernel: "sh-fallback",
    sh_fallback_and_sh_port_choose_as_the_kernel: "sh-fallback-sh-port",
    sh_follows_changes_under_way_as_the_kernel_does: "sh-changes",
    sh_fallback_follows_changes_under_way_as_the_kernel_does: "sh-fallback-changes",
    mh_chooses_as_the_kernel: "mh",
    mh_port_chooses_as_the_kernel: "mh-port",
    mh_fallback_chooses_as_the_kernel: "mh-fallback",
    mh_fallback_and_mh_port_choose_as_the_kernel: "mh-fallback-mh-port",
    mh_follows_changes_under_way_as_the_kernel_does: "mh-changes",
    mh_fallback_follows_changes_under_way_as_the_kernel_does: "mh-fallback-changes",
    dh_sends_each_address_where_the_kernel_does: "dh",
    dh_follows_load_and_changes_as_the_kernel_does: "dh-changes",
    lblc_sends_each_address_where_the_kernel_does: "lblc",
    lblc_follows_load_and_changes_as_the_kernel_does: "lblc-changes",
    lblcr_sends_each_address_where_the_kernel_does: "lblcr",
    lblcr_follows_load_and_changes_as_the_kernel_does: "lblcr-changes",
}

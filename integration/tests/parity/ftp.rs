//! FTP: control connections through NAT, and services that need persistence for it.

crate::same! {
    what_ftp_announces_over_ipv4_and_what_follows_is_the_kernels: "ftp-v4",
    what_ftp_announces_over_ipv6_and_what_follows_is_the_kernels: "ftp-v6",
    a_persistent_ftp_service_takes_what_the_kernels_takes: "ftp-persistent",
    an_ftp_service_without_persistence_takes_what_the_kernels_takes: "ftp-direct",
}

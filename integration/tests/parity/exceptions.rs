//! What is not an ordinary packet: ICMP errors, and datagrams in fragments.

crate::same! {
    errors_about_nat_over_ipv4_are_translated_as_by_the_kernel: "errors-nat-v4",
    errors_about_nat_over_ipv6_are_translated_as_by_the_kernel: "errors-nat-v6",
    errors_about_direct_routing_over_ipv4_go_where_the_kernel_sends_them: "errors-direct-v4",
    errors_about_direct_routing_over_ipv6_go_where_the_kernel_sends_them: "errors-direct-v6",
    errors_about_ipip_over_ipv4_go_where_the_kernel_sends_them: "errors-ipip-4in4",
    errors_about_ipip_over_ipv6_go_where_the_kernel_sends_them: "errors-ipip-6in6",
    errors_about_gre_go_where_the_kernel_sends_them: "errors-gre-4in4",
    errors_that_quote_nonsense_by_nat_over_ipv4_go_where_the_kernel_sends_them: "errors-nonsense-nat-v4",
    errors_that_quote_nonsense_by_nat_over_ipv6_go_where_the_kernel_sends_them: "errors-nonsense-nat-v6",
    errors_that_quote_nonsense_by_direct_routing_go_where_the_kernel_sends_them: "errors-nonsense-direct-v4",
    fragments_by_nat_over_ipv4_are_what_the_kernel_sends: "fragments-nat-v4",
    fragments_by_nat_over_ipv6_are_what_the_kernel_sends: "fragments-nat-v6",
    fragments_by_direct_routing_over_ipv4_are_what_the_kernel_sends: "fragments-direct-v4",
    fragments_by_direct_routing_over_ipv6_are_what_the_kernel_sends: "fragments-direct-v6",
    fragments_by_nat_over_ipv4_that_do_not_fit_make_what_they_make_in_the_kernel: "fragments-overlap-nat-v4",
    fragments_by_nat_over_ipv6_that_do_not_fit_make_what_they_make_in_the_kernel: "fragments-overlap-nat-v6",
    fragments_by_direct_routing_over_ipv4_that_do_not_fit_make_what_they_make_in_the_kernel: "fragments-overlap-direct-v4",
    fragments_by_direct_routing_over_ipv6_that_do_not_fit_make_what_they_make_in_the_kernel: "fragments-overlap-direct-v6",
}

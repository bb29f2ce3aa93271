//! Interfaces, addresses, routes and neighbours as the kernel knows them, followed over netlink.

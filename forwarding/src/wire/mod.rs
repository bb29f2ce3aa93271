//! Octets of each protocol: field maps and accessors that cannot panic after one length check.

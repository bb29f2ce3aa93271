//! Keys that a running director cannot follow.

use crate::config::Config;

/// Names those that differ. Who adds a key to the file has to say here on which side it is.
pub fn keys(old: &Config, new: &Config) -> Vec<&'static str> {
    let Config {
        mode,
        interfaces,
        io,
        workers,
        cpus,
        busy_poll,
        rx_ring_size,
        tx_ring_size,
        frames,
        own_addresses,
        control,
        metrics,
        sandbox,
        health,
        ftp_ports,
        max_connections,
        // These are followed; what a dispatcher is told of nlb is not its concern.
        timeouts: _,
        settings: _,
        marks: _,
        nlb: _,
        services: _,
    } = old;
    let keys = [
        ("mode", *mode != new.mode),
        ("interfaces", *interfaces != new.interfaces),
        ("io", *io != new.io),
        ("workers", *workers != new.workers),
        ("cpus", *cpus != new.cpus),
        ("busy_poll", *busy_poll != new.busy_poll),
        ("rx_ring_size", *rx_ring_size != new.rx_ring_size),
        ("tx_ring_size", *tx_ring_size != new.tx_ring_size),
        ("frames", *frames != new.frames),
        ("own_addresses", *own_addresses != new.own_addresses),
        ("control", *control != new.control),
        ("metrics", *metrics != new.metrics),
        ("sandbox", *sandbox != new.sandbox),
        ("health.memory", *health != new.health),
        ("ftp_ports", *ftp_ports != new.ftp_ports),
        ("max_connections", *max_connections != new.max_connections),
    ];
    keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

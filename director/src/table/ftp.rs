//! What has to be steered for the data connections of FTP services: no service has their ports.
//!
//! Active ones have the port before that of the control connection, on both sides. A passive one
//! has whatever port from 1024 on its server took, which is known only when it is announced, and
//! then its first packet may be on its way: so all of them are steered, and what belongs to none
//! goes on to the kernel.

use std::net::SocketAddr;

use super::Interest;
use crate::control::api::{Protocol, ServiceKey};
use crate::dispatch::ftp::{FTP, Ports};
use crate::dispatch::service::Service;
use crate::dispatch::transmitter::Transmitter;

/// IP protocol number of TCP.
const TCP: u8 = 6;

/// For a persistent FTP service: whatever its clients send to data ports goes to their servers.
pub(super) fn of_service(service: &Service) -> Vec<Interest> {
    match control_address(&service.key) {
        Some(address) if address.port() == FTP && service.persistence().is_some() => to(address),
        _ => Vec::new(),
    }
}

/// For a server of `service` by NAT, if the helper listens to that.
pub(super) fn of_server(
    ports: &Ports,
    service: &ServiceKey,
    transmitter: Transmitter,
    server: SocketAddr,
) -> Vec<Interest> {
    let Some(address) = control_address(service) else { return Vec::new() };
    let is_ftp = address.port() == FTP || ports.contains(address.port());
    if transmitter != Transmitter::Nat || !is_ftp {
        return Vec::new();
    }
    let mut interests = Vec::new();
    if ports.contains(address.port()) {
        interests.extend(to(address));
    }
    let port = if server.port() == 0 { address.port() } else { server.port() };
    let server = SocketAddr::new(server.ip(), port);
    interests.push(Interest::NatServer(TCP, before(server)));
    interests.push(Interest::FtpServer(server.ip()));
    interests
}

/// Where control connections go, if the service can have some.
fn control_address(service: &ServiceKey) -> Option<SocketAddr> {
    match *service {
        ServiceKey::Address { protocol: Protocol::Tcp, address } if address.port() != 0 => {
            Some(address)
        }
        _ => None,
    }
}

fn to(control: SocketAddr) -> Vec<Interest> {
    vec![Interest::Service(TCP, before(control)), Interest::FtpService(control.ip())]
}

/// Where active data connections come from. Before port 1 is none: that is port 0, and steers all.
fn before(control: SocketAddr) -> SocketAddr {
    SocketAddr::new(control.ip(), control.port() - 1)
}

//! Raw frames from the client to the director, and what comes back.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use forwarding::{Headers, parse};
use integration::lab::Host;
use integration::topology::{CLIENT, Topology};
use netio::{PacketOptions, PacketPort, Pool, Port};
use pnet::packet::MutablePacket;
use pnet::packet::ip::IpNextHeaderProtocols;
use pnet::packet::ipv4::MutableIpv4Packet;
use pnet::packet::ipv6::MutableIpv6Packet;
use pnet::packet::tcp::MutableTcpPacket;

/// TCP flags.
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

/// Lengths of the headers that [`tcp`] writes.
const ETHERNET: usize = 14;
const TCP: usize = 20;

/// An AF_PACKET socket inside the client.
pub(crate) struct Wire {
    pool: Pool,
    port: PacketPort,
    /// The client's and the director's MAC addresses.
    pub(crate) from: [u8; 6],
    pub(crate) to: [u8; 6],
}

impl Wire {
    pub(crate) fn new(topology: &Topology) -> Wire {
        let mac = |host: &Host| host.mac("eth0").unwrap().0;
        let open = || PacketPort::open(PacketOptions::new("eth0")).unwrap();
        Wire {
            pool: Pool::new(1024, 4096).unwrap(),
            port: topology.client.run(open).unwrap(),
            from: mac(&topology.client),
            to: mac(&topology.director),
        }
    }

    /// Sends a frame as it is. What is no frame even to the kernel is not sent.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let mut frame = self.pool.allocate().unwrap();
        let start = frame.start();
        self.pool.reshape(&mut frame, start, bytes.len());
        self.pool.bytes_mut(&mut frame).copy_from_slice(bytes);
        self.port.transmit(&mut self.pool, &mut vec![frame]).unwrap();
    }

    /// The first frame that comes in within `limit` and is what is looked for.
    pub(crate) fn receive(
        &mut self,
        limit: Duration,
        mut is_it: impl FnMut(&[u8], &Headers) -> bool,
    ) -> Option<Vec<u8>> {
        let deadline = Instant::now() + limit;
        let mut batch = Vec::new();
        let mut found = None;
        while found.is_none() && Instant::now() < deadline {
            self.port.receive(&mut self.pool, &mut batch, 64).unwrap();
            if batch.is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            for frame in batch.drain(..) {
                let bytes = self.pool.bytes(&frame);
                if found.is_none() && parse(bytes).is_ok_and(|headers| is_it(bytes, &headers)) {
                    found = Some(bytes.to_vec());
                }
                self.pool.release(frame);
            }
        }
        found
    }

    /// A TCP segment without data from `client_port` of the client to `target`.
    pub(crate) fn tcp(&self, client_port: u16, target: (IpAddr, u16), flags: u8) -> Vec<u8> {
        tcp(self.to, self.from, client_port, target, flags, 64)
    }
}

/// A TCP segment of the client without data, everything in it right.
pub(crate) fn tcp(
    to: [u8; 6],
    from: [u8; 6],
    client_port: u16,
    (vip, port): (IpAddr, u16),
    flags: u8,
    ttl: u8,
) -> Vec<u8> {
    let ip_len = if vip.is_ipv4() { 20 } else { 40 };
    let mut frame = vec![0; ETHERNET + ip_len + TCP];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    let (protocol, ethertype) =
        (IpNextHeaderProtocols::Tcp, if vip.is_ipv4() { 0x0800_u16 } else { 0x86dd });
    frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
    let fill = |segment: &mut MutableTcpPacket<'_>| {
        segment.set_source(client_port);
        segment.set_destination(port);
        segment.set_sequence(1000);
        segment.set_acknowledgement(2000);
        segment.set_data_offset(5);
        segment.set_flags(flags);
        segment.set_window(1024);
    };
    match (CLIENT[usize::from(vip.is_ipv6())], vip) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut packet = MutableIpv4Packet::new(&mut frame[ETHERNET..]).unwrap();
            packet.set_version(4);
            packet.set_header_length(5);
            packet.set_total_length((ip_len + TCP) as u16);
            packet.set_ttl(ttl);
            packet.set_next_level_protocol(protocol);
            packet.set_source(source);
            packet.set_destination(destination);
            let mut segment = MutableTcpPacket::new(packet.payload_mut()).unwrap();
            fill(&mut segment);
            let sum =
                pnet::packet::tcp::ipv4_checksum(&segment.to_immutable(), &source, &destination);
            segment.set_checksum(sum);
            let sum = pnet::packet::ipv4::checksum(&packet.to_immutable());
            packet.set_checksum(sum);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut packet = MutableIpv6Packet::new(&mut frame[ETHERNET..]).unwrap();
            packet.set_version(6);
            packet.set_payload_length(TCP as u16);
            packet.set_hop_limit(ttl);
            packet.set_next_header(protocol);
            packet.set_source(source);
            packet.set_destination(destination);
            let mut segment = MutableTcpPacket::new(packet.payload_mut()).unwrap();
            fill(&mut segment);
            let sum =
                pnet::packet::tcp::ipv6_checksum(&segment.to_immutable(), &source, &destination);
            segment.set_checksum(sum);
        }
        _ => unreachable!("both are of the VIP's family"),
    }
    frame
}

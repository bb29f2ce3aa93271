//! FTP: what is said on control connections, mostly well-formed, and the data connections that may
//! have been announced there.

use std::net::{IpAddr, SocketAddr};

use etherparse::TcpHeader;
use forwarding::checksum;

use crate::random::Random;
use crate::scene::{VIP4, VIP6};

/// The service's port, and its servers'.
pub(crate) const CONTROL: u16 = 21;
const SERVER_CONTROL: u16 = 8021;
/// Where servers listen for passive data connections, and clients for active ones.
const PASSIVE: u16 = 50_000;
const ACTIVE: u16 = 5000;
/// How many ports each has.
const DATA_PORTS: usize = 4;

/// Whether what goes from one end to the other is of a control connection.
pub(crate) fn is_control(from: SocketAddr, to: SocketAddr) -> bool {
    from.port() == SERVER_CONTROL || to.port() == CONTROL
}

/// The ends of a packet of a data connection, of `client` or of a server for it.
pub(crate) fn data(random: &mut Random, client: SocketAddr) -> (SocketAddr, SocketAddr) {
    let number = random.below(DATA_PORTS) as u16;
    if random.chance(500) {
        let vip = if client.is_ipv4() { VIP4 } else { VIP6 };
        return (client, SocketAddr::new(vip, PASSIVE + number));
    }
    let server: IpAddr = match client.is_ipv4() {
        true => [10, 77, 0, 11].into(),
        false => [0xfd77, 0, 0, 0, 0, 0, 0, 0x11].into(),
    };
    (SocketAddr::new(server, SERVER_CONTROL - 1), SocketAddr::new(client.ip(), ACTIVE + number))
}

/// What one side says, perhaps more than once, and perhaps not to its end.
pub(crate) fn text(random: &mut Random) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..=random.below(2) {
        let (port, host) = (random.below(DATA_PORTS), random.below(16));
        text.push_str(&match random.below(12) {
            0 | 1 => "PASV\r\n".to_owned(),
            2 | 3 => "EPSV\r\n".to_owned(),
            4 => format!("PORT 198,51,0,{host},19,{}\r\n", 136 + port),
            5 => format!("EPRT |1|198.51.0.{host}|{}|\r\n", usize::from(ACTIVE) + port),
            6 => format!("EPRT |2|2001:db8:2::{host:x}|{}|\r\n", usize::from(ACTIVE) + port),
            7 | 8 => format!("227 ok (10,77,0,11,195,{})\r\n", 80 + port),
            9 => format!("227 ok (010,077,000,011,195,{:03})\r\n", 80 + port),
            10 => format!("229 ok (|||{}|)\r\n", usize::from(PASSIVE) + port),
            _ => "200 fine\r\n".to_owned(),
        });
    }
    let mut text = text.into_bytes();
    if random.chance(100) {
        text.truncate(random.below(text.len()));
    }
    if random.chance(100) {
        let place = random.below(text.len());
        if let Some(byte) = text.get_mut(place) {
            *byte = random.bits() as u8;
        }
    }
    text
}

/// Numbers near each other, so that segments follow, repeat and overtake each other.
pub(crate) fn number(random: &mut Random, header: &mut TcpHeader) {
    header.sequence_number = random.below(12) as u32 * 26;
    header.acknowledgment_number = random.below(400) as u32;
}

/// Gives a frame a right checksum, or one that is still to be completed: all else is dropped.
pub(crate) fn make_sum(random: &mut Random, frame: &mut [u8]) {
    let Ok(headers) = forwarding::parse(frame) else { return };
    let Some(field) = frame.get_mut(headers.l4 + 16..headers.l4 + 18) else { return };
    field.copy_from_slice(&headers.pseudo_header().folded().to_be_bytes());
    if random.chance(700)
        && let Some(partial) = checksum::partial(frame, &headers)
    {
        checksum::complete(frame, partial, headers.end);
    }
}

use std::net::Ipv4Addr;

use pcap_file::pcapng::Block;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;

use super::*;
use crate::dispatch::verdict::{DropReason, Method};
use crate::worker::tap::{EVERY_DROP, EVERY_PASS};

fn wanted() -> Wanted {
    Wanted {
        forwarded: true,
        passed: EVERY_PASS,
        dropped: EVERY_DROP,
        sample: 1,
        service: None,
        snaplen: 96,
        both: true,
    }
}

fn ports() -> Vec<PortView> {
    let port = |worker, interface: &str| PortView {
        interface: interface.to_owned(),
        queue: worker,
        worker,
        io: "memory".to_owned(),
        received: 0,
        transmitted: 0,
        receive_dropped: 0,
        transmit_dropped: 0,
        receiving: 0,
        transmitting: 0,
        socket: None,
    };
    vec![port(0, "eth0"), port(0, "eth1"), port(1, "eth0"), port(1, "eth1")]
}

fn feed(statuses: &[Arc<WorkerStatus>], wanted: &Wanted) -> Result<Feed, Busy> {
    Feed::begin(
        statuses,
        &ports(),
        &Arc::new(Shared::new(10)),
        &Arc::default(),
        Instant::now(),
        wanted,
    )
}

fn statuses() -> Vec<Arc<WorkerStatus>> {
    (0..2).map(|_| Arc::default()).collect()
}

/// Interface, length and comment of each packet of a file.
fn read(text: &[u8]) -> Vec<(u32, usize, String)> {
    let mut reader = PcapNgReader::new(text).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            let comment = packet.options.iter().find_map(|option| match option {
                EnhancedPacketOption::Comment(text) => Some(text.to_string()),
                _ => None,
            });
            packets.push((packet.interface_id, packet.data.len(), comment.unwrap_or_default()));
        }
    }
    assert_eq!(reader.interfaces().len(), 4);
    packets
}

fn put(status: &WorkerStatus, port: u16, time: u64, outcome: Outcome) {
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(Ipv4Addr::LOCALHOST.octets(), [192, 0, 2, 10], 64)
        .udp(1, 2)
        .write(&mut frame, &[0; 300])
        .unwrap();
    let record = Record { time, port, outcome, length: frame.len() as u32, bytes: &frame };
    status.taps.each(|tap| tap.put(&record));
}

#[test]
fn packets_of_all_workers_are_in_one_file_by_time_with_their_reasons() {
    let statuses = statuses();
    let mut feed = feed(&statuses, &wanted()).unwrap();
    put(&statuses[1], 1, 20, Outcome::Answered(DropReason::NoServer));
    put(&statuses[0], 0, 10, Outcome::Dropped(DropReason::NoRoute));
    put(&statuses[0], 1, 30, Outcome::Left(Method::Nat));
    let mut text = Vec::new();
    feed.head(&mut text);
    assert!(feed.packets(u64::MAX, &mut text));
    feed.statistics(&mut text);
    let packets = read(&text);
    let places: Vec<_> = packets.iter().map(|(port, length, _)| (*port, *length)).collect();
    assert_eq!(places, [(0, 96), (3, 96), (1, 96)]);
    let routing = DropReason::NoRoute.meaning();
    assert_eq!(packets[0].2, format!("dropped no_route: {routing}"));
    assert!(packets[1].2.starts_with("dropped no_server (its sender was told): "));
    assert_eq!(packets[2].2, "left, forwarded nat");
    assert_eq!((feed.count(), feed.lost()), (2, 0));
}

#[test]
fn no_more_packets_than_asked_for() {
    let statuses = statuses();
    let mut feed = feed(&statuses, &wanted()).unwrap();
    for time in 0..10 {
        put(&statuses[0], 0, time, Outcome::Forwarded(Method::Nat));
    }
    let mut text = Vec::new();
    feed.head(&mut text);
    feed.packets(3, &mut text);
    assert_eq!((read(&text).len(), feed.count()), (3, 3));
}

#[test]
fn a_capture_that_is_one_too_many_is_refused_and_leaves_nothing_behind() {
    let statuses = statuses();
    let feeds: Vec<_> = (0..MOST_TAPS).map(|_| feed(&statuses, &wanted()).unwrap()).collect();
    assert!(feed(&statuses, &wanted()).is_err());
    drop(feeds);
    assert!(statuses.iter().all(|status| status.taps.is_empty()));
}

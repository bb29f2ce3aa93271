use super::*;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness};

/// Time, length on the wire and captured bytes.
type Packet = (Duration, usize, Vec<u8>);

/// All packets, and what ended them.
fn read(bytes: &[u8]) -> (Vec<Packet>, Option<String>) {
    let input = Box::new(io::Cursor::new(bytes.to_vec()));
    let mut capture = match Capture::of(Path::new("test"), input) {
        Ok(capture) => capture,
        Err(problem) => return (Vec::new(), Some(problem.to_string())),
    };
    let mut packets = Vec::new();
    loop {
        match capture.next_packet() {
            Ok(Some(it)) => packets.push((it.time, it.length, it.bytes.to_vec())),
            Ok(None) => return (packets, None),
            Err(problem) => return (packets, Some(problem.to_string())),
        }
    }
}

fn classic(order: Order, link: u32, packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let word = |word: u32| match order {
        Order::Little => word.to_le_bytes(),
        Order::Big => word.to_be_bytes(),
    };
    let mut file = Vec::new();
    for field in [0xa1b2_c3d4, 0x0002_0004, 0, 0, 96, link] {
        file.extend(word(field));
    }
    for (seconds, length, bytes) in packets {
        for field in [*seconds, 500_000, bytes.len() as u32, *length] {
            file.extend(word(field));
        }
        file.extend(*bytes);
    }
    file
}

fn next(order: Endianness, resolution: u8, packets: &[(u64, &[u8])]) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), order).unwrap();
    let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
    interface.options.push(InterfaceDescriptionOption::IfTsResol(resolution));
    writer.write_block(&interface.into_block()).unwrap();
    for (units, bytes) in packets {
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(*units),
            original_len: bytes.len() as u32 + 5,
            data: (*bytes).into(),
            options: vec![],
        };
        writer.write_block(&packet.into_block()).unwrap();
    }
    writer.into_inner()
}

#[test]
fn both_byte_orders_of_pcap_are_read_and_longer_packets_than_snaplen_say_so() {
    for order in [Order::Little, Order::Big] {
        let (packets, ended) = read(&classic(order, 1, &[(7, 1500, &[1; 96]), (8, 3, &[2; 3])]));
        assert_eq!(ended, None);
        let half = Duration::from_millis(500);
        assert_eq!(packets[0], (Duration::from_secs(7) + half, 1500, vec![1; 96]));
        assert_eq!(packets[1], (Duration::from_secs(8) + half, 3, vec![2; 3]));
    }
}

#[test]
fn times_of_pcapng_are_in_the_units_that_its_interface_says() {
    for (order, resolution, units, wanted) in [
        (Endianness::Little, 6, 1_500_000, Duration::from_millis(1500)),
        (Endianness::Big, 9, 1_500_000, Duration::from_micros(1500)),
        (Endianness::Little, 0x80 | 10, 1536, Duration::from_millis(1500)),
        (Endianness::Little, 255, 1, Duration::ZERO),
        (Endianness::Little, 38, u64::MAX, Duration::ZERO),
    ] {
        let (packets, ended) = read(&next(order, resolution, &[(units, &[3; 61])]));
        assert_eq!(ended, None);
        assert_eq!(packets, [(wanted, 66, vec![3; 61])], "{resolution}");
    }
}

#[test]
fn a_file_that_is_cut_anywhere_gives_what_is_whole_and_then_one_error() {
    let files = [
        classic(Order::Little, 1, &[(1, 60, &[1; 60]), (2, 60, &[2; 60])]),
        next(Endianness::Little, 6, &[(1, &[1; 60]), (2, &[2; 60])]),
    ];
    for file in files {
        let whole = read(&file);
        assert_eq!((whole.0.len(), whole.1), (2, None));
        for length in 0..file.len() {
            let (packets, ended) = read(&file[..length]);
            assert!(packets.len() < 2 || ended.is_none(), "{length}");
            assert!(packets.iter().zip(&whole.0).all(|(one, other)| one == other));
        }
        let (packets, ended) = read(&file[..file.len() - 10]);
        assert_eq!(packets.len(), 1);
        assert!(ended.unwrap().contains("cut short"));
    }
}

#[test]
fn nonsense_is_named_and_never_much_memory() {
    let no_capture = read(b"this is no capture at all, not a bit").1.unwrap();
    assert!(no_capture.contains("neither"), "{no_capture}");
    assert!(read(&[]).1.unwrap().contains("neither"));
    let wireless = read(&classic(Order::Little, 105, &[])).1.unwrap();
    assert!(wireless.contains("link type 105"), "{wireless}");
    let mut endless = classic(Order::Little, 1, &[(1, 60, &[1; 60])]);
    endless[24 + 8..24 + 12].fill(0xff);
    assert!(read(&endless).1.unwrap().contains("longer"));
    let mut odd = next(Endianness::Little, 6, &[(1, &[1; 60])]);
    let place = odd.len() - 4;
    odd[place] ^= 0xff;
    assert!(read(&odd).1.unwrap().contains("does not end"));
}

#[test]
fn no_byte_that_is_wrong_makes_reading_panic_or_go_on_for_ever() {
    let files = [
        classic(Order::Big, 1, &[(1, 60, &[1; 60]), (2, 60, &[2; 60])]),
        next(Endianness::Big, 6, &[(1, &[1; 60]), (2, &[2; 60])]),
    ];
    for file in files {
        for place in 0..file.len() {
            for value in [0, 1, 4, 0x7f, 0x80, 0xff] {
                let mut wrong = file.clone();
                wrong[place] = value;
                assert!(read(&wrong).0.len() <= 2);
            }
        }
    }
}

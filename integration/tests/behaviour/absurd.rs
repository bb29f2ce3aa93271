//! Frames that make no sense: every one is dropped or passed for a reason, and those that do make
//! sense are carried meanwhile.

use integration::topology::{Kind, server_addresses};

use super::bed::{Bed, VIPS, can_run, top, web};
use super::wire::{ACK, SYN, Wire, tcp};

/// Random and mutated frames of one run.
const MANY: usize = 20_000;

/// A small generator (xorshift64*): the same frames in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }
}

/// The sum of an IPv4 header made right again.
fn resum(frame: &mut [u8]) {
    let length = usize::from(frame[14] & 0xf) * 4;
    frame[24..26].fill(0);
    let sum: u32 = frame[14..14 + length]
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    frame[24..26].copy_from_slice(&(!folded as u16).to_be_bytes());
}

/// An IPv4 fragment of UDP or TCP to the VIP: `more` follow, `offset` in eight bytes.
fn fragment4(wire: &Wire, id: u16, offset: u16, more: bool, length: usize) -> Vec<u8> {
    let mut frame = wire.tcp(47_000, (VIPS[0], 80), SYN);
    frame.resize(34 + length.max(20), 0x55);
    let total = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[18..20].copy_from_slice(&id.to_be_bytes());
    let field = offset | if more { 0x2000 } else { 0 };
    frame[20..22].copy_from_slice(&field.to_be_bytes());
    resum(&mut frame);
    frame
}

/// A TCP segment behind these IPv6 extension headers: (number, bytes of it).
fn chained6(wire: &Wire, chain: &[(u8, usize)]) -> Vec<u8> {
    let plain = wire.tcp(47_001, (VIPS[1], 80), SYN);
    let mut frame = plain[..54].to_vec();
    frame[20] = chain.first().map_or(6, |(kind, _)| *kind);
    for (at, (_, length)) in chain.iter().enumerate() {
        let next = chain.get(at + 1).map_or(6, |(kind, _)| *kind);
        let start = frame.len();
        frame.resize(start + length, 0);
        frame[start] = next;
        frame[start + 1] = (length / 8 - 1) as u8;
    }
    frame.extend_from_slice(&plain[54..]);
    let payload = (frame.len() - 54) as u16;
    frame[18..20].copy_from_slice(&payload.to_be_bytes());
    frame
}

/// What a thoughtful enemy sends.
fn crafted(wire: &Wire) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for vip in VIPS {
        let whole = wire.tcp(47_002, (vip, 80), SYN);
        // Every length that cuts a header, and lengths that lie about it.
        frames.extend((14..whole.len()).map(|length| whole[..length].to_vec()));
        for lie in [0_u16, 1, 19, 21, 41, 1500, 0xffff] {
            let mut frame = whole.clone();
            let at = if vip.is_ipv4() { 16 } else { 18 };
            frame[at..at + 2].copy_from_slice(&lie.to_be_bytes());
            if vip.is_ipv4() {
                resum(&mut frame);
            }
            frames.push(frame);
        }
        // All flags, right and with a data offset that points anywhere.
        for flags in 0..=255 {
            frames.push(wire.tcp(47_003, (vip, 80), flags));
            let mut frame = wire.tcp(47_004, (vip, 80), flags);
            let at = frame.len() - 8;
            frame[at] = flags << 4;
            frames.push(frame);
        }
        // One and two VLAN tags, and a tag at the end of the frame.
        for tags in 1..=2 {
            let mut frame = whole[..12].to_vec();
            (0..tags).for_each(|_| frame.extend_from_slice(&[0x81, 0, 0, 7]));
            frame.extend_from_slice(&whole[12..]);
            frames.push(frame.clone());
            frame.truncate(12 + 4 * tags);
            frame.resize(60, 0);
            frames.push(frame[..16.max(12 + 4 * tags)].to_vec());
        }
        // From addresses that nobody may have: ourselves, the VIP, a server, everybody.
        for source in [vip, server_addresses(1)[usize::from(vip.is_ipv6())]] {
            let mut frame = whole.clone();
            match source {
                std::net::IpAddr::V4(v4) => frame[26..30].copy_from_slice(&v4.octets()),
                std::net::IpAddr::V6(v6) => frame[22..38].copy_from_slice(&v6.octets()),
            }
            if vip.is_ipv4() {
                resum(&mut frame);
            }
            frames.push(frame);
        }
    }
    let mut wrong_sum = wire.tcp(47_005, (VIPS[0], 80), SYN);
    wrong_sum[24] ^= 0xff;
    frames.push(wrong_sum);
    let mut short_header = wire.tcp(47_005, (VIPS[0], 80), SYN);
    short_header[14] = 0x44;
    frames.push(short_header);
    // Fragments: endless firsts, overlapping, a last one that nobody began, one past the end.
    for id in 0..2000 {
        frames.push(fragment4(wire, id, 0, true, 64));
    }
    for offset in [0, 1, 2, 1, 8, 0x1fff] {
        frames.push(fragment4(wire, 3000, offset, true, 64));
    }
    frames.push(fragment4(wire, 4000, 8, false, 64));
    // Extension headers: long chains, all kinds, one that is longer than the frame.
    for kind in [0, 43, 44, 50, 51, 59, 60, 135, 139, 140, 253, 254] {
        frames.push(chained6(wire, &[(kind, 8)]));
        frames.push(chained6(wire, &[(kind, 8); 5]));
        let mut long = chained6(wire, &[(kind, 8)]);
        long[55] = 0xff;
        frames.push(long);
    }
    frames.push(chained6(wire, &[(60, 8); 100]));
    frames
}

fn survives(io: &str) {
    let bed = Bed::with(Kind::Nat, &(top(io) + &web(Kind::Nat, "rr", &[1, 1, 1])));
    bed.carries(6);
    let mut wire = Wire::new(&bed.topology);
    let mut seeds = crafted(&wire);
    seeds.iter().for_each(|frame| wire.send(frame));
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| bed.carries(300));
        let mut random = Random(0x5357_4954_4348_5944);
        for vip in VIPS {
            seeds.push(tcp(wire.to, wire.from, 47_010, (vip, 80), ACK, 64));
        }
        for number in 0..MANY {
            let mut frame = seeds[random.below(seeds.len())].clone();
            match number % 4 {
                // Noise behind the MAC addresses and a type that we look at.
                0 => {
                    frame.resize(14 + random.below(1486), 0);
                    (14..frame.len()).for_each(|at| frame[at] = random.next() as u8);
                }
                // A few bytes changed.
                1 | 2 => {
                    for _ in 0..=random.below(4) {
                        let at = 12 + random.below(frame.len().saturating_sub(12).max(1));
                        if let Some(byte) = frame.get_mut(at) {
                            *byte = random.next() as u8;
                        }
                    }
                }
                // Cut, or with something behind it.
                _ => frame.resize(14 + random.below(frame.len() + 32), 0xaa),
            }
            if number % 8 == 1 && frame.len() >= 34 && frame[14] >> 4 == 4 {
                let fits = 14 + usize::from(frame[14] & 0xf) * 4 <= frame.len();
                if fits && frame[14] & 0xf >= 5 {
                    resum(&mut frame);
                }
            }
            wire.send(&frame);
            // The director is to see them all: no faster than it can.
            if number % 64 == 63 {
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
        }
        traffic.join().unwrap();
    });
    bed.carries(30);
    let status = bed.director.status().unwrap();
    assert!(status.warnings.is_empty(), "{:?}", status.warnings);
    let count = |reason: &str| {
        status.verdicts.iter().find(|count| count.reason == reason).map_or(0, |count| count.packets)
    };
    for reason in ["truncated", "bad_header", "bad_ip_checksum", "passed_fragment"] {
        assert!(count(reason) > 0, "no {reason} in {:?}", status.verdicts);
    }
    let log = bed.director.process().log();
    assert!(!log.contains("panicked") && !log.contains("WARN"), "{log}");
    bed.director.stop().unwrap();
}

#[test]
fn quick_absurd_frames_are_dropped_for_a_reason_and_traffic_goes_on() {
    if can_run() {
        survives("copy");
    }
}

#[test]
fn absurd_frames_do_no_harm_in_other_modes_either() {
    if can_run() {
        ["generic", "packet"].iter().for_each(|io| survives(io));
    }
}

//! A million packets, random and mutated, through parser and pipeline of two real workers: nothing
//! panics, no frame is lost, and when all timeouts are over no connection is left.
//!
//! The same in every run: `FUZZ_SEED` chooses another one, `FUZZ_PACKETS` how many packets.

mod fragments;
mod ftp;
mod mutations;
#[path = "../worker/network.rs"]
mod network;
mod packets;
mod random;
mod scene;

use std::io::Write;
use std::time::Duration;

use forwarding::Malformed;
use packets::Built;
use random::Random;
use scene::Scene;

/// Packets between two breaths of a worker.
const BATCH: usize = 64;

/// Longest frame that fits behind the headroom of a chunk, bytes.
const LONGEST: usize = 1792;

/// Of a million packets so many must at least have met each fate, or the fuzz has lost its way.
/// What is not here cannot happen to this director: the table refuses mixed families, there is
/// always headroom, a quote that was found is found again, and a packet that is answered has just
/// left a frame for the answer. Of fragments that overlap those behind the transport header count.
#[rustfmt::skip]
const LEAST: &[(&str, u64)] = &[
    ("sent_nat", 50_000), ("sent_nat_reply", 40_000), ("sent_tunnel", 20_000), ("sent_direct", 10_000),
    ("passed_not_ip", 40_000), ("passed_no_service", 50_000), ("passed_no_connection", 40_000),
    ("passed_icmp", 40_000), ("passed_local", 1_000), ("icmp_sent", 10_000),
    ("truncated", 50_000), ("bad_header", 15_000), ("bad_ip_checksum", 5_000),
    ("no_server", 5_000), ("server_removed", 2_000),
    ("no_server_reset", 500), ("server_gone", 500), ("server_lost", 60), ("resets_sent", 500), ("ttl_exceeded", 4_000), ("too_big", 500),
    ("no_route", 1_000), ("no_port", 1_000), ("no_neighbour", 3_000), ("table_full", 20),
    ("passed_fragment", 5_000), ("fragment_overlap", 200), ("fragment_duplicate", 50),
    ("bad_fragment", 800), ("fragment_scattered", 100), ("bad_icmp_checksum", 1_000),
    ("passed_icmp_unreadable", 4_000), ("tunnel_error", 500), ("pass_failed", 20_000),
    ("passed_ftp_data", 500), ("ftp_held", 5), ("ftp_checksum", 100),
    ("no_chunk", 500), ("sctp_fragment", 100),
];

/// Traffic: what is sent next depends on what has come out before.
struct Traffic {
    random: Random,
    /// Frames that the director has sent.
    recent: Vec<Vec<u8>>,
    /// Frames to be sent.
    ready: Vec<Vec<u8>>,
}

impl Traffic {
    fn next(&mut self) -> Vec<u8> {
        loop {
            if let Some(mut frame) = self.ready.pop() {
                frame.truncate(LONGEST);
                return frame;
            }
            self.make();
        }
    }

    fn make(&mut self) {
        let random = &mut self.random;
        if random.below(20_000) == 0 {
            self.ready = packets::flood(random).frames;
            return;
        }
        let known = self.recent.get(random.below(self.recent.len()));
        let known = known.and_then(|frame| Some((frame, forwarding::parse(frame).ok()?)));
        let Built { mut frames } = match (random.below(100), known) {
            (0..20, Some((_, headers))) => packets::answer(random, &headers),
            (20..32, Some((frame, headers))) => packets::error_about(random, frame, &headers),
            (32..37, _) => packets::not_ip(random),
            (37..40, _) => packets::in_a_tunnel(random),
            (40..46, _) => packets::noise(random),
            (46..48, _) => packets::of_ftp_data(random),
            _ => packets::from_client(random),
        };
        if random.chance(350) {
            let other = self.recent.get(random.below(self.recent.len()));
            let other = other.map(Vec::as_slice).unwrap_or_default();
            frames.iter_mut().for_each(|frame| mutations::mutate(random, frame, other));
        }
        frames.reverse();
        self.ready = frames;
    }

    /// The director has sent this.
    fn see(&mut self, frame: Vec<u8>) {
        let parsed = forwarding::parse(&frame);
        assert!(parsed.is_ok(), "{parsed:?} of what was sent: {frame:02x?}");
        if self.recent.len() < 512 {
            self.recent.push(frame);
        } else {
            let place = self.random.below(self.recent.len());
            self.recent[place] = frame;
        }
    }

    /// Mostly next to nothing; sometimes enough for timers of every kind.
    fn pause(&mut self) -> Duration {
        let random = &mut self.random;
        Duration::from_millis(match random.below(2000) {
            0 => 100_000 + random.below(900_000) as u64,
            1..20 => 1_000 + random.below(60_000) as u64,
            20..200 => random.below(500) as u64,
            _ => random.below(20) as u64,
        })
    }
}

/// Sends so many packets. What comes out is looked at: it must be a packet again.
fn run(seed: u64, count: usize) -> Scene {
    let mut scene = Scene::new();
    let mut traffic = Traffic { random: Random::new(seed), recent: Vec::new(), ready: Vec::new() };
    let mut sent = 0;
    while sent < count {
        let index = traffic.random.below(2);
        for _ in 0..BATCH.min(count - sent) {
            let frame = traffic.next();
            let parsed = forwarding::parse(&frame);
            scene.over_headers += u64::from(parsed == Err(Malformed::Overlap));
            let side = traffic.random.below(2);
            assert!(scene.hands[index].wires[side].inject(&frame, None));
            sent += 1;
        }
        scene.now += traffic.pause();
        // Both breathe, so that both have ended the old connections of their shards.
        for hands in &mut scene.hands {
            hands.worker.breath(scene.now).unwrap();
            let frames = hands.worker.frames();
            assert_eq!(frames.lost(), 0, "{frames:?}");
            for wire in &hands.wires {
                while let Some(packet) = wire.collect() {
                    traffic.see(packet.bytes);
                }
            }
        }
        if traffic.random.chance(100) {
            scene.operate(&mut traffic.random);
        }
    }
    scene
}

/// Lets all timeouts pass.
fn drain(scene: &mut Scene) {
    for _ in 0..1200 {
        scene.now += Duration::from_secs(1);
        for hands in &mut scene.hands {
            hands.worker.breath(scene.now).unwrap();
            hands.wires.iter().for_each(|wire| drop(wire.collect_all()));
        }
    }
}

/// A number from the environment.
fn setting(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
        Err(_) => otherwise,
    }
}

/// Says something although the test passes.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[test]
fn no_packet_panics_loses_a_frame_or_leaves_a_connection_behind() {
    let (seed, count) = (setting("FUZZ_SEED", 1), setting("FUZZ_PACKETS", 1_000_000));
    let mut scene = run(seed, count as usize);
    drain(&mut scene);
    let counts = scene.counts();
    say(&format!("fuzz: {count} packets, seed {seed}"));
    for (label, packets) in &counts {
        say(&format!("{packets:>9} {:>5.1} %  {label}", *packets as f64 * 100.0 / count as f64));
    }

    let received: u64 = scene
        .hands
        .iter()
        .flat_map(|hands| hands.status.ports())
        .map(|port| port.counters.received)
        .sum();
    assert_eq!(received, count, "what was sent has come in");
    for hands in &scene.hands {
        let frames = hands.worker.frames();
        assert_eq!((frames.free, frames.lost()), (frames.capacity, 0), "{frames:?}");
        assert_eq!(hands.status.lost_frames(), 0);
    }
    assert_eq!(scene.table.shared().connections.len(), 0);
    for service in scene.table.service_views() {
        for server in service.servers.iter().chain(&service.fallback) {
            let left = (server.active, server.inactive, server.persistent);
            assert_eq!(left, (0, 0, 0), "{:?} {}", service.spec.key, server.spec.address);
        }
    }
    // The table is small: connections have to make room for others, and hashes to do without.
    for (label, _, times) in scene.table.shared().overflow.rows() {
        assert!(times >= 20 * count / 1_000_000, "{label}: {times}: the fuzz is one-sided");
    }
    for (label, least) in LEAST {
        let mut found =
            counts.iter().find(|row| row.0 == *label).expect("a counter of this name").1;
        if *label == "fragment_overlap" {
            found -= scene.over_headers;
        }
        let least = least * count / 1_000_000;
        assert!(found >= least, "{label}: {found} packets, want {least}: the fuzz is one-sided");
    }
}

#[test]
fn the_same_seed_sends_the_same_packets() {
    let [one, again, other] = [1, 1, 2].map(|seed| run(seed, 20_000).counts());
    assert_eq!(one, again, "a failure could not be repeated");
    assert_ne!(one, other);
}

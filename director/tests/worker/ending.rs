//! When a worker ends, every frame of its packet memory is where it belongs: in the pool or in the
//! rings of a port. Whatever the port, and however the worker ends.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use director::control::api::{Forwarding, Protocol};
use director::worker::FrameLedger;
use netio::{
    FaultInjector, Faults, Frame, Held, MemoryPort, PcapPort, Pool, Port, PortCounters, Trace,
};

use crate::bed::{Bed, CLIENT, FRAMES, Front, Options, VIP, at};
use crate::fragments::in_two;
use crate::frames::{ACK, SYN, tcp};
use crate::port::Plain;

/// A server whose address nobody answers for: packets to it wait.
const SILENT: &str = "10.77.0.99:80";

/// What a bad network does to one frame in ten, each.
const BAD: Faults = Faults { drop: 100, duplicate: 100, corrupt: 100, truncate: 100 };

/// Frames that go out, that wait for their next hop, that wait for the rest of their datagram, and
/// that nobody can read.
fn traffic() -> Vec<Vec<u8>> {
    let mut frames = vec![in_two()[1].clone(), tcp(at(CLIENT), at(VIP), ACK)[..40].to_vec()];
    for port in 1001..=1100 {
        let client = at(&format!("198.51.100.7:{port}"));
        frames.extend([tcp(client, at(VIP), SYN), tcp(client, at(VIP), ACK)]);
    }
    frames
}

/// A worker with some packets in its hands; its front port is this one.
fn busy(front: Front) -> Bed {
    let mut bed = Bed::with(vec![Options { front: Some(front), ..Options::default() }]);
    bed.serve(Protocol::Tcp, VIP, &["10.77.0.11:80", SILENT], Forwarding::Nat);
    for frame in traffic() {
        // A port that reads a file leaves what is on the wire alone.
        let _ = bed.hands[0].front.inject(&frame, None);
    }
    for _ in 0..2 {
        bed.hands[0].worker.breath(bed.now).unwrap();
    }
    bed
}

/// Ends the worker. How it ended, and where its frames were in the end.
fn end(mut bed: Bed) -> (io::Result<()>, FrameLedger) {
    let hands = bed.hands.remove(0);
    let outcome = hands.worker.run();
    let frames = hands.status.last_frames().expect("it has told");
    assert_eq!(hands.status.lost_frames(), frames.lost());
    (outcome, frames)
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("ending-{name}-{}.pcap", std::process::id()))
}

#[test]
fn no_frame_is_lost_by_a_worker_that_ends_whatever_its_port() {
    let capture = file("trace");
    let traced = capture.clone();
    let kinds: [(&str, Front); 5] = [
        ("memory", Box::new(|port| Box::new(port))),
        ("without checksums", Box::new(|port| Box::new(Plain(port)))),
        ("faults", Box::new(|port| Box::new(FaultInjector::new(port, 7, BAD, BAD)))),
        ("trace", Box::new(move |port| Box::new(Trace::new(port, &traced).unwrap()))),
        // What the one before has written.
        ("pcap", {
            let capture = capture.clone();
            Box::new(move |_| Box::new(PcapPort::open(Some(&capture), None).unwrap()))
        }),
    ];
    for (kind, front) in kinds {
        let bed = busy(front);
        let before = bed.hands[0].worker.frames();
        assert!(before.waiting > 20, "{kind}: some are not to be in the pool: {before}");
        assert_eq!(before.lost(), 0, "{kind}: {before}");
        let (outcome, frames) = end(bed);
        assert!(outcome.is_ok(), "{kind}");
        assert_eq!((frames.lost(), frames.waiting, frames.in_hand), (0, 0, 0), "{kind}: {frames}");
        assert_eq!(frames.free + frames.held.total(), FRAMES as usize, "{kind}: {frames}");
    }
    std::fs::remove_file(capture).unwrap();
}

/// A port that is not as it should be.
struct Bad {
    port: MemoryPort,
    fault: Fault,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// It forgets the first frame that it receives.
    Leaks,
    /// It has each frame that it receives for itself, too.
    Counts,
    /// It fails with frames in the batch.
    Fails,
}

impl Port for Bad {
    fn describe(&self) -> String {
        "bad".to_owned()
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Vec<Frame>,
        limit: usize,
    ) -> io::Result<usize> {
        let is_first = self.port.counters().received == 0;
        let received = self.port.receive(pool, batch, limit)?;
        match self.fault {
            Fault::Leaks if is_first && received > 0 => {
                // A frame that is dropped is a chunk that nobody has.
                let _ = batch.pop();
                Ok(received - 1)
            }
            Fault::Fails if !is_first && received > 0 => Err(io::ErrorKind::NotConnected.into()),
            _ => Ok(received),
        }
    }

    fn transmit(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>) -> io::Result<()> {
        self.port.transmit(pool, frames)
    }

    fn flush(&mut self, pool: &mut Pool) -> io::Result<()> {
        self.port.flush(pool)
    }

    fn completes_checksums(&self) -> bool {
        true
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> PortCounters {
        self.port.counters()
    }

    fn held(&self) -> Held {
        let receiving = match self.fault {
            Fault::Counts => 3,
            _ => 0,
        };
        Held { receiving, transmitting: 0 }
    }
}

fn bad(fault: Fault) -> Front {
    Box::new(move |port| Box::new(Bad { port, fault }))
}

#[test]
fn a_frame_that_a_port_forgets_or_has_twice_is_noticed() {
    for (fault, lost) in [(Fault::Leaks, 1), (Fault::Counts, 3)] {
        let (outcome, frames) = end(busy(bad(fault)));
        assert!(outcome.is_ok());
        assert_eq!(frames.lost(), lost, "{frames}");
    }
}

#[test]
fn a_worker_that_ends_because_its_port_is_gone_knows_where_its_frames_are() {
    let mut bed = Bed::with(vec![Options { front: Some(bad(Fault::Fails)), ..Options::default() }]);
    bed.serve(Protocol::Tcp, VIP, &["10.77.0.11:80", SILENT], Forwarding::Nat);
    for frame in traffic() {
        assert!(bed.hands[0].front.inject(&frame, None));
    }
    bed.hands[0].worker.breath(bed.now).unwrap();
    let (outcome, frames) = end(bed);
    assert!(outcome.unwrap_err().to_string().contains("bad"));
    assert!(frames.in_hand > 0, "{frames}");
    assert_eq!(frames.lost(), 0, "{frames}");
}

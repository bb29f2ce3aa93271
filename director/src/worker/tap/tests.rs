use std::sync::atomic::Ordering::SeqCst;

use super::*;
use crate::worker::watcher::Watcher;

fn wanted() -> Wanted {
    Wanted {
        forwarded: true,
        passed: EVERY_PASS,
        dropped: EVERY_DROP,
        sample: 1,
        service: None,
        snaplen: 96,
        both: false,
    }
}

/// A worker's side with one tap.
fn tapped(wanted: Wanted) -> (Watcher, Arc<Tap>, Taps) {
    let (taps, tap) = (Taps::default(), Arc::new(Tap::new(wanted, Duration::ZERO)));
    assert!(taps.add(tap.clone()));
    let mut watcher = Watcher::new();
    watcher.refresh(Duration::ZERO, &taps);
    (watcher, tap, taps)
}

/// Outcome, length and copied bytes of all records.
fn records(tap: &Tap) -> Vec<(Outcome, u32, usize)> {
    let mut ring = Vec::new();
    tap.take(&mut ring);
    let (mut rest, mut records) = (&ring[..], Vec::new());
    while let Some((record, next)) = Record::read(rest) {
        records.push((record.outcome, record.length, record.bytes.len()));
        rest = next;
    }
    assert!(rest.is_empty());
    records
}

#[test]
fn every_outcome_comes_out_of_the_ring_as_it_went_in() {
    let mut outcomes = vec![Outcome::Own];
    for &reason in DropReason::ALL {
        outcomes.extend([
            Outcome::Dropped(reason),
            Outcome::Answered(reason),
            Outcome::Lost(reason),
        ]);
    }
    outcomes.extend(PassReason::ALL.iter().map(|&reason| Outcome::Passed(reason)));
    for &method in Method::ALL {
        outcomes.extend([Outcome::Forwarded(method), Outcome::Left(method)]);
    }
    let (_, tap, _) = tapped(wanted());
    for &outcome in &outcomes {
        tap.put(&Record { time: 1, port: 2, outcome, length: 3, bytes: &[] });
    }
    let read: Vec<_> = records(&tap).iter().map(|record| record.0).collect();
    assert_eq!(read, outcomes);
}

#[test]
fn a_full_ring_loses_packets_and_says_how_many() {
    let (mut watcher, tap, _) = tapped(Wanted { snaplen: LONGEST, ..wanted() });
    watcher.remember(0, &[0; 60_000]);
    for _ in 0..20 {
        watcher.note(Outcome::Forwarded(Method::Nat), None);
    }
    let kept = records(&tap).len();
    assert_eq!((kept, tap.lost()), (RING / 60_020, 20 - kept as u64));
    watcher.note(Outcome::Forwarded(Method::Nat), None);
    assert_eq!(records(&tap).len(), 1, "there is room again");
}

#[test]
fn a_capture_has_what_it_asks_for_and_nothing_else() {
    let dropped = 1 << DropReason::NoRoute as u32;
    let only = Wanted { forwarded: false, passed: 0, dropped, sample: 1, ..wanted() };
    let (mut watcher, tap, _) = tapped(only);
    assert!(!watcher.wants_forwarded());
    watcher.remember(0, &[0; 200]);
    for outcome in [
        Outcome::Forwarded(Method::Nat),
        Outcome::Dropped(DropReason::TooBig),
        Outcome::Passed(PassReason::Icmp),
        Outcome::Answered(DropReason::NoRoute),
    ] {
        watcher.note(outcome, None);
    }
    assert_eq!(records(&tap), [(Outcome::Answered(DropReason::NoRoute), 200, 96)]);
}

#[test]
fn a_sample_is_one_in_so_many() {
    let (mut watcher, tap, _) = tapped(Wanted { sample: 10, ..wanted() });
    watcher.remember(0, &[0; 60]);
    for _ in 0..100 {
        watcher.note(Outcome::Forwarded(Method::Nat), None);
    }
    assert_eq!(records(&tap).len(), 10);
}

#[test]
fn leaving_packets_are_only_those_that_were_taken_as_they_came() {
    let (mut watcher, tap, _) = tapped(Wanted { sample: 2, both: true, ..wanted() });
    for _ in 0..4 {
        watcher.remember(0, &[0; 60]);
        watcher.note(Outcome::Forwarded(Method::Direct), None);
        watcher.note_leaving(Outcome::Left(Method::Direct), 1, &[1; 60]);
    }
    assert_eq!(records(&tap).len(), 4);
    watcher.forget();
    watcher.note_leaving(Outcome::Left(Method::Direct), 1, &[1; 60]);
    assert!(records(&tap).is_empty());
}

#[test]
fn after_the_last_tap_has_gone_nothing_is_watched() {
    let (mut watcher, tap, taps) = tapped(wanted());
    assert!(watcher.is_there() && watcher.wants_forwarded());
    drop(taps.remove(&tap));
    watcher.refresh(Duration::ZERO, &taps);
    assert!(!watcher.is_there() && !watcher.wants_forwarded());
    assert_eq!(Arc::strong_count(&tap), 1);
    let many: Vec<_> =
        (0..MOST_TAPS).map(|_| Arc::new(Tap::new(wanted(), Duration::ZERO))).collect();
    assert!(many.iter().all(|tap| taps.add(tap.clone())));
    assert!(!taps.add(tap), "too many");
}

#[test]
fn while_a_ring_is_emptied_every_packet_is_whole_and_in_order_or_counted_as_lost() {
    const PACKETS: u64 = 100_000;
    let tap = Arc::new(Tap::new(wanted(), Duration::ZERO));
    let (worker, done) = (tap.clone(), AtomicBool::new(false));
    let mut seen = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let outcome = Outcome::Forwarded(Method::Nat);
            for time in 0..PACKETS {
                worker.put(&Record { time, port: 0, outcome, length: 60, bytes: &[7; 60] });
            }
            done.store(true, SeqCst);
        });
        let (mut ring, mut last) = (Vec::new(), None);
        loop {
            let is_last = done.load(SeqCst);
            tap.take(&mut ring);
            let mut rest = &ring[..];
            while let Some((record, next)) = Record::read(rest) {
                assert!(last.is_none_or(|last| last < record.time));
                assert_eq!(record.bytes, [7; 60]);
                (last, seen, rest) = (Some(record.time), seen + 1, next);
            }
            assert!(rest.is_empty() && ring.capacity() >= RING);
            if is_last {
                break;
            }
        }
    });
    assert_eq!(seen + tap.lost(), PACKETS);
}

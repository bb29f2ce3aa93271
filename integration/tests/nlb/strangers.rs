//! Frames that only look like heartbeats: forged, repeated, cut. They change nothing and are counted.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::Result;
use director::control::nlb::{NlbCommand, NlbRequest, NlbView};
use netio::ethernet::{self, Wanted};

use crate::bed::{Bed, Site};
use crate::can_run;
use crate::load::{Requests, failed, tally};
use crate::planned::INTERVAL;
use crate::witness::Witness;

const HEARTBEAT: u16 = 0x886f;
const ETHERNET: usize = 14;

/// Heartbeats that a stranger on the segment hears for a while.
fn recorded(socket: &UdpSocket, time: Duration) -> Vec<Vec<u8>> {
    let deadline = Instant::now() + time;
    let mut frames = Vec::new();
    let mut buffer = [0; 1600];
    while Instant::now() < deadline {
        match socket.recv(&mut buffer) {
            Ok(length) => frames.push(buffer[..length].to_vec()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    frames
}

/// Heartbeats that a host did not believe, by reason.
fn refused(bed: &Bed, number: usize) -> Result<BTreeMap<String, u64>> {
    let request = NlbRequest { command: NlbCommand::Params, hosts: None };
    let reply = bed.node(number)?.client()?.nlb(&request)?;
    let views = reply.answers.into_iter().filter_map(|answer| answer.view);
    let counts = views.filter_map(|view| match *view {
        NlbView::Params(params) => Some(params.refused_heartbeats),
        _ => None,
    });
    Ok(counts.flatten().map(|count| (count.reason, count.packets)).collect())
}

/// A frame that is repeated as it was has its sender's Ethernet address. A switch that learned from it
/// would bring that host's traffic to the stranger for a moment: no filter can help there, and it is not
/// what is tried here.
fn no_port_is_stolen(bed: &Bed) {
    let segment = bed.cluster.wire.host();
    let words = ["link", "set", "client-eth0", "type", "bridge_slave", "learning", "off"];
    let done = segment.command("ip").args(words).output(Duration::from_secs(5)).unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn forged_repeated_and_cut_heartbeats_change_nothing_and_are_counted() {
    if !can_run() {
        return;
    }
    let bed = Bed::serving("strangers", Site::new(3)).unwrap();
    let client = &bed.cluster.client;
    no_port_is_stolen(&bed);
    let open = || ethernet::open("eth0", HEARTBEAT, Wanted::All);
    let socket = client.run(open).unwrap().unwrap();
    let heard = recorded(&socket, Duration::from_secs(1));
    assert!(heard.len() >= 9, "the stranger heard {} heartbeats", heard.len());
    let converged = |number: usize| bed.log(number).unwrap().matches("converg").count();
    let before: Vec<usize> = (1..=3).map(converged).collect();
    let counted: Vec<_> = (1..=3).map(|number| refused(&bed, number).unwrap()).collect();

    let witness = Witness::start(&bed.cluster).unwrap();
    let load = Requests::start(client, &[0, 1], INTERVAL);
    let mut sent = [0; 3];
    for frame in &heard {
        // Repeated as it was.
        socket.send(frame).unwrap();
        sent[0] += 1;
        // One bit of it is another.
        for at in (ETHERNET..frame.len()).step_by(7) {
            let mut forged = frame.clone();
            forged[at] ^= 1 << (at % 8);
            socket.send(&forged).unwrap();
            sent[1] += 1;
        }
        // Cut.
        for length in (ETHERNET..frame.len()).step_by(11) {
            socket.send(&frame[..length]).unwrap();
            sent[2] += 1;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    let made = load.finish().unwrap();
    let account = witness.finish().unwrap();
    assert!(failed(&made).is_empty(), "{:?}", tally(&made));
    assert_eq!(account.answered_twice(), Vec::<String>::new());
    for number in 1..=3 {
        assert_eq!(converged(number), before[number - 1], "host {number} converged anew");
        let after = refused(&bed, number).unwrap();
        let more = after.values().sum::<u64>() - counted[number - 1].values().sum::<u64>();
        println!("\nhost {number}: sent {sent:?}, counted {more}: {after:?}");
        // All but the repetitions of a host's own, which it may take for nobody's.
        assert!(more >= sent[1] + sent[2], "host {number} counted {more} of {sent:?}: {after:?}");
        assert!(after.get("replay").copied().unwrap_or(0) > 0, "host {number}: {after:?}");
    }
}

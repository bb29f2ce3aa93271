//! What came out on both sides, next to each other.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::arrival::Arrival;
use super::step::Packet;

/// Differing packets shown of one exchange.
const SHOWN: usize = 3;

/// Sorts what came out by client; each client's packets stay in order, but for resets, which come
/// last, by the port that they are from. What a director leaves to its own stack (which resets) comes out by another way than what
/// it forwards or answers itself, so its place among the others is nobody's promise. Which packet
/// was decided first still shows: every client sends its own.
pub(super) fn by_client_in_order(arrivals: &mut [Arrival]) {
    arrivals.sort_by_key(|arrival| {
        let reset_from =
            arrival.ends().filter(|_| arrival.resets_client()).map(|(_, from, _)| from);
        (arrival.client(), reset_from)
    });
}

/// What differs, in words; `None` when nothing does.
pub(super) fn difference(
    sent: &[Packet],
    [theirs, ours]: [&[Arrival]; 2],
    names: &[String; 2],
) -> Option<String> {
    if theirs == ours {
        return None;
    }
    let mut text = format!(
        "of {} packets ({:?} ...): {} sent {}, {} sent {}",
        sent.len(),
        sent.first(),
        names[0],
        theirs.len(),
        names[1],
        ours.len()
    );
    let length = theirs.len().max(ours.len());
    let differing = (0..length).filter(|&index| theirs.get(index) != ours.get(index));
    for index in differing.take(SHOWN) {
        for (name, arrivals) in names.iter().zip([theirs, ours]) {
            let packet =
                arrivals.get(index).map_or("nothing".into(), |arrival| format!("{arrival:?}"));
            text.push_str(&format!("\n    packet {index}, {name}:\n        {packet}"));
        }
    }
    Some(text)
}

/// For each client, in the order of `sent`: what each side made of its packets.
pub(super) fn fates(sent: &[Packet], sides: [&[Arrival]; 2]) -> Vec<(Packet, [String; 2])> {
    let fates = sides.map(by_client);
    let mut seen = Vec::new();
    let mut rows = Vec::new();
    for packet in sent {
        if seen.contains(&packet.flow) {
            continue;
        }
        seen.push(packet.flow);
        let fate = |side: &BTreeMap<SocketAddr, Vec<String>>| {
            side.get(&packet.flow.client).map_or("-".into(), |fates| fates.join(" "))
        };
        rows.push((*packet, [fate(&fates[0]), fate(&fates[1])]));
    }
    rows
}

fn by_client(arrivals: &[Arrival]) -> BTreeMap<SocketAddr, Vec<String>> {
    let mut map: BTreeMap<SocketAddr, Vec<String>> = BTreeMap::new();
    for arrival in arrivals {
        if let Some(client) = arrival.client() {
            map.entry(client).or_default().push(arrival.fate());
        }
    }
    map
}

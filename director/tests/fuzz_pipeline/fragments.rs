//! Packets in fragments: as senders cut them, and as they should not.

use etherparse::{IpFragOffset, IpHeaders, IpNumber, Ipv6FragmentHeader};

use crate::packets::{Built, write};
use crate::random::Random;

/// A fragment: where it begins, its bytes, and whether it is not the last one.
type Cut = (usize, Vec<u8>, bool);

/// The packet in two fragments or three. One may be lost, they may change places, and there may be
/// one that does not belong there.
pub(crate) fn in_fragments(
    random: &mut Random,
    mut ip: IpHeaders,
    protocol: u8,
    transport: &[u8],
) -> Built {
    let half = (transport.len() / 2).next_multiple_of(8).min(transport.len());
    let mut ends = vec![half, transport.len()];
    if random.chance(300) && transport.len() > half + 8 {
        ends.insert(1, half + 8);
    }
    let mut begin = 0;
    let mut cuts: Vec<Cut> = Vec::new();
    for end in ends {
        cuts.push((begin, transport[begin..end].to_vec(), end != transport.len()));
        begin = end;
    }
    if random.chance(300) {
        let odd = odd_one(random, transport.len());
        cuts.insert(1 + random.below(cuts.len()), odd);
    }
    if random.chance(10) {
        let holes = (1..20)
            .map(|place| (transport.len().next_multiple_of(8) + place * 16, vec![0; 8], true));
        let last = cuts.pop();
        cuts.extend(holes);
        cuts.extend(last);
    }
    let id = random.bits() as u32;
    let mut frames = Vec::new();
    for (begin, bytes, more) in cuts {
        let offset = IpFragOffset::try_new((begin / 8) as u16).expect("within the longest packet");
        match &mut ip {
            IpHeaders::Ipv4(header, _) => {
                (header.identification, header.fragment_offset) = (id as u16, offset);
                (header.more_fragments, header.dont_fragment) = (more, false);
            }
            IpHeaders::Ipv6(_, extensions) => {
                let header = Ipv6FragmentHeader::new(IpNumber(protocol), offset, more, id);
                extensions.fragment = Some(header);
            }
        }
        frames.extend(write(random, ip.clone(), protocol, &bytes));
    }
    if random.chance(150) {
        frames.reverse();
    }
    if random.chance(150) {
        frames.truncate(1);
    }
    Built { frames }
}

/// A fragment of anything from anywhere, near the others or at the end of the world.
fn odd_one(random: &mut Random, length: usize) -> Cut {
    let begin = match random.below(20) {
        0 => 65_528,
        _ => random.below(length / 8 + 2) * 8,
    };
    let odd = if random.chance(200) { random.below(8) } else { 0 };
    let mut bytes = vec![0; random.below(5) * 8 + odd];
    random.fill(&mut bytes);
    (begin, bytes, random.chance(700))
}

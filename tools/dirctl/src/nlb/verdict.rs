//! Exit codes: what a script needs to know of an answer.

use director::control::nlb::{NlbReply, NlbView};

/// Every host did what it was told, or has nothing to worry about; a host takes the packet.
pub const GOOD: u8 = 0;
/// A host refused, or warns; none of the hosts asked takes the packet.
pub const REFUSED: u8 = 1;
/// A host that was asked did not answer.
pub const SILENT: u8 = 3;
/// The hosts disagree.
pub const DISAGREE: u8 = 4;

/// The code of an answer.
pub fn code(reply: &NlbReply) -> u8 {
    if reply.answers.iter().any(|answer| !answer.result.is_good()) {
        return REFUSED;
    }
    let packet = packet(reply);
    if packet == Some(Packet::Disagreement) {
        return DISAGREE;
    }
    let worried = |view: &NlbView| match view {
        NlbView::Query(query) => !query.warnings.is_empty(),
        _ => false,
    };
    let views = || reply.answers.iter().filter_map(|answer| answer.view.as_deref());
    if packet == Some(Packet::Nobody) || views().any(worried) {
        return REFUSED;
    }
    if reply.silent.is_empty() { GOOD } else { SILENT }
}

/// What becomes of a packet, of what several hosts say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// This host takes it.
    Taken(u8),
    /// None of those asked.
    Nobody,
    /// Several take it, or they name different owners.
    Disagreement,
}

/// `None` when no packet was asked about.
pub fn packet(reply: &NlbReply) -> Option<Packet> {
    let mut takers = Vec::new();
    let mut owners = Vec::new();
    let mut asked = false;
    for answer in &reply.answers {
        if let Some(NlbView::Filter(filter)) = answer.view.as_deref() {
            asked = true;
            takers.extend(filter.passes.then_some(answer.host));
            // What every host takes, it takes for itself: nobody owns it.
            owners.push((filter.bucket, filter.owner));
        }
    }
    let by_all = reply.answers.iter().all(|answer| match answer.view.as_deref() {
        Some(NlbView::Filter(filter)) => {
            matches!(filter.reason.as_str(), "control-consumed" | "unmanaged-proto")
        }
        _ => false,
    });
    owners.dedup();
    match takers[..] {
        _ if !asked => None,
        [first, ..] if by_all => Some(Packet::Taken(first)),
        _ if owners.len() > 1 => Some(Packet::Disagreement),
        [] => Some(Packet::Nobody),
        [host] => Some(Packet::Taken(host)),
        _ => Some(Packet::Disagreement),
    }
}

#[cfg(test)]
mod tests {
    use director::control::nlb::views::{FilterView, QueryView};
    use director::control::nlb::{NlbAnswer, NlbResult};

    use super::*;

    fn reply(views: Vec<(NlbResult, Option<NlbView>)>, silent: &[u8]) -> NlbReply {
        let answers = views.into_iter().zip(1..).map(|((result, view), host)| NlbAnswer {
            host,
            name: format!("web{host}"),
            state: "converged".to_owned(),
            result,
            message: None,
            view: view.map(Box::new),
        });
        NlbReply { answers: answers.collect(), silent: silent.to_vec() }
    }

    fn packets(said: &[(bool, u8)]) -> NlbReply {
        let view = |&(passes, owner): &(bool, u8)| {
            let view = FilterView { passes, owner: Some(owner), ..FilterView::default() };
            (NlbResult::Done, Some(NlbView::Filter(view)))
        };
        reply(said.iter().map(view).collect(), &[])
    }

    #[test]
    fn a_packet_is_taken_by_one_by_nobody_or_the_hosts_disagree() {
        for (said, packet, expected) in [
            (&[(false, 2), (true, 2), (false, 2)][..], Packet::Taken(2), GOOD),
            (&[(false, 2), (false, 2)], Packet::Nobody, REFUSED),
            (&[(true, 1), (true, 2)], Packet::Disagreement, DISAGREE),
            (&[(true, 1), (true, 1)], Packet::Disagreement, DISAGREE),
            (&[(false, 2), (true, 1)], Packet::Disagreement, DISAGREE),
        ] {
            let reply = packets(said);
            assert_eq!((super::packet(&reply), code(&reply)), (Some(packet), expected), "{said:?}");
        }
    }

    #[test]
    fn refusals_warnings_and_silence_are_told_apart() {
        use NlbResult::{Already, Done, DrainInterrupted, Suspended};
        assert_eq!(code(&reply(vec![(Done, None), (Already, None)], &[])), GOOD);
        assert_eq!(code(&reply(vec![(DrainInterrupted, None)], &[])), GOOD);
        assert_eq!(code(&reply(vec![(Done, None), (Suspended, None)], &[3])), REFUSED);
        assert_eq!(code(&reply(vec![(Done, None)], &[3])), SILENT);
        let view =
            QueryView { warnings: vec!["the link is down".to_owned()], ..QueryView::default() };
        assert_eq!(code(&reply(vec![(Done, Some(NlbView::Query(view)))], &[])), REFUSED);
    }
}

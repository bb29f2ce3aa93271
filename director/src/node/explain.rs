//! What becomes of a packet in mode nlb: every host of the cluster is asked what its filter does with
//! it, and the answers are put together. Nothing is changed by asking.
//!
//! It knows a packet as bytes and the hosts' answers. How a filter decides is in `answers::explain`.

use std::net::SocketAddr;

use ::nlb::filter::{Reason, quoted_flow};
use ::nlb::tuple::Tuple;
use forwarding::wire::{protocol, tcp};
use forwarding::{Fragment, Headers, parse};

use crate::control::api::{Refusal, RefusalKind};
use crate::control::explain::{Explanation, Outcome, Question, Step};
use crate::control::nlb::views::{FilterView, NlbView};
use crate::control::nlb::{
    FilterQuestion, FlowProtocol, NlbAnswer, NlbCommand, NlbReply, NlbRequest, TcpFlag,
};
use crate::control::operations::Operations;
use crate::explain::frame_from_hex;

/// What another segment's packets meet.
const OTHER_INTERFACE: &str = "The filter is on another interface: the host's own stack has it.";

/// What a packet for another address meets.
const NOT_VIRTUAL: &str =
    "Its destination is no virtual address: the filter leaves it to the host's own stack.";

/// Which host a packet comes to, and why it does not come to the others. `ask` puts a question to
/// all hosts; `vips` are the virtual addresses, `interface` is where the filter is.
///
/// # Errors
/// What is no packet, or none that the filter's question has words for.
pub(super) fn explain(
    question: &Question,
    vips: &[std::net::IpAddr],
    interface: &str,
    ask: impl FnOnce(NlbRequest) -> Result<NlbReply, Refusal>,
) -> Result<Explanation, Refusal> {
    let frame = frame_from_hex(&question.packet).map_err(bad)?;
    let headers = parse(&frame).map_err(|error| bad(format!("the packet is none: {error}")))?;
    let asked = words(&frame, &headers)?;
    let mut explanation = Explanation {
        packet: asked.as_ref().map_or_else(
            || {
                format!(
                    "IP protocol {} {} -> {}",
                    headers.protocol, headers.source, headers.destination
                )
            },
            describe,
        ),
        outcome: Outcome::Passed,
        reason: String::new(),
        meaning: String::new(),
        steps: Vec::new(),
        changes: Vec::new(),
        answer: None,
        assumed: Vec::new(),
    };
    if let Some(name) = question.interface.as_deref()
        && name != interface
    {
        passed(&mut explanation, "not_filtered", OTHER_INTERFACE);
        explanation.steps.push(step(format!("the filter is on {interface}, not on {name}")));
        return Ok(explanation);
    }
    if !vips.contains(&headers.destination) {
        let all: Vec<String> = vips.iter().map(ToString::to_string).collect();
        passed(&mut explanation, "not_virtual", NOT_VIRTUAL);
        let (all, to) = (all.join(", "), headers.destination);
        explanation.steps.push(step(format!("{to} is no virtual address: there are {all}")));
        return Ok(explanation);
    }
    let Some(asked) = asked else {
        passed(
            &mut explanation,
            Reason::UnmanagedProto.label(),
            Reason::UnmanagedProto.explanation(),
        );
        explanation.steps.push(step("every host takes it, for its own stack".to_owned()));
        return Ok(explanation);
    };
    if quoted_flow(&frame).is_some() {
        explanation.steps.push(step(format!(
            "an ICMP error is where the connection is that it is about: {}",
            describe(&asked)
        )));
        explanation.packet = format!("ICMP error {} -> {}", headers.source, headers.destination);
    }
    let command = NlbCommand::Filter(asked);
    let reply = ask(NlbRequest { command, hosts: Some("all".to_owned()) })?;
    conclude(&mut explanation, &reply);
    Ok(explanation)
}

fn passed(explanation: &mut Explanation, reason: &str, meaning: &str) {
    (explanation.reason, explanation.meaning) = (reason.to_owned(), meaning.to_owned());
}

fn bad(message: String) -> Refusal {
    Refusal { error: RefusalKind::BadRequest, message }
}

/// A packet that the filter's question has no words for.
fn unfit(message: String) -> Refusal {
    Refusal { error: RefusalKind::Invalid, message }
}

fn step(text: String) -> Step {
    Step { stage: "filter".to_owned(), text, details: Vec::new() }
}

/// The packet as the question of a filter; `None` of one that no filter balances.
fn words(frame: &[u8], headers: &Headers) -> Result<Option<FilterQuestion>, Refusal> {
    if matches!(headers.fragment, Fragment::Later { .. }) {
        return Err(unfit(
            "a later fragment goes where the first one went: ask about that".to_owned(),
        ));
    }
    let kind = frame.get(headers.l4).copied();
    let protocol = match (headers.protocol, kind) {
        (protocol::TCP, _) => FlowProtocol::Tcp,
        (protocol::UDP, _) => FlowProtocol::Udp,
        (protocol::GRE, _) => FlowProtocol::Gre,
        (protocol::ICMP, Some(8)) | (protocol::ICMPV6, Some(128)) => FlowProtocol::Icmp,
        _ => return Ok(quoted_flow(frame).map(about)),
    };
    let flags = [
        (tcp::SYN, TcpFlag::Syn),
        (tcp::ACK, TcpFlag::Ack),
        (tcp::FIN, TcpFlag::Fin),
        (tcp::RST, TcpFlag::Rst),
    ];
    let is_set = |bit: u8| protocol == FlowProtocol::Tcp && headers.tcp_flags & bit != 0;
    Ok(Some(FilterQuestion {
        protocol,
        client: headers.source,
        client_port: headers.source_port,
        vip: headers.destination,
        port: headers.destination_port,
        flags: flags.into_iter().filter(|(bit, _)| is_set(*bit)).map(|(_, flag)| flag).collect(),
    }))
}

/// What a filter is asked of an ICMP error about this flow: where a packet in the midst of it goes.
fn about(flow: Tuple) -> FilterQuestion {
    let (protocol, flags) = match flow.protocol {
        protocol::TCP => (FlowProtocol::Tcp, vec![TcpFlag::Ack]),
        _ => (FlowProtocol::Udp, Vec::new()),
    };
    FilterQuestion {
        protocol,
        client: flow.client,
        client_port: flow.client_port,
        vip: flow.vip,
        port: flow.vip_port,
        flags,
    }
}

fn describe(asked: &FilterQuestion) -> String {
    let name = match asked.protocol {
        FlowProtocol::Tcp => "TCP",
        FlowProtocol::Udp => "UDP",
        FlowProtocol::Gre => return format!("GRE {} -> {}", asked.client, asked.vip),
        FlowProtocol::Icmp => return format!("ICMP echo {} -> {}", asked.client, asked.vip),
    };
    let from = SocketAddr::new(asked.client, asked.client_port);
    let to = SocketAddr::new(asked.vip, asked.port);
    let flags = asked.flags.iter().map(|flag| match flag {
        TcpFlag::Syn => "SYN",
        TcpFlag::Ack => "ACK",
        TcpFlag::Fin => "FIN",
        TcpFlag::Rst => "RST",
    });
    let flags = flags.collect::<Vec<_>>().join("+");
    let gap = if flags.is_empty() { "" } else { " " };
    format!("{name}{gap}{flags} {from} -> {to}")
}

/// What the hosts' answers come to.
fn conclude(explanation: &mut Explanation, reply: &NlbReply) {
    let mut takers = Vec::new();
    let mut first = None;
    for answer in &reply.answers {
        let Some(NlbView::Filter(view)) = answer.view.as_deref() else {
            let why = answer.message.as_deref().unwrap_or("it does not say why");
            let text = format!("{} cannot say ({}): {why}", who(answer), answer.result.label());
            explanation.steps.push(step(text));
            continue;
        };
        if first.is_none() {
            explanation.steps.push(placed(view));
            first = Some(view);
        }
        if view.passes {
            takers.push((answer, view));
        }
        explanation.steps.push(said(answer, view));
    }
    for host in &reply.silent {
        explanation
            .assumed
            .push(format!("host {host} does not answer: it may take the packet too"));
    }
    let (outcome, reason, meaning) = match (&takers[..], first) {
        ([(_, view)], _) => (Outcome::Forwarded, view.reason.clone(), view.meaning.clone()),
        ([(_, view), ..], _) if is_for_all(view) => {
            (Outcome::Passed, view.reason.clone(), view.meaning.clone())
        }
        ([], Some(view)) => {
            let (reason, meaning) = why_nobody(reply, view);
            (Outcome::Dropped, reason, meaning)
        }
        ([], None) => {
            let meaning = "No host could say what its filter does with it.".to_owned();
            (Outcome::Dropped, "no_answer".to_owned(), meaning)
        }
        ([..], _) => {
            let hosts: Vec<String> = takers.iter().map(|(it, _)| it.host.to_string()).collect();
            let meaning = format!(
                "Hosts {} all take it: the cluster is not of one mind (`dirctl nlb query`).",
                hosts.join(", ")
            );
            (Outcome::Dropped, "hosts_disagree".to_owned(), meaning)
        }
    };
    (explanation.outcome, explanation.reason, explanation.meaning) = (outcome, reason, meaning);
}

/// Why no host takes it: its owner knows best. `any`: what one of the hosts says.
fn why_nobody(reply: &NlbReply, any: &FilterView) -> (String, String) {
    let of_owner = reply.answers.iter().find(|answer| Some(answer.host) == any.owner);
    let Some(NlbView::Filter(view)) = of_owner.and_then(|answer| answer.view.as_deref()) else {
        return (any.reason.clone(), any.meaning.clone());
    };
    if view.reason != Reason::NotOwner.label() {
        return (view.reason.clone(), view.meaning.clone());
    }
    let who = of_owner.map(who).unwrap_or_default();
    let meaning = format!(
        "The bucket is given to {who}, which does not serve it yet: buckets change hands within a few \
         heartbeats of a convergence. Ask again."
    );
    ("handover".to_owned(), meaning)
}

/// What every host takes for itself: nobody owns it.
fn is_for_all(view: &FilterView) -> bool {
    matches!(view.reason.as_str(), "control-consumed" | "unmanaged-proto")
}

fn who(answer: &NlbAnswer) -> String {
    format!("host {} ({})", answer.host, answer.name)
}

/// Where the rules put the packet; the same on all hosts.
fn placed(view: &FilterView) -> Step {
    let rule = view.rule.as_deref().unwrap_or("none, so the default rule");
    let mut place = Step { stage: "rule".to_owned(), text: rule.to_owned(), details: Vec::new() };
    if let (Some(slot), Some(bucket)) = (view.slot, view.bucket) {
        place.details.push(format!("slot {slot}, bucket {bucket}"));
    }
    match view.owner {
        Some(owner) => place.details.push(format!("the bucket is host {owner}'s")),
        None if view.bucket.is_some() => place.details.push("the bucket is nobody's".to_owned()),
        None => {}
    }
    place
}

/// What one host does with it.
fn said(answer: &NlbAnswer, view: &FilterView) -> Step {
    let does = if view.passes { "takes it" } else { "drops it" };
    let mut told = step(format!("{} {does} ({}): {}", who(answer), view.reason, view.meaning));
    if let Some(held) = &view.held {
        told.details.push(format!("it holds the flow: {held}"));
    }
    if view.tainted {
        told.details.push("another host still holds flows of the bucket".to_owned());
    }
    told
}

/// For the control API.
pub(super) fn of(
    control: &super::operations::Control,
    question: &Question,
) -> Result<Explanation, Refusal> {
    let (vips, interface) = control.place();
    explain(question, &vips, &interface, |request| control.nlb(request))
}

#[cfg(test)]
mod tests {
    use etherparse::{IpHeaders, PacketBuilder, PacketBuilderStep};

    use super::*;
    use crate::control::nlb::NlbResult;
    use crate::explain::to_hex;

    fn answer(host: u8, passes: bool) -> NlbAnswer {
        let view = FilterView {
            passes,
            reason: if passes { "owned" } else { "not-owner" }.to_owned(),
            meaning: "as the test says".to_owned(),
            slot: Some(1),
            bucket: Some(40),
            owner: Some(2),
            ..FilterView::default()
        };
        NlbAnswer {
            host,
            name: format!("node{host}"),
            state: "converged".to_owned(),
            result: NlbResult::Done,
            message: None,
            view: Some(Box::new(NlbView::Filter(view))),
        }
    }

    fn from(client: [u8; 4], to: &str) -> PacketBuilderStep<IpHeaders> {
        let to: std::net::Ipv4Addr = to.parse().unwrap();
        PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(client, to.octets(), 64)
    }

    fn ask(to: &str, interface: Option<&str>, takers: &[u8]) -> Explanation {
        let mut frame = Vec::new();
        let syn = from([198, 51, 100, 7], to).tcp(41_000, 80, 1, 1000).syn();
        syn.write(&mut frame, &[]).unwrap();
        ask_about(&frame, interface, TcpFlag::Syn, takers)
    }

    fn ask_about(
        frame: &[u8],
        interface: Option<&str>,
        flag: TcpFlag,
        takers: &[u8],
    ) -> Explanation {
        let question = Question { packet: to_hex(frame), interface: interface.map(str::to_owned) };
        let vips = ["192.0.2.10".parse().unwrap()];
        explain(&question, &vips, "eth0", |request| {
            let NlbCommand::Filter(asked) = request.command else { panic!("another question") };
            assert_eq!((asked.client_port, asked.port), (41_000, 80));
            assert_eq!(asked.flags, [flag]);
            let answers = (1..4).map(|host| answer(host, takers.contains(&host))).collect();
            Ok(NlbReply { answers, silent: vec![4] })
        })
        .unwrap()
    }

    #[test]
    fn the_host_that_takes_a_packet_is_named_and_those_that_do_not() {
        let told = ask("192.0.2.10", None, &[2]);
        assert_eq!((told.outcome, told.reason.as_str()), (Outcome::Forwarded, "owned"));
        assert_eq!(told.packet, "TCP SYN 198.51.100.7:41000 -> 192.0.2.10:80");
        let texts: Vec<&str> = told.steps.iter().map(|step| step.text.as_str()).collect();
        assert!(texts[1].starts_with("host 1 (node1) drops it"), "{texts:?}");
        assert!(texts[2].starts_with("host 2 (node2) takes it"), "{texts:?}");
        assert_eq!(told.steps[0].details[1], "the bucket is host 2's");
        assert!(told.assumed[0].starts_with("host 4 does not answer"));
    }

    #[test]
    fn a_packet_that_nobody_takes_or_two_do_is_not_called_served() {
        let nobody = ask("192.0.2.10", None, &[]);
        assert_eq!((nobody.outcome, nobody.reason.as_str()), (Outcome::Dropped, "handover"));
        assert!(nobody.meaning.contains("given to host 2 (node2)"), "{}", nobody.meaning);
        let both = ask("192.0.2.10", None, &[1, 3]);
        assert_eq!((both.outcome, both.reason.as_str()), (Outcome::Dropped, "hosts_disagree"));
        assert!(both.meaning.starts_with("Hosts 1, 3 all take it"));
    }

    #[test]
    fn what_every_host_takes_for_itself_is_no_disagreement() {
        let mut told = ask("192.0.2.10", None, &[]);
        let mut answers: Vec<NlbAnswer> = (1..4).map(|host| answer(host, true)).collect();
        for answer in &mut answers {
            let Some(NlbView::Filter(view)) = answer.view.as_deref_mut() else { unreachable!() };
            "unmanaged-proto".clone_into(&mut view.reason);
        }
        conclude(&mut told, &NlbReply { answers, silent: Vec::new() });
        assert_eq!((told.outcome, told.reason.as_str()), (Outcome::Passed, "unmanaged-proto"));
    }

    /// A path's MTU is told to the host that has the connection, by a router on the way.
    #[test]
    fn an_icmp_error_is_asked_about_as_the_connection_that_it_quotes() {
        let mut quote = Vec::new();
        let answer = PacketBuilder::ipv4([192, 0, 2, 10], [198, 51, 100, 7], 60);
        answer.tcp(80, 41_000, 1, 1000).write(&mut quote, &[]).unwrap();
        let mut frame = Vec::new();
        let router = from([203, 0, 113, 1], "192.0.2.10");
        router.icmpv4_raw(3, 4, [0, 0, 5, 0]).write(&mut frame, &quote).unwrap();
        let told = ask_about(&frame, None, TcpFlag::Ack, &[2]);
        assert_eq!((told.outcome, told.reason.as_str()), (Outcome::Forwarded, "owned"));
        assert_eq!(told.packet, "ICMP error 203.0.113.1 -> 192.0.2.10");
        let first = &told.steps[0].text;
        assert!(first.ends_with("about: TCP ACK 198.51.100.7:41000 -> 192.0.2.10:80"), "{first}");
    }

    #[test]
    fn what_no_filter_balances_is_every_hosts() {
        let mut sctp = Vec::new();
        let number = etherparse::IpNumber::SCTP;
        from([198, 51, 100, 7], "192.0.2.10").write(&mut sctp, number, &[0; 12]).unwrap();
        let mut pong = Vec::new();
        let router = from([198, 51, 100, 7], "192.0.2.10");
        router.icmpv4_raw(0, 0, [0; 4]).write(&mut pong, &[]).unwrap();
        for frame in [sctp, pong] {
            let told = ask_about(&frame, None, TcpFlag::Ack, &[]);
            assert_eq!((told.outcome, told.reason.as_str()), (Outcome::Passed, "unmanaged-proto"));
        }
    }

    #[test]
    fn what_the_filter_does_not_see_is_the_hosts_own() {
        assert_eq!(ask("192.0.2.11", None, &[1]).reason, "not_virtual");
        assert_eq!(ask("192.0.2.10", Some("eth1"), &[1]).reason, "not_filtered");
        assert_eq!(ask("192.0.2.10", Some("eth0"), &[1]).outcome, Outcome::Forwarded);
    }

    #[test]
    fn what_is_no_packet_is_refused_with_a_reason() {
        for packet in ["", "0", "zz", "0102"] {
            let question = Question { packet: packet.to_owned(), interface: None };
            let refusal = explain(&question, &[], "eth0", |_| unreachable!()).unwrap_err();
            assert_eq!(refusal.error, RefusalKind::BadRequest, "{packet:?}");
        }
    }
}

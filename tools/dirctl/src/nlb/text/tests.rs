use director::control::nlb::NlbResult;
use director::control::nlb::views::*;

use super::*;

fn reply(views: Vec<NlbView>) -> NlbReply {
    let answers = views.into_iter().zip(1..).map(|(view, host)| NlbAnswer {
        host,
        name: format!("web{host}"),
        state: "converged".to_owned(),
        result: NlbResult::Done,
        message: None,
        view: Some(Box::new(view)),
    });
    NlbReply { answers: answers.collect(), silent: vec![] }
}

fn shown(view: NlbView) -> String {
    text(&reply(vec![view]), None, Paint::default())
}

#[test]
fn query_shows_members_states_and_warnings() {
    let host = |id: u8, state: &str, silent| HostView {
        host: id,
        name: format!("web{id}"),
        state: state.to_owned(),
        heard: true,
        silent,
        addresses: vec![[192, 0, 2, 10 + id].into()],
        flows: 7,
        same_configuration: true,
    };
    let view = QueryView {
        cluster: "192.0.2.10".to_owned(),
        members: vec![1, 2],
        epoch: 4,
        convergences: 3,
        last_began: Some(64.0),
        last_ended: Some(61.0),
        drain: Some(DrainView { since: 1.0, left: Some(90.0), flows_at_start: 9, flows_left: 7 }),
        hosts: vec![host(1, "draining", 0.0), host(2, "converged\u{1b}[2J", 0.42)],
        warnings: vec!["heartbeats pass in one direction only".to_owned()],
        ..QueryView::default()
    };
    assert_eq!(
        shown(NlbView::Query(view)),
        "\
host 1 (web1): converged
  cluster   192.0.2.10, members 1, 2 (epoch 4)
  converged 3 times, last 1 min 1 s ago
  draining  7 of 9 connections left, 1 min 30 s at most

  host  name  state          flows  heard  addresses
     1  web1  draining           7  0.0 s  192.0.2.11
     2  web2  converged [2J      7  0.4 s  192.0.2.12
  ! heartbeats pass in one direction only
"
    );
}

#[test]
fn filter_says_who_takes_a_packet_and_whether_the_hosts_agree() {
    let view = |passes, reason: &str| FilterView {
        passes,
        reason: reason.to_owned(),
        meaning: "because".to_owned(),
        rule: Some("tcp 80 of 192.0.2.10".to_owned()),
        slot: Some(2),
        bucket: Some(1234),
        owner: Some(2),
        serving: passes,
        ..FilterView::default()
    };
    let both = reply(vec![
        NlbView::Filter(view(false, "not-owner")),
        NlbView::Filter(view(true, "own-bucket")),
    ]);
    assert_eq!(
        text(&both, None, Paint::default()),
        "\
host 1 (web1): converged
  drops it: not-owner (because)
  rule tcp 80 of 192.0.2.10, slot 2, bucket 1234, owner host 2
host 2 (web2): converged
  takes it: own-bucket (because)
  rule tcp 80 of 192.0.2.10, slot 2, bucket 1234, owner host 2, served here
Host 2 takes it; the others agree.
"
    );
    let twice = reply(vec![NlbView::Filter(view(true, "x")), NlbView::Filter(view(true, "x"))]);
    assert!(text(&twice, None, Paint::default()).contains("The hosts disagree"));
}

#[test]
fn maps_history_and_connections_are_tables() {
    let slot = SlotView {
        slot: 2,
        rules: vec!["tcp 80 of 192.0.2.10".to_owned()],
        now: [(1, 2048), (2, 2048)].into(),
        then: [(1, 4096)].into(),
        moved: 2048,
    };
    assert_eq!(
        shown(NlbView::Map(MapView { slots: vec![slot] })),
        "\
host 1 (web1): converged
  slot  host   now  then  moved  rules
     2     1  2048  4096   2048  tcp 80 of 192.0.2.10
           2  2048     0
"
    );
    let past = ConvergenceView {
        began: 61.0,
        took: Some(2.515),
        from: vec![1],
        to: vec![1, 2],
        cause: "new-member".to_owned(),
        host: Some(2),
    };
    assert_eq!(
        shown(NlbView::History(HistoryView { convergences: vec![past] })),
        "\
host 1 (web1): converged
          began    took  cause         from  to
  1 min 1 s ago  2.52 s  new-member 2  1     1, 2
"
    );
    let flow = FlowView {
        protocol: "tcp".to_owned(),
        client: [203, 0, 113, 7].into(),
        client_port: 40000,
        vip: [192, 0, 2, 10].into(),
        port: 80,
        held: "socket".to_owned(),
        owner: None,
    };
    let text = shown(NlbView::Connections(ConnectionsView { total: 9, flows: vec![flow] }));
    assert!(text.ends_with("  9 flows, 1 shown: --limit shows more\n"), "{text}");
    assert!(text.contains("  tcp       203.0.113.7:40000  192.0.2.10:80    socket       -\n"));
}

#[test]
fn a_command_is_answered_with_its_result_and_a_refusal_with_its_remedy() {
    let mut reply = reply(vec![]);
    reply.answers.push(NlbAnswer {
        host: 1,
        name: "web1".to_owned(),
        state: "draining".to_owned(),
        result: NlbResult::Done,
        message: None,
        view: None,
    });
    reply.answers.push(NlbAnswer {
        result: NlbResult::Suspended,
        message: Some("resume it first".to_owned()),
        ..reply.answers[0].clone()
    });
    reply.silent.push(3);
    assert_eq!(
        text(&reply, None, Paint::default()),
        "host 1 (web1): done, draining\nhost 1 (web1): suspended: resume it first\nNo answer from host 3\n"
    );
}

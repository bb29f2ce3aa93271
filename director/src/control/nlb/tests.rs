use super::*;

#[test]
fn commands_are_flat_objects_as_the_documentation_shows_them() {
    let all = |text: &str| serde_json::from_str::<NlbRequest>(text).unwrap();
    for (text, command) in [
        (r#"{"op":"query"}"#, NlbCommand::Query),
        (r#"{"op":"drainstop","deadline":60}"#, NlbCommand::Drainstop { deadline: Some(60) }),
        (r#"{"op":"drainstop"}"#, NlbCommand::Drainstop { deadline: None }),
        (
            r#"{"op":"weight","target":"192.0.2.10:80","weight":20}"#,
            NlbCommand::Weight { target: "192.0.2.10:80".parse().unwrap(), weight: 20 },
        ),
        (r#"{"op":"connections"}"#, NlbCommand::Connections { limit: 1000 }),
        (
            r#"{"op":"map","without":[3],"weights":{"2":20}}"#,
            NlbCommand::Map(WhatIf {
                without: vec![3],
                weights: [(2, 20)].into(),
                ..WhatIf::default()
            }),
        ),
    ] {
        assert_eq!(all(text), NlbRequest { command, hosts: None }, "{text}");
    }
    let request = all(r#"{"op":"stop","hosts":"all"}"#);
    assert_eq!(request.hosts.as_deref(), Some("all"));
    assert_eq!(serde_json::to_string(&request).unwrap(), r#"{"op":"stop","hosts":"all"}"#);
    let question = r#"{"op":"filter","protocol":"tcp","client":"203.0.113.7","client_port":40000,"vip":"192.0.2.10","port":80,"flags":["syn"]}"#;
    assert_eq!(serde_json::to_string(&all(question)).unwrap(), question);
}

#[test]
fn a_command_with_a_wrong_target_is_refused_by_the_notation() {
    let refused = serde_json::from_str::<NlbRequest>(r#"{"op":"drain","target":"80"}"#);
    assert!(refused.unwrap_err().to_string().contains("VIP:PORT"));
    assert!(serde_json::from_str::<NlbRequest>(r#"{"op":"explode"}"#).is_err());
    assert!(serde_json::from_str::<NlbRequest>(r#"{"op":"weight","target":"all"}"#).is_err());
}

#[test]
fn results_have_the_words_of_the_answers_of_membership() {
    for answer in Answer::ALL {
        let result = NlbResult::from(answer);
        assert_eq!(result.label(), answer.label());
        assert_eq!(serde_json::to_value(result).unwrap(), answer.label());
    }
}

#[test]
fn ethernet_addresses_are_the_published_ones() {
    let macs = views::MacsView::of("1.2.33.44".parse().unwrap());
    assert_eq!(
        [macs.unicast, macs.multicast, macs.igmp, macs.group],
        ["02-BF-01-02-21-2C", "03-BF-01-02-21-2C", "01-00-5E-7F-21-2C", "239.255.33.44"]
    );
}

#[test]
fn every_view_comes_back_as_it_was_sent() {
    use views::*;
    let map = SlotView { now: [(2, 4096)].into(), ..SlotView::default() };
    for view in [
        NlbView::Query(QueryView { last_began: Some(1.5), ..QueryView::default() }),
        NlbView::Rules(RulesView { rules: vec![RuleView::default()] }),
        NlbView::Display(Box::default()),
        NlbView::Filter(FilterView { bucket: Some(4095), ..FilterView::default() }),
        NlbView::History(HistoryView { convergences: vec![ConvergenceView::default()] }),
        NlbView::Connections(ConnectionsView::default()),
        NlbView::Map(MapView { slots: vec![map] }),
        NlbView::Capacity(CapacityView { dropped: 30.5, passed: 0.25, served: 1e3 }),
    ] {
        let answer = NlbAnswer {
            host: 1,
            name: "a".to_owned(),
            state: "stopped".to_owned(),
            result: NlbResult::Done,
            message: None,
            view: Some(Box::new(view)),
        };
        let reply = NlbReply { answers: vec![answer], silent: vec![2] };
        let text = serde_json::to_string(&reply).unwrap();
        assert_eq!(serde_json::from_str::<NlbReply>(&text).unwrap(), reply, "{text}");
    }
}

use director::control::nlb::NlbAnswer;
use director::control::nlb::views::{MacsView, ParamsView, QueryView, RuleView};

use super::*;

fn said(line: &str) -> Result<Option<Said>, String> {
    parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
}

fn good(line: &str) -> Said {
    said(line).unwrap().unwrap()
}

#[test]
fn hosts_are_named_in_the_old_ways() {
    for (line, cluster, hosts) in [
        ("query", None, None),
        ("QUERY all", None, None),
        ("query all local", None, None),
        ("query ALL GLOBAL", None, Some("all")),
        ("query 192.0.2.10", Some("192.0.2.10"), Some("all")),
        ("query 192.0.2.10:2", Some("192.0.2.10"), Some("2")),
        ("query 192.0.2.10:web2", Some("192.0.2.10"), Some("web2")),
        ("query 192.0.2.10:192.0.2.12", Some("192.0.2.10"), Some("192.0.2.12")),
        ("query 2001:db8::10", Some("2001:db8::10"), Some("all")),
        ("query [2001:db8::10]:2", Some("2001:db8::10"), Some("2")),
        ("query 192.0.2.10:2 /LOCAL", Some("192.0.2.10"), None),
    ] {
        let said = good(line);
        assert_eq!(said.request.command, NlbCommand::Query, "{line}");
        assert_eq!(said.request.hosts.as_deref(), hosts, "{line}");
        assert_eq!(said.cluster.map(|it| it.to_string()).as_deref(), cluster, "{line}");
    }
}

#[test]
fn rules_come_before_hosts_and_options_anywhere() {
    let said = good("drain /passw secret 192.0.2.10:80 192.0.2.10:2 /keyfile k");
    let target = "192.0.2.10:80".parse().unwrap();
    assert_eq!(said.request.command, NlbCommand::Drain { target });
    assert_eq!(said.request.hosts.as_deref(), Some("2"));
    assert_eq!(said.key_file, Some(PathBuf::from("k")));
    assert!(said.notes[0].contains("sealed with the cluster's key"), "{:?}", said.notes);
    assert_eq!(good("queryport all:80").shown, Some("all:80".parse().unwrap()));
    assert_eq!(good("stop /PORT 1717 /TIMEOUT 5").notes.len(), 2);
    for wish in ["help", "query /?"] {
        assert_eq!(said_or_help(wish), None);
    }
}

fn said_or_help(line: &str) -> Option<Said> {
    said(line).unwrap()
}

#[test]
fn wrong_words_are_named_with_what_to_write() {
    for (line, says) in [
        ("halt", "halt is no command: one of help, start"),
        ("stop now", "now: write the cluster's primary address"),
        ("stop 192.0.2.10: x", "192.0.2.10:: write the cluster's"),
        ("stop 192.0.2.10 x", "stop: x is one word too many"),
        ("stop all here", "all here: write all local or all global"),
        ("drain", "drain: name the rules"),
        ("drain http", "drain: \"http\" names no port rules"),
        ("ip2mac x", "ip2mac: x is no address"),
        ("stop /FORCE", "/FORCE is no option"),
        ("stop /KEYFILE k", "/KEYFILE needs the cluster's address"),
    ] {
        let problem = said(line).unwrap_err();
        assert!(problem.starts_with(says), "{line}: {problem}");
    }
}

fn reply(result: NlbResult, view: Option<NlbView>) -> NlbReply {
    let answer = NlbAnswer {
        host: 2,
        name: "web2".to_owned(),
        state: "converged".to_owned(),
        result,
        message: None,
        view: view.map(Box::new),
    };
    NlbReply { answers: vec![answer], silent: vec![3] }
}

#[test]
fn answers_are_sentences() {
    let view = QueryView {
        cluster: "192.0.2.10".to_owned(),
        members: vec![1, 2],
        convergences: 3,
        last_ended: Some(61.0),
        ..QueryView::default()
    };
    assert_eq!(
        text(&good("query"), &reply(NlbResult::Done, Some(NlbView::Query(view)))),
        "Cluster 192.0.2.10\n\
         Host 2 (web2) has begun to converge 3 times, the last ended 1 min 1 s ago.\n\
         Host 2 (web2) is converged with hosts 1, 2 as members.\n\
         No answer from host 3.\n"
    );
    for (line, result, expected) in [
        ("start", NlbResult::Done, "it joins the cluster."),
        ("start", NlbResult::Already, "it is in the cluster already."),
        ("stop", NlbResult::DrainInterrupted, "it has left the cluster; a drain was cut short."),
        ("stop", NlbResult::Suspended, "refused (suspended)."),
    ] {
        let text = text(&good(line), &reply(result, None));
        assert!(text.starts_with(&format!("Host 2 (web2): {expected}\n")), "{line}: {text}");
    }
    let macs = MacsView::of("1.2.33.44".parse().unwrap());
    let text = text(&good("ip2mac 1.2.33.44"), &reply(NlbResult::Done, Some(NlbView::Macs(macs))));
    assert!(text.contains("Unicast:         02-BF-01-02-21-2C\n"), "{text}");
}

#[test]
fn queryport_shows_the_rules_it_was_asked_for() {
    let rule = |port| RuleView {
        rule: format!("tcp {port} of 192.0.2.10"),
        vip: Some([192, 0, 2, 10].into()),
        first_port: port,
        last_port: port,
        state: "draining".to_owned(),
        ..RuleView::default()
    };
    let view = ParamsView { rules: vec![rule(80), rule(443)], ..ParamsView::default() };
    let reply = reply(NlbResult::Done, Some(NlbView::Params(view)));
    let shown = text(&good("queryport 192.0.2.10:443"), &reply);
    assert!(shown.contains("tcp 443") && !shown.contains("tcp 80"), "{shown}");
    assert!(text(&good("queryport all:81"), &reply).contains("no rule for all:81."));
}

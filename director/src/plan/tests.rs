//! Two files, and what runs.

use super::*;
use crate::config::parse;
use crate::control::api::Stats;

const FILE: &str = r#"
interfaces = ["eth0"]
[timeouts]
tcp = "900s"
[[service]]
listen = "192.0.2.10:80/tcp"
scheduler = "rr"
forwarding = "nat"
    [[service.server]]
    address = "10.0.0.1:80"
    [[service.server]]
    address = "10.0.0.2:80"
[[service]]
listen = "192.0.2.10:81/tcp"
scheduler = "rr"
forwarding = "nat"
gone_server = "rst"
    [[service.server]]
    address = "10.0.0.1:81"
"#;

fn config(text: &str) -> Config {
    parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// What runs when the director follows `config` and nobody has done anything; each server has seven
/// connections.
fn running(config: &Config) -> Now {
    let view = |spec: &ServerSpec| ServerView {
        spec: spec.clone(),
        effective_weight: spec.weight,
        local: false,
        active: 5,
        inactive: 2,
        persistent: 0,
        picks: 0,
        stats: Stats::default(),
    };
    let services = config.services.iter().map(|declared| ServiceView {
        spec: declared.service.clone(),
        declared: true,
        stats: Stats::default(),
        servers: declared.servers.iter().rev().map(view).collect(),
        fallback: declared.fallback.as_ref().map(view),
    });
    let settings = Setting::ALL.iter().map(|one| (one.name().to_owned(), one.default()));
    Now {
        services: services.collect(),
        settings: settings.collect(),
        timeouts: config.timeouts.unwrap(),
        marks: config.marks.clone(),
    }
}

fn planned(text: &str) -> Plan {
    let old = config(FILE);
    plan("new.toml", &old, &config(text), &running(&old))
}

#[track_caller]
fn the_only<T: Clone>(all: &[T]) -> T {
    assert_eq!(all.len(), 1);
    all[0].clone()
}

fn fields(changes: &[FieldChange]) -> Vec<(&str, &str, &str)> {
    changes.iter().map(|it| (it.field.as_str(), it.old.as_str(), it.new.as_str())).collect()
}

#[test]
fn the_same_file_with_other_words_and_blanks_changes_nothing() {
    let plan = planned(&FILE.replace("\"900s\"", "\"15m\" # the kernel's").replace("    ", ""));
    assert!(plan.is_empty() && plan.restart.is_empty(), "{plan:?}");
}

#[test]
fn another_scheduler_is_told_with_the_memory_that_it_costs_and_a_weight_is_not() {
    let change = the_only(&planned(&FILE.replacen("\"rr\"", "\"wlc\"", 1)).services);
    assert_eq!(
        fields(&change.fields)[..2],
        [("bias", "none", "ilb:2"), ("scheduler", "rr", "wlc")]
    );
    assert!(change.forgets);
    assert_eq!((change.connections, change.fate), (14, Some(Fate::Stay)));

    let weighed = FILE.replace("\"10.0.0.2:80\"", "\"10.0.0.2:80\"\nweight = 0");
    let change = the_only(&planned(&weighed).services);
    assert!(change.fields.is_empty() && !change.forgets);
    let server = the_only(&change.servers);
    assert_eq!(fields(&server.fields), [("weight", "1", "0")]);
    assert_eq!((server.connections, server.fate), (7, Some(Fate::Stay)));
}

#[test]
fn what_goes_is_told_with_what_becomes_of_its_connections() {
    let without_server = FILE.replace("\"10.0.0.2:80\"", "\"10.0.0.3:80\"");
    let change = the_only(&planned(&without_server).services);
    let told: Vec<_> = change.servers.iter().map(|it| (it.action, it.fate)).collect();
    assert_eq!(told, [(Action::Added, None), (Action::Removed, Some(Fate::Drop))]);

    let (one_service, _) = FILE.rsplit_once("[[service]]").unwrap();
    let change = the_only(&planned(one_service).services);
    assert_eq!((change.action, change.connections), (Action::Removed, 7));
    assert_eq!(change.fate, Some(Fate::Reset));
    let ends =
        one_service.replace("[timeouts]", "[settings]\nexpire_nodest_conn = true\n[timeouts]");
    let plan = planned(&ends);
    assert_eq!(the_only(&plan.services).fate, Some(Fate::End), "that setting comes with the file");
    assert_eq!(fields(&plan.settings), [("expire_nodest_conn", "0", "1")]);
}

#[test]
fn another_method_leaves_connections_their_own() {
    let text = FILE.replacen("forwarding = \"nat\"", "forwarding = \"direct\"", 1);
    let change = the_only(&planned(&text).services);
    assert!(change.fields.is_empty(), "{change:?}");
    assert_eq!(change.servers.len(), 2);
    for server in &change.servers {
        assert_eq!(fields(&server.fields), [("forwarding", "nat", "direct")]);
        assert_eq!(server.fate, Some(Fate::KeepMethod));
    }
}

#[test]
fn a_new_service_is_told_with_what_it_is_and_its_servers() {
    let more = format!(
        "{FILE}[[service]]\nlisten = \"192.0.2.10:53/udp\"\nscheduler = \"rr\"\nforwarding = \"nat\"\n\
         check = \"dns\"\n[[service.server]]\naddress = \"10.0.0.1:53\"\n"
    );
    let change = the_only(&planned(&more).services);
    assert_eq!((change.action, change.connections, change.fate), (Action::Added, 0, None));
    let told = fields(&change.fields);
    assert_eq!(told[0], ("scheduler", "", "rr"));
    assert!(
        matches!(told[1], ("check", "", check) if check.starts_with("dns . every 2s")),
        "{told:?}"
    );
    assert_eq!(
        fields(&the_only(&change.servers).fields),
        [("forwarding", "", "nat"), ("weight", "", "1")]
    );
}

#[test]
fn checks_timeouts_marks_and_restart_keys_are_told() {
    let text = FILE
        .replacen("scheduler = \"rr\"", "scheduler = \"rr\"\ncheck = \"tcp\"", 1)
        .replace("900s", "100s")
        .replace("interfaces", "io = \"packet\"\ninterfaces");
    let text = format!("{text}[[mark]]\nmark = 7\nports = [80]\n");
    let plan = planned(&text);
    let told = the_only(&plan.services).fields;
    assert_eq!(fields(&told), [("check", "", "tcp every 2s, timeout 1s, rise 2, fall 3")]);
    assert_eq!(fields(&plan.timeouts), [("tcp", "900", "100")]);
    assert_eq!(plan.restart, ["io"]);
    let marks = plan.marks.unwrap();
    assert_eq!((marks.removed.len(), marks.added.len()), (0, 1));
    assert!(marks.added[0].contains("mark=7"), "{marks:?}");
}

#[test]
fn what_an_operator_did_is_told_only_where_the_file_undoes_it() {
    let old = config(FILE);
    let mut now = running(&old);
    now.services[0].servers[0].spec.weight = 0;
    now.services[1].servers.clear();
    let same = plan("same.toml", &old, &old, &now);
    assert!(same.is_empty(), "{same:?}");
    let text = FILE.replace("\"10.0.0.2:80\"", "\"10.0.0.2:80\"\nweight = 3");
    let plan = plan("new.toml", &old, &config(&text), &now);
    let server = the_only(&the_only(&plan.services).servers);
    assert_eq!(fields(&server.fields), [("weight", "0", "3")], "from what runs");
}

#[test]
fn servers_that_are_all_exchanged_leave_their_service_without_none_in_between() {
    let old = config(FILE);
    let now = running(&old);
    let new =
        config(&FILE.replace("10.0.0.1:80", "10.0.0.7:80").replace("10.0.0.2:80", "10.0.0.8:80"));
    let before = old.services.iter().map(|it| (it.service.key, it.clone())).collect();
    let steps = steps(&before, &new.services, &Views::new(&now.services));
    let mut there = 2;
    for (_, command) in &steps {
        match command {
            Command::AddServer { .. } => there += 1,
            Command::DeleteServer { .. } => there -= 1,
            other => panic!("{other:?}"),
        }
        assert!(there >= 2, "{steps:?}");
    }
    assert_eq!((steps.len(), there), (4, 2));
}

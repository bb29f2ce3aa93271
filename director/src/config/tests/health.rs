//! What right files say of how servers are watched, and of bias and teardown.

use std::time::Duration;

use super::parse;
use crate::config::{Config, DeclaredService};
use crate::control::api::{Bias, BiasWindow, Forwarding, Teardown, Tunnel};
use crate::health::plan::{
    AgentCheck, AgentWatch, AllDown, Check, CheckKind, Dns, Feedback, Http, ServiceHealth, Tls,
    Udp, Via,
};

fn right(text: &str) -> Config {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A service with these keys.
fn service(keys: &str) -> DeclaredService {
    let text = format!(
        "interfaces = [\"eth0\"]\n[[service]]\nlisten = \"192.0.2.10:80/tcp\"\nforwarding = \"nat\"\n{keys}"
    );
    right(&text).services.remove(0)
}

fn health(keys: &str) -> ServiceHealth {
    service(keys).health
}

/// The only check.
fn check(value: &str) -> Check {
    let mut checks = health(&format!("check = {value}")).checks;
    assert_eq!(checks.len(), 1, "{value}");
    checks.remove(0)
}

#[test]
fn without_a_word_nothing_is_watched() {
    assert_eq!(health(""), ServiceHealth::default());
    assert_eq!(health("agent = false\nfeedback = false"), ServiceHealth::default());
    assert_eq!(service("").fallback, None);
}

#[test]
fn a_check_is_a_word_or_a_table_or_several_of_these() {
    for (value, kind) in [
        ("\"tcp\"", CheckKind::Tcp),
        ("\"icmp\"", CheckKind::Icmp),
        ("\"http\"", CheckKind::Http(Http::default())),
        ("\"https\"", CheckKind::Https(Http::default(), Tls::default())),
        ("{ type = \"dns\" }", CheckKind::Dns(Dns::default())),
        ("[\"udp\"]", CheckKind::Udp(Udp::default())),
    ] {
        assert_eq!(check(value), Check { kind, ..Check::default() }, "{value}");
    }
    let kinds =
        |keys| -> Vec<&str> { health(keys).checks.iter().map(|check| check.kind.word()).collect() };
    assert_eq!(kinds("check = [\"tcp\", { type = \"icmp\" }]"), ["tcp", "icmp"]);
    let tables = "[[service.check]]\ntype = \"http\"\n[[service.check]]\ntype = \"dns\"";
    assert_eq!(kinds(tables), ["http", "dns"]);
}

#[test]
fn what_every_check_has_reaches_the_plan() {
    let found = check(
        "{ type = \"tcp\", port = 8080, interval = \"500ms\", timeout = \"250ms\", rise = 1, \
         fall = 100, jitter = \"0%\", via = \"path\" }",
    );
    let expected = Check {
        kind: CheckKind::Tcp,
        port: Some(8080),
        interval: Duration::from_millis(500),
        jitter: 0,
        timeout: Duration::from_millis(250),
        rise: 1,
        fall: 100,
        via: Via::Path,
    };
    assert_eq!(found, expected);
    // A default must not be longer than the interval.
    let quick = check("{ type = \"tcp\", interval = \"100ms\" }");
    assert_eq!(quick.timeout, Duration::from_millis(100));
    assert_eq!(check("{ type = \"tcp\", interval = 10 }").timeout, Duration::from_secs(1));
}

#[test]
fn what_is_asked_by_http_and_what_passes() {
    let found = check(
        "{ type = \"http\", path = \"/health?deep=1\", host = \"www.example.org\", \
         expect = [200, \"204-299\"], soft = [429, \"502-503\"], contains = \"ready\" }",
    );
    let http = Http {
        path: "/health?deep=1".to_owned(),
        host: Some("www.example.org".to_owned()),
        expect: vec![200..=200, 204..=299],
        soft: vec![429..=429, 502..=503],
        contains: Some("ready".to_owned()),
    };
    assert_eq!(found.kind, CheckKind::Http(http));
    let statuses = |value: &str| match check(value).kind {
        CheckKind::Http(http) => (http.expect, http.soft),
        other => panic!("{other:?}"),
    };
    let all = "{ type = \"http\", expect = \"200-599\" }";
    assert_eq!(statuses(all), (vec![200..=599], vec![]), "what is expected passes");
    let none = "{ type = \"http\", expect = 200, soft = [] }";
    assert_eq!(statuses(none), (vec![200..=200], vec![]));
    let https = "{ type = \"https\", name = \"a.example\", authority = \"/ca.pem\", soft = 500 }";
    let CheckKind::Https(http, tls) = check(https).kind else { panic!() };
    assert_eq!(http.soft, [500..=500]);
    let expected = Tls { name: Some("a.example".to_owned()), authority: Some("/ca.pem".into()) };
    assert_eq!(tls, expected);
}

#[test]
fn the_other_checks_say_what_they_ask() {
    let dns = |name: &str, record| CheckKind::Dns(Dns { name: name.to_owned(), record });
    assert_eq!(check("{ type = \"dns\", name = \"example.org\" }").kind, dns("example.org", 6));
    assert_eq!(check("{ type = \"dns\", record = \"aaaa\" }").kind, dns(".", 28));
    assert_eq!(check("{ type = \"dns\", record = 99 }").kind, dns(".", 99));
    let udp = |send: &[u8], expect: Option<&[u8]>| {
        CheckKind::Udp(Udp { send: send.to_vec(), expect: expect.map(<[u8]>::to_vec) })
    };
    let ping = "{ type = \"udp\", send = 'ping\\x00\\n', expect = \"hex:01 ff\" }";
    assert_eq!(check(ping).kind, udp(b"ping\x00\n", Some(b"\x01\xff")));
    assert_eq!(check("{ type = \"udp\", expect = \"\" }").kind, udp(b"", Some(b"")));
    let exec = "{ type = \"exec\", command = [\"/bin/check\", \"-v\"] }";
    let words = ["/bin/check", "-v"].map(str::to_owned).to_vec();
    assert_eq!(check(exec).kind, CheckKind::Exec(words));
    let agent = check("{ type = \"agent-check\", port = 5555, send = \"web1\\n\" }");
    let send = Some("web1\n".to_owned());
    assert_eq!((agent.kind, agent.port), (CheckKind::AgentCheck(AgentCheck { send }), Some(5555)));
}

#[test]
fn the_agent_is_asked_as_the_file_says() {
    assert_eq!(health("agent = true").agent, Some(AgentWatch::default()));
    let all = "agent = { port = 7000, period = \"100ms\", timeout = \"500ms\", rise = 3, \
               confirm_tcp = false, key_file = \"/etc/switchyard/agent.key\" }";
    let expected = AgentWatch {
        port: 7000,
        period: Duration::from_millis(100),
        timeout: Duration::from_millis(500),
        rise: 3,
        confirm_tcp: false,
        key_file: Some("/etc/switchyard/agent.key".into()),
    };
    assert_eq!(health(all).agent, Some(expected));
    // The timeout grows with the period unless it is given.
    let timeout = |keys: &str| health(&format!("agent = {{ {keys} }}")).agent.unwrap().timeout;
    assert_eq!(timeout("period = \"100ms\""), Duration::from_secs(5));
    assert_eq!(timeout("period = \"10s\""), Duration::from_secs(20));
}

#[test]
fn agents_are_asked_where_the_file_tells_them_to_listen() {
    let agent = |keys: &str| {
        let text = format!(
            "interfaces = [\"eth0\"]\n[agent]\nlisten = \"0.0.0.0:7000\"\nkey_file = \"/k\"\n\
             [[service]]\nlisten = \"192.0.2.10:80/tcp\"\n{keys}"
        );
        right(&text).services.remove(0).health.agent
    };
    let as_told = AgentWatch { port: 7000, key_file: Some("/k".into()), ..AgentWatch::default() };
    assert_eq!(agent("agent = true"), Some(as_told.clone()));
    assert_eq!(agent("agent = { port = 1 }"), Some(AgentWatch { port: 1, ..as_told }));
    assert_eq!(agent(""), None);
}

#[test]
fn a_fallback_server_is_what_new_connections_get_when_all_have_failed() {
    let with = |keys: &str| service(&format!("check = \"tcp\"\n{keys}"));
    let short = with("fallback = \"10.0.0.99:8080\"");
    let server = short.fallback.unwrap();
    assert_eq!(server.address.to_string(), "10.0.0.99:8080");
    assert_eq!((server.forwarding, server.weight), (Forwarding::Nat, 1));
    assert_eq!(short.health.all_down, AllDown::Fallback);
    let long = with(
        "all_down = \"fallback\"\n\
         fallback = { address = \"2001:db8::99\", forwarding = \"tunnel\", tunnel = \"ipip\" }",
    );
    let server = long.fallback.unwrap();
    assert_eq!(server.address.to_string(), "[2001:db8::99]:80");
    assert_eq!((server.forwarding, server.tunnel), (Forwarding::Tunnel, Tunnel::Ipip));
    assert_eq!(with("all_down = \"drop\"").health.all_down, AllDown::Drop);
    assert_eq!(with("").health.all_down, AllDown::Keep);
}

#[test]
fn weights_follow_load_as_far_as_the_file_says() {
    let server = "\n[[service.server]]\naddress = \"10.0.0.11\"\nweight = 10\n";
    let feedback = |keys: &str| health(&format!("{keys}{server}")).feedback;
    assert_eq!(feedback("agent = true\nfeedback = true"), Some(Feedback::default()));
    let all = "check = { type = \"agent-check\", port = 5555 }\n\
               feedback = { least = \"0.5%\", most = \"200%\", hysteresis = \"0%\", step = \"1000%\" }";
    let expected = Feedback { least: 5, most: 2000, hysteresis: 0, step: 10_000 };
    assert_eq!(feedback(all), Some(expected));
}

#[test]
fn schedulers_that_count_connections_are_biased_unless_the_file_says_otherwise() {
    let bias = |keys: &str| service(keys).service.extras.unwrap().bias;
    for scheduler in ["lc", "wlc", "sed", "nq", "lblc", "lblcr"] {
        assert_eq!(bias(&format!("scheduler = \"{scheduler}\"")), Bias::Ilb(2), "{scheduler}");
    }
    for scheduler in ["rr", "wrr", "dh", "sh", "fo", "ovf", "mh", "twos"] {
        assert_eq!(bias(&format!("scheduler = \"{scheduler}\"")), Bias::None, "{scheduler}");
    }
    assert_eq!(bias(""), Bias::Ilb(2), "wlc is the default");
    assert_eq!(bias("bias = \"none\""), Bias::None);
    assert_eq!(bias("bias = \"linear:200\""), Bias::Linear(200));
    assert_eq!(bias("scheduler = \"rr\"\nbias = \"none\""), Bias::None);
    let extras = service("bias_window = \"2500ms\"\nteardown = \"eager\"").service.extras.unwrap();
    assert_eq!((extras.bias_window, extras.teardown), (BiasWindow(2500), Teardown::Eager));
    let plain = service("").service.extras.unwrap();
    assert_eq!((plain.bias_window, plain.teardown), (BiasWindow(5000), Teardown::Lazy));
}

#[test]
fn the_memory_lies_beside_the_control_socket_unless_the_file_says_otherwise() {
    let memory = |text: &str| {
        let memory = right(&format!("interfaces = [\"eth0\"]\n{text}")).health.memory;
        memory.map(|path| path.to_str().unwrap().to_owned())
    };
    let some = |path: &str| Some(path.to_owned());
    assert_eq!(memory(""), some("/run/director/health.json"));
    assert_eq!(memory("control = \"/tmp/a/b.sock\""), some("/tmp/a/health.json"));
    assert_eq!(memory("[health]\nmemory = \"/var/lib/x\""), some("/var/lib/x"));
    assert_eq!(memory("[health]\nmemory = true"), some("/run/director/health.json"));
    assert_eq!(memory("[health]\nmemory = false"), None);
}

#[test]
fn a_node_accepts_what_only_a_dispatcher_does() {
    let text = "mode = \"nlb\"\ninterfaces = [\"eth0\"]\n[nlb]\nkey = \"0123456789abcdef\"\n\
                [[service]]\nlisten = \"192.0.2.10:80/tcp\"\ncheck = \"tcp\"\nagent = true\n\
                fallback = \"10.0.0.99\"\n[[service.server]]\naddress = \"10.0.0.11\"\nweight = 50\n";
    let service = right(text).services.remove(0);
    assert!(service.health.is_watched());
    assert_eq!(service.fallback.unwrap().forwarding, Forwarding::Direct);
}

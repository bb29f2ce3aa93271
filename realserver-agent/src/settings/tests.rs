//! Right files and wrong ones.

use super::*;

const FILE: &str = r#"
mode = "dispatcher"
interfaces = ["eth0"]           # not ours: whatever it says
workers = "many"

[agent]
listen = ["10.0.0.11", "[::]:7000"]
key_file = "/etc/switchyard/agent.key"
from = ["10.0.0.0/8", "2001:db8::1"]
load = { cpu = 1, memory = 0.5, command = 2.0 }
full = { connections = 50 }
command = ["/usr/local/bin/load", "-1"]
check = ["tcp", { type = "http", port = 8080, path = "/ready", expect = "200-204", interval = "500ms" },
         { type = "exec", command = ["/bin/true"], rise = 1, fall = 5 }]
drain_deadline = "2m"
control = "/tmp/control.sock"
agent_check = 6087

[[service]]
listen = "192.0.2.10:80/tcp"
forwarding = "direct"
scheduler = "no such thing"
  [[service.server]]
  address = "10.0.0.11"
  [[service.server]]
  address = "[2001:db8::11]:80"
  forwarding = "tunnel"
  tunnel = { type = "gue", port = 5555, checksum = "csum" }

[[service]]
fwmark = 5
forwarding = "nat"
  [[service.server]]
  address = "10.0.0.11:8080"
"#;

#[test]
fn a_file_says_all_that_an_agent_needs_and_the_rest_is_not_looked_at() {
    let Settings { agent, mode, entries } = parse(FILE).unwrap();
    assert_eq!(mode, Mode::Dispatcher);
    let listen: [SocketAddr; 2] = ["10.0.0.11:6086".parse().unwrap(), "[::]:7000".parse().unwrap()];
    assert_eq!(agent.listen, listen);
    assert_eq!(agent.from.len(), 2);
    assert_eq!((agent.load.cpu, agent.load.memory, agent.load.queue), (1.0, 0.5, 0.0));
    assert_eq!(agent.full, Full { connections: 50, queue: 128 });
    assert_eq!(agent.command.as_ref().map(Vec::len), Some(2));
    assert_eq!(agent.drain_deadline, Duration::from_secs(120));
    assert_eq!(agent.agent_check, AgentCheck::Port(6087));
    assert_eq!(agent.checks.len(), 3);
    assert_eq!(agent.checks[0].kind, CheckKind::Tcp { port: None });
    assert_eq!(agent.checks[1].timeout, Duration::from_millis(500), "never above the interval");
    assert_eq!((agent.checks[2].rise, agent.checks[2].fall), (1, 5));
    let first = Entry {
        listen: Some("192.0.2.10:80".parse().unwrap()),
        protocol: Protocol::Tcp,
        address: "10.0.0.11".parse().unwrap(),
        port: None,
        forwarding: Forwarding::Direct,
    };
    assert_eq!(entries[0], first);
    assert_eq!(entries[1].forwarding, Forwarding::Tunnel(Kind::Gue { port: 5555 }));
    assert_eq!((entries[2].listen, entries[2].port), (None, Some(8080)));
    assert_eq!(parse_agent(FILE).unwrap(), agent);
}

/// A device of the kernel takes one or the other, and is made as the file says.
#[test]
fn whether_gre_comes_with_checksums_is_read_as_the_director_reads_it() {
    let gre = |tunnel: &str| {
        let text = format!(
            "[[service]]\nlisten = \"192.0.2.1:80/tcp\"\n[[service.server]]\n\
             address = \"10.0.0.11\"\nforwarding = \"tunnel\"\ntunnel = {tunnel}\n"
        );
        parse(&text).map(|settings| settings.entries[0].forwarding)
    };
    for (tunnel, checksum) in [
        ("\"gre\"", false),
        ("{ type = \"gre\" }", false),
        ("{ type = \"gre\", checksum = \"nocsum\" }", false),
        ("{ type = \"gre\", checksum = \"csum\" }", true),
    ] {
        let kind = Kind::Gre { checksum: Some(checksum) };
        assert_eq!(gre(tunnel).unwrap(), Forwarding::Tunnel(kind), "{tunnel}");
    }
    let faults = gre("{ type = \"gre\", checksum = \"remcsum\" }").unwrap_err();
    assert_eq!(faults[0].key, "service[1].server[1].tunnel.checksum");
}

#[test]
fn without_a_table_everything_has_its_default() {
    let settings = parse("").unwrap();
    assert_eq!(settings.agent, Agent::default());
    assert_eq!(parse("agent.drain_deadline = 0").unwrap().agent.drain_deadline, Duration::ZERO);
}

#[test]
fn every_wrong_value_is_named_with_its_place_and_a_remedy() {
    let service = "[[service]]\nlisten = \"192.0.2.1:80/tcp\"\n[[service.server]]\n";
    for (text, key, remedy) in [
        ("[agent]\nlisen = 5", "agent.lisen", "did you mean listen?"),
        ("[agent]\nlisten = \"here:80\"", "agent.listen", "0.0.0.0:6086"),
        ("[agent]\nlisten = []", "agent.listen", "6086"),
        ("[agent]\nkey_file = \"key\"", "agent.key_file", "whole path"),
        ("[agent]\nfrom = [\"10.0.0.0/33\"]", "agent.from[1]", "10.0.0.0/8"),
        ("[agent]\nload = { cpu = -1 }", "agent.load.cpu", "from 0 to 1000"),
        ("[agent]\nload = { cpu = nan }", "agent.load.cpu", "from 0 to 1000"),
        ("[agent]\nload = { cpu = 0 }", "agent.load", "at least one"),
        ("[agent]\nload = { command = 1 }", "agent.load", "add command"),
        ("[agent]\ncommand = [\"/bin/x\"]", "agent.command", "load = { command"),
        ("[agent]\ncheck = { type = \"exec\", command = [\"sh\"] }", "agent.check.command", "PATH"),
        ("[agent]\nfull = { queue = 0 }", "agent.full.queue", "from 1"),
        ("[agent]\ncheck = \"htp\"", "agent.check", "did you mean \"http\""),
        ("[agent]\ncheck = \"exec\"", "agent.check", "command"),
        ("[agent]\ncheck = [{ port = 5 }]", "agent.check[1].type", "tcp"),
        ("[agent]\ncheck = { type = \"tcp\", path = \"/\" }", "agent.check.path", "known are"),
        ("[agent]\ncheck = { type = \"http\", path = \"/ x\" }", "agent.check.path", "spaces"),
        ("[agent]\ncheck = { type = \"tcp\", timeout = \"3s\" }", "agent.check.timeout", "2s"),
        ("[agent]\ndrain_deadline = \"soon\"", "agent.drain_deadline", "ms, s, m"),
        ("[agent]\nagent_check = 70000", "agent.agent_check", "65535"),
        ("agent = 5", "agent", "[agent]"),
        ("[agent", "", "TOML"),
        (&format!("{service}address = \"web1\""), "service[1].server[1].address", "10.0.0.11"),
        (&format!("{service}address = \"10.0.0.1\""), "service[1].server[1].forwarding", "nat"),
    ] {
        let faults = parse(text).unwrap_err();
        assert_eq!(faults.len(), 1, "{text}: {faults:?}");
        assert_eq!(faults[0].key, key, "{text}");
        assert!(faults[0].remedy.contains(remedy), "{text}: {}", faults[0].remedy);
        assert!(faults[0].span.end <= text.len(), "{text}");
    }
}

#[test]
fn all_faults_are_told_at_once_with_line_and_column() {
    let file = std::env::temp_dir().join(format!("agent-settings-{}", std::process::id()));
    std::fs::write(&file, "[agent]\n  lisen = 5\nfrom = 7\n").unwrap();
    let error = load(&file).unwrap_err().to_string();
    std::fs::remove_file(&file).unwrap();
    assert!(error.contains(":2:3: agent.lisen: unknown key"), "{error}");
    assert!(error.contains(":3:8: agent.from: "), "{error}");
    assert_eq!(place("ä\nöx", 5), (2, 2));
    assert_eq!(place("ä\nöx", 4), (2, 1), "inside a letter");
    assert_eq!(place("", 100), (1, 1));
}

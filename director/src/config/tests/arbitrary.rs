//! Whatever lies in the file: an answer, never a panic.

use proptest::prelude::*;

use super::parse;

const SAMPLE: &str = include_str!("../../../../examples/switchyard.toml");

const FULL: &str = r#"
mode = "nlb"
interfaces = ["eth0"]
io = "packet"
timeouts = { tcp = "15m", tcp_fin = 120, udp = "5m" }
[nlb]
key = "0123456789abcdef"
period = "100ms"
udp_pin = "1m"
hosts = ["10.0.0.11", ["10.0.0.12", "2001:db8::12"]]
[[nlb.rule]]
ports = "8000-8099"
affinity = "network"
weights = [50, 100]
[[service]]
listen = "[2001:db8::10]:53/udp"
scheduler = "mh"
scheduler_flags = ["mh-port", "flag-1"]
persistence = { timeout = "5m", prefix = 64, engine = "sip" }
one_packet = true
timeouts = { udp = "10s" }
gone_server = "reschedule"
[[service]]
listen = "192.0.2.10:80/tcp"
persistence = { leave_quiesced = true }
no_destination = "rst"
mss_clamp = 1400
[[service.server]]
address = "10.0.0.11"
forwarding = "tunnel"
tunnel = { type = "gue", port = 5555, checksum = "remcsum" }
weight = 3
upper_threshold = 10
lower_threshold = 5
[[service]]
listen = "192.0.2.10:81/tcp"
forwarding = "nat"
bias = "linear:200"
bias_window = "500ms"
teardown = "eager"
check = ["tcp", { type = "http", path = "/", expect = [200, "204-299"], soft = 503, via = "path" }, { type = "udp", send = 'a\x00', expect = "hex:00ff" }, { type = "dns", name = "example.org", record = "AAAA", jitter = "5%" }, { type = "exec", command = ["/bin/true", "é"] }]
agent = { period = "100ms", timeout = "500ms", key_file = "/k" }
fallback = { address = "10.0.0.99:80", forwarding = "direct" }
feedback = { least = "10%", most = "100%", step = "2.5%" }
[[service]]
listen = "192.0.2.10:53/udp"
scheduler = { name = "dht", key = "dns-name", sticky = true, variants = 512 }
scheduler_flags = ["dht-sticky"]
forwarding = "direct"
[health]
memory = false
[agent]
listen = "0.0.0.0:6086"
load = { cpu = 1.0, queue = 0.5 }
check = ["tcp", { type = "http", path = "/" }]
agent_check = 5555
"#;

/// Pieces that the grammar looks at, so that random texts get past its first checks.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("[[service]]\n".to_owned()),
        Just("[[service.server]]\n".to_owned()),
        Just("service = [1, {}]\n".to_owned()),
        Just("[service]\nserver = 1\n".to_owned()),
        Just("mode = \"nlb\"\n[nlb]\n".to_owned()),
        Just("[[nlb.rule]]\n".to_owned()),
        ("(listen|address|weight|persistence|tunnel|scheduler|scheduler_flags|forwarding|interfaces|fwmark|timeouts|ftp_ports|control|ring_size|tx_ring_size|frames|gone_server|no_destination|mss_clamp|mode|nlb|rule|hosts|ports|key|check|agent|all_down|fallback|feedback|bias|bias_window|teardown|health)",
         "(\"[0-9a-f:./\\[\\]a-z]{0,20}\"|\\{ name = \"(dht|mh|rr)\", (key|sticky|variants) = (\"(dns-name|tuple)\"|[0-9]{1,6}|true) \\}|-?[0-9]{1,22}|true|\\[\\]|\\[\"x\", 1\\]|\\{\\}|\\{ type = \"gue\" \\}|\\{ type = \"(tcp|http|udp|dns|exec)\", (port|path|expect|soft|send|name|record|command|jitter|interval) = (\"[ -~]{0,9}\"|[0-9]{1,9}|\\[\\]|true) \\}|[\"'](hex:)?[0-9a-fx%:\\\\-]{0,9}[\"']|1\\.5|1979-05-27|0x[0-9a-f]{1,40}|nan)")
            .prop_map(|(key, value)| format!("{key} = {value}\n")),
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn random_text_never_panics(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn random_statements_never_panic(pieces in prop::collection::vec(piece(), 0..12)) {
        let _ = parse(&pieces.concat());
    }

    #[test]
    fn mutated_samples_never_panic_and_name_a_line_that_exists(
        full in any::<bool>(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "[ -~\n]{0,6}"), 1..6),
    ) {
        let mut text: Vec<char> = if full { FULL } else { SAMPLE }.chars().collect();
        for (at, remove, insert) in cuts {
            let at = at.index(text.len() + 1);
            let end = (at + remove).min(text.len());
            text.splice(at..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = parse(&text) {
            for problem in error.problems() {
                prop_assert!(problem.line <= text.matches('\n').count() + 1);
            }
        }
    }

    #[test]
    fn a_file_cut_short_never_panics(at in 0..FULL.len()) {
        let _ = parse(&FULL[..at]);
    }
}

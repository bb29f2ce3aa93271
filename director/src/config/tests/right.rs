//! What right files mean.

use std::collections::BTreeMap;

use super::parse;
use crate::config::{Config, HealthSettings, Io, Mode};
use crate::control::DEFAULT_SOCKET;
use crate::control::api::{
    Extras, Forwarding, GoneServer, HashKey, MssClamp, NoDestination, OwnTimeouts, Persistence,
    Placement, Protocol, ServiceKey, Timeouts, Tunnel, TunnelChecksum,
};
use crate::dispatch::ftp::Ports;
use crate::dispatch::settings::Setting;

const SAMPLE: &str = include_str!("../../../../examples/switchyard.toml");
const PAGE: &str = include_str!("../../../../docs/configuration.md");

fn right(text: &str) -> Config {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_sample_is_a_working_configuration() {
    let config = right(SAMPLE);
    assert_eq!(config.mode, Mode::Dispatcher);
    assert_eq!(config.interfaces, ["eth0", "eth1"]);
    assert!(config.services.len() >= 3);
    assert!(config.services.iter().all(|service| !service.servers.is_empty()));
}

#[test]
fn a_file_with_interfaces_only_has_the_documented_defaults() {
    let config = right("interfaces = [\"eth0\"]");
    assert_eq!(
        config,
        Config {
            mode: Mode::Dispatcher,
            interfaces: vec!["eth0".to_owned()],
            io: Io::Auto,
            workers: None,
            cpus: Vec::new(),
            busy_poll: None,
            rx_ring_size: 2048,
            tx_ring_size: 2048,
            frames: None,
            own_addresses: false,
            sandbox: true,
            control: DEFAULT_SOCKET.into(),
            metrics: None,
            timeouts: None,
            ftp_ports: Ports::new(&[21]),
            settings: BTreeMap::new(),
            max_connections: 1_048_576,
            marks: Vec::new(),
            health: HealthSettings { memory: Some("/run/director/health.json".into()) },
            nlb: crate::config::nlb::Nlb::default(),
            services: Vec::new(),
        }
    );
}

#[test]
fn marks_and_the_services_that_are_named_by_them() {
    let config = right(
        r#"
        interfaces = ["eth0"]
        [[mark]]
        mark = 7
        protocol = "tcp"
        source = "198.51.100.0/24"
        destination = "203.0.113.7"
        ports = [80, 443, "8000-8099"]
        source_ports = ["1024-65535"]
        [[mark]]
        mark = 4294967295
        protocol = "any"
        destination = "2001:db8::/32"
        [[service]]
        fwmark = 7
        persistence = { timeout = "5m", prefix = 24 }
            [[service.server]]
            address = "10.0.0.11"
            forwarding = "nat"
        [[service]]
        fwmark = 7
        family = "ipv6"
            [[service.server]]
            address = "[2001:db8:1::11]:80"
            forwarding = "nat"
    "#,
    );
    let json: Vec<_> =
        config.marks.iter().map(|rule| serde_json::to_string(rule).unwrap()).collect();
    assert_eq!(
        json,
        [
            r#"{"mark":7,"protocol":"tcp","source":"198.51.100.0/24","destination":"203.0.113.7/32","ports":["80","443","8000-8099"],"source_ports":["1024-65535"]}"#,
            r#"{"mark":4294967295,"destination":"2001:db8::/32"}"#,
        ]
    );
    let keys: Vec<_> = config.services.iter().map(|declared| declared.service.key).collect();
    let key = |ipv6| ServiceKey::Fwmark { fwmark: 7, ipv6 };
    assert_eq!(keys, [key(false), key(true)]);
    assert_eq!(config.services[0].servers[0].address.to_string(), "10.0.0.11:0");
    assert_eq!(config.services[1].servers[0].address.to_string(), "[2001:db8:1::11]:80");
}

#[test]
fn every_setting_reaches_the_configuration() {
    let config = right(
        r#"
        mode = "dispatcher"
        interfaces = ["eth0", "bond0.17"]
        io = "zero-copy"
        workers = 3
        cpus = [4, 0, 1023, 7]
        busy_poll = false
        ring_size = 4096
        frames = 16384
        own_addresses = true
        control = "/tmp/control.sock"
        max_connections = 100
        timeouts = { tcp = "1h", udp = 30 }
        ftp_ports = [21, 2121]
        "#,
    );
    assert_eq!(config.mode, Mode::Dispatcher);
    assert_eq!(config.interfaces, ["eth0", "bond0.17"]);
    assert_eq!(config.io, Io::ZeroCopy);
    assert_eq!((config.workers, config.cpus), (Some(3), vec![4, 0, 1023, 7]));
    assert_eq!(config.busy_poll, Some(false));
    assert_eq!((config.rx_ring_size, config.tx_ring_size), (4096, 4096));
    assert_eq!(config.frames, Some(16_384));
    assert!(config.own_addresses);
    assert_eq!(config.control.to_str(), Some("/tmp/control.sock"));
    assert_eq!(config.max_connections, 100);
    assert_eq!(config.ftp_ports, Ports::new(&[21, 2121]));
    assert_eq!(right("interfaces = [\"eth0\"]\nftp_ports = []").ftp_ports, Ports::new(&[]));
    // A key that is left out keeps the kernel's value; 0 would mean "leave as it is".
    let timeouts = Timeouts { tcp: 3600, tcp_fin: 120, udp: 30 };
    assert_eq!(config.timeouts, Some(timeouts));
}

#[test]
fn rings_have_one_size_or_each_its_own() {
    for (keys, rx, tx) in [
        ("", 2048, 2048),
        ("ring_size = 512", 512, 512),
        ("rx_ring_size = 8192", 8192, 2048),
        ("tx_ring_size = 256", 2048, 256),
        ("tx_ring_size = 256\nring_size = 512", 512, 256),
        ("tx_ring_size = 64\nrx_ring_size = 32768\nring_size = 512\nframes = 32768", 32_768, 64),
    ] {
        let config = right(&format!("interfaces = [\"eth0\"]\n{keys}"));
        assert_eq!((config.rx_ring_size, config.tx_ring_size), (rx, tx), "{keys}");
    }
}

#[test]
fn every_key_of_a_service_reaches_its_specification() {
    let config = right(
        r#"
        interfaces = ["eth0"]
        [[service]]
        listen = "[2001:db8::10]:53/udp"
        scheduler = "mh"
        scheduler_flags = ["mh-port", "mh-fallback", "flag-3"]
        persistence = { timeout = "5m", prefix = 64 }
        [[service]]
        listen = "192.0.2.10:0/tcp"
        persistence = "90s"
        "#,
    );
    let first = &config.services[0].service;
    let address = "[2001:db8::10]:53".parse().unwrap();
    let protocol = Protocol::Udp;
    assert_eq!(first.key, ServiceKey::Address { protocol, address });
    assert_eq!((first.scheduler.as_str(), first.flags), ("mh", 0x38));
    let persistence = Persistence { timeout: 300, prefix: 64, engine: None };
    assert_eq!(first.persistence, Some(persistence));
    let second = &config.services[1].service;
    assert_eq!(second.scheduler, "wlc");
    let persistence = second.persistence.clone().unwrap();
    assert_eq!((persistence.timeout, persistence.prefix), (90, 32));
}

#[test]
fn what_a_service_shall_do_beyond_the_kernel_reaches_its_specification_and_is_off_by_default() {
    let config = right(
        r#"
        interfaces = ["eth0"]
        [[service]]
        listen = "192.0.2.10:80/tcp"
        scheduler = "rr"
        timeouts = { tcp = "2h", tcp_fin = 30 }
        gone_server = "reschedule"
        no_destination = "rst"
        mss_clamp = 1400
        persistence = { timeout = "5m", leave_quiesced = true }
        [[service]]
        listen = "192.0.2.10:53/udp"
        scheduler = "rr"
        timeouts = { udp = "10s" }
        [[service]]
        listen = "192.0.2.10:81/tcp"
        scheduler = "rr"
        mss_clamp = true
        "#,
    );
    let extras: Vec<_> = config.services.iter().map(|one| one.service.extras.unwrap()).collect();
    let first = Extras {
        timeouts: OwnTimeouts { tcp: 7200, tcp_fin: 30, udp: 0 },
        gone_server: GoneServer::Reschedule,
        no_destination: NoDestination::Rst,
        leave_quiesced: true,
        mss_clamp: MssClamp::Bytes(1400),
        ..Extras::default()
    };
    let timeouts = OwnTimeouts { udp: 10, ..OwnTimeouts::default() };
    let second = Extras { timeouts, ..Extras::default() };
    let third = Extras { mss_clamp: MssClamp::ByRoute(true), ..Extras::default() };
    assert_eq!(extras, [first, second, third]);
}

#[test]
fn a_scheduler_is_a_name_or_a_table_that_says_what_it_goes_by() {
    let config = right(
        r#"
        interfaces = ["eth0"]
        [[service]]
        listen = "192.0.2.10:80/tcp"
        scheduler = "dht"
        [[service]]
        listen = "192.0.2.10:81/tcp"
        scheduler = { name = "dht", key = "source-port", sticky = true, variants = 64 }
        [[service]]
        listen = "192.0.2.10:82/tcp"
        scheduler = { name = "mh", key = "tuple" }
        [[service]]
        listen = "192.0.2.10:53/udp"
        scheduler = { name = "dht", key = "dns-name" }
        [[service]]
        listen = "192.0.2.10:54/udp"
        scheduler = { name = "sh", key = "dns-name" }
        one_packet = true
        [[service]]
        listen = "192.0.2.10:55/udp"
        scheduler = "dht"
        scheduler_flags = ["dht-sticky", "dht-dns-name"]
        "#,
    );
    let key = |key| Placement { key: Some(key), ..Placement::default() };
    let expected = [
        ("dht", Placement::default(), false),
        ("dht", Placement { sticky: true, variants: 64, ..key(HashKey::SourcePort) }, false),
        ("mh", key(HashKey::Tuple), false),
        ("dht", key(HashKey::DnsName), true),
        ("sh", key(HashKey::DnsName), true),
        ("dht", Placement { sticky: true, ..key(HashKey::DnsName) }, true),
    ];
    assert_eq!(config.services.len(), expected.len());
    for (declared, (scheduler, placement, one_packet)) in config.services.iter().zip(expected) {
        let spec = &declared.service;
        assert_eq!(spec.scheduler, scheduler);
        assert_eq!(spec.placement(), placement, "{}", spec.key);
        assert_eq!(spec.one_packet, one_packet, "{}", spec.key);
    }
}

#[test]
fn servers_take_port_and_forwarding_from_their_service_unless_they_have_their_own() {
    let config = right(
        r#"
        interfaces = ["eth0"]
        [[service]]
        listen = "192.0.2.10:80/tcp"
        forwarding = "direct"
            [[service.server]]
            address = "10.0.0.11"
            [[service.server]]
            address = "10.0.0.12:8080"
            forwarding = "nat"
            weight = 0
            upper_threshold = 100
            lower_threshold = 60
            [[service.server]]
            address = "[2001:db8::13]"
            forwarding = "tunnel"
            tunnel = { type = "gue", port = 5555, checksum = "remcsum" }
            [[service.server]]
            address = "10.0.0.14:80"
            forwarding = "tunnel"
            tunnel = "gre"
        "#,
    );
    let servers = &config.services[0].servers;
    assert_eq!(servers[0].address.to_string(), "10.0.0.11:80");
    assert_eq!(servers[0].forwarding, Forwarding::Direct);
    assert_eq!(servers[0].weight, 1);
    assert_eq!(servers[1].address.to_string(), "10.0.0.12:8080");
    assert_eq!(servers[1].forwarding, Forwarding::Nat);
    assert_eq!(servers[1].weight, 0);
    assert_eq!((servers[1].upper_threshold, servers[1].lower_threshold), (100, 60));
    assert_eq!(servers[2].address.to_string(), "[2001:db8::13]:80");
    let gue = Tunnel::Gue { port: 5555, checksum: TunnelChecksum::Remcsum };
    let gre = Tunnel::Gre { checksum: TunnelChecksum::Nocsum };
    assert_eq!((servers[2].tunnel, servers[3].tunnel), (gue, gre));
}

#[test]
fn settings_have_the_kernels_names_and_switches_are_numbers_or_true_and_false() {
    let config = right(
        r#"
        interfaces = ["eth0"]
        [settings]
        conn_reuse_mode = 2
        expire_nodest_conn = 1
        sloppy_tcp = true
        pmtu_disc = false
        lblc_expiration = 60
        "#,
    );
    let expected = [
        (Setting::ConnReuseMode, 2),
        (Setting::ExpireNodestConn, 1),
        (Setting::SloppyTcp, 1),
        (Setting::PmtuDisc, 0),
        (Setting::LblcExpiration, 60),
    ];
    assert_eq!(config.settings, BTreeMap::from(expected));
}

#[test]
fn every_example_in_the_documentation_is_a_working_configuration() {
    let pages = [
        PAGE,
        include_str!("../../../../docs/from-windows-nlb.md"),
        include_str!("../../../../docs/nlb.md"),
    ];
    for page in pages {
        // Within a list a block is indented.
        let page: Vec<&str> = page.lines().map(str::trim_start).collect();
        let page = page.join("\n");
        let examples: Vec<&str> =
            page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(!examples.is_empty());
        for example in examples {
            right(example);
        }
    }
}

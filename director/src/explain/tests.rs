//! Explanations from a file: each names what is decided, and on what grounds.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};

use super::build::{Transport, Wanted, frame};
use super::{as_frame, from_hex, offline, to_hex};
use crate::config::{self, Config};
use crate::control::explain::{Explanation, Outcome};

const FILE: &str = r#"
interfaces = ["eth0"]

[[service]]
listen = "192.0.2.10:80/tcp"
scheduler = "wlc"
forwarding = "nat"

    [[service.server]]
    address = "10.0.0.11:8080"
    weight = 2

    [[service.server]]
    address = "10.0.0.12:8080"
    weight = 0

[[service]]
listen = "192.0.2.10:443/tcp"
scheduler = "sh"
persistence = "5m"
forwarding = "tunnel"

    [[service.server]]
    address = "10.0.0.11"

[[service]]
listen = "[2001:db8::10]:53/udp"
forwarding = "direct"
"#;

fn config() -> Config {
    config::parse(FILE, "switchyard.toml").unwrap()
}

fn wanted(transport: Transport, source: &str, destination: &str) -> Wanted {
    Wanted {
        transport,
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        data: 0,
        ttl: 64,
        dont_fragment: true,
    }
}

fn explained(wanted: &Wanted) -> Explanation {
    offline::of_file(&config(), 1500, &frame(wanted).unwrap(), None).unwrap()
}

/// The text of a stage, with its details.
#[track_caller]
fn stage(explanation: &Explanation, stage: &str) -> String {
    let steps = explanation.steps.iter().filter(|step| step.stage == stage);
    let texts: Vec<String> =
        steps.map(|step| format!("{} | {}", step.text, step.details.join(" | "))).collect();
    assert!(!texts.is_empty(), "no stage {stage}: {explanation:#?}");
    texts.join(" || ")
}

#[track_caller]
fn changed(explanation: &Explanation, field: &str, before: &str, after: &str) {
    let change = explanation.changes.iter().find(|change| change.field == field);
    let change = change.unwrap_or_else(|| panic!("{field} is not changed: {explanation:#?}"));
    let is = (change.before.as_deref(), change.after.as_deref());
    assert_eq!(is, (Some(before), Some(after)), "{field}");
}

const SYN: Transport = Transport::Tcp(2);

#[test]
fn a_new_connection_by_nat_names_service_servers_figures_and_what_is_rewritten() {
    let explanation = explained(&wanted(SYN, "198.51.100.7:41000", "192.0.2.10:80"));
    assert_eq!(explanation.packet, "TCP SYN 198.51.100.7:41000 -> 192.0.2.10:80, 40 bytes");
    assert_eq!(
        (explanation.outcome, explanation.reason.as_str()),
        (Outcome::Forwarded, "sent_nat")
    );
    assert!(stage(&explanation, "service").contains("192.0.2.10:80/tcp, scheduler wlc"));
    let scheduler = stage(&explanation, "scheduler");
    assert!(scheduler.contains("10.0.0.11:8080 has 0*256+0 over weight 2"), "{scheduler}");
    assert!(
        scheduler.contains("10.0.0.12:8080 0*256+0 over weight 0, not to be chosen: weight 0"),
        "{scheduler}"
    );
    changed(&explanation, "destination", "192.0.2.10:80", "10.0.0.11:8080");
    changed(&explanation, "TTL", "64", "63");
    assert!(explanation.changes.iter().all(|change| change.field != "source"));
    assert!(!explanation.assumed.is_empty(), "a file does not know routes");
}

#[test]
fn what_no_service_is_for_never_comes_to_the_director() {
    for destination in ["192.0.2.10:81", "192.0.2.11:80"] {
        let explanation = explained(&wanted(SYN, "198.51.100.7:41000", destination));
        let is = (explanation.outcome, explanation.reason.as_str(), explanation.steps.len());
        assert_eq!(is, (Outcome::Passed, "not_steered", 1), "{destination}");
    }
    let packet = frame(&wanted(SYN, "198.51.100.7:41000", "192.0.2.10:80")).unwrap();
    let elsewhere = offline::of_file(&config(), 1500, &packet, Some("eth7")).unwrap();
    assert!(stage(&elsewhere, "steering").contains("does not serve eth7, only eth0"));
}

#[test]
fn a_segment_that_opens_nothing_is_left_to_the_host() {
    let ack = wanted(Transport::Tcp(16), "198.51.100.7:41000", "192.0.2.10:80");
    let explanation = explained(&ack);
    assert_eq!(explanation.reason, "passed_no_connection");
    assert!(stage(&explanation, "service").contains("only a SYN opens a connection"));
}

#[test]
fn a_tunnel_tells_its_headers_and_what_no_longer_fits() {
    let syn = wanted(SYN, "198.51.100.7:41000", "192.0.2.10:443");
    let explanation = explained(&syn);
    assert_eq!(explanation.reason, "sent_tunnel");
    let outer = explanation.changes.iter().find(|it| it.field == "outer destination").unwrap();
    assert_eq!((outer.before.as_deref(), outer.after.as_deref()), (None, Some("10.0.0.11")));
    assert!(stage(&explanation, "scheduler").contains("slot"));
    assert!(stage(&explanation, "template").contains("none for the client's /32 yet"));
    let full = Wanted { data: 1460, ..syn };
    let explanation = explained(&full);
    assert_eq!((explanation.outcome, explanation.reason.as_str()), (Outcome::Answered, "too_big"));
    let mtu = stage(&explanation, "mtu");
    assert!(mtu.contains("1500 bytes, and 1480 go through after 20 for the tunnel"), "{mtu}");
    assert!(explanation.answer.unwrap().starts_with("ICMP 192.0.2.10 -> 198.51.100.7"));
}

#[test]
fn a_service_without_servers_and_a_ttl_that_runs_out_are_answered() {
    let explanation =
        explained(&wanted(Transport::Udp, "[2001:db8:9::7]:5353", "[2001:db8::10]:53"));
    assert_eq!(
        (explanation.outcome, explanation.reason.as_str()),
        (Outcome::Answered, "no_server")
    );
    assert!(stage(&explanation, "scheduler").contains("the service has no servers"));
    let last = Wanted { ttl: 1, ..wanted(SYN, "198.51.100.7:41000", "192.0.2.10:80") };
    assert_eq!(explained(&last).reason, "ttl_exceeded");
}

/// By an independent parser.
#[track_caller]
fn has_right_sums(built: &[u8]) {
    let sliced = SlicedPacket::from_ethernet(built).unwrap();
    // It does not know SCTP; the pipeline's tests hold the CRC to vectors.
    let Some(transport) = sliced.transport.as_ref() else { return };
    let (wanted, is) = match (sliced.net.as_ref().unwrap(), transport) {
        (NetSlice::Ipv4(ip), TransportSlice::Tcp(tcp)) => {
            let header = ip.header().to_header();
            assert_eq!(header.calc_header_checksum(), header.header_checksum);
            let sum = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()).unwrap();
            (sum, tcp.checksum())
        }
        (NetSlice::Ipv6(ip), TransportSlice::Tcp(tcp)) => {
            let header = ip.header().to_header();
            (tcp.to_header().calc_checksum_ipv6(&header, tcp.payload()).unwrap(), tcp.checksum())
        }
        (NetSlice::Ipv4(ip), TransportSlice::Udp(udp)) => {
            let header = ip.header().to_header();
            (udp.to_header().calc_checksum_ipv4(&header, udp.payload()).unwrap(), udp.checksum())
        }
        (NetSlice::Ipv6(ip), TransportSlice::Udp(udp)) => {
            let header = ip.header().to_header();
            (udp.to_header().calc_checksum_ipv6(&header, udp.payload()).unwrap(), udp.checksum())
        }
        (_, TransportSlice::Icmpv4(icmp)) => {
            (icmp.header().icmp_type.calc_checksum(icmp.payload()), icmp.checksum())
        }
        (NetSlice::Ipv6(ip), TransportSlice::Icmpv6(icmp)) => {
            let header = ip.header().to_header();
            let sum =
                icmp.icmp_type().calc_checksum(header.source, header.destination, icmp.payload());
            (sum.unwrap(), icmp.checksum())
        }
        _ => panic!("{sliced:?}"),
    };
    assert_eq!(is, wanted);
}

#[test]
fn packets_that_are_built_are_right_and_odd_ones_are_no_trouble() {
    for transport in [SYN, Transport::Udp, Transport::Sctp(1), Transport::Echo] {
        for (source, destination) in
            [("198.51.100.7:1", "192.0.2.10:80"), ("[2001:db8::7]:1", "[2001:db8::10]:80")]
        {
            let built =
                frame(&Wanted { data: 33, ..wanted(transport, source, destination) }).unwrap();
            let headers = forwarding::parse(&built).unwrap();
            assert_eq!(headers.end, built.len());
            has_right_sums(&built);
        }
    }
    let mixed = wanted(SYN, "198.51.100.7:1", "[2001:db8::10]:80");
    assert!(frame(&mixed).unwrap_err().contains("different families"));
    let long = Wanted { data: 65_530, ..wanted(Transport::Udp, "1.2.3.4:1", "192.0.2.10:80") };
    assert!(frame(&long).unwrap_err().contains("do not fit"));
    // Every beginning of a packet, and every bit of it another, has some explanation.
    let whole =
        frame(&Wanted { data: 20, ..wanted(SYN, "198.51.100.7:1", "192.0.2.10:80") }).unwrap();
    for length in 0..whole.len() {
        let _ = offline::of_file(&config(), 1500, &whole[..length], None).unwrap();
    }
    for bit in 0..whole.len() * 8 {
        let mut odd = whole.clone();
        odd[bit / 8] ^= 1 << (bit % 8);
        let _ = offline::of_file(&config(), 1500, &odd, None).unwrap();
    }
}

#[test]
fn hexadecimal_is_read_as_people_write_it_and_its_faults_are_named() {
    assert_eq!(from_hex("45 00:0a\nFF").unwrap(), [0x45, 0, 10, 255]);
    assert!(from_hex("450").unwrap_err().contains("3 hexadecimal digits"));
    assert!(from_hex("45zz").unwrap_err().contains("byte 2 is \"zz\""));
    assert!(from_hex(&"00".repeat(70_000)).unwrap_err().contains("longer than"));
    let packet = frame(&wanted(SYN, "198.51.100.7:1", "192.0.2.10:80")).unwrap();
    assert_eq!(from_hex(&to_hex(&packet)).unwrap(), packet);
    assert_eq!(as_frame(&packet), packet);
    assert_eq!(as_frame(&packet[14..])[14..], packet[14..]);
}

#[test]
fn a_wrong_port_is_told_with_the_ports_that_there_are() {
    let told = explained(&wanted(Transport::Tcp(2), "198.51.100.7:41000", "192.0.2.10:81"));
    assert_eq!((told.outcome, told.reason.as_str()), (Outcome::Passed, "not_steered"));
    assert_eq!(told.steps[0].details, ["192.0.2.10 has services on 80/tcp, 443/tcp"]);
    let told = explained(&wanted(Transport::Udp, "198.51.100.7:41000", "192.0.2.11:80"));
    assert_eq!(told.steps[0].details, ["192.0.2.11 is no service's address"]);
}

#[test]
fn a_new_template_is_not_told_as_one_that_was_there() {
    let told = explained(&wanted(Transport::Tcp(2), "198.51.100.7:41000", "192.0.2.10:443"));
    let templates = told.steps.iter().filter(|step| step.stage == "template");
    let texts: Vec<&str> = templates.map(|step| step.text.as_str()).collect();
    assert_eq!(texts, ["none for the client's /32 yet: it will have one for 300 s"]);
}

#[test]
fn what_an_error_quotes_is_shown_before_and_after() {
    use crate::world::World;
    let world = World::from_config(&config()).unwrap();
    let mut dispatcher = world.dispatcher();
    let syn = frame(&wanted(Transport::Tcp(2), "198.51.100.7:41000", "192.0.2.10:80")).unwrap();
    let mut chunk = vec![0; 4096];
    chunk[256..256 + syn.len()].copy_from_slice(&syn);
    let mut packet = forwarding::Packet::new(&mut chunk, 256, syn.len());
    let now = std::time::Duration::from_secs(1);
    let mut routes = crate::world::Assumed::default();
    let _ = dispatcher.handle(now, &world.services(), &mut routes, &mut packet);
    let quoted = frame(&wanted(Transport::Tcp(16), "192.0.2.10:80", "198.51.100.7:41000")).unwrap();
    let mut error = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([203, 0, 113, 1], [192, 0, 2, 10], 60)
        .icmpv4_raw(3, 1, [0; 4])
        .write(&mut error, &quoted[14..])
        .unwrap();
    let scene = super::Scene {
        shared: world.shared(),
        services: &world.services(),
        steering: &world.steering(),
        interfaces: &[],
        now,
    };
    let mut ways = offline::AssumedWays::default();
    let told = super::explain(&scene, &mut ways, &error, None);
    assert_eq!(told.outcome, Outcome::Forwarded, "{told:?}");
    let change = |name: &str| {
        let found = told.changes.iter().find(|change| change.field == name);
        found.map(|it| (it.before.clone().unwrap(), it.after.clone().unwrap()))
    };
    let pair = |one: &str, other: &str| Some((one.to_owned(), other.to_owned()));
    assert_eq!(change("destination"), pair("192.0.2.10", "10.0.0.11"));
    assert_eq!(change("quoted source"), pair("192.0.2.10:80", "10.0.0.11:8080"));
}

//! The listings of the reference, byte for byte. `|` marks the end of a line, so that blanks there
//! can be seen.

use director::control::api::{
    ConnectionView, Forwarding, Persistence, Protocol, ServerSpec, ServerView, ServiceKey,
    ServiceSpec, ServiceView, Stats, Timeouts, Tunnel, TunnelChecksum,
};

use super::table::table;
use super::*;
use crate::names::Names;

fn lines(text: &str) -> String {
    text.split('|')
        .map(|line| format!("{}\n", line.trim_start_matches('\n')))
        .collect::<String>()
        .trim_end_matches('\n')
        .to_owned()
        + "\n"
}

fn service(protocol: Protocol, address: &str, scheduler: &str) -> ServiceView {
    let address = address.parse().unwrap();
    with_key(ServiceKey::Address { protocol, address }, scheduler)
}

fn with_key(key: ServiceKey, scheduler: &str) -> ServiceView {
    let spec = ServiceSpec {
        key,
        scheduler: scheduler.to_owned(),
        flags: 0,
        persistence: None,
        one_packet: false,
    };
    ServiceView {
        spec,
        declared: false,
        stats: Stats::default(),
        servers: Vec::new(),
    }
}

fn persistent(timeout: u32, prefix: u8) -> Option<Persistence> {
    Some(Persistence {
        timeout,
        prefix,
        engine: None,
    })
}

fn server(
    address: &str,
    forwarding: Forwarding,
    weight: i32,
    active: u32,
    inactive: u32,
) -> ServerView {
    let spec = ServerSpec {
        address: address.parse().unwrap(),
        forwarding,
        tunnel: Tunnel::Ipip,
        weight,
        upper_threshold: 0,
        lower_threshold: 0,
    };
    ServerView {
        spec,
        active,
        inactive,
        persistent: 0,
        stats: Stats::default(),
    }
}

/// The table of the reference's first example, in an order of its own.
fn example() -> Vec<ServiceView> {
    let mut tcp = service(Protocol::Tcp, "10.0.0.1:80", "wlc");
    tcp.servers = vec![
        server("10.0.0.12:80", Forwarding::Direct, 1, 10, 200),
        server("10.0.0.11:80", Forwarding::Direct, 5, 3, 4),
    ];
    let mut sh = service(Protocol::Tcp, "10.0.0.2:443", "sh");
    sh.spec.flags = 0x18;
    sh.spec.persistence = persistent(300, 24);
    sh.servers = vec![server("10.0.0.21:443", Forwarding::Tunnel, 1, 0, 0)];
    let mut ops = service(Protocol::Udp, "10.0.0.3:53", "rr");
    ops.spec.one_packet = true;
    ops.servers = vec![server("10.0.0.31:5353", Forwarding::Nat, 1, 0, 1)];
    let mut sip = service(Protocol::Udp, "10.0.0.4:5060", "mh");
    sip.spec.flags = 0x10;
    sip.spec.persistence = Some(Persistence {
        timeout: 360,
        prefix: 32,
        engine: Some("sip".to_owned()),
    });
    sip.servers = vec![server("127.0.0.1:5060", Forwarding::Local, 1, 0, 0)];
    let sctp = service(Protocol::Sctp, "10.0.0.5:2905", "rr");
    let mut six = service(Protocol::Tcp, "[2001:db8::1]:80", "wrr");
    six.spec.persistence = persistent(50, 64);
    six.servers = vec![server("[2001:db8::11]:80", Forwarding::Nat, 1, 0, 0)];
    let mut mark = with_key(
        ServiceKey::Fwmark {
            fwmark: 7,
            ipv6: false,
        },
        "lc",
    );
    mark.spec.persistence = persistent(600, 32);
    mark.servers = vec![server("10.0.0.71:0", Forwarding::Direct, 1, 0, 0)];
    let mark_six = with_key(
        ServiceKey::Fwmark {
            fwmark: 8,
            ipv6: true,
        },
        "wlc",
    );
    vec![mark_six, mark, six, sctp, sip, ops, sh, tcp]
}

fn list(services: &[ServiceView], format: Format) -> String {
    table(services, Some(4096), &format, &Names::default())
}

#[test]
fn table_is_as_in_the_reference_to_the_last_blank() {
    let expected = lines(
        "IP Virtual Server version 1.2.1 (size=4096)|
Prot LocalAddress:Port Scheduler Flags|
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn|
TCP  10.0.0.1:80 wlc|
  -> 10.0.0.11:80                 Route   5      3          4         |
  -> 10.0.0.12:80                 Route   1      10         200       |
TCP  10.0.0.2:443 sh (sh-fallback,sh-port) persistent 300 mask 255.255.255.0|
  -> 10.0.0.21:443                Tunnel  1      0          0         |
UDP  10.0.0.3:53 rr ops|
  -> 10.0.0.31:5353               Masq    1      0          1         |
UDP  10.0.0.4:5060 mh (mh-port) persistent 360 pe sip|
  -> 127.0.0.1:5060               Local   1      0          0         |
SCTP 10.0.0.5:2905 rr|
TCP  [2001:db8::1]:80 wrr persistent 50 mask 64|
  -> [2001:db8::11]:80            Masq    1      0          0         |
FWM  7 lc persistent 600|
  -> 10.0.0.71:0                  Route   1      0          0         |
FWM  8 IPv6 wlc|",
    );
    assert_eq!(list(&example(), Format::default()), expected);
}

#[test]
fn unsorted_table_keeps_the_directors_order_and_one_service_has_no_version_line() {
    let services = example();
    let text = list(
        &services,
        Format {
            unsorted: true,
            ..Format::default()
        },
    );
    let rows: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(rows[0], "FWM  8 IPv6 wlc");
    assert!(
        rows[rows.len() - 2].starts_with("  -> 10.0.0.12:80 "),
        "{text}"
    );
    let text = table(&services[..1], None, &Format::default(), &Names::default());
    assert!(
        text.starts_with("Prot LocalAddress:Port Scheduler Flags\n"),
        "{text}"
    );
}

fn counted() -> Vec<ServiceView> {
    let mut tcp = service(Protocol::Tcp, "10.0.0.1:80", "wlc");
    tcp.stats = Stats {
        connections: 1234,
        in_packets: 56789,
        out_packets: 45678,
        in_bytes: 123_456_789,
        out_bytes: 1_234_567_890_123,
        cps: 123_456_789,
        in_pps: 6,
        out_pps: 7,
        in_bps: 8,
        out_bps: 9,
    };
    let mut first = server("10.0.0.11:80", Forwarding::Direct, 1, 0, 0);
    first.stats = Stats {
        connections: 617,
        in_packets: 28395,
        in_bytes: 61_728_395,
        ..Stats::default()
    };
    let mut second = server("10.0.0.12:80", Forwarding::Direct, 1, 0, 0);
    second.stats = Stats {
        cps: 123_456_789,
        in_pps: 234_567_890,
        out_pps: 345_678_901,
        in_bps: 456_789_012,
        out_bps: 567_890_123,
        ..Stats::default()
    };
    tcp.servers = vec![second, first];
    let mut udp = service(Protocol::Udp, "10.0.0.3:53", "rr");
    udp.stats = Stats {
        connections: 99_999_999,
        in_packets: 100_000_000,
        out_packets: 999_999_999,
        in_bytes: 1_000_000_000,
        out_bytes: 99_999_999_999,
        ..Stats::default()
    };
    vec![tcp, udp]
}

#[test]
fn counters_are_as_in_the_reference_with_and_without_exact() {
    let format = Format {
        stats: true,
        ..Format::default()
    };
    let expected = lines(
        "IP Virtual Server version 1.2.1 (size=4096)|
Prot LocalAddress:Port               Conns   InPkts  OutPkts  InBytes OutBytes|
  -> RemoteAddress:Port|
TCP  10.0.0.1:80                      1234    56789    45678  123456K    1234G|
  -> 10.0.0.11:80                      617    28395        0 61728395        0|
  -> 10.0.0.12:80                        0        0        0        0        0|
UDP  10.0.0.3:53                  99999999  100000K  999999K    1000M   99999M|",
    );
    assert_eq!(list(&counted(), format), expected);
    // Of several layouts the first counts.
    let all = Format {
        rate: true,
        thresholds: true,
        persistent: true,
        tunnel: true,
        ..format
    };
    assert_eq!(list(&counted(), all), expected);

    let text = list(
        &counted(),
        Format {
            exact: true,
            ..format
        },
    );
    let tcp =
        "TCP  10.0.0.1:80                      1234    56789    45678 123456789 1234567890123";
    let udp =
        "UDP  10.0.0.3:53                  99999999 100000000 999999999 1000000000 99999999999";
    assert_eq!(text.lines().nth(3), Some(tcp));
    assert_eq!(text.lines().nth(6), Some(udp));
}

#[test]
fn rates_of_servers_are_not_shortened_where_ipvsadm_forgets_to() {
    let expected = lines(
        "IP Virtual Server version 1.2.1 (size=4096)|
Prot LocalAddress:Port                 CPS    InPPS   OutPPS    InBPS   OutBPS|
  -> RemoteAddress:Port|
TCP  10.0.0.1:80                   123456K        6        7        8        9|
  -> 10.0.0.11:80                        0        0        0        0        0|
  -> 10.0.0.12:80                 123456789 234567890 345678901  456789K  567890K|
UDP  10.0.0.3:53                         0        0        0        0        0|",
    );
    assert_eq!(
        list(
            &counted(),
            Format {
                rate: true,
                ..Format::default()
            }
        ),
        expected
    );
}

#[test]
fn thresholds_and_templates_have_their_own_titles_and_columns() {
    let mut tcp = service(Protocol::Tcp, "10.0.0.1:80", "wlc");
    let mut limited = server("10.0.0.11:80", Forwarding::Direct, 1, 3, 4);
    (limited.spec.upper_threshold, limited.spec.lower_threshold) = (100, 75);
    limited.persistent = 7;
    tcp.servers = vec![limited];
    let expected = lines(
        "IP Virtual Server version 1.2.1 (size=4096)|
Prot LocalAddress:Port            Uthreshold Lthreshold ActiveConn InActConn |
  -> RemoteAddress:Port|
TCP  10.0.0.1:80 wlc|
  -> 10.0.0.11:80                 100        75         3          4         |",
    );
    let services = [tcp];
    assert_eq!(
        list(
            &services,
            Format {
                thresholds: true,
                ..Format::default()
            }
        ),
        expected
    );
    let expected = lines(
        "IP Virtual Server version 1.2.1 (size=4096)|
Prot LocalAddress:Port            Weight    PersistConn ActiveConn InActConn |
  -> RemoteAddress:Port|
TCP  10.0.0.1:80 wlc|
  -> 10.0.0.11:80                 1         7           3          4         |",
    );
    assert_eq!(
        list(
            &services,
            Format {
                persistent: true,
                ..Format::default()
            }
        ),
        expected
    );
}

fn tunnels() -> ServiceView {
    let mut tcp = service(Protocol::Tcp, "10.0.0.2:443", "wlc");
    let gue = |port, checksum| Tunnel::Gue { port, checksum };
    tcp.servers = [
        ("10.0.0.21:443", Tunnel::Ipip, 1),
        ("10.0.0.22:443", gue(6080, TunnelChecksum::Csum), 1),
        (
            "10.0.0.23:443",
            Tunnel::Gre {
                checksum: TunnelChecksum::Nocsum,
            },
            1,
        ),
        ("10.0.0.24:443", gue(6081, TunnelChecksum::Remcsum), 0),
    ]
    .map(|(address, tunnel, weight)| {
        let mut server = server(address, Forwarding::Tunnel, weight, 0, 0);
        server.spec.tunnel = tunnel;
        server
    })
    .to_vec();
    tcp.servers
        .push(server("10.0.0.25:443", Forwarding::Direct, 1, 0, 0));
    tcp
}

#[test]
fn tunnels_are_told_apart() {
    let expected = lines(
        "IP Virtual Server version 1.2.1 (size=4096)|
Prot LocalAddress:Port Scheduler Flags|
  -> RemoteAddress:Port           Forward TunnelInfo    Weight ActiveConn InActConn|
TCP  10.0.0.2:443 wlc|
  -> 10.0.0.21:443                Tunnel  ipip          1      0          0         |
  -> 10.0.0.22:443                Tunnel  gue:6080:+c   1      0          0         |
  -> 10.0.0.23:443                Tunnel  gre:-c        1      0          0         |
  -> 10.0.0.24:443                Tunnel  gue:6081:r+c  0      0          0         |
  -> 10.0.0.25:443                Route   n/a           1      0          0         |",
    );
    assert_eq!(
        list(
            &[tunnels()],
            Format {
                tunnel: true,
                ..Format::default()
            }
        ),
        expected
    );
}

#[test]
fn long_names_are_cut_for_ipv4_and_run_over_for_ipv6() {
    let names = Names::from_text(
        "10.0.0.1 a.name.of.more.than.thirty-three.characters.example\n\
         2001:db8::1 another.name.of.more.than.thirty-three.characters.example\n",
        "",
    );
    let mut four = service(Protocol::Tcp, "10.0.0.1:80", "rr");
    four.servers = vec![server("10.0.0.1:80", Forwarding::Nat, 1, 0, 0)];
    let mut six = service(Protocol::Tcp, "[2001:db8::1]:80", "rr");
    six.servers = vec![server("[2001:db8::1]:80", Forwarding::Nat, 1, 0, 0)];
    let text = table(&[four, six], None, &Format::default(), &names);
    let rows: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(rows[0], "TCP  a.name.of.more.than.thirty-t rr");
    assert_eq!(
        rows[1],
        "  -> a.name.of.more.than.thirty-t Masq    1      0          0         "
    );
    let name = "[another.name.of.more.than.thirty-three.characters.example]:80";
    assert_eq!(rows[2], format!("TCP  {name} rr"));
    assert_eq!(
        rows[3],
        format!("  -> {name} Masq    1      0          0         ")
    );
}

#[test]
fn flags_of_other_schedulers_have_numbers_and_large_marks_are_negative_as_in_ipvsadm() {
    let mut service = with_key(
        ServiceKey::Fwmark {
            fwmark: u32::MAX,
            ipv6: false,
        },
        "wlc",
    );
    service.spec.flags = 0x38;
    let text = table(
        &[service.clone()],
        None,
        &Format::default(),
        &Names::default(),
    );
    assert_eq!(
        text.lines().nth(2),
        Some("FWM  -1 wlc (flag-1,flag-2,flag-3)")
    );
    service.spec.scheduler = "mh".to_owned();
    let text = table(&[service], None, &Format::default(), &Names::default());
    assert_eq!(
        text.lines().nth(2),
        Some("FWM  -1 mh (mh-fallback,mh-port,flag-3)")
    );
}

#[test]
fn connections_are_as_in_the_reference() {
    let tcp = Some(Protocol::Tcp);
    let rows: String = [
        (
            tcp,
            "10.0.0.200:50000",
            "10.0.0.1:80",
            "10.0.0.11:80",
            "ESTABLISHED",
            899,
        ),
        (
            Some(Protocol::Udp),
            "10.0.0.201:5000",
            "10.0.0.3:53",
            "10.0.0.31:5353",
            "UDP",
            299,
        ),
        (
            tcp,
            "10.0.0.200:0",
            "10.0.0.2:443",
            "10.0.0.21:443",
            "ASSURED",
            300,
        ),
        (None, "10.0.0.200:0", "0.0.0.7:0", "10.0.0.71:0", "NONE", 60),
        (
            Some(Protocol::Sctp),
            "10.0.0.200:10000",
            "10.0.0.5:2905",
            "10.0.0.51:2905",
            "ESTABLISHED",
            5999,
        ),
        (
            tcp,
            "[2001:db8::c8]:50001",
            "[2001:db8::1]:80",
            "10.0.0.99:80",
            "SYN_RECV",
            59,
        ),
    ]
    .into_iter()
    .map(
        |(protocol, client, virtual_address, server, state, expires)| {
            let connection = ConnectionView {
                protocol,
                client: client.parse().unwrap(),
                virtual_address: virtual_address.parse().unwrap(),
                server: server.parse().unwrap(),
                state: state.to_owned(),
                expires,
            };
            connections::row(&connection, &Names::default())
        },
    )
    .collect();
    let expected = lines(
        "IPVS connection entries|
pro expire state       source             virtual            destination|
TCP 14:59  ESTABLISHED 10.0.0.200:50000   10.0.0.1:80        10.0.0.11:80|
UDP 04:59  UDP         10.0.0.201:5000    10.0.0.3:53        10.0.0.31:5353|
TCP 05:00  ASSURED     10.0.0.200:0       10.0.0.2:443       10.0.0.21:443|
IP  01:00  NONE        10.0.0.200:0       0.0.0.7:0          10.0.0.71:0|
SCTP 99:59  ESTABLISHED 10.0.0.200:10000   10.0.0.5:2905      10.0.0.51:2905|
TCP 00:59  SYN_RECV    [2001:db8::c8]:50001 [2001:db8::1]:80   10.0.0.99:80|",
    );
    assert_eq!(connections::header(&Format::default()) + &rows, expected);
    let with_engines = connections::header(&Format {
        persistent: true,
        ..Format::default()
    });
    let titles = "pro expire state       source             virtual            destination        \
                  pe name          pe_data";
    assert_eq!(with_engines.lines().nth(1), Some(titles));
}

#[test]
fn timeouts_are_one_line() {
    let text = timeouts(&Timeouts {
        tcp: 900,
        tcp_fin: 120,
        udp: 300,
    });
    assert_eq!(text, "Timeout (tcp tcpfin udp): 900 120 300\n");
}

#[test]
fn saved_rules_are_as_in_the_reference_and_read_back_as_what_they_were() {
    let mut services = example();
    services.push(tunnels());
    services.last_mut().unwrap().spec.key = ServiceKey::Fwmark {
        fwmark: 9,
        ipv6: false,
    };
    let text = rules::rules(&services, &Names::default());
    let expected = lines(
        "-A -t 10.0.0.1:80 -s wlc|
-a -t 10.0.0.1:80 -r 10.0.0.11:80 -g -w 5|
-a -t 10.0.0.1:80 -r 10.0.0.12:80 -g -w 1|
-A -t 10.0.0.2:443 -s sh -p 300 -M 255.255.255.0 -b sh-fallback,sh-port|
-a -t 10.0.0.2:443 -r 10.0.0.21:443 -i -w 1 --tun-type ipip|
-A -u 10.0.0.3:53 -s rr -o|
-a -u 10.0.0.3:53 -r 10.0.0.31:5353 -m -w 1|
-A -u 10.0.0.4:5060 -s mh -p 360 --pe sip -b mh-port|
-a -u 10.0.0.4:5060 -r 127.0.0.1:5060 -g -w 1|
-A --sctp-service 10.0.0.5:2905 -s rr|
-A -t [2001:db8::1]:80 -s wrr -p 50 -M 64|
-a -t [2001:db8::1]:80 -r [2001:db8::11]:80 -m -w 1|
-A -f 7 -s lc -p 600|
-a -f 7 -r 10.0.0.71:0 -g -w 1|
-A -f 8 -6 -s wlc|
-A -f 9 -s wlc|
-a -f 9 -r 10.0.0.21:443 -i -w 1 --tun-type ipip|
-a -f 9 -r 10.0.0.22:443 -i -w 1 --tun-type gue --tun-port 6080 --tun-csum|
-a -f 9 -r 10.0.0.23:443 -i -w 1 --tun-type gre --tun-nocsum|
-a -f 9 -r 10.0.0.24:443 -i -w 0 --tun-type gue --tun-port 6081 --tun-remcsum|
-a -f 9 -r 10.0.0.25:443 -g -w 1|",
    );
    assert_eq!(text, expected);

    use crate::order::testing::{server, service};
    let all: Vec<&ServerSpec> = services
        .iter()
        .flat_map(|s| &s.servers)
        .map(|s| &s.spec)
        .collect();
    for line in text.lines() {
        if line.starts_with("-A") {
            let spec = service(line);
            assert!(
                services.iter().any(|service| service.spec == spec),
                "{line}"
            );
        } else {
            let mut spec = server(line);
            if line.contains("127.0.0.1") {
                spec.forwarding = Forwarding::Local;
            }
            assert!(all.contains(&&spec), "{line}");
        }
    }
}

//! Connections, timeouts and saved rules.

use director::control::api::{ConnectionView, Timeouts};

use super::*;
use crate::layout::{connections, rules, timeouts};

#[test]
fn connections_are_as_in_the_reference() {
    let tcp = Some(Protocol::Tcp);
    let rows: String = [
        (tcp, "10.0.0.200:50000", "10.0.0.1:80", "10.0.0.11:80", "ESTABLISHED", 899),
        (Some(Protocol::Udp), "10.0.0.201:5000", "10.0.0.3:53", "10.0.0.31:5353", "UDP", 299),
        (tcp, "10.0.0.200:0", "10.0.0.2:443", "10.0.0.21:443", "ASSURED", 300),
        (None, "10.0.0.200:0", "0.0.0.7:0", "10.0.0.71:0", "NONE", 60),
        (
            Some(Protocol::Sctp),
            "10.0.0.200:10000",
            "10.0.0.5:2905",
            "10.0.0.51:2905",
            "ESTABLISHED",
            5999,
        ),
        (tcp, "[2001:db8::c8]:50001", "[2001:db8::1]:80", "10.0.0.99:80", "SYN_RECV", 59),
    ]
    .into_iter()
    .map(|(protocol, client, virtual_address, server, state, expires)| {
        let connection = ConnectionView {
            protocol,
            client: client.parse().unwrap(),
            virtual_address: virtual_address.parse().unwrap(),
            server: server.parse().unwrap(),
            state: state.to_owned(),
            expires,
            engine: None,
        };
        let mut text = String::new();
        connections::row(&mut text, &connection, &Names::default(), &Format::default());
        text
    })
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
    let with_engines = connections::header(&Format { persistent: true, ..Format::default() });
    let titles = "pro expire state       source             virtual            destination        \
                  pe name          pe_data";
    assert_eq!(with_engines.lines().nth(1), Some(titles));
}

#[test]
fn timeouts_are_one_line() {
    let text = timeouts(&Timeouts { tcp: 900, tcp_fin: 120, udp: 300 });
    assert_eq!(text, "Timeout (tcp tcpfin udp): 900 120 300\n");
}

#[test]
fn saved_rules_are_as_in_the_reference_and_read_back_as_what_they_were() {
    let mut services = example();
    services.push(tunnels());
    services.last_mut().unwrap().spec.key = ServiceKey::Fwmark { fwmark: 9, ipv6: false };
    let text = saved(&services);
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
    let all: Vec<&ServerSpec> = services.iter().flat_map(|s| &s.servers).map(|s| &s.spec).collect();
    for line in text.lines() {
        if line.starts_with("-A") {
            let spec = service(line);
            assert!(services.iter().any(|service| service.spec == spec), "{line}");
        } else {
            let mut spec = server(line);
            if line.contains("127.0.0.1") {
                spec.forwarding = Forwarding::Direct.at_home();
            }
            assert!(all.contains(&&spec), "{line}");
        }
    }
}

#[test]
fn every_key_that_a_scheduler_can_have_is_saved_in_full() {
    use crate::flags::extensions::HASH_KEYS;
    use crate::order::testing;
    use director::control::api::{Extras, Placement};
    let mut service = example().into_iter().find(|service| service.servers.len() == 2).unwrap();
    let keys = HASH_KEYS.iter().map(|&(_, key)| Some(key)).chain([None]);
    for (key, flags) in keys.flat_map(|key| [(key, 0), (key, 0x8), (key, 0x38)]) {
        for (sticky, variants) in [(false, 512), (true, 1), (true, 512), (false, 65_535)] {
            service.spec.scheduler = "dht".to_owned();
            service.spec.flags = flags;
            let placement = Placement { key, sticky, variants };
            let extras = Extras { placement, ..Extras::default() };
            service.spec.extras = (extras != Extras::default()).then_some(extras);
            let text = rules::full_service(&service);
            let line = text.lines().next().unwrap();
            assert_eq!(testing::service(line), service.spec, "{line}");
        }
    }
}

/// As a negative number, which is what ipvsadm makes of it, it could not be restored.
#[test]
fn a_large_mark_is_saved_as_the_number_that_it_is() {
    let mut service = example().remove(0);
    service.spec.key = ServiceKey::Fwmark { fwmark: u32::MAX, ipv6: false };
    let text = saved(&[service]);
    assert_eq!(text.lines().next(), Some("-A -f 4294967295 -s wlc"));
}

#[test]
fn everything_that_is_saved_can_be_read_back_as_what_it_was() {
    use crate::order::testing;
    use director::control::api::{
        Bias, BiasWindow, Extras, GoneServer, MssClamp, NoDestination, OwnTimeouts, Teardown,
    };
    let mut service = example().into_iter().find(|service| service.servers.len() == 2).unwrap();
    service.spec.scheduler = "sh".to_owned();
    service.spec.flags = 0x28;
    let timeouts = OwnTimeouts { tcp: 7200, tcp_fin: 0, udp: 5 };
    service.spec.extras = Some(Extras {
        timeouts,
        gone_server: GoneServer::Reschedule,
        no_destination: NoDestination::Rst,
        leave_quiesced: true,
        mss_clamp: MssClamp::ByRoute(true),
        bias: Bias::Linear(200),
        bias_window: BiasWindow(100),
        teardown: Teardown::None,
        ..Extras::default()
    });
    service.servers[0].spec.upper_threshold = 9;
    service.servers[1].spec.upper_threshold = 9;
    service.servers[1].spec.lower_threshold = 3;
    let text = rules::full_service(&service);
    let mut lines = text.lines();
    assert_eq!(testing::service(lines.next().unwrap()), service.spec);
    // The list has the newest first; it is added last.
    let servers: Vec<ServerSpec> = lines.map(testing::server).collect();
    let expected: Vec<ServerSpec> =
        service.servers.iter().rev().map(|server| server.spec.clone()).collect();
    assert_eq!(servers, expected);
}

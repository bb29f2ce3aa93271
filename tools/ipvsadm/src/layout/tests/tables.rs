//! The service table in all layouts but the counters.

use super::*;

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
    let text = list(&services, Format { unsorted: true, ..Format::default() });
    let rows: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(rows[0], "FWM  8 IPv6 wlc");
    assert!(rows[rows.len() - 2].starts_with("  -> 10.0.0.12:80 "), "{text}");
    let text = table(&services[..1], None, &Format::default(), &Names::default());
    assert!(text.starts_with("Prot LocalAddress:Port Scheduler Flags\n"), "{text}");
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
    assert_eq!(list(&services, Format { thresholds: true, ..Format::default() }), expected);
    let expected = lines(
        "IP Virtual Server version 1.2.1 (size=4096)|
Prot LocalAddress:Port            Weight    PersistConn ActiveConn InActConn |
  -> RemoteAddress:Port|
TCP  10.0.0.1:80 wlc|
  -> 10.0.0.11:80                 1         7           3          4         |",
    );
    assert_eq!(list(&services, Format { persistent: true, ..Format::default() }), expected);
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
    assert_eq!(list(&[tunnels()], Format { tunnel: true, ..Format::default() }), expected);
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
    assert_eq!(rows[1], "  -> a.name.of.more.than.thirty-t Masq    1      0          0         ");
    let name = "[another.name.of.more.than.thirty-three.characters.example]:80";
    assert_eq!(rows[2], format!("TCP  {name} rr"));
    assert_eq!(rows[3], format!("  -> {name} Masq    1      0          0         "));
}

#[test]
fn flags_of_other_schedulers_have_numbers_and_large_marks_are_negative_as_in_ipvsadm() {
    let mut service = with_key(ServiceKey::Fwmark { fwmark: u32::MAX, ipv6: false }, "wlc");
    service.spec.flags = 0x38;
    let text = table(&[service.clone()], None, &Format::default(), &Names::default());
    assert_eq!(text.lines().nth(2), Some("FWM  -1 wlc (flag-1,flag-2,flag-3)"));
    service.spec.scheduler = "mh".to_owned();
    let text = table(&[service.clone()], None, &Format::default(), &Names::default());
    assert_eq!(text.lines().nth(2), Some("FWM  -1 mh (mh-fallback,mh-port)"));
    service.spec.scheduler = "dht".to_owned();
    let text = table(&[service], None, &Format::default(), &Names::default());
    assert_eq!(text.lines().nth(2), Some("FWM  -1 dht (dht-sticky,dht-port,dht-dns-name)"));
}

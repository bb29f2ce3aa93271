//! `--stats`, `--rate` and `--exact`.

use super::*;

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
    first.stats =
        Stats { connections: 617, in_packets: 28395, in_bytes: 61_728_395, ..Stats::default() };
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
    let format = Format { stats: true, ..Format::default() };
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
    let all = Format { rate: true, thresholds: true, persistent: true, tunnel: true, ..format };
    assert_eq!(list(&counted(), all), expected);

    let text = list(&counted(), Format { exact: true, ..format });
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
    assert_eq!(list(&counted(), Format { rate: true, ..Format::default() }), expected);
}

//! Metrics of a running director: what is scraped is what has happened.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use integration::topology::{Kind, VIP_V4, server_addresses};
use integration::written::{service, top};

use crate::bed::{Bed, can_run};

/// The page, fetched over TCP on the director's host.
fn scrape(bed: &Bed, path: &str) -> String {
    let output = bed
        .topology
        .director
        .command("curl")
        .args(["--silent", "--max-time", "10", &format!("http://127.0.0.1:9090{path}")])
        .output(Duration::from_secs(20))
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The value of a series, 0 where there is none.
fn value(page: &str, series: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

#[test]
fn what_is_scraped_is_what_has_happened() {
    if !can_run() {
        return;
    }
    let config = "metrics = \"127.0.0.1:9090\"\n".to_owned()
        + &top("copy")
        + &service(Kind::Nat, VIP_V4, 80, "rr", "check = \"tcp\"", &[1, 1])
        // A server that no route leads to.
        + "\n[[service]]\nlisten = \"192.0.2.10:81/tcp\"\nforwarding = \"nat\"\n\n  \
           [[service.server]]\n  address = \"203.0.113.9:81\"\n";
    let bed = Bed::with(Kind::Nat, &config);
    assert_eq!(scrape(&bed, "/healthz"), "ok\n");
    assert_eq!(bed.fetch(VIP_V4, 80, 100).failed(), 0);
    let lost = SocketAddr::new(VIP_V4, 81);
    let patience = Duration::from_millis(300);
    let refused =
        bed.topology.client.run(|| std::net::TcpStream::connect_timeout(&lost, patience)).unwrap();
    assert!(refused.is_err());

    let (one, other) = (server_addresses(1)[0], server_addresses(2)[0]);
    let picks = |address| {
        format!(
            "switchyard_server_picks_total{{service=\"192.0.2.10:80/tcp\",server=\"{address}:80\"}}"
        )
    };
    // Ports and packet memory are told ten times a second.
    let deadline = Instant::now() + Duration::from_secs(10);
    let page = loop {
        let page = scrape(&bed, "/metrics");
        let port = page.lines().find(|line| line.starts_with("switchyard_port_received_frames"));
        let up = page.lines().filter(|line| line.starts_with("switchyard_server_up{"));
        // All servers but the one that is not reached have been found up.
        let up = up.filter(|line| line.ends_with(" 1")).count();
        if up == 2 && port.is_some_and(|line| !line.ends_with(" 0")) {
            break page;
        }
        assert!(Instant::now() < deadline, "{page}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!((value(&page, &picks(one)), value(&page, &picks(other))), (50.0, 50.0), "{page}");
    assert!(
        value(&page, "switchyard_packets_total{verdict=\"forwarded\",reason=\"sent_nat\"}") > 300.0
    );
    assert!(
        value(&page, "switchyard_packets_total{verdict=\"dropped\",reason=\"no_route\"}") >= 1.0
    );
    assert!(page.contains("switchyard_packets_total{verdict=\"dropped\",reason=\"too_big\"} 0\n"));
    assert!(
        value(&page, "switchyard_connections_by_state{protocol=\"tcp\",state=\"TIME_WAIT\"}") > 0.0
    );
    assert_eq!(value(&page, "switchyard_connections_limit"), 1_048_576.0);
    let (breaths, batches) = (
        value(&page, "switchyard_worker_breath_seconds_count{worker=\"0\"}"),
        value(&page, "switchyard_worker_batch_packets_count{worker=\"0\"}"),
    );
    // The last breath is timed by the next one.
    assert!(breaths > 0.0 && (batches - breaths).abs() <= 1.0, "{breaths} breaths, {batches}");
    let received = value(&page, "switchyard_worker_batch_packets_sum{worker=\"0\"}");
    assert!(received > 600.0, "{received} packets in all breaths");
    assert!(value(&page, "switchyard_worker_frames{worker=\"0\",place=\"receiving\"}") > 0.0);
    assert!(page.contains("switchyard_port_socket_rx_ring_full_total{"), "{page}");
    for address in [one, other] {
        let up = format!(
            "switchyard_server_up{{service=\"192.0.2.10:80/tcp\",server=\"{address}:80\"}} 1\n"
        );
        assert!(page.contains(&up), "{up}{page}");
    }
    bed.director.stop().unwrap();
}

//! A server that is down, as everything that watches shows it: events, the view, the metrics.

use std::time::{Duration, Instant};

use integration::glass::Glass;
use integration::programs;
use integration::topology::{Kind, VIP_V4, server_addresses};
use integration::written::{service, top};

use crate::bed::{Bed, can_run};

const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_server_that_goes_down_is_named_by_events_the_view_and_the_metrics() {
    if !can_run() {
        return;
    }
    let check = "check = { type = \"tcp\", interval = \"200ms\", timeout = \"200ms\", fall = 2 }";
    let config = "metrics = \"127.0.0.1:9090\"\n".to_owned()
        + &top("copy")
        + &service(Kind::Nat, VIP_V4, 80, "rr", check, &[1, 1]);
    let bed = Bed::with(Kind::Nat, &config);
    let [lost, kept] = [1, 2].map(|number| format!("{}:80", server_addresses(number)[0]));
    let program = programs::path("dirctl").unwrap();
    let [program, socket] =
        [&program, bed.director.socket()].map(|path| path.to_str().unwrap().to_owned());
    let command = [&program, "--socket", &socket, "top", "--interval", "0.2"];
    let mut glass = Glass::start(&command, 80, 24).unwrap();
    glass.wait_until(SOON, |text| text.contains("1 service: 2 up")).unwrap();

    bed.topology.servers[0].set_up("eth0", false).unwrap();
    let begun = Instant::now();
    let told = loop {
        let told = bed.dirctl(&["events"]);
        if told.out.contains("down") {
            break told;
        }
        assert!(begun.elapsed() < SOON, "{told:?}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let line = told.out.lines().find(|line| line.contains("down")).unwrap_or_default();
    assert!(line.contains(&lost) && line.contains("timed out"), "{told:?}");
    assert!(
        !told.out.lines().any(|line| line.contains(&kept) && line.contains("down")),
        "{told:?}"
    );

    let state = |text: &str, server: &str, state: &str| {
        text.lines().any(|line| line.contains(server) && line.contains(state))
    };
    let seen = glass.wait_until(SOON, |text| state(text, &lost, " down ")).unwrap();
    assert!(state(&seen, &kept, " up ") && seen.contains("1 up, 1 down"), "{seen}");

    let url = "http://127.0.0.1:9090/metrics";
    let curl = bed.topology.director.command("curl").args(["--silent", "--max-time", "10", url]);
    let page = String::from_utf8(curl.output(SOON).unwrap().stdout).unwrap();
    for (server, up) in [(&lost, 0), (&kept, 1)] {
        let series = format!(
            "switchyard_server_up{{service=\"192.0.2.10:80/tcp\",server=\"{server}\"}} {up}\n"
        );
        assert!(page.contains(&series), "{series}{page}");
    }
    glass.press("q").unwrap();
    assert_eq!(glass.ended(SOON).unwrap(), Some(0));
    bed.director.stop().unwrap();
}

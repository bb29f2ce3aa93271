//! Weights that follow what servers report; what an operator has set stays what he has set.

use std::time::Duration;

use integration::topology::Kind;

use crate::bed::{Bed, Wanted, server, vip};
use crate::can_run;

const LINES: &str = r#"agent = { period = "100ms", timeout = "1s" }
feedback = { least = "10%", most = "100%", hysteresis = "5%", step = "100%" }"#;
const SOON: Duration = Duration::from_secs(8);

#[test]
fn a_loaded_server_weighs_less_and_the_configured_weight_stays_the_operators() {
    if !can_run() {
        return;
    }
    let load = std::env::temp_dir().join(format!("sy-feedback-{}", std::process::id()));
    std::fs::write(&load, "0\n").unwrap();
    // All hosts of the lab see one file: all three servers report the same load.
    let agent = format!("load = {{ cpu = 0, command = 1 }}\ncommand = [\"/bin/cat\", {load:?}]");
    let wanted = Wanted { weight: 100, scheduler: "wrr", ..Wanted::new(Kind::Nat, LINES) };
    let bed = Bed::build(wanted.with_agents(&agent)).unwrap();
    let weighs = |effective: i32| {
        move |health: &director::control::health::ServerHealth| health.effective_weight == effective
    };
    bed.wait_until(1, "of its full weight", SOON, weighs(100)).unwrap();
    std::fs::write(&load, "6000\n").unwrap();
    let health = bed.wait_until(1, "of two fifths", SOON, weighs(40)).unwrap();
    assert_eq!(health.weight, 100);
    // Never to nothing.
    std::fs::write(&load, "10000\n").unwrap();
    bed.wait_until(1, "of the least", SOON, weighs(10)).unwrap();

    // The operator doubles it; the factor stays.
    let (service, address) = (format!("{}:80", vip()), server(1).to_string());
    bed.director.ipvsadm(&["-e", "-t", &service, "-r", &address, "-m", "-w", "200"]).unwrap();
    let health = bed.wait_until(1, "of the least of 200", SOON, weighs(20)).unwrap();
    assert_eq!(health.weight, 200);
    let saved = bed.director.ipvsadm(&["-S", "-n"]).unwrap();
    assert!(saved.contains(&format!("-r {address} -m -w 200")), "{saved}");
    let listed = bed.director.ipvsadm(&["-L", "-n"]).unwrap();
    let line = listed.lines().find(|line| line.contains(&address)).unwrap();
    assert!(line.split_whitespace().any(|word| word == "20"), "{listed}");

    // Nonsense changes nothing.
    std::fs::write(&load, "a lot\n").unwrap();
    std::thread::sleep(Duration::from_secs(1));
    bed.served_by(30, &[1, 2, 3]);
    std::fs::write(&load, "0\n").unwrap();
    bed.wait_until(1, "of its full weight", SOON, weighs(200)).unwrap();
    let _ = std::fs::remove_file(&load);
    bed.director.stop().unwrap();
}

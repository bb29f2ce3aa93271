//! HAProxy asks our agent what it asks its own: the agent-check's line of text.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use integration::topology::{Kind, server_addresses};
use realserver_agent::protocol::PORT;

use crate::bed::{Bed, Wanted};
use crate::can_run;

/// Name, status and weight of the server, as `show stat` has them.
fn stat(socket: &Path) -> Option<(String, String)> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.write_all(b"show stat\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.trim_start_matches("# ").split(',').collect();
    let at = |line: &str, name: &str| {
        let place = names.iter().position(|it| *it == name)?;
        line.split(',').nth(place).map(str::to_owned)
    };
    let line = lines.find(|line| line.contains(",server1,"))?;
    Some((at(line, "status")?, at(line, "weight")?))
}

#[test]
fn haproxy_follows_the_agents_word() {
    if !can_run() {
        return;
    }
    let load = std::env::temp_dir().join(format!("sy-load-{}", std::process::id()));
    std::fs::write(&load, "2500\n").unwrap();
    let lines = format!(
        "agent_check = true\nload = {{ cpu = 0, command = 1 }}\ncommand = [\"/bin/cat\", {load:?}]"
    );
    let bed = Bed::build(Wanted::new(Kind::Nat, "agent = true").with_agents(&lines)).unwrap();
    let logs = bed.topology.lab.logs();
    let (file, socket) = (logs.join("haproxy.cfg"), logs.join("haproxy.sock"));
    let address = server_addresses(1)[0];
    let config = format!(
        "global\n  stats socket {} mode 600 level admin\ndefaults\n  mode tcp\n  \
         timeout connect 1s\n  timeout client 5s\n  timeout server 5s\n  timeout check 1s\n\
         frontend web\n  bind 192.0.2.100:8080\n  default_backend servers\n\
         backend servers\n  server server1 {address}:80 weight 100 check inter 300ms \
         agent-check agent-port {PORT} agent-inter 300ms\n",
        socket.display()
    );
    std::fs::write(&file, config).unwrap();
    let haproxy =
        bed.topology.client.command("haproxy").args(["-db", "-f"]).arg(&file).spawn().unwrap();
    let wait = |what: &str, wanted: &dyn Fn(&str, u32) -> bool| {
        let deadline = Instant::now() + Duration::from_secs(8);
        loop {
            let found = stat(&socket);
            if let Some((status, weight)) = &found
                && wanted(status, weight.parse().unwrap_or(0))
            {
                return;
            }
            let log = haproxy.log();
            assert!(Instant::now() < deadline, "HAProxy does not see {what}: {found:?}\n{log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait("three quarters of its weight", &|status, weight| {
        status.starts_with("UP") && weight == 75
    });
    std::fs::write(&load, "6000\n").unwrap();
    wait("two fifths of its weight", &|status, weight| status.starts_with("UP") && weight == 40);
    bed.agent(1, &["drain"]).unwrap();
    wait("that it drains", &|status, _| status.starts_with("DRAIN"));
    bed.agent(1, &["undrain"]).unwrap();
    wait("that it is back", &|status, weight| status.starts_with("UP") && weight == 40);
    let _ = std::fs::remove_file(&load);
    bed.director.stop().unwrap();
}

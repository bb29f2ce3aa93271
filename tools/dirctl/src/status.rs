//! `dirctl status`: the director at a glance.

use director::control::api::{HealthSummary, PortView, Status};

use crate::clean::{clean, count, duration};
use crate::columns::{Side, columns};
use crate::paint::Paint;

/// The status as a person reads it.
pub fn text(status: &Status, paint: Paint) -> String {
    let node = status.mode == "nlb";
    let mut lines = vec![
        paint.heading(&format!(
            "director {}, {} mode, process {}, up {}",
            clean(&status.version),
            clean(&status.mode),
            status.pid,
            duration(status.uptime)
        )),
        configuration(status, paint),
        if node {
            let (rules, flows) = (status.services.into(), status.connections);
            format!(
                "  holds          {}, {}",
                count(rules, "port rule"),
                count(flows, "connection")
            )
        } else {
            format!(
                "  table          {}, {} ({} buckets)",
                count(status.services.into(), "service"),
                count(status.connections, "connection"),
                status.table_size
            )
        },
    ];
    if let Some(health) = &status.health {
        lines.push(servers(health, paint));
    }
    // A node's packets pass a filter on their way to the kernel: it has no ports.
    if !node {
        lines.push(String::new());
        lines.push(paint.heading("Ports"));
        lines.extend(ports(&status.ports, paint));
    }
    lines.push(String::new());
    lines.push(paint.heading("Packets since start, by what became of them"));
    lines.extend(verdicts(status));
    if !status.warnings.is_empty() {
        lines.push(String::new());
        lines.push(paint.heading("Warnings"));
        for warning in &status.warnings {
            // A refused file is a list of problems: each stays on lines of its own.
            for (number, line) in warning.lines().enumerate() {
                let indent = if number == 0 { "  " } else { "    " };
                lines.push(paint.warning(&format!("{indent}{}", clean(line))));
            }
        }
    }
    lines.join("\n") + "\n"
}

fn configuration(status: &Status, paint: Paint) -> String {
    let own = status.config.as_ref().map_or("none".to_owned(), |path| clean(path));
    match &status.applied {
        None => format!("  configuration  {own}"),
        Some(applied) => paint.warning(&format!(
            "  configuration  {}, applied and not saved: a restart or a reload goes back to {own}",
            clean(applied)
        )),
    }
}

/// `12 up, 1 draining, 2 down`
fn servers(health: &HealthSummary, paint: Paint) -> String {
    let HealthSummary { up, draining, down, unchecked } = *health;
    let mut text = format!("  servers        {up} up");
    for (number, word) in [(draining, "draining"), (down, "down"), (unchecked, "not watched")] {
        if number > 0 {
            text.push_str(&format!(", {number} {word}"));
        }
    }
    match (draining, down) {
        (0, 0) => text,
        (_, 0) => paint.warning(&text),
        _ => paint.loss(&text),
    }
}

fn ports(ports: &[PortView], paint: Paint) -> Vec<String> {
    if ports.is_empty() {
        return vec!["  none: no packet reaches this director".to_owned()];
    }
    let titles =
        ["interface", "queue", "worker", "io", "received", "transmitted", "rx lost", "tx lost"];
    let mut rows = vec![titles.map(str::to_owned)];
    rows.extend(ports.iter().map(|port| {
        [
            clean(&port.interface),
            port.queue.to_string(),
            port.worker.to_string(),
            clean(&port.io),
            port.received.to_string(),
            port.transmitted.to_string(),
            port.receive_dropped.to_string(),
            port.transmit_dropped.to_string(),
        ]
    }));
    use Side::{Left, Right};
    let mut lines = columns([Left, Right, Right, Left, Right, Right, Right, Right], &rows);
    for (line, port) in lines.iter_mut().skip(1).zip(ports) {
        if port.receive_dropped > 0 || port.transmit_dropped > 0 {
            *line = paint.loss(line);
        }
    }
    lines
}

fn verdicts(status: &Status) -> Vec<String> {
    if status.verdicts.is_empty() {
        return vec!["  none yet".to_owned()];
    }
    let mut verdicts: Vec<_> = status.verdicts.iter().chain(&status.overflow).collect();
    verdicts.sort_by_key(|verdict| std::cmp::Reverse(verdict.packets));
    let rows: Vec<[String; 3]> = verdicts
        .into_iter()
        .map(|verdict| {
            [verdict.packets.to_string(), clean(&verdict.reason), clean(&verdict.meaning)]
        })
        .collect();
    columns([Side::Right, Side::Left, Side::Left], &rows)
}

#[cfg(test)]
mod tests {
    use director::control::api::VerdictCount;

    use super::*;

    fn status() -> Status {
        let port = |queue, receive_dropped| PortView {
            receiving: 0,
            transmitting: 0,
            socket: None,
            interface: "eth0".to_owned(),
            queue,
            worker: queue,
            io: "AF_XDP copy".to_owned(),
            received: 123_456,
            transmitted: 9,
            receive_dropped,
            transmit_dropped: 0,
        };
        let verdict = |reason: &str, meaning: &str, packets| VerdictCount {
            verdict: String::new(),
            reason: reason.to_owned(),
            meaning: meaning.to_owned(),
            packets,
        };
        Status {
            workers: vec![],
            max_connections: 0,
            version: "0.1.0".to_owned(),
            pid: 4711,
            uptime: 11_520.7,
            mode: "dispatcher".to_owned(),
            applied: None,
            config: Some("/etc/director/director.toml".to_owned()),
            table_size: 4096,
            connections: 3456,
            services: 1,
            ports: vec![port(0, 0), port(1, 17)],
            packets: String::new(),
            overflow: vec![],
            health: None,
            verdicts: vec![
                verdict("ttl_exceeded", "TTL ran out", 3),
                verdict("forwarded", "sent to a real server", 123_000),
            ],
            warnings: vec!["reload failed: line 3\u{1b}[2J\nand line 4".to_owned()],
        }
    }

    #[test]
    fn summary_shows_what_the_director_reports_with_meanings() {
        let expected = "\
director 0.1.0, dispatcher mode, process 4711, up 3 h 12 min
  configuration  /etc/director/director.toml
  table          1 service, 3456 connections (4096 buckets)

Ports
  interface  queue  worker  io           received  transmitted  rx lost  tx lost
  eth0           0       0  AF_XDP copy    123456            9        0        0
  eth0           1       1  AF_XDP copy    123456            9       17        0

Packets since start, by what became of them
  123000  forwarded     sent to a real server
       3  ttl_exceeded  TTL ran out

Warnings
  reload failed: line 3 [2J
    and line 4
";
        assert_eq!(text(&status(), Paint::default()), expected);
    }

    #[test]
    fn director_without_ports_packets_or_warnings_says_so() {
        let bare =
            Status { config: None, ports: vec![], verdicts: vec![], warnings: vec![], ..status() };
        let text = text(&bare, Paint::default());
        assert!(text.contains("configuration  none\n"), "{text}");
        assert!(text.contains("none: no packet reaches this director\n"), "{text}");
        assert!(text.ends_with("\n  none yet\n"), "{text}");
    }

    #[test]
    fn servers_are_counted_when_somebody_watches_them() {
        let line = |up, draining, down, unchecked, paint| {
            let health = Some(HealthSummary { up, draining, down, unchecked });
            let text = text(&Status { health, ..status() }, paint);
            text.lines().find(|line| line.contains("servers   ")).map(str::to_owned).unwrap()
        };
        let plain = Paint::default();
        assert_eq!(line(12, 1, 2, 0, plain), "  servers        12 up, 1 draining, 2 down");
        assert_eq!(line(12, 0, 0, 3, plain), "  servers        12 up, 3 not watched");
        let colour = Paint::new(true, None, None);
        assert!(line(1, 0, 1, 0, colour).starts_with("\u{1b}[31m"));
        assert!(line(1, 0, 0, 0, colour).starts_with("  servers"));
    }

    #[test]
    fn a_node_has_port_rules_and_no_ports() {
        let node = Status { mode: "nlb".to_owned(), ports: vec![], ..status() };
        let text = text(&node, Paint::default());
        assert!(text.contains("  holds          1 port rule, 3456 connections\n"), "{text}");
        assert!(!text.contains("Ports") && !text.contains("buckets"), "{text}");
    }

    #[test]
    fn colour_marks_lossy_ports_only() {
        let text = text(&status(), Paint::new(true, None, None));
        assert!(text.contains("\u{1b}[31m  eth0           1 "), "{text}");
        assert!(!text.contains("\u{1b}[31m  eth0           0 "), "{text}");
    }
}

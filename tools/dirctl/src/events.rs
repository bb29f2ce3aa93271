//! `dirctl events`: what has happened to servers, a line each.

use director::control::events::{Event, Told};

use crate::clean::{clean, count};
use crate::local_time::{self, Zone};
use crate::paint::Paint;

/// The line for a person, its time that of `zone`.
pub fn line(told: &Told, zone: &Zone, paint: Paint) -> String {
    match told {
        Told::Lost { lost } => {
            paint.warning(&format!("... {} forgotten ...", count(*lost, "event"))) + "\n"
        }
        Told::Event(event) => {
            let line = format!("{}  {}", local_time::show(event.time, zone), words(event));
            let line = line.trim_end();
            (if event.kind.is_bad() { paint.loss(line) } else { line.to_owned() }) + "\n"
        }
    }
}

/// The line for a program, as the control API has it.
pub fn json(told: &Told) -> String {
    serde_json::to_string(told).unwrap_or_default() + "\n"
}

/// `server_down       10.0.0.11:80 of 192.0.2.10:80/tcp  connect: connection refused`
fn words(event: &Event) -> String {
    let server = event.server.map(|server| match server.port() {
        // All servers at that address.
        0 => server.ip().to_string(),
        _ => server.to_string(),
    });
    let service = event.service.map(|service| service.to_string());
    let whom = match (server, service) {
        (Some(server), Some(service)) => format!("{server} of {service}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => String::new(),
    };
    let weights = event.before.zip(event.after);
    let weights = weights.map(|(before, after)| format!("  {before} -> {after}"));
    let reason = match clean(&event.reason) {
        reason if reason.is_empty() => reason,
        reason => format!("  {reason}"),
    };
    format!("{:<16}  {whom}{}{reason}", event.kind.name(), weights.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use director::control::api::{Protocol, ServiceKey};
    use director::control::events::EventKind;

    use super::*;

    fn event(kind: EventKind, server: &str, reason: &str) -> Event {
        let address = "192.0.2.10:80".parse().unwrap();
        let service = ServiceKey::Address { protocol: Protocol::Tcp, address };
        let event = Event::of(service, server.parse().unwrap(), reason);
        Event { kind, number: 7, time: 1_796_096_123_045, ..event }
    }

    #[test]
    fn a_line_says_when_what_whom_and_why() {
        let line = |event| line(&Told::Event(event), &Zone::default(), Paint::default());
        assert_eq!(
            line(event(EventKind::ServerDown, "10.0.0.11:80", "timeout\u{7}")),
            "2026-12-01 03:35:23.045  server_down       10.0.0.11:80 of 192.0.2.10:80/tcp  timeout\n"
        );
        let weight = Event {
            before: Some(100),
            after: Some(60),
            ..event(EventKind::WeightChanged, "[2001:db8::1]:80", "")
        };
        let tail = "weight_changed    [2001:db8::1]:80 of 192.0.2.10:80/tcp  100 -> 60\n";
        assert!(line(weight).ends_with(tail));
        let host = Event { service: None, ..event(EventKind::DirectionLost, "10.0.0.11:0", "x") };
        assert!(line(host).ends_with("  direction_lost    10.0.0.11  x\n"));
        let none =
            Event { service: None, server: None, ..event(EventKind::SomeUp, "1.2.3.4:5", "") };
        assert!(line(none).ends_with("  some_up\n"));
    }

    #[test]
    fn forgotten_events_are_told_and_bad_ones_stand_out() {
        let colour = Paint::new(true, None, None);
        let lost = Told::Lost { lost: 3 };
        assert_eq!(line(&lost, &Zone::default(), Paint::default()), "... 3 events forgotten ...\n");
        assert_eq!(json(&lost), "{\"lost\":3}\n");
        let down = Told::Event(event(EventKind::ServerDown, "10.0.0.11:80", ""));
        assert!(line(&down, &Zone::default(), colour).starts_with("\u{1b}[31m2026"));
        let up = Told::Event(event(EventKind::ServerUp, "10.0.0.11:80", ""));
        assert!(line(&up, &Zone::default(), colour).starts_with("2026"));
        assert!(json(&up).contains("\"kind\":\"server_up\""));
    }
}

//! A plan as a person reads it.

use director::control::plan::{
    Action, Fate, FieldChange, FileApplied, MarksChange, Plan, Saved, ServerChange, ServiceChange,
    Settled, Verdict,
};

use crate::clean::{clean, count};
use crate::paint::Paint;

/// What would change, or `is_done` has.
pub(super) fn plan(plan: &Plan, is_done: bool, paint: Paint) -> String {
    let file = clean(&plan.file);
    let mut lines = Vec::new();
    if plan.is_empty() {
        let other = if plan.restart.is_empty() { "" } else { " without a restart" };
        let verb = if is_done { "has changed" } else { "would change" };
        lines.push(format!("{file}: nothing {verb}{other}"));
    } else {
        let verb = if is_done { "applied" } else { "would change" };
        lines.push(paint.heading(&format!("{file}: {verb}: {}", summary(plan))));
    }
    for change in &plan.services {
        service(&mut lines, change, paint);
    }
    values(&mut lines, "settings", &plan.settings);
    values(&mut lines, "timeouts (seconds)", &plan.timeouts);
    if let Some(change) = &plan.marks {
        marks(&mut lines, change);
    }
    if !plan.restart.is_empty() {
        let keys: Vec<String> = plan.restart.iter().map(|key| clean(key)).collect();
        let text = format!("! only a restart follows: {}", keys.join(", "));
        lines.push(paint.warning(&text));
    }
    lines.join("\n") + "\n"
}

/// What has changed, and how long it stays.
pub(super) fn applied(applied: &FileApplied, paint: Paint) -> String {
    let mut text = plan(&applied.plan, true, paint);
    if let Some(seconds) = applied.confirm {
        let line = format!(
            "It is rolled back in {seconds} s: `dirctl confirm` keeps it, `dirctl revert` takes it back at \
             once."
        );
        text += &format!("{}\n", paint.warning(&line));
    }
    text + &saved(&applied.saved, applied.confirm.is_some(), paint)
}

/// What has become of a file that waited.
pub(super) fn settled(settled: &Settled, paint: Paint) -> String {
    let file = clean(&settled.file);
    match settled.verdict {
        Verdict::Confirm => {
            format!("{file}: confirmed, it stays\n") + &saved(&settled.saved, false, paint)
        }
        Verdict::Revert => {
            format!("{file}: reverted, all is as before; connections that were lost stay lost\n")
        }
    }
}

fn saved(saved: &Saved, waits: bool, paint: Paint) -> String {
    match saved {
        Saved::NotAsked if waits => String::new(),
        Saved::NotAsked => {
            "The director's own file is as it was: a restart or a reload (SIGHUP) goes back to it.\n"
                .to_owned()
        }
        Saved::Later => "It is saved when it is confirmed.\n".to_owned(),
        Saved::Same { path } => {
            format!("{} says the same: a restart or a reload changes nothing.\n", clean(path))
        }
        Saved::Done { path } => format!("Saved: {}\n", clean(path)),
        Saved::Failed { path, reason } => {
            let (path, reason) = (clean(path), clean(reason));
            let line = format!(
                "NOT saved: {path}: {reason}. It is in force until a restart or a reload: copy the file there."
            );
            paint.loss(&line) + "\n"
        }
    }
}

/// `1 service added, 2 changed, 1 removed; 3 settings`
pub(crate) fn summary(plan: &Plan) -> String {
    let of = |action| plan.services.iter().filter(|it| it.action == action).count() as u64;
    let (added, changed) = (of(Action::Added), of(Action::Changed));
    let mut parts = Vec::new();
    for (number, verb) in [(added, "added"), (changed, "changed"), (of(Action::Removed), "removed")]
    {
        if number > 0 {
            parts.push(format!("{} {verb}", count(number, "service")));
        }
    }
    for (number, word) in [(plan.settings.len(), "setting"), (plan.timeouts.len(), "timeout")] {
        if number > 0 {
            parts.push(count(number as u64, word));
        }
    }
    if plan.marks.is_some() {
        parts.push("marks".to_owned());
    }
    parts.join(", ")
}

fn sign(action: Action) -> char {
    match action {
        Action::Added => '+',
        Action::Removed => '-',
        Action::Changed => '~',
    }
}

fn service(lines: &mut Vec<String>, change: &ServiceChange, paint: Paint) {
    let head = format!("{} service {}", sign(change.action), change.service);
    lines.push(paint.heading(&(head + &concerned(change.connections, change.fate))));
    for field in &change.fields {
        lines.push(format!("    {}", value(field)));
    }
    if change.forgets {
        let line = "    its scheduler begins anew: it remembers nothing of before";
        lines.push(paint.warning(line));
    }
    for server in &change.servers {
        lines.push(one_server(server));
    }
}

/// `  ~ server 10.0.0.11:80: weight 1 -> 2; connections: 3, which stay as they are`
fn one_server(change: &ServerChange) -> String {
    let fields: Vec<String> = change.fields.iter().map(value).collect();
    let colon = if fields.is_empty() { "" } else { ": " };
    let connections = concerned(change.connections, change.fate);
    format!(
        "  {} server {}{colon}{}{connections}",
        sign(change.action),
        change.address,
        fields.join(", ")
    )
}

/// `; connections: 3, which stay as they are`
fn concerned(connections: u64, fate: Option<Fate>) -> String {
    match fate {
        Some(fate) if connections > 0 => {
            format!("; connections: {connections}, which {}", fate.sentence())
        }
        _ => String::new(),
    }
}

fn value(change: &FieldChange) -> String {
    let (field, old, new) = (clean(&change.field), clean(&change.old), clean(&change.new));
    match (old.is_empty(), new.is_empty()) {
        (true, _) => format!("{field} {new}"),
        (false, true) => format!("{field} {old} -> none"),
        (false, false) => format!("{field} {old} -> {new}"),
    }
}

fn values(lines: &mut Vec<String>, heading: &str, changes: &[FieldChange]) {
    if !changes.is_empty() {
        lines.push(format!("~ {heading}"));
        lines.extend(changes.iter().map(|change| format!("    {}", value(change))));
    }
}

fn marks(lines: &mut Vec<String>, change: &MarksChange) {
    lines.push("~ marks".to_owned());
    lines.extend(change.removed.iter().map(|rule| format!("  - {}", clean(rule))));
    lines.extend(change.added.iter().map(|rule| format!("  + {}", clean(rule))));
    if change.removed.is_empty() && change.added.is_empty() {
        lines.push("    their order".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(field: &str, old: &str, new: &str) -> FieldChange {
        FieldChange { field: field.to_owned(), old: old.to_owned(), new: new.to_owned() }
    }

    #[test]
    fn a_plan_tells_each_change_and_what_becomes_of_connections() {
        let server = |address: &str, action, fields, connections, fate| ServerChange {
            address: address.parse().unwrap(),
            action,
            fields,
            connections,
            fate,
        };
        let change = ServiceChange {
            service: serde_json::from_str(r#"{"protocol":"tcp","address":"192.0.2.10:80"}"#)
                .unwrap(),
            action: Action::Changed,
            fields: vec![field("scheduler", "rr", "wlc"), field("persistence.timeout", "60", "")],
            servers: vec![
                server(
                    "10.0.0.1:80",
                    Action::Changed,
                    vec![field("weight", "1", "2")],
                    1,
                    Some(Fate::Stay),
                ),
                server("10.0.0.2:80", Action::Removed, vec![], 7, Some(Fate::Reset)),
                server(
                    "10.0.0.3:80",
                    Action::Added,
                    vec![field("weight", "", "\u{1b}[31m")],
                    0,
                    None,
                ),
            ],
            connections: 8,
            fate: Some(Fate::Stay),
            forgets: true,
        };
        let value = Plan {
            file: "new.toml".to_owned(),
            services: vec![change],
            settings: vec![field("am_droprate", "10", "20")],
            restart: vec!["io".to_owned()],
            ..Plan::default()
        };
        assert_eq!(
            plan(&value, false, Paint::default()),
            "\
new.toml: would change: 1 service changed, 1 setting
~ service 192.0.2.10:80/tcp; connections: 8, which stay as they are
    scheduler rr -> wlc
    persistence.timeout 60 -> none
    its scheduler begins anew: it remembers nothing of before
  ~ server 10.0.0.1:80: weight 1 -> 2; connections: 1, which stay as they are
  - server 10.0.0.2:80; connections: 7, which are reset with their next packet (gone_server = \"rst\")
  + server 10.0.0.3:80: weight  [31m
~ settings
    am_droprate 10 -> 20
! only a restart follows: io
"
        );
        let nothing = Plan { file: "same.toml".to_owned(), ..Plan::default() };
        assert_eq!(plan(&nothing, false, Paint::default()), "same.toml: nothing would change\n");
    }
}

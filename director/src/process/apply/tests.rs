//! A real table, and a watcher that only takes note.

use std::cell::RefCell;
use std::sync::Arc;

use super::*;
use crate::config::parse;
use crate::control::operations::Command;
use crate::dispatch::Shared;

const FILE: &str = r#"
interfaces = ["eth0"]
[timeouts]
tcp = "800s"
[settings]
am_droprate = 20
[[service]]
listen = "192.0.2.10:80/tcp"
scheduler = "rr"
forwarding = "nat"
    [[service.server]]
    address = "10.0.0.1:80"
    [[service.server]]
    address = "10.0.0.2:80"
[[service]]
listen = "192.0.2.10:81/tcp"
scheduler = "wlc"
forwarding = "nat"
    [[service.server]]
    address = "10.0.0.1:81"
"#;

/// Everything differs: a service goes, one comes, servers come, go and change, settings, timeouts, marks.
const OTHER: &str = r#"
interfaces = ["eth0"]
[timeouts]
tcp = "100s"
[settings]
am_droprate = 30
cache_bypass = true
[[mark]]
mark = 7
ports = [8000]
[[service]]
listen = "192.0.2.10:81/tcp"
scheduler = "sh"
forwarding = "nat"
    [[service.server]]
    address = "10.0.0.9:81"
[[service]]
fwmark = 7
scheduler = "rr"
forwarding = "nat"
    [[service.server]]
    address = "10.0.0.1:82"
"#;

#[derive(Default)]
struct Notes {
    /// Services of the files that were to be followed.
    followed: RefCell<Vec<usize>>,
    remembered: RefCell<usize>,
}

impl Watcher for Notes {
    fn follow(&self, config: &Config) {
        self.followed.borrow_mut().push(config.services.len());
    }
    fn not_up(&self) -> Vec<Remembered> {
        Vec::new()
    }
    fn remember(&self, _: Vec<Remembered>) {
        *self.remembered.borrow_mut() += 1;
    }
}

struct Bed {
    table: Table,
    notes: Notes,
    course: Course,
    sandbox: Sandbox,
}

impl Bed {
    fn new() -> Bed {
        let config = config(FILE);
        let table = Table::new(Arc::new(Shared::new(100)), Box::new(|_| false), 1);
        super::super::reload::first(&table, &config, Instant::now()).unwrap();
        table.shared().timeouts.set(config.timeouts.unwrap());
        let sandbox = Sandbox::closed(true);
        Bed { table, notes: Notes::default(), course: Course::new(config), sandbox }
    }

    fn scene(&self, seconds: u64) -> Scene<'_> {
        Scene {
            table: &self.table,
            watcher: &self.notes,
            sandbox: self.sandbox,
            now: Duration::from_secs(seconds),
        }
    }

    fn follow(&self, text: &str, confirm: Option<u32>, at: u64) -> Result<Followed, Refusal> {
        let (file, config, text) = ("new.toml".to_owned(), config(text), text.to_owned());
        let wanted = NextFile { file, config, confirm, ignore_restart: false, text, save: true };
        self.course.follow(wanted, &self.scene(at))
    }

    fn command(&self, json: &str) {
        let command: Command = serde_json::from_str(json).unwrap();
        self.table.change(command, Duration::ZERO).unwrap();
    }

    /// All that an operator could see, in its order.
    fn listing(&self) -> String {
        let now = running(&self.table);
        let services: Vec<_> = now
            .services
            .iter()
            .map(|it| {
                let servers: Vec<_> = it.servers.iter().map(|server| &server.spec).collect();
                format!("{:?} {} {servers:?}", it.spec, it.declared)
            })
            .collect();
        format!("{services:#?} {:?} {:?} {:?}", now.settings, now.timeouts, now.marks)
    }
}

fn config(text: &str) -> Config {
    parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn what_is_not_confirmed_is_taken_back_to_the_last_detail_when_its_time_is_over_and_not_before() {
    let bed = Bed::new();
    // What an operator has done is what it goes back to, not the file.
    let service = r#"{"protocol":"tcp","address":"192.0.2.10:80"}"#;
    bed.command(&format!(
        r#"{{"op":"edit_server","service":{service},"server":{{"address":"10.0.0.1:80","forwarding":"nat","weight":0}}}}"#
    ));
    bed.command(r#"{"op":"set_timeouts","timeouts":{"tcp":700,"tcp_fin":0,"udp":0}}"#);
    bed.command(r#"{"op":"set_settings","settings":{"am_droprate":25}}"#);
    let before = bed.listing();
    let done = bed.follow(OTHER, Some(60), 100).unwrap();
    assert_eq!((done.confirm, done.kept), (Some(60), None));
    assert_eq!(done.plan.services.len(), 3);
    let applied = bed.listing();
    assert_ne!(applied, before);
    assert!(bed.course.waiting(Duration::from_millis(101_500)).unwrap().contains("in 59 s"));
    assert_eq!(bed.course.expire(&bed.scene(159)), None);
    assert_eq!(bed.listing(), applied);
    let message = bed.course.expire(&bed.scene(160)).unwrap();
    assert!(message.contains("new.toml") && message.contains("60 s"), "{message}");
    assert_eq!(bed.listing(), before);
    assert_eq!(bed.course.config(), config(FILE));
    assert_eq!(
        (bed.notes.followed.borrow().as_slice(), *bed.notes.remembered.borrow()),
        (&[2, 2][..], 1)
    );
    assert_eq!(bed.course.expire(&bed.scene(161)), None);
    let refusal = bed.course.settle(Verdict::Confirm, &bed.scene(161)).unwrap_err();
    assert_eq!(refusal.error, RefusalKind::NothingWaits);
    assert!(refusal.message.contains("was rolled back"), "{}", refusal.message);
    // And the file is still there to be applied.
    bed.follow(OTHER, None, 170).unwrap();
    assert_eq!(bed.listing(), applied);
}

#[test]
fn what_is_confirmed_stays_and_is_saved_then_and_what_comes_late_is_too_late() {
    let bed = Bed::new();
    bed.follow(OTHER, Some(60), 0).unwrap();
    let applied = bed.listing();
    let (file, save) = bed.course.settle(Verdict::Confirm, &bed.scene(59)).unwrap();
    assert_eq!((file.as_str(), save.unwrap().text.as_str()), ("new.toml", OTHER));
    assert_eq!(bed.course.expire(&bed.scene(1000)), None);
    assert_eq!(bed.listing(), applied);
    assert_eq!(bed.course.config().services, config(OTHER).services);

    let late = Bed::new();
    let before = late.listing();
    late.follow(OTHER, Some(60), 0).unwrap();
    let settled = late.course.settle(Verdict::Confirm, &late.scene(60));
    assert_eq!(settled.map(drop).unwrap_err().error, RefusalKind::NothingWaits);
    assert!(late.course.expire(&late.scene(60)).is_some(), "the loop finds it still");
    assert_eq!(late.listing(), before);
}

#[test]
fn reverting_goes_back_at_once_and_saves_nothing() {
    let bed = Bed::new();
    let before = bed.listing();
    bed.follow(OTHER, Some(60), 0).unwrap();
    let (_, save) = bed.course.settle(Verdict::Revert, &bed.scene(1)).unwrap();
    assert_eq!(save, None);
    assert_eq!(bed.listing(), before);
}

#[test]
fn while_a_file_waits_no_other_is_followed_and_no_reload_comes_in_between() {
    let bed = Bed::new();
    bed.follow(OTHER, Some(60), 0).unwrap();
    let applied = bed.listing();
    let refusal = bed.follow(FILE, None, 10).unwrap_err();
    assert_eq!(refusal.error, RefusalKind::Busy);
    assert!(refusal.message.contains("new.toml") && refusal.message.contains("50 s"));
    let refused = bed.course.reload(|_| panic!("it must not"));
    assert!(refused.unwrap_err().contains("new.toml"));
    assert_eq!(bed.listing(), applied);
    bed.course.settle(Verdict::Confirm, &bed.scene(11)).unwrap();
    assert_eq!(bed.course.reload(|_| ()), Ok(()));
}

#[test]
fn what_others_changed_meanwhile_stays_unless_the_file_had_changed_it() {
    let bed = Bed::new();
    bed.follow(OTHER, Some(60), 0).unwrap();
    let web = r#"{"protocol":"tcp","address":"192.0.2.10:81"}"#;
    bed.command(&format!(
        r#"{{"op":"add_server","service":{web},"server":{{"address":"10.0.0.77:81","forwarding":"nat","weight":4}}}}"#
    ));
    bed.command(&format!(
        r#"{{"op":"edit_server","service":{web},"server":{{"address":"10.0.0.9:81","forwarding":"nat","weight":9}}}}"#
    ));
    bed.command(r#"{"op":"add_service","service":{"protocol":"tcp","address":"192.0.2.20:80","scheduler":"rr"}}"#);
    bed.command(r#"{"op":"delete_service","service":{"fwmark":7,"ipv6":false}}"#);
    bed.course.settle(Verdict::Revert, &bed.scene(1)).unwrap();
    let views = bed.table.service_views();
    let names: Vec<String> = views.iter().map(|view| view.spec.key.to_string()).collect();
    assert_eq!(names, ["192.0.2.10:80/tcp", "192.0.2.10:81/tcp", "192.0.2.20:80/tcp"]);
    let servers: Vec<String> =
        views[1].servers.iter().map(|server| server.spec.address.to_string()).collect();
    assert_eq!(servers, ["10.0.0.77:81", "10.0.0.1:81"]);
    assert_eq!(views[1].spec.scheduler, "wlc");
}

#[test]
fn a_refusal_changes_nothing_and_names_what_is_refused() {
    let bed = Bed::new();
    let before = bed.listing();
    let restart = OTHER.replace("interfaces", "io = \"packet\"\ninterfaces");
    let refusal = bed.follow(&restart, None, 0).unwrap_err();
    assert_eq!(refusal.error, RefusalKind::NeedsRestart);
    assert!(refusal.message.contains(" io:"), "{}", refusal.message);
    assert_eq!(bed.listing(), before);
    // The last service cannot be: those before it have not become what the file says.
    let mut bad = config(OTHER);
    bad.services[1].servers[0].weight = -1;
    let wanted = NextFile {
        file: "new.toml".to_owned(),
        config: bad,
        confirm: None,
        ignore_restart: false,
        text: String::new(),
        save: false,
    };
    let refusal = bed.course.follow(wanted, &bed.scene(0)).unwrap_err();
    assert!(refusal.message.contains("fwmark 7: a weight"), "{}", refusal.message);
    assert_eq!(bed.listing(), before);
    let refusal = bed.follow(OTHER, Some(0), 0).unwrap_err();
    assert_eq!(refusal.error, RefusalKind::Invalid);
    assert_eq!(bed.listing(), before);
    assert_eq!(bed.course.config(), config(FILE));
    assert!(bed.notes.followed.borrow().is_empty());
}

#[test]
fn with_a_key_that_needs_a_restart_the_rest_can_be_applied_and_the_key_stays_as_it_was() {
    let bed = Bed::new();
    let config = config(&OTHER.replace("interfaces", "io = \"packet\"\ninterfaces"));
    let wanted = NextFile {
        file: "new.toml".to_owned(),
        config: config.clone(),
        confirm: None,
        ignore_restart: true,
        text: String::new(),
        save: false,
    };
    let done = bed.course.follow(wanted, &bed.scene(0)).unwrap();
    assert_eq!(done.plan.restart, ["io"]);
    assert_eq!(bed.course.plan("again.toml", &config, &bed.table).restart, ["io"]);
    assert!(bed.course.plan("again.toml", &config, &bed.table).is_empty());
}

#[test]
fn a_file_that_changes_nothing_need_not_be_confirmed() {
    let bed = Bed::new();
    let done = bed.follow(FILE, Some(60), 0).unwrap();
    assert_eq!((done.confirm, done.kept.map(|it| it.text)), (None, Some(FILE.to_owned())));
    assert_eq!(bed.course.waiting(Duration::ZERO), None);
}

#[tokio::test(start_paused = true)]
async fn the_loop_is_woken_when_the_time_is_over_and_not_for_what_was_confirmed() {
    let bed = Bed::new();
    let epoch = tokio::time::Instant::now().into_std();
    bed.follow(OTHER, Some(60), 0).unwrap();
    let due = tokio::time::timeout(Duration::from_secs(59), bed.course.due(epoch)).await;
    assert!(due.is_err(), "too early");
    tokio::time::timeout(Duration::from_secs(2), bed.course.due(epoch)).await.unwrap();
    bed.course.expire(&bed.scene(60)).unwrap();
    bed.follow(OTHER, Some(60), 61).unwrap();
    bed.course.settle(Verdict::Confirm, &bed.scene(62)).unwrap();
    let due = tokio::time::timeout(Duration::from_secs(600), bed.course.due(epoch)).await;
    assert!(due.is_err(), "confirmed");
}

#[test]
fn commands_that_were_closed_at_the_start_are_not_opened_by_a_file() {
    let bed = Bed { sandbox: Sandbox::closed(false), ..Bed::new() };
    let exec = FILE.replacen(
        "forwarding = \"nat\"\n",
        "forwarding = \"nat\"\ncheck = { type = \"exec\", command = [\"/bin/true\"] }\n",
        1,
    );
    let refused = bed.follow(&exec, None, 1).unwrap_err();
    assert_eq!(refused.error, RefusalKind::NeedsRestart);
    assert!(refused.message.contains("restart the director"), "{}", refused.message);
    assert!(bed.notes.followed.borrow().is_empty());
}

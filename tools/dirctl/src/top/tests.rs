//! Frames and keys, without a terminal and without a director.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::Text;

use super::keys::{After, press};
use super::rates::REMEMBERED;
use super::snapshot::Snapshot;
use super::state::{Column, Page, Top};
use super::{text, view};

mod given;

use given::{answer, fate, key, node, server, service, stats, two};

fn seen(answers: impl IntoIterator<Item = Snapshot>) -> Top {
    let mut top = Top::default();
    answers.into_iter().for_each(|answer| top.take(Ok(answer)));
    top
}

/// The screen of a terminal of this size.
fn screen(top: &Top, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let lines = view::lines(top, width.into(), height.into());
    assert!(lines.len() <= height.into(), "{} lines for {height}", lines.len());
    for line in &lines {
        assert!(line.width() <= width.into(), "wider than {width}: {line}");
    }
    terminal.draw(|frame| frame.render_widget(Text::from(lines), frame.area())).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y).trim_end().to_owned()).collect()
}

#[track_caller]
fn line<'a>(lines: &'a [String], word: &str) -> &'a str {
    let found = lines.iter().find(|line| line.contains(word));
    found.unwrap_or_else(|| panic!("{word:?} is not in\n{}", lines.join("\n")))
}

fn type_keys(top: &mut Top, keys: &str) {
    for letter in keys.chars() {
        let after = press(top, KeyEvent::from(KeyCode::Char(letter)));
        assert_eq!(after, After::Draw, "{letter}");
    }
}

fn hit(top: &mut Top, code: KeyCode) {
    assert_eq!(press(top, KeyEvent::from(code)), After::Draw);
}

#[test]
fn a_screen_of_80_by_24_shows_all_there_is_to_know_at_a_glance() {
    let expected = "\
director 0.1.0  up 1 min 10 s  2 services: 1 up, 1 down  3.46k connections
new    25/s   in   250 packets/s  200k bit/s   out   500 packets/s 20.0M bit/s
new                            ▅█   in packets                                █

service, server        state  weight   act inact   cps inpps outpps inbps outbps
- 192.0.0.1:80/tcp     -           1    12   345     5    50    100 40.0k  4.00M
    10.0.0.11:80       -           1    12   345     5    50    100 40.0k  4.00M
- 192.0.0.2:80/tcp     part  200>160    24   690    20   200    400  160k  16.0M
    10.0.0.11:80       down      100    12   345    15   150    300  120k  12.0M
    10.0.0.12:80       up     100>60    12   345     5    50    100 40.0k  4.00M







dropped       per second      all
  no_route            30      310  what it means
  ttl_exceeded         0     100k  what it means

port             queue  io                 in pps out pps  in lost out lost
  eth0               0  AF_XDP copy         5.00k   4.00k       17        0
q quit  ? help  / filter  < > sort  Tab page  p pause                   by order";
    assert_eq!(screen(&seen([two(0), two(10)]), 80, 24).join("\n"), expected);
}

#[test]
fn every_size_holds_no_more_than_fits_and_a_small_one_says_what_is_needed() {
    let many = |seconds| answer(seconds, (0..1000).map(|one| service(one, 1, vec![])).collect());
    for mut top in [seen([]), seen([answer(0, vec![])]), seen([two(0), two(1)]), seen([many(0)])] {
        for page in [Page::Services, Page::Drops, Page::Ports] {
            top.page = page;
            for (width, height) in [(80, 16), (81, 23), (100, 24), (120, 50), (300, 90)] {
                assert_eq!(screen(&top, width, height).len(), usize::from(height));
            }
        }
    }
    let top = seen([two(0)]);
    for (width, height) in [(79, 24), (80, 15), (30, 1)] {
        let expected = format!("needs 80x16, this is {width}x{height}");
        assert_eq!(screen(&top, width, height)[0], expected);
    }
    assert_eq!(screen(&top, 1, 1), ["n"]);
}

#[test]
fn counters_that_are_set_back_make_no_negative_rates() {
    let mut after = two(10);
    for service in &mut after.services {
        service.stats = stats(1);
    }
    let top = seen([two(9), after]);
    assert_eq!(top.meter.total.connections, 2.0);
    // Another process has counted from 0: its own averages, not a difference.
    let mut other = two(11);
    other.status.pid += 1;
    let top = seen([two(9), other]);
    assert_eq!(top.meter.total.connections, 14.0);
}

#[test]
fn answers_at_the_same_moment_divide_by_nothing() {
    let top = seen([two(5), two(5)]);
    assert!(top.meter.total.connections.is_finite());
    assert!(screen(&top, 80, 24).len() == 24);
}

#[test]
fn history_is_bounded_and_forgets_services_that_are_gone() {
    let mut top = seen((0..300).map(two));
    assert_eq!(top.meter.packets.len(), REMEMBERED);
    assert_eq!(top.meter.history(&key(1)).map(std::collections::VecDeque::len), Some(REMEMBERED));
    top.take(Ok(answer(301, vec![])));
    assert_eq!(top.meter.history(&key(1)), None);
}

#[test]
fn sorting_turns_services_and_servers_and_the_cursor_stays_with_its_server() {
    let mut top = seen([two(0), two(10)]);
    let order = |top: &Top| {
        let names: Vec<String> = top.rows().iter().map(super::rows::Row::name).collect();
        names.join(" ")
    };
    type_keys(&mut top, "jjjj");
    let chosen = top.chosen;
    assert_eq!(chosen, Some((key(2), Some(([10, 0, 0, 12], 80).into()))));
    top.column = Column::Cps;
    type_keys(&mut top, "r");
    assert_eq!(
        order(&top),
        "192.0.0.1:80/tcp 10.0.0.11:80 192.0.0.2:80/tcp 10.0.0.12:80 10.0.0.11:80"
    );
    assert_eq!((top.chosen, top.cursor), (chosen, 3));
    type_keys(&mut top, "r");
    assert!(order(&top).starts_with("192.0.0.2:80/tcp 10.0.0.11:80 10.0.0.12:80"));
    type_keys(&mut top, ">");
    assert_eq!(top.column, Column::InPps);
    type_keys(&mut top, "<<<<<<<<");
    assert_eq!(top.column, Column::OutBps);
}

#[test]
fn services_open_and_close_one_by_one_and_all_together() {
    let mut top = seen([two(0)]);
    assert_eq!(top.rows().len(), 5);
    hit(&mut top, KeyCode::Enter);
    assert_eq!(top.rows().len(), 4);
    hit(&mut top, KeyCode::Left);
    assert_eq!(top.rows().len(), 4);
    type_keys(&mut top, "e");
    assert_eq!(top.rows().len(), 2);
    hit(&mut top, KeyCode::End);
    hit(&mut top, KeyCode::Right);
    assert_eq!(top.rows().len(), 4);
    // Closing from a server leads back to its service.
    hit(&mut top, KeyCode::Down);
    hit(&mut top, KeyCode::Enter);
    assert_eq!((top.rows().len(), top.chosen), (2, Some((key(2), None))));
    // Of many services, servers are shown when they are asked for.
    let many = (0..21).map(|one| service(one, 1, vec![server(1, 1, 1, 1)]));
    assert_eq!(seen([answer(0, many.collect())]).rows().len(), 21);
}

#[test]
fn filter_finds_services_servers_and_states_also_while_it_is_typed() {
    let mut top = seen([two(0)]);
    type_keys(&mut top, "/0.12q");
    assert!(screen(&top, 80, 24)[23].starts_with("filter: 0.12q_"));
    assert_eq!(line(&screen(&top, 80, 24), "nothing"), "  nothing has that in it");
    hit(&mut top, KeyCode::Backspace);
    hit(&mut top, KeyCode::Enter);
    let names: Vec<String> = top.rows().iter().map(super::rows::Row::name).collect();
    assert_eq!(names, ["192.0.0.2:80/tcp", "10.0.0.12:80"]);
    hit(&mut top, KeyCode::Esc);
    assert_eq!(top.rows().len(), 5);
    type_keys(&mut top, "/DOWN");
    assert_eq!(top.rows().len(), 2);
    let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(press(&mut top, control), After::Quit);
    type_keys(&mut top, &"x".repeat(1000));
    assert_eq!(top.filter.len(), 60);
}

#[test]
fn a_view_that_is_paused_stands_still_and_goes_on() {
    let mut top = seen([two(0), two(10)]);
    type_keys(&mut top, "p");
    let before = screen(&top, 80, 24);
    assert!(before[0].starts_with("PAUSED  director"), "{}", before[0]);
    top.take(Ok(two(20)));
    assert_eq!(screen(&top, 80, 24), before);
    type_keys(&mut top, "p");
    top.take(Ok(two(30)));
    assert_eq!(top.meter.total.connections, 25.0);
}

#[test]
fn a_director_that_is_gone_is_named_and_what_was_seen_last_stays() {
    let mut top = seen([two(0)]);
    let gone = || Err("the director is not running (no answer on /run/x)".to_owned());
    top.take(gone());
    top.take(gone());
    let screen_now = screen(&top, 80, 24);
    assert!(screen_now[3].starts_with("the direc"), "{}", screen_now[3]);
    assert!(screen_now[3].contains("trying again, 2 attempts"), "{}", screen_now[3]);
    line(&screen_now, "192.0.0.2:80/tcp");
    top.take(Ok(two(1)));
    assert_eq!(screen(&top, 80, 24)[3], "");
    let mut never = Top::default();
    never.take(gone());
    let never = screen(&never, 80, 24);
    assert_eq!(never[0], "no director yet");
    assert!(never[3].ends_with("/run/x) (trying again, 1 attempt)"), "{}", never[3]);
}

#[test]
fn drops_and_ports_have_pages_of_their_own_with_what_they_mean() {
    let mut top = seen([two(0), two(10)]);
    type_keys(&mut top, "d");
    let drops = screen(&top, 80, 24);
    assert_eq!(
        line(&drops, "sent_nat"),
        "  sent_nat             0     123k  forwarded what it means"
    );
    let place = |word| drops.iter().position(|line| line.contains(word));
    assert!(place("no_route") < place("ttl_exceeded") && place("ttl_exceeded") < place("sent_nat"));
    hit(&mut top, KeyCode::Tab);
    line(&screen(&top, 80, 24), "eth0               0  AF_XDP copy         5.00k   4.00k       17");
    hit(&mut top, KeyCode::Tab);
    line(&screen(&top, 80, 24), "service, server");
    type_keys(&mut top, "?");
    line(&screen(&top, 80, 16), "quit");
}

#[test]
fn nothing_from_outside_steers_the_terminal() {
    let evil = "\u{1b}[2J\u{7}\r\n";
    let mut answer = two(0);
    answer.status.version = evil.to_owned();
    answer.status.warnings = vec![evil.repeat(50)];
    answer.status.ports[0].interface = evil.to_owned();
    answer.status.verdicts.push(fate("dropped", evil, 1 << 40));
    let mut node = node(2);
    for word in [&mut node.name, &mut node.state, &mut node.display.query.cluster] {
        *word = evil.to_owned();
    }
    node.display.query.hosts[0].name = evil.to_owned();
    let cluster = Snapshot { node: Some(Box::new(node)), services: vec![], ..answer.clone() };
    for answer in [answer, cluster] {
        let mut top = seen([answer]);
        top.filter = evil.to_owned();
        for page in [Page::Services, Page::Drops, Page::Ports] {
            top.page = page;
            let lines = view::lines(&top, 80, 24).into_iter().chain(view::lines(&top, 80, 30));
            for line in lines {
                assert!(!line.to_string().contains(|letter: char| letter.is_control()), "{line:?}");
            }
            assert!(!text(&top).contains('\u{1b}'));
        }
    }
}

#[test]
fn a_cluster_shows_hosts_their_states_and_their_shares() {
    let at = |seconds: u64| {
        let mut node = node(3);
        node.display.params.rules[0].opened += seconds * 40;
        Snapshot { node: Some(Box::new(node)), ..answer(seconds, vec![]) }
    };
    let top = seen([at(0), at(10)]);
    let lines = screen(&top, 80, 24);
    line(&lines, "cluster 192.0.2.10, seen by host 1 a: converged");
    let host = line(&lines, "node1");
    assert_eq!(host, "   1 node1            converged               0.4 s      21   1365  33.3%");
    assert!(line(&lines, "node2").contains("not heard"));
    assert!(line(&lines, "tcp 80 of").ends_with("    40"), "{}", line(&lines, "tcp 80 of"));
    // More hosts than lines: it says so.
    let many = Snapshot { node: Some(Box::new(node(32))), ..answer(0, vec![]) };
    line(&screen(&seen([many]), 80, 24), "more lines: / filters");
}

#[test]
fn a_frame_for_a_script_has_every_line_and_no_colour() {
    let services = (0..1000).map(|one| service(one, 1, vec![server(1, 1, 1, 1)]));
    let mut top = seen([answer(0, services.collect())]);
    top.expanded = Some(true);
    let text = text(&top);
    assert!(text.lines().count() > 2000 && !text.contains('\u{1b}'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120 && line == line.trim_end()));
}

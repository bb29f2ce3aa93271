//! Planned changes under load: nothing that is established breaks, nothing is answered twice, and
//! new connections wait for less than a second.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use director::control::nlb::{NlbCommand, NlbRequest, PortTarget};

use crate::bed::{Bed, Site};
use crate::can_run;
use crate::load::{Download, Downloads, Requests, failed, tally};
use crate::table::{Row, longest_gap};
use crate::witness::{Account, Witness};

const BOTH: &[usize] = &[0, 1];
/// Downloads under way.
const DOWNLOADS: usize = 64;
/// Between two requests.
pub(crate) const INTERVAL: Duration = Duration::from_millis(10);
/// An answer to a SYN that takes longer has not come: the second SYN follows after a second.
pub(crate) const UNANSWERED: Duration = Duration::from_millis(500);

/// Load on a cluster while something is done to it.
struct Load {
    witness: Witness,
    downloads: Downloads,
    requests: Requests,
}

impl Load {
    fn start(bed: &Bed) -> Load {
        let client = &bed.cluster.client;
        let witness = Witness::start(&bed.cluster).unwrap();
        let downloads = Downloads::start(client, BOTH, DOWNLOADS).unwrap();
        Load { witness, downloads, requests: Requests::start(client, BOTH, INTERVAL) }
    }

    /// Lets all come to its end. `events`: when what was done to the cluster began, first to last.
    /// `leaver`: the host whose connections may break.
    fn finish(self, row: Row<'_>, events: &[Instant], leaver: Option<&str>) -> Outcome {
        std::thread::sleep(UNANSWERED);
        let requests = self.requests.finish().unwrap();
        let downloads = self.downloads.finish().unwrap();
        let account = self.witness.finish().unwrap();
        let unanswered = account.unanswered(UNANSWERED);
        let (served, gap) = longest_gap(&unanswered, events, INTERVAL);
        let lives = |it: &&Download| Some(it.server.as_str()) != leaver;
        let broken: Vec<Download> = downloads
            .iter()
            .filter(lives)
            .filter(|download| download.broken.is_some())
            .cloned()
            .collect();
        // The servers of a host that has left still repeat what they had to say.
        let twice =
            if leaver.is_some() { account.greeted_twice() } else { account.answered_twice() };
        Row { served, gap, broken: broken.len(), twice: twice.len(), ..row }.print();
        assert!(broken.is_empty(), "broken: {broken:#?}");
        assert_eq!(twice, Vec::<String>::new());
        assert!(gap < Duration::from_secs(1), "new connections waited for {gap:?}");
        let failures = failed(&requests);
        assert!(
            failures.len() <= unanswered.len(),
            "{} requests failed and {} SYNs went unanswered: {:?}",
            failures.len(),
            unanswered.len(),
            tally(&requests)
        );
        Outcome { account, requests_by: tally(&requests) }
    }
}

struct Outcome {
    account: Account,
    requests_by: std::collections::BTreeMap<String, usize>,
}

fn row<'a>(case: &'a str, nodes: usize, noticed: Duration) -> Row<'a> {
    let none = Duration::ZERO;
    Row { case, nodes, noticed: Some(noticed), served: none, gap: none, broken: 0, twice: 0 }
}

fn join(site: Site) {
    let nodes = site.hosts;
    let title = format!("join, period {}", site.period);
    let mut bed = Bed::build("join", site).unwrap();
    let old: Vec<usize> = (1..nodes).collect();
    let all: Vec<usize> = (1..=nodes).collect();
    bed.start(&old).unwrap();
    bed.wait_converged(&old, &old).unwrap();
    bed.settle();
    let load = Load::start(&bed);
    let before = bed.convergences(1).unwrap();
    bed.start(&[nodes]).unwrap();
    let start = Instant::now();
    bed.wait_noticed(1, before).unwrap();
    let noticed = start.elapsed();
    bed.wait_converged(&all, &all).unwrap();
    bed.settle();
    let outcome = load.finish(row(&title, nodes, noticed), &[start], None);
    assert_eq!(outcome.account.resets().len(), 0, "{:?}", outcome.account.resets());
    let by_newcomer = outcome.requests_by.get(bed.name(nodes)).copied().unwrap_or(0);
    assert!(by_newcomer > 0, "the newcomer has no part: {:?}", outcome.requests_by);
}

#[test]
fn quick_a_node_that_joins_breaks_no_connection() {
    if can_run() {
        join(Site { download_seconds: 5, ..Site::new(3) });
    }
}

#[test]
fn a_node_that_joins_at_the_default_period_breaks_no_connection() {
    if can_run() {
        join(Site { period: "1s", download_seconds: 12, ..Site::new(4) });
    }
}

#[test]
fn a_node_that_stops_breaks_its_own_connections_only() {
    if !can_run() {
        return;
    }
    let mut bed = Bed::serving("stop", Site { download_seconds: 5, ..Site::new(4) }).unwrap();
    let load = Load::start(&bed);
    let before = bed.convergences(1).unwrap();
    let start = Instant::now();
    bed.stop(2).unwrap();
    bed.wait_noticed(1, before).unwrap();
    let noticed = start.elapsed();
    bed.wait_converged(&[1, 3, 4], &[1, 3, 4]).unwrap();
    bed.settle();
    let leaver = bed.name(2).to_owned();
    load.finish(row("stop by SIGTERM, period 200ms", 4, noticed), &[start], Some(&leaver));
}

/// Gives a node a command, as `dirctl nlb` does.
fn command(bed: &Bed, number: usize, command: NlbCommand) -> Result<()> {
    let reply = bed.node(number)?.client()?.nlb(&NlbRequest { command, hosts: None })?;
    let good = reply.answers.iter().all(|answer| answer.result.is_good());
    ensure!(good && reply.answers.len() == 1, "host {number} answers {reply:?}");
    Ok(())
}

/// A node that is drained keeps its connections until they end, takes no new ones at once, and
/// leaves after the last.
fn drain(site: Site) {
    let nodes = site.hosts;
    let title = format!("drain, period {}", site.period);
    let bed = Bed::serving("drain", site).unwrap();
    let rest: Vec<usize> = (1..=nodes).filter(|&number| number != 2).collect();
    let load = Load::start(&bed);
    let before = bed.convergences(1).unwrap();
    let start = Instant::now();
    command(&bed, 2, NlbCommand::Drainstop { deadline: Some(60) }).unwrap();
    bed.wait_noticed(1, before).unwrap();
    let noticed = start.elapsed();
    // All converge on the new shares, host 2 still among them.
    let all: Vec<usize> = (1..=nodes).collect();
    bed.wait_converged(&all, &all).unwrap();
    bed.settle();
    let outcome = load.finish(row(&title, nodes, noticed), &[start], None);
    assert_eq!(outcome.account.resets().len(), 0, "{:?}", outcome.account.resets());
    // The last download has ended, so the host leaves by itself.
    let log = bed.node(2).unwrap().process();
    log.wait_for_log("left the cluster", Duration::from_secs(15)).unwrap();
    bed.wait_converged(&rest, &rest).unwrap();
    let made = crate::load::requests(&bed.cluster.client, 0, 200).unwrap();
    assert!(failed(&made).is_empty(), "{:?}", tally(&made));
    assert_eq!(tally(&made).get(bed.name(2)), None, "{:?}", tally(&made));
}

#[test]
fn quick_a_node_that_is_drained_breaks_no_connection() {
    if can_run() {
        drain(Site { download_seconds: 5, ..Site::new(3) });
    }
}

#[test]
fn a_node_that_is_drained_at_the_default_period_breaks_no_connection() {
    if can_run() {
        drain(Site { period: "1s", download_seconds: 12, ..Site::new(4) });
    }
}

#[test]
fn other_weights_break_no_connection_and_are_what_new_ones_go_by() {
    if !can_run() {
        return;
    }
    let site = Site { period: "1s", download_seconds: 12, ..Site::new(4) };
    let bed = Bed::serving("weight", site).unwrap();
    let all = [1, 2, 3, 4];
    let load = Load::start(&bed);
    let before = bed.convergences(1).unwrap();
    let start = Instant::now();
    let everywhere = PortTarget { vip: None, port: None };
    command(&bed, 3, NlbCommand::Weight { target: everywhere, weight: 0 }).unwrap();
    bed.wait_noticed(1, before).unwrap();
    let noticed = start.elapsed();
    bed.wait_converged(&all, &all).unwrap();
    bed.settle();
    let outcome = load.finish(row("weight change, period 1s", 4, noticed), &[start], None);
    assert_eq!(outcome.account.resets().len(), 0, "{:?}", outcome.account.resets());
    let made = crate::load::requests(&bed.cluster.client, 0, 200).unwrap();
    assert!(failed(&made).is_empty(), "{:?}", tally(&made));
    assert_eq!(tally(&made).get(bed.name(3)), None, "{:?}", tally(&made));
    assert_eq!(tally(&made).len(), 3, "{:?}", tally(&made));
}

/// A node is exchanged for another version: drained until it has left, ended, started again.
#[test]
fn a_node_that_is_drained_replaced_and_joins_again_breaks_no_connection() {
    if !can_run() {
        return;
    }
    let site = Site { download_seconds: 5, ..Site::new(3) };
    let mut bed = Bed::serving("upgrade", site).unwrap();
    let load = Load::start(&bed);
    let before = bed.convergences(1).unwrap();
    let start = Instant::now();
    command(&bed, 2, NlbCommand::Drainstop { deadline: Some(60) }).unwrap();
    bed.wait_noticed(1, before).unwrap();
    let noticed = start.elapsed();
    let log = bed.node(2).unwrap().process();
    log.wait_for_log("left the cluster", Duration::from_secs(30)).unwrap();
    let left = Instant::now();
    bed.wait_converged(&[1, 3], &[1, 3]).unwrap();
    bed.stop(2).unwrap();
    let joins = Instant::now();
    bed.start(&[2]).unwrap();
    bed.wait_converged(&[1, 2, 3], &[1, 2, 3]).unwrap();
    bed.settle();
    let row = row("drain, stop, start again", 3, noticed);
    let outcome = load.finish(row, &[start, left, joins], None);
    assert_eq!(outcome.account.resets().len(), 0, "{:?}", outcome.account.resets());
    let made = crate::load::requests(&bed.cluster.client, 0, 200).unwrap();
    assert!(failed(&made).is_empty(), "{:?}", tally(&made));
    assert_eq!(tally(&made).len(), 3, "{:?}", tally(&made));
}

/// Gives hosts a file again, and waits until it is in force on all of them.
fn reload(bed: &Bed, numbers: &[usize], file: &str) {
    let in_force = |number: usize| bed.log(number).unwrap().matches("is in force").count();
    let before: Vec<usize> = numbers.iter().map(|&number| in_force(number)).collect();
    for &number in numbers {
        bed.node(number).unwrap().reload(file).unwrap();
    }
    let begun = Instant::now();
    while numbers.iter().zip(&before).any(|(&number, before)| in_force(number) == *before) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", bed.log(numbers[0]).unwrap());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Hosts are added to the file of a running cluster and start, one after the other, and another day one
/// is taken away. After the first has joined, connections live on hosts that their buckets have left: the
/// second must not cost them.
#[test]
fn a_cluster_that_grows_and_shrinks_by_its_file_breaks_no_connection() {
    if !can_run() {
        return;
    }
    let file = |hosts: usize| Site::new(hosts).file();
    let site = Site { download_seconds: 12, ..Site::new(4) };
    let mut bed = Bed::with_hosts("grow", 4, site).unwrap();
    bed.start_with(&[1, 2], &file(2)).unwrap();
    bed.wait_converged(&[1, 2], &[1, 2]).unwrap();
    bed.settle();

    let load = Load::start(&bed);
    let before = bed.convergences(1).unwrap();
    let mut events = vec![Instant::now()];
    let mut noticed = None;
    for newcomer in [3, 4] {
        let old: Vec<usize> = (1..newcomer).collect();
        let all: Vec<usize> = (1..=newcomer).collect();
        events.push(Instant::now());
        reload(&bed, &old, &file(newcomer));
        bed.wait_noticed(1, before).unwrap();
        noticed.get_or_insert_with(|| events[0].elapsed());
        bed.wait_converged(&old, &old).unwrap();
        events.push(Instant::now());
        bed.start_with(&[newcomer], &file(newcomer)).unwrap();
        bed.wait_converged(&all, &all).unwrap();
        bed.settle();
    }
    let row_of = |what| row(what, 4, noticed.unwrap_or_default());
    let outcome = load.finish(row_of("two hosts more in the file"), &events, None);
    assert_eq!(outcome.account.resets().len(), 0, "{:?}", outcome.account.resets());
    for newcomer in [3, 4] {
        let requests = outcome.requests_by.get(bed.name(newcomer)).copied().unwrap_or(0);
        assert!(requests > 0, "host {newcomer} has no part: {:?}", outcome.requests_by);
    }

    let load = Load::start(&bed);
    let before = bed.convergences(1).unwrap();
    let leaves = Instant::now();
    command(&bed, 4, NlbCommand::Drainstop { deadline: Some(60) }).unwrap();
    bed.wait_noticed(1, before).unwrap();
    let noticed = leaves.elapsed();
    let log = bed.node(4).unwrap().process();
    log.wait_for_log("left the cluster", Duration::from_secs(40)).unwrap();
    bed.wait_converged(&[1, 2, 3], &[1, 2, 3]).unwrap();
    bed.stop(4).unwrap();
    let changes = Instant::now();
    reload(&bed, &[1, 2, 3], &file(3));
    let gone = |number: usize| bed.hosts(number).unwrap().iter().all(|host| *host != 4);
    let deadline = Instant::now() + Duration::from_secs(20);
    while ![1, 2, 3].into_iter().all(gone) {
        assert!(Instant::now() < deadline, "host 4 is still told of: {:?}", bed.hosts(1));
        std::thread::sleep(Duration::from_millis(50));
    }
    bed.settle();
    let row = row("a host less in the file", 3, noticed);
    let outcome = load.finish(row, &[leaves, changes], None);
    assert_eq!(outcome.account.resets().len(), 0, "{:?}", outcome.account.resets());
    let made = crate::load::requests(&bed.cluster.client, 0, 200).unwrap();
    assert!(failed(&made).is_empty(), "{:?}", tally(&made));
    assert_eq!(tally(&made).len(), 3, "{:?}", tally(&made));
}

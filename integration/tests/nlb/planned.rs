//! Planned changes under load: nothing that is established breaks, nothing is answered twice, and
//! new connections wait for less than a second.

use std::time::{Duration, Instant};

use crate::bed::{Bed, Site};
use crate::can_run;
use crate::load::{Download, Downloads, Requests, failed, tally};
use crate::table::{Row, gap};
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

    /// Lets all come to its end. `leaver`: the host whose connections may break.
    fn finish(self, row: Row<'_>, start: Instant, leaver: Option<&str>) -> Outcome {
        std::thread::sleep(UNANSWERED);
        let requests = self.requests.finish().unwrap();
        let downloads = self.downloads.finish().unwrap();
        let account = self.witness.finish().unwrap();
        let unanswered = account.unanswered(UNANSWERED);
        let (served, gap) = gap(&unanswered, start, INTERVAL);
        let lives = |it: &&Download| Some(it.server.as_str()) != leaver;
        let broken: Vec<Download> = downloads
            .iter()
            .filter(lives)
            .filter(|download| download.broken.is_some())
            .cloned()
            .collect();
        let twice = account.answered_twice();
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
    bed.start(&[nodes]).unwrap();
    let start = Instant::now();
    let noticed = bed.wait_converged(&all, &all).unwrap();
    bed.settle();
    let outcome = load.finish(row(&title, nodes, noticed), start, None);
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
    let start = Instant::now();
    bed.stop(2).unwrap();
    let noticed = bed.wait_converged(&[1, 3, 4], &[1, 3, 4]).unwrap();
    bed.settle();
    let leaver = bed.name(2).to_owned();
    load.finish(row("stop by SIGTERM, period 200ms", 4, noticed), start, Some(&leaver));
}

//! Nodes that do not fit: the others go on as if nothing were, and the misfit says why it serves
//! nothing.

use std::time::Duration;

use crate::bed::{Bed, Site};
use crate::can_run;
use crate::load::{Downloads, Requests, failed, tally};
use crate::planned::INTERVAL;
use crate::witness::Witness;

const BOTH: &[usize] = &[0, 1];

/// Hosts 1 to 3 serve; then host 4 comes with `file`, and after it says `complaint` all goes on for
/// some time. No request fails, no connection breaks, no host of the three converges anew, and
/// host 4 answers nobody.
fn a_misfit_comes(bed: &mut Bed, file: &str, complaint: &str) {
    let before = convergences(bed);
    let client = bed.cluster.client.clone();
    let witness = Witness::start(&bed.cluster).unwrap();
    let downloads = Downloads::start(&client, BOTH, 32).unwrap();
    let load = Requests::start(&client, BOTH, INTERVAL);
    bed.start_with(&[4], file).unwrap();
    let misfit = bed.node(4).unwrap().process();
    misfit.wait_for_log(complaint, Duration::from_secs(10)).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let made = load.finish().unwrap();
    let ended = downloads.finish().unwrap();
    let account = witness.finish().unwrap();
    assert!(failed(&made).is_empty(), "{:?}", tally(&made));
    let broken: Vec<_> = ended.iter().filter(|it| it.broken.is_some()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(account.answered_twice(), Vec::<String>::new());
    assert_eq!(account.resets().len(), 0);
    assert_eq!(account.speakers().get(&4), None, "the misfit answered clients");
    assert_eq!(convergences(bed), before, "the others converged anew");
}

/// How many times hosts 1 to 3 have begun to converge.
fn convergences(bed: &Bed) -> Vec<usize> {
    (1..=3).map(|number| bed.convergences(number).unwrap()).collect()
}

/// Three nodes of a file with four hosts.
fn three_of_four() -> Bed {
    let mut bed = Bed::build("misfit", Site { download_seconds: 4, ..Site::new(4) }).unwrap();
    bed.start(&[1, 2, 3]).unwrap();
    bed.wait_converged(&[1, 2, 3], &[1, 2, 3]).unwrap();
    bed.settle();
    bed
}

#[test]
fn quick_a_node_with_other_rules_serves_nothing_and_disturbs_nobody() {
    if !can_run() {
        return;
    }
    let mut bed = three_of_four();
    let rule = "[[nlb.rule]]\nports = 8080\n";
    let other = Site { more: rule.to_owned(), ..bed.site.clone() };
    a_misfit_comes(&mut bed, &other.file(), "this host serves nothing:");
    for number in 1..=3 {
        let log = bed.log(number).unwrap();
        assert!(log.contains("host 4 is left out:"), "host {number}:\n{log}");
    }
    // With the file of the others it is welcome.
    bed.stop(4).unwrap();
    bed.start(&[4]).unwrap();
    bed.wait_converged(&[1, 2, 3, 4], &[1, 2, 3, 4]).unwrap();
}

#[test]
fn a_second_node_with_the_same_id_serves_nothing_and_disturbs_nobody() {
    if !can_run() {
        return;
    }
    // A file of three hosts; the fourth machine has the addresses of the third as well.
    let site = Site { download_seconds: 4, ..Site::new(3) };
    let mut bed = Bed::with_hosts("same-id", 4, site).unwrap();
    bed.start(&[1, 2, 3]).unwrap();
    bed.wait_converged(&[1, 2, 3], &[1, 2, 3]).unwrap();
    bed.settle();
    let [v4, v6] = integration::cluster::host_addresses(3);
    let twin = &bed.cluster.hosts[3];
    twin.add_address("eth0", &format!("{v4}/32")).unwrap();
    twin.add_address("eth0", &format!("{v6}/128")).unwrap();
    let file = bed.site.file();
    a_misfit_comes(&mut bed, &file, "this host serves nothing:");
}

#[test]
fn a_node_with_the_wrong_key_serves_nothing_and_disturbs_nobody() {
    if !can_run() {
        return;
    }
    let mut bed = three_of_four();
    let other = Site { key: "the key of the neighbours", ..bed.site.clone() };
    a_misfit_comes(&mut bed, &other.file(), "another key");
    let log = bed.log(1).unwrap();
    assert!(log.contains("another key"), "host 1 says nothing of it:\n{log}");
}

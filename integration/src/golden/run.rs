//! Carries sections out on both sides.

use anyhow::{Context, Result, anyhow};

use super::script::{answers, script};
use super::{Report, Section};
use crate::parity::Stage;

/// Labs at a time. A kernel in its guest has one processor, and what it takes is nearly all there is
/// to wait for.
const SIDE_BY_SIDE: usize = 2;

/// Carries out `sections`, each on an empty table, in a few labs at a time.
///
/// # Errors
/// When a lab cannot be built, or a side does not come to its end; differences are in the report.
pub fn run(sections: &[Section]) -> Result<Report> {
    let shares = shares(sections);
    let reports: Vec<Result<Report>> = std::thread::scope(|labs| {
        let running: Vec<_> =
            shares.iter().map(|share| labs.spawn(|| run_in_one_lab(share))).collect();
        let join = |lab: std::thread::ScopedJoinHandle<'_, Result<Report>>| {
            lab.join().unwrap_or_else(|_| Err(anyhow!("a lab panicked")))
        };
        running.into_iter().map(join).collect()
    });
    let mut all = Report::default();
    for report in reports {
        all.join(report?);
    }
    Ok(all)
}

/// The sections in shares of about the same number of cases.
fn shares(sections: &[Section]) -> Vec<Vec<&Section>> {
    let mut largest_first: Vec<&Section> = sections.iter().collect();
    largest_first.sort_by_key(|section| std::cmp::Reverse(section.cases.len()));
    let mut shares = vec![(0, Vec::new()); SIDE_BY_SIDE];
    for section in largest_first {
        if let Some((cases, share)) = shares.iter_mut().min_by_key(|(cases, _)| *cases) {
            *cases += section.cases.len();
            share.push(section);
        }
    }
    shares.into_iter().map(|(_, share)| share).filter(|share| !share.is_empty()).collect()
}

fn run_in_one_lab(sections: &[&Section]) -> Result<Report> {
    let mut stage = Stage::set_up("golden")?;
    let mut report = Report::default();
    for Section { name, cases, .. } in sections {
        stage.clear().with_context(|| format!("before section {name}"))?;
        let [theirs, ours] =
            stage.shell(&script(cases)).with_context(|| format!("section {name}"))?;
        let theirs = answers(&theirs, cases.len())
            .with_context(|| format!("section {name}, the real tool"))?;
        let ours =
            answers(&ours, cases.len()).with_context(|| format!("section {name}, our tool"))?;
        for (case, (theirs, ours)) in cases.iter().zip(theirs.iter().zip(&ours)) {
            report.add(name, case, theirs, ours);
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_in_one_share_and_shares_are_alike() {
        let sections = super::super::all();
        let shares = shares(&sections);
        assert_eq!(shares.iter().map(Vec::len).sum::<usize>(), sections.len());
        let cases = |share: &Vec<&Section>| share.iter().map(|s| s.cases.len()).sum::<usize>();
        let (most, least) = (shares.iter().map(cases).max(), shares.iter().map(cases).min());
        assert!(most.unwrap() * 2 < least.unwrap() * 3, "{most:?} {least:?}");
    }
}

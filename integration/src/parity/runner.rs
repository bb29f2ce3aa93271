//! Makes a scenario happen on both sides, step by step.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::compare::{by_client_in_order, difference, fates};
use super::listing;
use super::report::Report;
use super::stage::Stage;
use super::step::{Flow, From, Kind, Packet, Scenario, Step};
use crate::kernel_host::Answer;

/// Packets on their way at a time: no more than the guest's network card holds.
pub(super) const BATCH: usize = 16;

/// Runs `scenario` in a lab of its own.
///
/// # Errors
/// When the lab cannot be built or a side does not answer; differences are in the report.
pub fn run(scenario: &Scenario) -> Result<Report> {
    let mut stage = Stage::build(&scenario.name)?;
    let mut run = Run {
        report: Report::new(&scenario.name, stage.names(), scenario.connections),
        stage: &mut stage,
        flows: BTreeSet::new(),
        next_id: 1,
    };
    for (number, step) in scenario.steps.iter().enumerate() {
        run.step(step)
            .with_context(|| format!("{}, step {}:\n{}", scenario.name, number + 1, run.report))?;
    }
    let flows = std::mem::take(&mut run.flows);
    let mut report = run.report;
    let both = |flow: &&Flow| stage.worlds.iter().all(|world| world.server_of(flow).is_some());
    report.connections = flows.iter().filter(both).count();
    if !report.is_equal() {
        report.explain(format!("the director counts {:?}", stage.verdicts()?));
    }
    Ok(report)
}

struct Run<'a> {
    stage: &'a mut Stage,
    report: Report,
    flows: BTreeSet<Flow>,
    next_id: u16,
}

impl Run<'_> {
    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Ipvsadm(arguments) => {
                let answers = self.stage.ipvsadm(arguments)?;
                self.compare_answers(&format!("ipvsadm {arguments}"), &answers);
            }
            Step::Restore(rules) => {
                let answers = self.stage.restore(rules)?;
                let first = rules.first().map_or("", String::as_str);
                self.compare_answers(&format!("{} rules ({first} ...)", rules.len()), &answers);
            }
            Step::Setting(name, value) => {
                self.report.transcript.push(format!("{name} = {value}"));
                self.stage.set(name, *value)?;
            }
            Step::Marks(rules) => {
                self.stage.marks(rules)?;
                self.report.transcript.push(format!("{} rules for marks", rules.len()));
            }
            Step::Send(packets) => self.send(packets)?,
            Step::Show(arguments) => self.show(arguments)?,
            Step::Wait(time) => {
                self.report.transcript.push(format!("wait {time:?}"));
                std::thread::sleep(*time);
            }
        }
        Ok(())
    }

    fn compare_answers(&mut self, what: &str, [theirs, ours]: &[Answer; 2]) {
        self.report.transcript.push(what.to_owned());
        if theirs != ours {
            self.report.differs(format!("{what}:\n    {theirs:?}\n    {ours:?}"));
        }
    }

    fn send(&mut self, packets: &[Packet]) -> Result<()> {
        for batch in self.batches(packets) {
            let id = self.next_id;
            self.next_id = id.wrapping_add(batch.len() as u16);
            let names = &self.report.names;
            let mut sides = [Vec::new(), Vec::new()];
            for ((world, name), side) in self.stage.worlds.iter_mut().zip(names).zip(&mut sides) {
                *side = world.exchange(&batch, id).with_context(|| name.clone())?;
                by_client_in_order(side);
            }
            let [theirs, ours] = &sides;
            let found = difference(&batch, [theirs, ours], names);
            for (packet, fate) in fates(&batch, [theirs, ours]) {
                let Flow { protocol, client, service } = packet.flow;
                let mark = if fate[0] == fate[1] { ' ' } else { '#' };
                self.report.transcript.push(format!(
                    "{mark} {protocol:?} {:<26} > {:<22} {:<12} {:<22} | {}",
                    client.to_string(),
                    service.to_string(),
                    format!("{:?}", packet.kind),
                    fate[0],
                    fate[1]
                ));
            }
            self.report.sent += batch.len();
            self.report.received[0] += theirs.len();
            self.report.received[1] += ours.len();
            if let Some(found) = found {
                self.report.differs(found);
            }
            self.flows.extend(batch.iter().map(|packet| packet.flow));
        }
        Ok(())
    }

    /// Cuts `packets` so that a server's answer is not in one batch with the first packet of its
    /// flow: it is not known before who answers. Nor is a segment with what the other side has said
    /// before: a kernel looks at the numbers of a whole burst first, and then forwards it.
    fn batches(&self, packets: &[Packet]) -> Vec<Vec<Packet>> {
        let mut batches: Vec<Vec<Packet>> = Vec::new();
        for packet in packets {
            let fits = batches.last().is_some_and(|batch| {
                let asks =
                    |earlier: &Packet| earlier.flow == packet.flow && earlier.from == From::Client;
                let asked = batch.iter().any(asks);
                let heard = matches!(packet.kind, Kind::Segment(_))
                    && batch.iter().any(|earlier| earlier.from != packet.from);
                batch.len() < BATCH && !(packet.from == From::Server && asked) && !heard
            });
            match batches.last_mut() {
                Some(batch) if fits => batch.push(*packet),
                _ => batches.push(vec![*packet]),
            }
        }
        batches
    }

    fn show(&mut self, arguments: &str) -> Result<()> {
        let [theirs, ours] = self.stage.ipvsadm(arguments)?;
        self.report.transcript.push(format!("ipvsadm {arguments}"));
        let what = format!("ipvsadm {arguments}");
        if theirs.code != ours.code {
            self.report.differs(format!("{what}: exit code {} and {}", theirs.code, ours.code));
        }
        for (theirs, ours, equal) in listing::compare(arguments, &theirs.output, &ours.output) {
            let mark = if equal { ' ' } else { '#' };
            self.report.transcript.push(format!("{mark} {theirs:<82} | {ours}"));
            if !equal {
                self.report.differs(format!("{what}:\n    {theirs}\n    {ours}"));
            }
        }
        Ok(())
    }
}

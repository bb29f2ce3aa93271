//! One file, one word: the same site behind a director, and then without one; and what clients
//! notice when one of three hosts dies.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Row, finish_progress, say, scenario, show_progress};
use crate::cluster::{Cluster, VIP_V4, VIP_V6, crash, dispatch};
use crate::http::{Plan, Tally};
use crate::programs;

/// Three hosts; the one that dies is not the default host.
const HOSTS: usize = 3;
const VICTIM: usize = 2;

/// A tenth of the usual period: a host that dies is missed after half a second.
const NLB: &str = "period = \"100ms\"";

/// What became of the requests while a host died.
#[derive(Debug)]
pub(super) struct Death {
    tally: Tally,
    wanted: u64,
    concurrency: u64,
    settled: Duration,
}

impl Death {
    /// Whether nobody lost a request but those who were just talking to the host that died.
    pub(super) fn is_survived(&self) -> bool {
        self.tally.answered() + self.concurrency >= self.wanted
    }

    /// What happened, for people.
    pub(super) fn sentence(&self) -> String {
        let lost = self.wanted - self.tally.answered().min(self.wanted);
        format!(
            "nlb: server{VICTIM} was killed while {} requests were under way, {} at a time; the others had its \
             clients {:.1} s later, and {lost} failed\n",
            self.wanted,
            self.concurrency,
            self.settled.as_secs_f64(),
        )
    }
}

/// The site behind a director, without one, and while a host dies.
pub(super) fn show(requests: u64) -> Result<(Vec<Row>, Death)> {
    let families = [(scenario::FAMILIES[0].0, VIP_V4), (scenario::FAMILIES[1].0, VIP_V6)];
    let lab_program = programs::path("switchyard-lab")?;
    let mut rows = Vec::new();

    say("\none file for both modes: building a client, a director and three servers");
    let cluster = Cluster::build("demo", HOSTS)?;
    let _web = cluster.start_web(&lab_program, 512)?;
    let (director, agents) =
        dispatch(&cluster, &lab_program, &cluster.config("dispatcher", NLB, ""))?;
    for (family, vip) in families {
        rows.push(fetch(
            &cluster,
            "one file",
            "rr",
            family,
            Plan::new(SocketAddr::new(vip, 80), requests),
        )?);
    }
    director.stop()?;
    for agent in agents {
        agent.stop()?;
    }

    say("\nnlb: the same file with mode = \"nlb\" on each server, and no director");
    let nodes = cluster.start_nodes(&cluster.config("nlb", NLB, ""))?;
    cluster.client.forget_neighbours("eth0")?;
    for (family, vip) in families {
        rows.push(fetch(
            &cluster,
            "nlb",
            "-",
            family,
            Plan::new(SocketAddr::new(vip, 80), requests),
        )?);
    }

    say(&format!("\nnlb: the same, and server{VICTIM} is killed"));
    let plan = Plan::new(SocketAddr::new(VIP_V4, 80), 4 * requests);
    let (tally, settled) = std::thread::scope(|scope| {
        let death = scope.spawn(|| -> Result<Duration> {
            std::thread::sleep(Duration::from_millis(100));
            crash(&nodes[VICTIM - 1])?;
            let killed = Instant::now();
            nodes[0].process().wait_for_log("with hosts 1, 3 (", Duration::from_secs(10))?;
            Ok(killed.elapsed())
        });
        let row = fetch(&cluster, "nlb", "-", "IPv4", plan.clone());
        let settled = death.join().ok().context("nobody killed the host")?;
        Ok::<_, anyhow::Error>((row?.tally, settled?))
    })?;
    let concurrency = plan.concurrency as u64;
    Ok((rows, Death { tally, wanted: plan.count, concurrency, settled }))
}

fn fetch(
    cluster: &Cluster,
    method: &'static str,
    scheduler: &'static str,
    family: &'static str,
    plan: Plan,
) -> Result<Row> {
    let title = format!("  {family}  {} requests to {}", plan.count, plan.target);
    let mut tally = cluster.fetch(&plan, |progress| show_progress(&title, progress))?;
    // One column of the table for each, as for the servers of the other scenarios.
    let names = std::mem::take(&mut tally.by_server).into_iter();
    tally.by_server = names.map(|(name, count)| (name.replace("host", "server"), count)).collect();
    finish_progress(&title, &tally);
    Ok(Row { method, family, scheduler, tally, wanted: plan.count })
}

//! Which core each worker runs on: what the configuration says, else the core that serves the
//! interrupt of the worker's queue, else one core each.

use anyhow::{Result, bail};
use tracing::warn;

/// A core for each worker. `wanted` is the core of its queue's interrupt, if there is one. Empty
/// when this process may not be asked which cores it may use.
///
/// # Errors
/// When the configuration names a core that this process may not use.
pub(super) fn choose(configured: &[usize], wanted: &[Option<usize>]) -> Result<Vec<usize>> {
    choose_among(&allowed(), configured, wanted)
}

fn choose_among(
    allowed: &[usize],
    configured: &[usize],
    wanted: &[Option<usize>],
) -> Result<Vec<usize>> {
    if allowed.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(core) = configured.iter().find(|core| !allowed.contains(core)) {
        let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        bail!(
            "cpus: core {core} is none that this process may use: those are {}",
            allowed.join(", ")
        );
    }
    if !configured.is_empty() {
        return Ok((0..wanted.len()).map(|worker| configured[worker % configured.len()]).collect());
    }
    // Those first that want one; all interrupts may go to one core, which serves one worker then.
    let mut taken = Vec::new();
    let mut cores = vec![None; wanted.len()];
    for (core, wanted) in cores.iter_mut().zip(wanted) {
        *core = wanted.filter(|core| allowed.contains(core) && !taken.contains(core));
        taken.extend(*core);
    }
    let mut others =
        allowed.iter().filter(|core| !taken.contains(core)).chain(allowed.iter().cycle());
    // The cycle never ends.
    Ok(cores.into_iter().filter_map(|core| core.or_else(|| others.next().copied())).collect())
}

/// The cores that this process may use: a container or a service manager may have left it a few.
fn allowed() -> Vec<usize> {
    let this_process = nix::unistd::Pid::from_raw(0);
    match nix::sched::sched_getaffinity(this_process) {
        Ok(set) => (0..nix::sched::CpuSet::count())
            .filter(|core| set.is_set(*core).unwrap_or(false))
            .collect(),
        Err(errno) => {
            warn!("workers are not pinned to cores: {errno}");
            Vec::new()
        }
    }
}

/// Keeps the calling thread on one core. Not being allowed to is no reason to stop.
pub(super) fn pin(worker: usize, core: usize) {
    let mut set = nix::sched::CpuSet::new();
    if set.set(core).is_ok()
        && let Err(errno) = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
    {
        warn!("worker {worker} is not pinned to core {core}: {errno}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(configured: &[usize], wanted: &[Option<usize>]) -> Vec<usize> {
        choose_among(&[0, 1, 2, 3], configured, wanted).unwrap()
    }

    #[test]
    fn a_worker_runs_where_its_queue_interrupts() {
        assert_eq!(chosen(&[], &[Some(3), Some(1)]), [3, 1]);
        assert_eq!(chosen(&[], &[None, Some(0), None]), [1, 0, 2]);
    }

    #[test]
    fn no_two_workers_share_a_core_while_there_is_another() {
        assert_eq!(chosen(&[], &[Some(2); 4]), [2, 0, 1, 3]);
        assert_eq!(chosen(&[], &[None; 6]), [0, 1, 2, 3, 0, 1]);
        assert_eq!(chosen(&[], &[Some(9), None]), [0, 1], "9 may not be used");
    }

    #[test]
    fn the_configuration_has_the_last_word() {
        assert_eq!(chosen(&[2, 0], &[Some(3), Some(1)]), [2, 0]);
        let refused = choose_among(&[0, 1], &[1, 7], &[None]).unwrap_err().to_string();
        assert!(refused.contains("core 7") && refused.contains("0, 1"), "{refused}");
    }
}

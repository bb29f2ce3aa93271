//! Which capabilities are kept when.

use std::path::Path;

use caps::errors::CapsError;
use caps::{CapSet, Capability, CapsHashSet};
use tracing::debug;

/// What a start takes: packet memory and rings are opened, programs loaded, packet threads put before ordinary
/// programs. SETPCAP is for giving up the rest.
pub(super) const FOR_A_START: &[Capability] = &[
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    Capability::CAP_BPF,
    Capability::CAP_PERFMON,
    Capability::CAP_IPC_LOCK,
    Capability::CAP_SYS_RESOURCE,
    Capability::CAP_SYS_NICE,
    // `metrics` on a port below 1024.
    Capability::CAP_NET_BIND_SERVICE,
    Capability::CAP_SETPCAP,
];

/// What a running director takes: rules for firewall marks load a new XDP program at a reload (BPF, PERFMON,
/// NET_ADMIN), virtual addresses come and go (NET_ADMIN), checks and silent clients take raw sockets (NET_RAW).
pub(super) const FOR_A_RUN: &[Capability] = &[
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    Capability::CAP_BPF,
    Capability::CAP_PERFMON,
];

/// Kept only where the configuration file belongs to somebody else than root and is private.
pub(super) const READ_ANYTHING: Capability = Capability::CAP_DAC_READ_SEARCH;

/// What a command of a check may have at most: `ping` takes it.
const FOR_COMMANDS: Capability = Capability::CAP_NET_RAW;

/// Leaves this thread, and those that it starts from now on, no other capabilities than these, and says which
/// it had of them.
///
/// # Errors
/// What the kernel said.
pub(super) fn keep(wanted: &[Capability]) -> Result<String, CapsError> {
    let had = caps::read(None, CapSet::Permitted)?;
    let kept: CapsHashSet = wanted.iter().copied().filter(|it| had.contains(it)).collect();
    // What a program that is executed could get again. It takes SETPCAP, which not every service has.
    if had.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::all().into_iter().filter(|it| *it != FOR_COMMANDS) {
            // A kernel that does not know one has nothing to give up.
            let _ = caps::drop(None, CapSet::Bounding, capability);
        }
    } else {
        debug!("sandbox: the bounding set stays (CAP_SETPCAP)");
    }
    caps::clear(None, CapSet::Ambient)?;
    caps::clear(None, CapSet::Inheritable)?;
    caps::set(None, CapSet::Effective, &kept)?;
    caps::set(None, CapSet::Permitted, &kept)?;
    Ok(list(wanted, &kept))
}

/// Leaves this thread no capability at all.
pub(super) fn give_up_all() {
    let effective = caps::clear(None, CapSet::Effective);
    if let Err(error) = effective.and_then(|()| caps::clear(None, CapSet::Permitted)) {
        debug!("sandbox: a thread keeps its capabilities: {error}");
    }
}

/// Whether the file at `path` can be read only by who may read everything.
pub(super) fn reading_takes_one(path: &Path) -> bool {
    let overriding = [Capability::CAP_DAC_OVERRIDE, READ_ANYTHING];
    let Ok(had) = caps::read(None, CapSet::Effective) else { return false };
    let lesser: CapsHashSet = had.iter().copied().filter(|it| !overriding.contains(it)).collect();
    if lesser.len() == had.len() || caps::set(None, CapSet::Effective, &lesser).is_err() {
        return false;
    }
    let denied = std::fs::File::open(path)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    // Permitted is as before, so this cannot fail; if it did, less would be there than allowed.
    let _ = caps::set(None, CapSet::Effective, &had);
    denied
}

/// `net_admin net_raw`, in the order of `wanted`.
fn list(wanted: &[Capability], kept: &CapsHashSet) -> String {
    let names = wanted.iter().filter(|it| kept.contains(it));
    let names: Vec<String> =
        names.map(|it| it.to_string().trim_start_matches("CAP_").to_lowercase()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_of_somebody_else_stays_readable() {
        use std::os::unix::fs::{PermissionsExt, chown};
        if !caps::has_cap(None, CapSet::Effective, Capability::CAP_CHOWN).unwrap_or(false) {
            println!("skipped: giving a file to somebody else takes root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("switchyard.toml");
        std::fs::write(&file, "interfaces = []").unwrap();
        assert!(!reading_takes_one(&file), "root's own file");
        chown(&file, Some(65_534), Some(65_534)).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(reading_takes_one(&file), "a private file of another user");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o604)).unwrap();
        assert!(!reading_takes_one(&file), "a file that everybody may read");
        assert!(!reading_takes_one(&folder.path().join("missing")));
    }

    #[test]
    fn capabilities_that_are_not_named_are_gone_from_the_thread_and_from_those_it_starts() {
        std::thread::spawn(|| {
            let had = caps::read(None, CapSet::Permitted).unwrap();
            keep(FOR_A_RUN).unwrap();
            let inherited = std::thread::spawn(|| caps::read(None, CapSet::Permitted).unwrap());
            for found in [caps::read(None, CapSet::Effective).unwrap(), inherited.join().unwrap()] {
                let wanted = FOR_A_RUN.iter().copied().filter(|it| had.contains(it));
                assert_eq!(found, wanted.collect());
            }
            give_up_all();
            assert!(caps::read(None, CapSet::Permitted).unwrap().is_empty());
        })
        .join()
        .unwrap();
    }
}

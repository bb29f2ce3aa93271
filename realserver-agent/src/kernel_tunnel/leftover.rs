//! What a process that was killed has left of devices and ports, told from what is somebody else's.
//!
//! Devices of ours have names of ours, and take packets from anybody. A port has no name: which ones
//! are ours stands on the first of the devices, as its alias (`ip link` shows it).

use anyhow::{Context, Result};
use rtnetlink::Handle;

use super::devices::close;
use super::fou::Port;
use super::{PREFIX, device};

/// Begins the alias.
const NOTE: &str = "realserver-agent, with the fou ports ";

/// The alias for these ports.
pub(super) fn note(ports: &[Port]) -> String {
    let ports: Vec<_> = ports.iter().map(Port::to_string).collect();
    format!("{NOTE}{}", ports.join(" "))
}

/// The ports of an alias.
fn ports(note: &str) -> Vec<Port> {
    let ports = note.strip_prefix(NOTE).unwrap_or_default();
    ports.split_whitespace().filter_map(|port| port.parse().ok()).collect()
}

/// Whether a device of this name is ours.
fn is_ours(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|rest| rest.parse::<u16>().is_ok())
}

/// Takes away what a process that was killed has left. To be called before anything new is made,
/// and also when nothing will be: what is left unpacks.
///
/// # Errors
/// When it is there and cannot be taken away.
pub(crate) async fn sweep(netlink: &Handle) -> Result<()> {
    let left = match device::all(netlink).await {
        Ok(mut found) => {
            found.retain(|it| is_ours(&it.name) && it.from_all);
            found
        }
        Err(error) => {
            tracing::debug!("cannot see whether devices were left: {error:#}");
            return Ok(());
        }
    };
    for device in left {
        let name = &device.name;
        tracing::info!("the device {name} was left by a process that was killed");
        if let Err(error) = close(&ports(&device.note)) {
            tracing::warn!("cannot close a port for gue that it had ({}): {error}", device.note);
        }
        device::remove(netlink, name).await.with_context(|| format!("remove the device {name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_known_again_by_the_alias_and_nobody_elses_words_are_taken_for_one() {
        let both = [true, false].map(|is_v4| Port { number: 6080, is_v4 });
        assert_eq!(ports(&note(&both)), both);
        for text in ["", "6080/v4", "the operator's, with the fou ports 6080/v4"] {
            assert!(ports(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn devices_are_known_by_our_names_alone() {
        assert!(is_ours("swtun0") && is_ours("swtun12"));
        for name in ["swtun", "swtunnel", "tunl0", "myswtun0", "swtun0.1"] {
            assert!(!is_ours(name), "{name}");
        }
    }
}

//! Kernel, capabilities, clock.

use super::Facts;
use crate::doctor::finding::{Check, Finding};

/// The first Linux that is supported.
const OLDEST: (u32, u32) = (6, 6);

/// What a director needs: number, name, whether still when it runs, and what it is for.
const CAPABILITIES: [(u8, &str, bool, &str); 6] = [
    (12, "CAP_NET_ADMIN", true, "interfaces, neighbours and VIPs"),
    (13, "CAP_NET_RAW", true, "AF_PACKET and checks along the path"),
    (14, "CAP_IPC_LOCK", false, "packet memory, or LimitMEMLOCK=infinity"),
    (38, "CAP_PERFMON", false, "loading XDP programs"),
    (39, "CAP_BPF", false, "loading XDP programs"),
    (23, "CAP_SYS_NICE", false, "the workers' priority"),
];

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![kernel(facts)];
    findings.extend(capabilities(facts));
    findings.push(clock(facts.machine.clock));
    findings
}

fn kernel(facts: &Facts) -> Finding {
    let release = &facts.machine.kernel;
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next().and_then(|digits| digits.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) if (major, minor) >= OLDEST => {
            Finding::ok(Check::Kernel, format!("Linux {release}"))
        }
        (Some(_), Some(_)) => {
            let found = format!("Linux {release} is older than {}.{}", OLDEST.0, OLDEST.1);
            Finding::warning(Check::Kernel, found)
                .remedy("uname -r; apt-get install linux-image-amd64")
        }
        _ => Finding::note(Check::Kernel, "which Linux this is cannot be read"),
    }
}

fn capabilities(facts: &Facts) -> Option<Finding> {
    let have = facts.machine.capabilities?;
    let missing = |running: bool| -> Vec<String> {
        let of = |(number, name, still, purpose): &(u8, &str, bool, &str)| {
            let lacks = have >> number & 1 == 0 && (*still || !running);
            lacks.then(|| format!("{name} ({purpose})"))
        };
        CAPABILITIES.iter().filter_map(of).collect()
    };
    Some(match facts.machine.director {
        Some(pid) => match missing(true).join(", ") {
            none if none.is_empty() => {
                Finding::ok(Check::Capabilities, format!("process {pid} has those that it needs"))
            }
            list => {
                let found = format!("the director (process {pid}) runs without {list}");
                let unit = "systemctl revert switchyard-director";
                let restart = "systemctl restart switchyard-director";
                Finding::warning(Check::Capabilities, found).remedy(unit).remedy(restart)
            }
        },
        None => match missing(false).join(", ") {
            none if none.is_empty() => {
                Finding::ok(Check::Capabilities, "all that a director needs")
            }
            list => {
                let found =
                    format!("you are without {list}, so some of this examination is left out");
                Finding::note(Check::Capabilities, found).remedy("sudo dirctl doctor")
            }
        },
    })
}

/// For both sides.
pub(crate) fn clock(synchronised: Option<bool>) -> Finding {
    match synchronised {
        Some(true) => Finding::ok(Check::Clock, "it is synchronised"),
        Some(false) => {
            let found = "nobody keeps this machine's clock: the kernel takes it for unsynchronised";
            Finding::note(Check::Clock, found).remedy("timedatectl set-ntp true")
        }
        None => Finding::note(Check::Clock, "whether it is synchronised cannot be seen here"),
    }
}

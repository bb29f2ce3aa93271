//! The flags that say who chooses the server of a new connection.

use super::{Argument, Flag, Kind};
use crate::draft::short_name;
use crate::failure::Failure;
use crate::legality::Opt;

/// `-s`
pub const SCHEDULER: Flag = Flag {
    short: &['s'],
    long: "scheduler",
    argument: Argument::Required("scheduler"),
    kind: Kind::Option(Some(Opt::Scheduler)),
    help: &[
        "one of rr|wrr|lc|wlc|lblc|lblcr|dh|sh|sed|nq|fo|ovf|mh,",
        "the default scheduler is wlc.",
    ],
    about: "Who chooses the server of a new connection: rr, wrr, lc, wlc, lblc, lblcr, dh, sh, sed, nq, fo, ovf, mh, twos, swrr, dht or load; wlc without this option.",
    take: |draft, value| {
        draft.scheduler = short_name(value.unwrap_or_default());
        Ok(())
    },
};

#[test]
fn scheduler_is_wlc_unless_named_and_its_name_is_not_checked_here() {
    use crate::order::testing::service;
    assert_eq!(service("-A -t 10.0.0.1:80").scheduler, "wlc");
    assert_eq!(service("-E -f 7").scheduler, "wlc");
    assert_eq!(service("-A -t 10.0.0.1:80 -s twos").scheduler, "twos");
    assert_eq!(service("-A -f 7 -s abcdefghijklmnopq").scheduler, "abcdefghijklmno");
}

/// `-b`
pub const SCHEDULER_FLAGS: Flag = Flag {
    short: &['b'],
    long: "sched-flags",
    argument: Argument::Required("flags"),
    kind: Kind::Option(Some(Opt::SchedulerFlags)),
    help: &["scheduler flags (comma-separated)"],
    about: "Flags of the scheduler: sh-fallback and sh-port of sh, mh-fallback and mh-port of mh, dht-sticky, dht-port and dht-dns-name of dht; or flag-1, flag-2 and flag-3 of any.",
    take: |draft, value| {
        draft.flags = value.unwrap_or_default().to_owned();
        Ok(())
    },
};

/// The bits of a list of flags.
///
/// # Errors
/// When there is no such flag, or it is another scheduler's.
pub fn scheduler_flags(scheduler: &str, list: &str) -> Result<u32, Failure> {
    let words = list.split(',').filter(|word| !word.is_empty());
    words.map(|word| scheduler_flag(scheduler, word)).try_fold(0, |bits, flag| Ok(bits | flag?))
}

fn scheduler_flag(scheduler: &str, word: &str) -> Result<u32, Failure> {
    let (of, flag) = match word {
        "flag-1" => (None, 0x8),
        "flag-2" => (None, 0x10),
        "flag-3" => (None, 0x20),
        "sh-fallback" => (Some("sh"), 0x8),
        "sh-port" => (Some("sh"), 0x10),
        "mh-fallback" => (Some("mh"), 0x8),
        "mh-port" => (Some("mh"), 0x10),
        "dht-sticky" => (Some("dht"), 0x8),
        "dht-port" => (Some("dht"), 0x10),
        "dht-dns-name" => (Some("dht"), 0x20),
        _ => return Err(Failure::usage(format!("invalid scheduler flag `{word}'"))),
    };
    match of {
        Some(of) if of != scheduler => {
            Err(Failure::usage(format!("incompatible scheduler flag `{word}'")))
        }
        _ => Ok(flag),
    }
}

#[test]
fn scheduler_flags_need_their_scheduler_wherever_it_stands() {
    use crate::order::testing::{complaint, service};
    assert_eq!(service("-A -f 7 -s sh -b sh-fallback,sh-port").flags, 0x18);
    assert_eq!(service("-A -f 7 -s mh -b mh-port").flags, 0x10);
    assert_eq!(service("-A -f 7 -b flag-1,flag-3").flags, 0x28);
    let dht = service("-A -u 10.0.0.1:53 -s dht -b dht-sticky,dht-dns-name");
    assert_eq!(dht.flags, 0x28);
    assert_eq!(service("-A -f 7 -s dht -b dht-port").flags, 0x10);
    let complaint = |line| complaint(line).0;
    assert_eq!(complaint("-A -f 7 -s sh -b dht-port"), "incompatible scheduler flag `dht-port'");
    assert_eq!(service("-A -f 7 -b sh-port -s sh").flags, 0x10);
    assert_eq!(complaint("-A -f 7 -b sh-port"), "incompatible scheduler flag `sh-port'");
    assert_eq!(complaint("-A -f 7 -s mh -b sh-port"), "incompatible scheduler flag `sh-port'");
    assert_eq!(complaint("-A -f 7 -s sh -b flag-4"), "invalid scheduler flag `flag-4'");
}

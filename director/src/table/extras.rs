//! What is wrong with the extras that somebody asks for: the limits are those of the file.

use std::ops::RangeInclusive;

use super::check::refuse;
use crate::control::api::{
    BiasWindow, Extras, MssClamp, NoDestination, OwnTimeouts, Protocol, Refusal, RefusalKind,
    ServiceKey,
};

/// The longest timeout, seconds (INT_MAX / HZ, the kernel's limit at the usual HZ of 1000).
const LONGEST_TIMEOUT: u32 = 2_147_483;

/// Milliseconds in which a new connection may be in progress.
const BIAS_WINDOWS: RangeInclusive<u32> = 100..=60_000;

/// Extras of the service `key`.
pub(super) fn check(key: &ServiceKey, wanted: &Extras) -> Result<(), Refusal> {
    let invalid = |message: String| Err(refuse(RefusalKind::Invalid, message));
    let OwnTimeouts { tcp, tcp_fin, udp } = wanted.timeouts;
    if let Some(longest) = [tcp, tcp_fin, udp].into_iter().max()
        && longest > LONGEST_TIMEOUT
    {
        return invalid(format!("timeout {longest} s is not within 0..={LONGEST_TIMEOUT}"));
    }
    if let MssClamp::Bytes(bytes) = wanted.mss_clamp
        && !(MssClamp::LEAST..=MssClamp::MOST).contains(&bytes)
    {
        let (least, most) = (MssClamp::LEAST, MssClamp::MOST);
        return invalid(format!("mss_clamp {bytes} is not within {least}..={most}"));
    }
    let BiasWindow(window) = wanted.bias_window;
    if !BIAS_WINDOWS.contains(&window) {
        let (least, most) = (BIAS_WINDOWS.start(), BIAS_WINDOWS.end());
        return invalid(format!("bias_window {window} ms is not within {least}..={most}"));
    }
    if wanted.placement.variants == 0 {
        return invalid("variants 0 is not within 1..=65535".to_owned());
    }
    // A mark may stand for packets of every protocol.
    let ServiceKey::Address { protocol, .. } = *key else { return Ok(()) };
    let for_tcp = [
        ("timeouts.tcp", tcp != 0),
        ("timeouts.tcp_fin", tcp_fin != 0),
        ("no_destination rst", wanted.no_destination == NoDestination::Rst),
        ("mss_clamp", wanted.mss_clamp != MssClamp::default()),
    ];
    let misplaced = match protocol {
        Protocol::Tcp => (udp != 0).then_some(("timeouts.udp", "UDP")),
        Protocol::Udp | Protocol::Sctp => {
            let tcp = for_tcp.iter().find(|(_, asked)| *asked).map(|(name, _)| (*name, "TCP"));
            let udp = (udp != 0 && protocol == Protocol::Sctp).then_some(("timeouts.udp", "UDP"));
            tcp.or(udp)
        }
    };
    match misplaced {
        Some((name, owner)) => invalid(format!("{name} is for {owner} services")),
        None => Ok(()),
    }
}

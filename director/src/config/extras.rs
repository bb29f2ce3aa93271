//! The keys of `[[service]]` that go beyond the kernel's IPVS. What a file does not name is off.

use super::fields::{Field, Fields};
use super::problem::Report;
use super::settings::{LONGEST_TIMEOUT, TIMEOUTS};
use crate::control::api::{Extras, GoneServer, MssClamp, NoDestination, OwnTimeouts, Protocol};

const GONE_SERVER: &[(&str, GoneServer)] =
    &[("drop", GoneServer::Drop), ("rst", GoneServer::Rst), ("reschedule", GoneServer::Reschedule)];

const NO_DESTINATION: &[(&str, NoDestination)] =
    &[("icmp", NoDestination::Icmp), ("rst", NoDestination::Rst)];

/// Reads them for a service of `protocol`, when that is known.
pub(super) fn read(
    fields: &Fields<'_>,
    protocol: Option<Protocol>,
    report: &mut Report<'_>,
) -> Extras {
    let gone_server = fields.get("gone_server").and_then(|field| field.word(GONE_SERVER, report));
    Extras {
        timeouts: timeouts(fields, protocol, report).unwrap_or_default(),
        gone_server: gone_server.unwrap_or_default(),
        no_destination: no_destination(fields, protocol, report).unwrap_or_default(),
        leave_quiesced: leave_quiesced(fields, report).unwrap_or_default(),
        mss_clamp: mss_clamp(fields, protocol, report).unwrap_or_default(),
        ..Extras::default()
    }
}

/// Notes that a key is for services of another protocol, if it is.
fn belongs_to(
    owner: Protocol,
    protocol: Option<Protocol>,
    field: &Field<'_>,
    report: &mut Report<'_>,
) {
    if protocol.is_some_and(|protocol| protocol != owner) {
        let (what, remedy) = match owner {
            Protocol::Tcp => ("this is for TCP only", "remove it, or listen on /tcp"),
            Protocol::Udp => ("this is for UDP only", "remove it, or listen on /udp"),
            Protocol::Sctp => ("this is for SCTP only", "remove it, or listen on /sctp"),
        };
        field.wrong(what, remedy, report);
    }
}

/// `timeouts = { tcp = "1h" }`; what is not named stays 0, the director's.
fn timeouts(
    fields: &Fields<'_>,
    protocol: Option<Protocol>,
    report: &mut Report<'_>,
) -> Option<OwnTimeouts> {
    let table = fields.get("timeouts")?.table(TIMEOUTS, "{ tcp = \"1h\" }", report)?;
    let mut seconds = |key, owner| {
        let field: Field<'_> = table.get(key)?;
        belongs_to(owner, protocol, &field, report);
        field.seconds(1..=LONGEST_TIMEOUT, report)
    };
    Some(OwnTimeouts {
        tcp: seconds("tcp", Protocol::Tcp).unwrap_or_default(),
        tcp_fin: seconds("tcp_fin", Protocol::Tcp).unwrap_or_default(),
        udp: seconds("udp", Protocol::Udp).unwrap_or_default(),
    })
}

fn no_destination(
    fields: &Fields<'_>,
    protocol: Option<Protocol>,
    report: &mut Report<'_>,
) -> Option<NoDestination> {
    let field = fields.get("no_destination")?;
    let value = field.word(NO_DESTINATION, report)?;
    if value == NoDestination::Rst {
        belongs_to(Protocol::Tcp, protocol, &field, report);
    }
    Some(value)
}

/// In the long form of `persistence`.
fn leave_quiesced(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<bool> {
    fields.get("persistence")?.key("leave_quiesced")?.boolean(report)
}

/// `mss_clamp = true` or `mss_clamp = 1400`.
fn mss_clamp(
    fields: &Fields<'_>,
    protocol: Option<Protocol>,
    report: &mut Report<'_>,
) -> Option<MssClamp> {
    let field = fields.get("mss_clamp")?;
    belongs_to(Protocol::Tcp, protocol, &field, report);
    if field.is_boolean() {
        return field.boolean(report).map(MssClamp::ByRoute);
    }
    let range = i64::from(MssClamp::LEAST)..=i64::from(MssClamp::MOST);
    let bytes = field.integer(range, ", or true for what the route carries", report)?;
    u16::try_from(bytes).ok().map(MssClamp::Bytes)
}

//! The keys of `[[service]]` that go beyond the kernel's IPVS. What a file does not name is off, but
//! for `bias`.

use realserver_agent::settings::spelling::list;

use super::fields::{Field, Fields};
use super::problem::Report;
use super::settings::TIMEOUTS;
use crate::control::api::{
    Bias, BiasWindow, Extras, GoneServer, MssClamp, NoDestination, OwnTimeouts, Placement,
    Protocol, Teardown,
};

pub(super) const GONE_SERVER: &[(&str, GoneServer)] =
    &[("drop", GoneServer::Drop), ("rst", GoneServer::Rst), ("reschedule", GoneServer::Reschedule)];

pub(super) const NO_DESTINATION: &[(&str, NoDestination)] =
    &[("icmp", NoDestination::Icmp), ("rst", NoDestination::Rst)];

pub(super) const TEARDOWN: &[(&str, Teardown)] =
    &[("lazy", Teardown::Lazy), ("eager", Teardown::Eager), ("none", Teardown::None)];

/// Schedulers that count connections, so that those in progress can count for more.
const BIASED: &[&str] = &["lc", "wlc", "sed", "nq", "lblc", "lblcr", "load"];

/// The bias of a service of the file that says nothing (the papers' default).
const DEFAULT_BIAS: Bias = Bias::Ilb(2);

/// Reads them for a service of `protocol`, when that is known, and with `scheduler`.
pub(super) fn read(
    fields: &Fields<'_>,
    protocol: Option<Protocol>,
    scheduler: &str,
    report: &mut Report<'_>,
) -> Extras {
    let gone_server = fields.get("gone_server").and_then(|field| field.word(GONE_SERVER, report));
    Extras {
        timeouts: timeouts(fields, protocol, report).unwrap_or_default(),
        gone_server: gone_server.unwrap_or_default(),
        no_destination: no_destination(fields, protocol, report).unwrap_or_default(),
        leave_quiesced: leave_quiesced(fields, report).unwrap_or_default(),
        mss_clamp: mss_clamp(fields, protocol, report).unwrap_or_default(),
        bias: bias(fields, scheduler, report),
        bias_window: bias_window(fields, scheduler, report).unwrap_or_default(),
        teardown: fields
            .get("teardown")
            .and_then(|field| field.word(TEARDOWN, report))
            .unwrap_or_default(),
        // `scheduler` says that.
        placement: Placement::default(),
    }
}

/// `bias = "ilb:2"`.
fn bias(fields: &Fields<'_>, scheduler: &str, report: &mut Report<'_>) -> Bias {
    let is_biased = BIASED.contains(&scheduler);
    let default = if is_biased { DEFAULT_BIAS } else { Bias::None };
    let Some(field) = fields.get("bias") else { return default };
    let Some(text) = field.text(Bias::GRAMMAR, report) else { return default };
    let Ok(bias) = text.parse::<Bias>() else {
        field.wrong(format!("{text:?} is not a bias"), format!("write {}", Bias::GRAMMAR), report);
        return default;
    };
    if bias != Bias::None && !is_biased {
        counts_nothing(&field, scheduler, report);
    }
    bias
}

fn bias_window(
    fields: &Fields<'_>,
    scheduler: &str,
    report: &mut Report<'_>,
) -> Option<BiasWindow> {
    let field = fields.get("bias_window")?;
    let window = field.time(report)?;
    if !BIASED.contains(&scheduler) {
        counts_nothing(&field, scheduler, report);
    }
    u32::try_from(window.as_millis()).ok().map(BiasWindow)
}

fn counts_nothing(field: &Field<'_>, scheduler: &str, report: &mut Report<'_>) {
    field.wrong(
        format!("scheduler {scheduler} does not go by how loaded servers are"),
        format!("remove it, or set scheduler to one of {}", list(BIASED)),
        report,
    );
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
    let table = fields.get("timeouts")?.table(&[TIMEOUTS], "{ tcp = \"1h\" }", report)?;
    let mut seconds = |key, owner| {
        let field: Field<'_> = table.get(key)?;
        belongs_to(owner, protocol, &field, report);
        field.seconds(report)
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
    field.number(", or true for what the route carries", report).map(MssClamp::Bytes)
}

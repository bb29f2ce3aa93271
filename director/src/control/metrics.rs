//! The director in numbers, as Prometheus text (exposition format 0.0.4). A function of what
//! [`Operations`] says, as the JSON paths are; `docs/metrics.md` names every family, and a test holds
//! the two to each other.
//!
//! Labels are services, servers, ports, workers and reasons: as many as the configuration and this
//! program have, whatever the network says, and of services and servers no more than a bound.

mod director;
mod health;
mod nlb;
mod page;
#[cfg(test)]
mod tests;
mod traffic;

use super::operations::Operations;
use page::{Page, name_of};

/// What HTTP calls this format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics. `requests` are those to the control API so far, by path.
pub(super) fn text(operations: &dyn Operations, requests: &[(&str, u64)]) -> String {
    let status = operations.status();
    let mut page = Page::default();
    director::about(&mut page, &status);
    director::packets(&mut page, &operations.verdicts());
    director::table(&mut page, &status, &operations.connection_states());
    director::ports(&mut page, &status.ports);
    director::workers(&mut page, &status.workers);
    traffic::services(&mut page, &operations.services());
    health::servers(&mut page, &operations.servers());
    nlb::cluster(&mut page, operations);
    page.family("switchyard_control_requests_total", "counter", "Requests to the control API.");
    for (path, count) in requests {
        page.sample(&[("path", path)], count);
    }
    page.text
}

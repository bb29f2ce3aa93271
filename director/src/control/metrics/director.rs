//! The director itself: packets by fate, the connection table, ports and workers.

use super::super::api::{PortView, Status, VerdictCount};
use super::super::workers::{SocketView, StateCount, WorkerView};
use super::page::Page;

/// Whether and how it runs.
pub(super) fn about(page: &mut Page, status: &Status) {
    page.family("switchyard_info", "gauge", "The running director.");
    page.sample(&[("version", &status.version), ("mode", &status.mode)], 1);
    page.single("switchyard_uptime_seconds", "gauge", "Seconds since start.", status.uptime);
    let help = "Warnings that `dirctl status` shows.";
    page.single("switchyard_warnings", "gauge", help, status.warnings.len());
    page.single("switchyard_services", "gauge", "Virtual services.", status.services);
}

/// What has become of packets, those fates too that none has met.
pub(super) fn packets(page: &mut Page, verdicts: &[VerdictCount]) {
    page.family("switchyard_packets_total", "counter", "Packets by what became of them, and why.");
    for verdict in verdicts {
        let labels = [("verdict", verdict.verdict.as_str()), ("reason", verdict.reason.as_str())];
        page.sample(&labels, verdict.packets);
    }
}

/// The connection table.
pub(super) fn table(page: &mut Page, status: &Status, states: &[StateCount]) {
    let help = "Connections in the table, templates among them.";
    page.single("switchyard_connections", "gauge", help, status.connections);
    let help = "Most connections that the table may have.";
    page.single("switchyard_connections_limit", "gauge", help, status.max_connections);
    let help = "What has come of a full connection table.";
    page.family("switchyard_overflow_total", "counter", help);
    for count in &status.overflow {
        page.sample(&[("what", &count.reason)], count.packets);
    }
    let help = "Connections by protocol and state; persistence templates under protocol template.";
    page.family("switchyard_connections_by_state", "gauge", help);
    for count in states {
        let labels = [("protocol", count.protocol.as_str()), ("state", count.state.as_str())];
        page.sample(&labels, count.connections);
    }
}

type Frames = fn(&PortView) -> u64;
type Socket = fn(&SocketView) -> u64;

const FRAMES: [(&str, &str, Frames); 4] = [
    ("received_frames", "Frames received.", |port| port.received),
    ("transmitted_frames", "Frames transmitted.", |port| port.transmitted),
    ("receive_dropped_frames", "Frames lost on receive.", |port| port.receive_dropped),
    ("transmit_dropped_frames", "Frames lost on transmit.", |port| port.transmit_dropped),
];

const SOCKETS: [(&str, &str, Socket); 4] = [
    ("rx_dropped", "Frames the kernel dropped, not for a full ring.", |it| it.rx_dropped),
    ("rx_ring_full", "Frames the kernel dropped for a full RX ring.", |it| it.rx_ring_full),
    ("fill_ring_empty", "Times the kernel found the fill ring empty.", |it| it.fill_ring_empty),
    ("tx_invalid", "TX descriptors that the kernel refused: a defect.", |it| it.tx_invalid),
];

/// Ports: one queue of one interface each.
pub(super) fn ports(page: &mut Page, ports: &[PortView]) {
    let numbers: Vec<(String, String)> =
        ports.iter().map(|port| (port.queue.to_string(), port.worker.to_string())).collect();
    let each = || {
        let labels = ports.iter().zip(&numbers).map(|(port, (queue, worker))| {
            [
                ("interface", port.interface.as_str()),
                ("queue", queue.as_str()),
                ("worker", worker.as_str()),
                ("io", port.io.as_str()),
            ]
        });
        labels.zip(ports)
    };
    for (name, help, count) in FRAMES {
        page.family(&format!("switchyard_port_{name}_total"), "counter", help);
        each().for_each(|(labels, port)| page.sample(&labels, count(port)));
    }
    let help = "Frames of packet memory in a port's rings: to receive into, and being sent.";
    page.family("switchyard_port_ring_frames", "gauge", help);
    for ([interface, queue, worker, io], port) in each() {
        for (ring, frames) in [("receive", port.receiving), ("transmit", port.transmitting)] {
            page.sample(&[interface, queue, worker, io, ("ring", ring)], frames);
        }
    }
    for (name, help, count) in SOCKETS {
        page.family(&format!("switchyard_port_socket_{name}_total"), "counter", help);
        for (labels, port) in each() {
            if let Some(socket) = &port.socket {
                page.sample(&labels, count(socket));
            }
        }
    }
}

/// Workers: their breaths and their packet memory.
pub(super) fn workers(page: &mut Page, workers: &[WorkerView]) {
    let help = "Time of a worker's breath in which packets came: receive, decide, send.";
    page.family("switchyard_worker_breath_seconds", "histogram", help);
    for worker in workers {
        page.histogram(&[("worker", &worker.worker.to_string())], &worker.breaths);
    }
    let help = "Packets that came in such a breath.";
    page.family("switchyard_worker_batch_packets", "histogram", help);
    for worker in workers {
        page.histogram(&[("worker", &worker.worker.to_string())], &worker.batches);
    }
    let help = "Frames of a worker's packet memory.";
    page.family("switchyard_worker_frame_capacity", "gauge", help);
    for worker in workers {
        page.sample(&[("worker", &worker.worker.to_string())], worker.frames.capacity);
    }
    let help = "Where they are.";
    page.family("switchyard_worker_frames", "gauge", help);
    for worker in workers {
        let (number, frames) = (worker.worker.to_string(), &worker.frames);
        for (place, count) in [
            ("free", frames.free),
            ("receiving", frames.receiving),
            ("transmitting", frames.transmitting),
            ("waiting", frames.waiting),
        ] {
            page.sample(&[("worker", &number), ("place", place)], count);
        }
    }
}

//! The programs at work in the kernel, packet by packet (`BPF_PROG_TEST_RUN`), and their twin.
//!
//! Without root there is no program to ask; then only the twin is tested.

mod cases;
mod frames;
mod interface;
mod property;
mod table;

use netio::bpf::{LoadError, Map, MapError, Program, ProgramType, TestContext, tcx, xdp};

use super::{KeySet, Mark, Steering, guard, steering};

/// The services and servers that all tests here know.
fn keys() -> KeySet {
    let ip = |text: &str| text.parse().expect("an address");
    let mut keys = KeySet::new();
    keys.add_service(6, ip("192.0.2.10"), 80);
    keys.add_service(17, ip("192.0.2.10"), 53);
    keys.add_service(132, ip("192.0.2.10"), 5060);
    keys.add_service(6, ip("192.0.2.11"), 0);
    keys.add_service(6, ip("2001:db8::10"), 80);
    keys.add_service(17, ip("2001:db8::10"), 53);
    keys.add_nat_server(6, ip("10.0.0.21"), 8080);
    keys.add_nat_server(6, ip("10.0.0.22"), 0);
    keys.add_nat_server(6, ip("2001:db8:1::21"), 8080);
    keys.add_ftp_service(ip("192.0.2.12"));
    keys.add_ftp_service(ip("2001:db8::12"));
    keys.add_ftp_server(ip("10.0.0.23"));
    keys.add_ftp_server(ip("2001:db8:1::23"));
    keys.add_tunnel_server(ip("10.0.0.31"));
    keys.add_tunnel_server(ip("2001:db8:1::31"));
    keys
}

/// Both programs over the same keys.
struct Programs {
    steering: Program,
    guard: Program,
    /// The programs use the map, and the map is filled through this.
    table: Steering,
}

impl Programs {
    /// `None`, with a word about it, when the process may not load programs.
    fn load(keys: &KeySet, mark: Option<Mark>) -> Option<Programs> {
        let mut table = match Steering::new(1024) {
            Err(MapError::NotPermitted { .. }) => {
                eprintln!("skipped: needs root to load eBPF programs");
                return None;
            }
            table => table.expect("a map"),
        };
        table.sync(keys).expect("room for all keys");
        let sockets = Map::of_sockets("no_sockets", 1).expect("a map of sockets");
        // Without a socket a hit is "aborted", which no other way through the program yields.
        let insns = steering(table.map(), &sockets, mark, xdp::ABORTED);
        let load = |kind, insns: &_| match Program::load(kind, "test", insns) {
            Err(LoadError::NotPermitted { .. }) => {
                eprintln!("skipped: needs CAP_PERFMON as well to load eBPF programs");
                None
            }
            Err(error) => panic!("{error}"),
            Ok(program) => Some(program),
        };
        Some(Programs {
            steering: load(ProgramType::Xdp, &insns)?,
            guard: load(ProgramType::SchedCls, &guard(table.map(), mark))?,
            table,
        })
    }

    /// Whether the steering program takes the frame; it must not change it.
    fn steers(&self, frame: &[u8]) -> bool {
        let run = self.steering.test_run(frame, &TestContext::default()).expect("a test run");
        assert_eq!(run.data, frame, "the frame was changed");
        match run.verdict {
            xdp::ABORTED => true,
            xdp::PASS => false,
            other => panic!("unexpected verdict {other}"),
        }
    }

    /// Whether the guard drops the frame. The kernel runs no such test on an IP packet without
    /// its whole fixed header; on an interface the guard would see it, and let it pass.
    fn guards(&self, frame: &[u8]) -> bool {
        let header = match frame[12..14] {
            [0x08, 0x00] => 20,
            [0x86, 0xdd] => 40,
            _ => 0,
        };
        if frame.len() < 14 + header {
            return false;
        }
        let run = self.guard.test_run(frame, &TestContext::default()).expect("a test run");
        match run.verdict {
            tcx::DROP => true,
            tcx::NEXT => false,
            other => panic!("unexpected verdict {other}"),
        }
    }
}

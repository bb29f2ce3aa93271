//! Programs on interfaces, and frames given to the stack, in network namespaces of their own.

mod bpf_namespace;

use std::net::{Ipv4Addr, UdpSocket};

use bpf_namespace::{Veth, in_namespace, ip, send, udp_frame};
use netio::bpf::Register::R0;
use netio::bpf::{Assembler, AttachError, Injector, Link, Program, ProgramType, XdpMode, tcx, xdp};
use netio::ethtool::{self, Offload};

const HERE: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 9, 0, 1), 7000);

/// A program that answers the same to every packet.
fn always(kind: ProgramType, verdict: i32) -> Program {
    let mut asm = Assembler::new();
    asm.mov(R0, verdict);
    asm.exit();
    Program::load(kind, "always", &asm.assemble().unwrap()).unwrap()
}

/// A socket that says which datagrams reach it. Nothing tells that one will not: hence a wait,
/// much longer than the microseconds that a veth takes.
struct Receiver(UdpSocket);

impl Receiver {
    fn new() -> Receiver {
        let socket = UdpSocket::bind(HERE).unwrap();
        let wait = std::time::Duration::from_millis(200);
        socket.set_read_timeout(Some(wait)).unwrap();
        Receiver(socket)
    }

    fn next(&self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 4096];
        let length = self.0.recv(&mut buffer).ok()?;
        buffer.truncate(length);
        Some(buffer)
    }
}

#[test]
fn dropping_the_link_gives_the_traffic_back_to_the_stack() {
    in_namespace(|| {
        let veth = Veth::new(1);
        let receiver = Receiver::new();
        let frame = udp_frame(veth.near_mac, HERE, b"hello");
        let arrives = || {
            send(veth.far, &frame);
            receiver.next().is_some()
        };
        assert!(arrives());
        let drop_all = always(ProgramType::Xdp, xdp::DROP);
        let pass_all = always(ProgramType::Xdp, xdp::PASS);
        for mode in [XdpMode::Native, XdpMode::Generic] {
            let mut link = Link::attach_xdp(&drop_all, veth.near, mode).unwrap();
            assert!(!arrives(), "{mode}: dropped by the program");
            link.update(&pass_all).unwrap();
            assert!(arrives(), "{mode}: passed by the other program");
            link.update(&drop_all).unwrap();
            assert!(!arrives(), "{mode}: dropped again");
            drop(link);
            assert!(arrives(), "{mode}: no program any more");
        }
        let guard = always(ProgramType::SchedCls, tcx::DROP);
        let link = Link::attach_tcx_ingress(&guard, veth.near).unwrap();
        assert!(!arrives(), "dropped by the guard");
        drop(link);
        assert!(arrives(), "no guard any more");
    });
}

#[test]
fn each_reason_not_to_attach_is_told_apart() {
    in_namespace(|| {
        let veth = Veth::new(1);
        let program = always(ProgramType::Xdp, xdp::PASS);
        let attach = |ifindex, mode| Link::attach_xdp(&program, ifindex, mode);

        let link = attach(veth.near, XdpMode::Native).unwrap();
        for mode in [XdpMode::Native, XdpMode::Generic] {
            let error = attach(veth.near, mode).unwrap_err();
            assert!(matches!(error, AttachError::Busy { .. }), "{error}");
        }
        drop(link);

        // The loopback driver has no native XDP.
        let error = attach(1, XdpMode::Native).unwrap_err();
        assert!(matches!(error, AttachError::NotSupported { .. }), "{error}");
        attach(1, XdpMode::Generic).unwrap();

        ip("link set near mtu 9000");
        ip("link set far mtu 9000");
        let error = attach(veth.near, XdpMode::Native).unwrap_err();
        assert!(matches!(error, AttachError::MtuTooLarge { .. }), "{error}");
        let fragments = always(ProgramType::XdpFragments, xdp::PASS);
        drop(Link::attach_xdp(&fragments, veth.near, XdpMode::Native).unwrap());

        let error = attach(9999, XdpMode::Native).unwrap_err();
        assert!(matches!(error, AttachError::NoDevice { .. }), "{error}");
        let guard = always(ProgramType::SchedCls, tcx::NEXT);
        let error = Link::attach_tcx_ingress(&guard, 9999).unwrap_err();
        assert!(matches!(error, AttachError::NoDevice { .. }), "{error}");

        let mut link = Link::attach_xdp(&fragments, veth.near, XdpMode::Native).unwrap();
        ip("link del near");
        let error = link.update(&fragments).unwrap_err();
        assert!(matches!(error, AttachError::NoDevice { .. }), "{error}");
    });
}

#[test]
fn an_injected_frame_reaches_a_socket_behind_native_xdp() {
    in_namespace(|| {
        let veth = Veth::new(2);
        let receiver = Receiver::new();
        let injector = Injector::new(veth.near).unwrap();
        let drop_all = always(ProgramType::Xdp, xdp::DROP);
        let _link = Link::attach_xdp(&drop_all, veth.near, XdpMode::Native).unwrap();
        for length in [0, 1, 17, 18, 1472, Injector::MAX_FRAME - 42] {
            let payload = vec![0x5a; length];
            let frame = udp_frame(veth.near_mac, HERE, &payload);
            injector.inject(&frame).unwrap();
            assert_eq!(receiver.next(), Some(payload), "{length} bytes");
        }
        // What is for another host is not for the stack, as on the wire.
        let frame = udp_frame([2, 0, 0, 0, 0, 99], HERE, b"stray");
        injector.inject(&frame).unwrap();
        assert_eq!(receiver.next(), None);
    });
}

#[test]
fn injecting_what_cannot_be_a_frame_fails_and_does_not_lose_it_silently() {
    in_namespace(|| {
        let veth = Veth::new(1);
        let injector = Injector::new(veth.near).unwrap();
        let frame = udp_frame(veth.near_mac, HERE, &[0; 4000]);
        for length in [0, 13, 4000] {
            assert!(injector.inject(&frame[..length]).is_err(), "{length} bytes");
        }
        ip("link del near");
        let error = injector.inject(&frame[..60]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    });
}

#[test]
fn a_mark_is_the_source_address_that_the_injected_frame_bears() {
    in_namespace(|| {
        let veth = Veth::new(1);
        let mark = [2, 0xaa, 0xbb, 0xcc, 0xdd, 0xfe];
        let injector = Injector::with_mark(veth.near, mark).unwrap();
        let tap = bpf_namespace::PacketSocket::new(veth.near);
        let frame = udp_frame(veth.near_mac, HERE, b"marked");
        injector.inject(&frame).unwrap();
        let seen = tap.receive();
        assert_eq!(seen[6..12], mark);
        assert_eq!((&seen[..6], &seen[12..]), (&frame[..6], &frame[12..]));
    });
}

#[test]
fn offloads_are_switched_one_by_one() {
    in_namespace(|| {
        let _veth = Veth::new(1);
        for offload in [
            Offload::TxChecksum,
            Offload::TcpSegmentation,
            Offload::GenericSegmentation,
            Offload::GenericReceive,
        ] {
            for on in [true, false, true] {
                ethtool::set_offload("near", offload, on).unwrap();
                assert_eq!(ethtool::offload("near", offload).unwrap(), on, "{offload:?}");
            }
        }
        // Segmentation needs checksums: without them the kernel switches it off as well.
        ethtool::set_offload("near", Offload::TxChecksum, false).unwrap();
        assert!(!ethtool::offload("near", Offload::TcpSegmentation).unwrap());
    });
}

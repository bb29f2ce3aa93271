//! Programs and maps in the kernel, without an interface. Skipped without root.

use std::time::Duration;

use netio::bpf::Register::{R0, R1, R2, R6, R7, R8, R10};
use netio::bpf::{
    Alu, Assembler, Condition, Helper, Insn, LoadError, Map, MapError, MapKind, Program,
    ProgramType, Size, TestContext, tcx, xdp,
};

/// Whether this process may load programs at all.
fn permitted() -> bool {
    match Map::create(MapKind::Array, "probe", 4, 4, 1) {
        Ok(_) => true,
        Err(MapError::NotPermitted { .. }) => {
            eprintln!("skipped: needs root for eBPF");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn finish(asm: Assembler) -> Vec<Insn> {
    asm.assemble().expect("labels in order")
}

#[test]
fn a_hash_map_keeps_what_it_is_given_and_says_when_it_is_full() {
    if !permitted() {
        return;
    }
    let map = Map::create(MapKind::Hash, "hash", 3, 2, 2).unwrap();
    assert_eq!(map.lookup(b"one").unwrap(), None);
    map.update(b"one", &[1, 1]).unwrap();
    map.update(b"two", &[2, 2]).unwrap();
    map.update(b"two", &[3, 3]).unwrap();
    assert_eq!(map.lookup(b"two").unwrap(), Some(vec![3, 3]));
    let error = map.update(b"six", &[6, 6]).unwrap_err();
    assert!(matches!(error, MapError::Full { capacity: 2, .. }), "{error}");
    let mut keys = map.keys().unwrap();
    keys.sort();
    assert_eq!(keys, [b"one", b"two"]);
    assert!(map.delete(b"one").unwrap());
    assert!(!map.delete(b"one").unwrap());
    assert_eq!(map.keys().unwrap(), [b"two"]);
}

#[test]
fn wrong_sizes_never_reach_the_kernel() {
    if !permitted() {
        return;
    }
    let map = Map::create(MapKind::Hash, "hash", 4, 8, 2).unwrap();
    for error in [
        map.lookup(&[0; 3]).unwrap_err(),
        map.update(&[0; 5], &[0; 8]).unwrap_err(),
        map.update(&[0; 4], &[0; 7]).unwrap_err(),
        map.delete(&[]).unwrap_err(),
    ] {
        assert!(matches!(error, MapError::WrongSize { .. }), "{error}");
    }
}

#[test]
fn per_cpu_counters_are_summed_over_all_cpus() {
    if !permitted() {
        return;
    }
    let counters = Map::create(MapKind::PerCpuArray, "counters", 4, 8, 2).unwrap();
    let mut asm = Assembler::new();
    let out = asm.label("out");
    asm.store(Size::Word, R10, -4, 1);
    asm.lookup(&counters, -4);
    asm.jump_if(Condition::Equal, R0, 0, out);
    asm.mov(R1, 5);
    asm.atomic_add(Size::Double, R0, 0, R1);
    asm.place(out);
    asm.mov(R0, xdp::DROP);
    asm.exit();
    let program = Program::load(ProgramType::Xdp, "count", &finish(asm)).unwrap();
    let context = TestContext { repeat: 7, ..TestContext::default() };
    let run = program.test_run(&[0; 14], &context).unwrap();
    assert_eq!(run.verdict, xdp::DROP);
    assert!(run.duration < Duration::from_millis(10));
    assert_eq!((counters.sum(0).unwrap(), counters.sum(1).unwrap()), (0, 35));
}

#[test]
fn every_instruction_computes_what_its_listing_says() {
    if !permitted() {
        return;
    }
    let mut asm = Assembler::new();
    let (wrong, loop_head) = (asm.label("wrong"), asm.label("loop"));
    asm.load_constant(R6, 0x1122_3344_5566_7788);
    asm.mov(R7, R6);
    asm.alu(Alu::ShiftRight, R7, 32);
    asm.jump_if(Condition::NotEqual, R7, 0x1122_3344, wrong);
    asm.alu32(Alu::Xor, R6, 0x5566_0000);
    asm.jump_if(Condition::NotEqual, R6, 0x7788, wrong);
    asm.swap_network_order(R6, 16);
    asm.jump_if(Condition::NotEqual, R6, 0x8877, wrong);
    asm.mov(R7, -1);
    asm.jump_if(Condition::LessOrEqual, R7, 5, wrong);
    asm.jump_if(Condition::GreaterOrEqualSigned, R7, 0, wrong);
    asm.jump_if32(Condition::LessSigned, R7, -1, wrong);
    asm.negate(R7);
    // 2 to the power of 10, in a loop that the verifier can follow.
    asm.mov(R8, 0);
    asm.place(loop_head);
    asm.alu(Alu::Mul, R7, 2);
    asm.alu(Alu::Add, R8, 1);
    asm.jump_if(Condition::Less, R8, 10, loop_head);
    asm.store(Size::Double, R10, -8, R7);
    asm.store(Size::Half, R10, -6, 3);
    asm.load(Size::Word, R2, R10, -8);
    asm.jump_if(Condition::NotEqual, R2, 0x0003_0400, wrong);
    asm.alu(Alu::Mod, R2, 1000);
    asm.alu(Alu::Sub, R2, 632);
    asm.mov(R0, R2);
    asm.exit();
    asm.place(wrong);
    asm.mov(R0, 77);
    asm.exit();
    let program = Program::load(ProgramType::Xdp, "compute", &finish(asm)).unwrap();
    let run = program.test_run(&[0; 14], &TestContext::default()).unwrap();
    assert_eq!(run.verdict, 0x0003_0400 % 1000 - 632);
}

#[test]
fn a_refused_program_is_told_with_the_verifier_s_reason() {
    if !permitted() {
        return;
    }
    let mut asm = Assembler::new();
    asm.load(Size::Word, R7, R1, xdp::context::DATA);
    asm.load(Size::Byte, R0, R7, 0);
    asm.exit();
    let error = Program::load(ProgramType::Xdp, "unproven", &finish(asm)).unwrap_err();
    assert!(matches!(error, LoadError::Refused { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("invalid access to packet"), "{message}");
    assert!(message.contains("r0 = *(u8 *)(r7 +0)"), "{message}");
}

#[test]
fn a_program_may_change_and_lengthen_the_packet_in_a_test() {
    if !permitted() {
        return;
    }
    let mut asm = Assembler::new();
    let out = asm.label("out");
    asm.mov(R6, R1);
    asm.mov(R2, -4);
    asm.call(Helper::XdpAdjustHead);
    asm.load(Size::Word, R7, R6, xdp::context::DATA);
    asm.load(Size::Word, R8, R6, xdp::context::DATA_END);
    asm.bound(R7, 4, R8, R2, out);
    asm.store(Size::Word, R7, 0, 0x0403_0201);
    asm.place(out);
    asm.mov(R0, xdp::TX);
    asm.exit();
    let program = Program::load(ProgramType::Xdp, "lengthen", &finish(asm)).unwrap();
    let run = program.test_run(&[9; 20], &TestContext::default()).unwrap();
    assert_eq!(run.verdict, xdp::TX);
    assert_eq!(run.data, [&[1, 2, 3, 4][..], &[9; 20]].concat());
}

#[test]
fn the_context_tells_a_test_where_it_is_from() {
    if !permitted() {
        return;
    }
    let mut asm = Assembler::new();
    asm.load(Size::Word, R0, R1, xdp::context::INGRESS_IFINDEX);
    asm.exit();
    let program = Program::load(ProgramType::Xdp, "where", &finish(asm)).unwrap();
    let loopback = TestContext { ingress_ifindex: 1, ..TestContext::default() };
    assert_eq!(program.test_run(&[0; 14], &loopback).unwrap().verdict, 1);
    let no_queue = TestContext { rx_queue: 999, ..loopback };
    assert!(program.test_run(&[0; 14], &no_queue).is_err());
    assert!(program.test_run(&[0; 13], &loopback).is_err());
}

#[test]
fn a_tcx_program_answers_negative_verdicts_too() {
    if !permitted() {
        return;
    }
    let mut asm = Assembler::new();
    asm.mov(R0, tcx::NEXT);
    asm.exit();
    let program = Program::load(ProgramType::SchedCls, "next", &finish(asm)).unwrap();
    let run = program.test_run(&[0; 60], &TestContext::default()).unwrap();
    assert_eq!(run.verdict, tcx::NEXT);
}

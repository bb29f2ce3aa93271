//! The hash that the program computes is the one that everybody else calls SipHash-1-3.

use std::hash::Hasher;

use netio::bpf::Register::{R0, R1, R2, R6, R7};
use netio::bpf::{Assembler, ProgramType, Size, TestContext, xdp};
use nlb::key::HashKey;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use siphasher::sip::SipHasher13;

use super::load;
use crate::filter::siphash::siphash;

/// A program that writes the hash of the frame's first words over the first of them.
fn hashing(key: [u64; 2], words: i16) -> Vec<netio::bpf::Insn> {
    let mut asm = Assembler::new();
    let short = asm.label("short");
    asm.mov(R6, R1);
    asm.load(Size::Word, R7, R6, xdp::context::DATA);
    asm.load(Size::Word, R2, R6, xdp::context::DATA_END);
    asm.bound(R7, 8 * i32::from(words), R2, R0, short);
    let places: Vec<i16> = (1..=words).map(|word| -8 * word).collect();
    for (word, place) in (0..).zip(&places) {
        asm.load(Size::Double, R1, R7, 8 * word);
        asm.store(Size::Double, netio::bpf::Register::R10, *place, R1);
    }
    siphash(&mut asm, HashKey { k0: key[0], k1: key[1] }, &places);
    asm.store(Size::Double, R7, 0, R0);
    asm.mov(R0, xdp::PASS);
    asm.exit();
    asm.place(short);
    asm.mov(R0, xdp::DROP);
    asm.exit();
    asm.assemble().expect("labels in order")
}

#[test]
fn every_host_and_the_program_compute_the_same_hash() {
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    let input = (any::<[u64; 2]>(), 2_i16..=5);
    TestRunner::new(config)
        .run(&input, |(key, words)| {
            let Some(program) = load(ProgramType::Xdp, &hashing(key, words)) else {
                return Ok(());
            };
            for seed in 0..64_u64 {
                let numbers = (0..words as u64)
                    .map(|word| (key[0] ^ seed << word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let frame: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
                let run = program.test_run(&frame, &TestContext::default()).expect("a run");
                prop_assert_eq!(run.verdict, xdp::PASS);
                let mut expected = SipHasher13::new_with_keys(key[0], key[1]);
                expected.write(&frame);
                prop_assert_eq!(&run.data[..8], &expected.finish().to_le_bytes()[..]);
            }
            Ok(())
        })
        .unwrap();
}

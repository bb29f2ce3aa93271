//! SipHash-1-3 as instructions: the hash that clients are spread by, with a key that they do not
//! know.
//!
//! Source: Aumasson, Bernstein: "SipHash: a fast short-input PRF" (2012). The state lies in four
//! registers; every round is written out, so that there is no loop for the verifier to follow.

use netio::bpf::Register::{self, R0, R1, R2, R3, R4, R5, R10};
use netio::bpf::{Alu, Assembler, Size};
use nlb::key::HashKey;

/// The state, `v0` to `v3` of the paper.
const STATE: [Register; 4] = [R1, R2, R3, R4];
/// The word that is taken in.
const WORD: Register = R5;
/// What a rotation needs besides.
const SCRATCH: Register = R0;

/// "somepseudorandomlygeneratedbytes", as the paper has it.
const START: [u64; 4] =
    [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573];

/// Rounds after the last word.
const LAST_ROUNDS: usize = 3;

/// Leaves in `r0` the hash of the words on the stack at `r10 + places`, each of which stands for
/// its eight bytes, the lowest first. `r1` to `r5` are lost.
pub(super) fn siphash(asm: &mut Assembler, key: HashKey, places: &[i16]) {
    let [v0, v1, v2, v3] = STATE;
    for (at, register) in STATE.into_iter().enumerate() {
        asm.load_constant(register, START[at] ^ if at % 2 == 0 { key.k0 } else { key.k1 });
    }
    for place in places {
        asm.load(Size::Double, WORD, R10, *place);
        take_in(asm);
    }
    asm.load_constant(WORD, (places.len() as u64 * 8) << 56);
    take_in(asm);
    asm.alu(Alu::Xor, v2, 0xff);
    for _ in 0..LAST_ROUNDS {
        round(asm);
    }
    asm.mov(R0, v0);
    for register in [v1, v2, v3] {
        asm.alu(Alu::Xor, R0, register);
    }
}

fn take_in(asm: &mut Assembler) {
    let [v0, _, _, v3] = STATE;
    asm.alu(Alu::Xor, v3, WORD);
    round(asm);
    asm.alu(Alu::Xor, v0, WORD);
}

/// The two halves of a round are the same steps with other registers and distances.
fn round(asm: &mut Assembler) {
    let [v0, v1, v2, v3] = STATE;
    half_round(asm, [v0, v1, v2, v3], [13, 16]);
    half_round(asm, [v2, v1, v0, v3], [17, 21]);
}

fn half_round(asm: &mut Assembler, [a, b, c, d]: [Register; 4], [turn_b, turn_d]: [i32; 2]) {
    asm.alu(Alu::Add, a, b);
    asm.alu(Alu::Add, c, d);
    rotate(asm, b, turn_b);
    rotate(asm, d, turn_d);
    asm.alu(Alu::Xor, b, a);
    asm.alu(Alu::Xor, d, c);
    rotate(asm, a, 32);
}

/// Turns a register left by `bits`, 1 to 63.
fn rotate(asm: &mut Assembler, register: Register, bits: i32) {
    asm.mov(SCRATCH, register);
    asm.alu(Alu::ShiftLeft, register, bits);
    asm.alu(Alu::ShiftRight, SCRATCH, 64 - bits);
    asm.alu(Alu::Or, register, SCRATCH);
}

//! Instructions as text, in the words that the verifier's log uses.

use std::fmt;

use super::insn::{Helper, Insn, class, code};

/// A program, one numbered instruction per line, in the notation of the verifier's log:
///
/// ```text
///    0: r6 = r1
///    1: r7 = *(u32 *)(r6 +0)
///    2: if r7 > r8 goto 9
/// ```
pub struct Listing<'a>(pub &'a [Insn]);

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut second_slot = false;
        for (at, insn) in self.0.iter().enumerate() {
            if second_slot {
                second_slot = false;
                continue;
            }
            write!(f, "{at:4}: ")?;
            if insn.code == code::LOAD_IMMEDIATE {
                second_slot = true;
                let high = self.0.get(at + 1).map_or(0, |second| second.immediate);
                write_wide(f, *insn, high)?;
            } else {
                write_insn(f, *insn, Some(at))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn write_wide(f: &mut fmt::Formatter<'_>, insn: Insn, high: i32) -> fmt::Result {
    let to = insn.destination();
    if insn.source() == code::PSEUDO_MAP_FD {
        write!(f, "r{to} = map[fd:{}]", insn.immediate)
    } else {
        let value = u64::from(high as u32) << 32 | u64::from(insn.immediate as u32);
        write!(f, "r{to} = {value:#x} ll")
    }
}

/// Writes one instruction; with `at`, jumps say where they go, else how far.
pub(super) fn write_insn(f: &mut fmt::Formatter<'_>, insn: Insn, at: Option<usize>) -> fmt::Result {
    match insn.code & 0x07 {
        class::LD if insn.code == code::LOAD_IMMEDIATE => write_wide(f, insn, 0),
        class::LDX => write!(
            f,
            "r{} = *({} *)(r{} {:+})",
            insn.destination(),
            size(insn),
            insn.source(),
            insn.offset
        ),
        class::ST | class::STX => write_store(f, insn),
        class::ALU32 | class::ALU64 => write_alu(f, insn),
        class::JMP | class::JMP32 => write_jump(f, insn, at),
        _ => write!(f, "code {:#04x}", insn.code),
    }
}

fn size(insn: Insn) -> &'static str {
    match insn.code & 0x18 {
        0x00 => "u32",
        0x08 => "u16",
        0x10 => "u8",
        _ => "u64",
    }
}

fn write_store(f: &mut fmt::Formatter<'_>, insn: Insn) -> fmt::Result {
    let atomic = insn.code & 0xe0 == code::ATOMIC;
    let lock = if atomic { "lock " } else { "" };
    let assign = if atomic { "+=" } else { "=" };
    let (size, base, offset) = (size(insn), insn.destination(), insn.offset);
    write!(f, "{lock}*({size} *)(r{base} {offset:+}) {assign} ")?;
    if insn.code & 0x07 == class::STX {
        write!(f, "r{}", insn.source())
    } else {
        write!(f, "{}", insn.immediate)
    }
}

/// `w3` is the low half of `r3`.
fn width(insn: Insn) -> char {
    match insn.code & 0x07 {
        class::ALU32 | class::JMP32 => 'w',
        _ => 'r',
    }
}

fn write_operand(f: &mut fmt::Formatter<'_>, insn: Insn) -> fmt::Result {
    if insn.code & code::FROM_REGISTER != 0 {
        write!(f, "{}{}", width(insn), insn.source())
    } else if insn.immediate.unsigned_abs() >= 0x100 {
        write!(f, "{:#x}", insn.immediate)
    } else {
        write!(f, "{}", insn.immediate)
    }
}

fn write_alu(f: &mut fmt::Formatter<'_>, insn: Insn) -> fmt::Result {
    let (register, to) = (width(insn), insn.destination());
    let operation = match insn.code & 0xf0 {
        0x00 => "+=",
        0x10 => "-=",
        0x20 => "*=",
        0x30 => "/=",
        0x40 => "|=",
        0x50 => "&=",
        0x60 => "<<=",
        0x70 => ">>=",
        0x90 => "%=",
        0xa0 => "^=",
        0xb0 => "=",
        0xc0 => "s>>=",
        code::NEGATE => return write!(f, "{register}{to} = -{register}{to}"),
        _ => return write!(f, "r{to} = be{} r{to}", insn.immediate),
    };
    write!(f, "{register}{to} {operation} ")?;
    write_operand(f, insn)
}

fn write_jump(f: &mut fmt::Formatter<'_>, insn: Insn, at: Option<usize>) -> fmt::Result {
    let condition = match insn.code & 0xf0 {
        code::JUMP => "",
        code::CALL => {
            return match Helper::name(insn.immediate) {
                Some(name) => write!(f, "call {name}"),
                None => write!(f, "call #{}", insn.immediate),
            };
        }
        code::EXIT => return f.write_str("exit"),
        0x10 => "==",
        0x20 => ">",
        0x30 => ">=",
        0x40 => "&",
        0x50 => "!=",
        0x60 => "s>",
        0x70 => "s>=",
        0xa0 => "<",
        0xb0 => "<=",
        0xc0 => "s<",
        _ => "s<=",
    };
    if !condition.is_empty() {
        write!(f, "if {}{} {condition} ", width(insn), insn.destination())?;
        write_operand(f, insn)?;
        f.write_str(" ")?;
    }
    match at {
        Some(at) => write!(f, "goto {}", at as i64 + 1 + i64::from(insn.offset)),
        None => write!(f, "goto {:+}", insn.offset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::{Alu, Assembler, Condition, Register::*, Size};

    #[test]
    fn a_listing_reads_as_the_verifier_log_does() {
        let mut asm = Assembler::new();
        let end = asm.label("end");
        let again = asm.label("again");
        asm.mov(R6, R1);
        asm.load(Size::Word, R7, R6, 0);
        asm.place(again);
        asm.bound(R7, 14, R8, R3, end);
        asm.alu32(Alu::And, R2, 0xff00);
        asm.store(Size::Half, R10, -8, R2);
        asm.store(Size::Byte, R10, -5, 3);
        asm.atomic_add(Size::Double, R0, 8, R1);
        asm.load_constant(R4, 0x1122_3344_5566_7788);
        asm.swap_network_order(R2, 16);
        asm.jump_if32(Condition::AnyBitSet, R2, R4, again);
        asm.call(Helper::RedirectMap);
        asm.jump(end);
        asm.negate(R0);
        asm.place(end);
        asm.exit();
        let insns = asm.assemble().unwrap();
        let expected = "
   0: r6 = r1
   1: r7 = *(u32 *)(r6 +0)
   2: r3 = r7
   3: r3 += 14
   4: if r3 > r8 goto 16
   5: w2 &= 0xff00
   6: *(u16 *)(r10 -8) = r2
   7: *(u8 *)(r10 -5) = 3
   8: lock *(u64 *)(r0 +8) += r1
   9: r4 = 0x1122334455667788 ll
  11: r2 = be16 r2
  12: if w2 & w4 goto 2
  13: call redirect_map
  14: goto 16
  15: r0 = -r0
  16: exit
";
        assert_eq!(format!("\n{}", Listing(&insns)), expected);
    }

    #[test]
    fn a_label_that_is_never_placed_is_named() {
        let mut asm = Assembler::new();
        let lost = asm.label("lost");
        asm.jump(lost);
        let error = asm.assemble().unwrap_err();
        assert_eq!(error.to_string(), "label \"lost\" is jumped to but was never placed");
    }

    #[test]
    fn a_jump_that_does_not_fit_is_refused_and_not_wrapped() {
        let mut asm = Assembler::new();
        let far = asm.label("far");
        asm.jump(far);
        for _ in 0..32_768 {
            asm.mov(R0, 0);
        }
        asm.place(far);
        asm.exit();
        assert!(asm.assemble().is_err());
    }
}

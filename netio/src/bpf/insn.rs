//! One eBPF instruction and the names of its parts. Source: RFC 9669.

/// A register. `R0` holds results, `R1`..`R5` arguments (lost by a call), `R6`..`R9` survive
/// calls, `R10` is the end of the stack (512 bytes lie below it) and cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// How many bytes a load or a store moves. The discriminant is the instruction's size field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Size {
    /// One byte.
    Byte = 0x10,
    /// Two bytes.
    Half = 0x08,
    /// Four bytes.
    Word = 0x00,
    /// Eight bytes.
    Double = 0x18,
}

/// The right-hand side of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The value of a register.
    Register(Register),
    /// A constant; 64-bit operations extend its sign.
    Immediate(i32),
}

impl From<Register> for Operand {
    fn from(register: Register) -> Operand {
        Operand::Register(register)
    }
}

impl From<i32> for Operand {
    fn from(immediate: i32) -> Operand {
        Operand::Immediate(immediate)
    }
}

/// An arithmetic operation. The discriminant is the instruction's operation field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Mod = 0x90,
    Xor = 0xa0,
    Move = 0xb0,
    ShiftRightSigned = 0xc0,
}

/// When a jump is taken. Comparisons are unsigned unless they say otherwise. The discriminant is
/// the instruction's operation field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Condition {
    /// Left == right.
    Equal = 0x10,
    /// Left > right.
    Greater = 0x20,
    /// Left >= right.
    GreaterOrEqual = 0x30,
    /// Left & right != 0.
    AnyBitSet = 0x40,
    /// Left != right.
    NotEqual = 0x50,
    /// Left > right, signed.
    GreaterSigned = 0x60,
    /// Left >= right, signed.
    GreaterOrEqualSigned = 0x70,
    /// Left < right.
    Less = 0xa0,
    /// Left <= right.
    LessOrEqual = 0xb0,
    /// Left < right, signed.
    LessSigned = 0xc0,
    /// Left <= right, signed.
    LessOrEqualSigned = 0xd0,
}

/// A function of the kernel that a program may call. The number is the one in `linux/bpf.h`;
/// arguments go in `R1`..`R5`, the result comes in `R0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum Helper {
    MapLookupElem = 1,
    MapUpdateElem = 2,
    MapDeleteElem = 3,
    KtimeGetNs = 5,
    GetPrandomU32 = 7,
    GetSmpProcessorId = 8,
    Redirect = 23,
    SkbChangeType = 32,
    SkbPullData = 39,
    XdpAdjustHead = 44,
    RedirectMap = 51,
    XdpAdjustMeta = 54,
    SkcLookupTcp = 99,
    SkLookupUdp = 85,
    SkRelease = 86,
}

impl Helper {
    /// The helper's name as the kernel spells it, without `bpf_`.
    pub(super) fn name(number: i32) -> Option<&'static str> {
        Some(match number {
            1 => "map_lookup_elem",
            2 => "map_update_elem",
            3 => "map_delete_elem",
            5 => "ktime_get_ns",
            7 => "get_prandom_u32",
            8 => "get_smp_processor_id",
            23 => "redirect",
            32 => "skb_change_type",
            39 => "skb_pull_data",
            44 => "xdp_adjust_head",
            51 => "redirect_map",
            54 => "xdp_adjust_meta",
            85 => "sk_lookup_udp",
            86 => "sk_release",
            99 => "skc_lookup_tcp",
            _ => return None,
        })
    }
}

/// One instruction slot, as the kernel takes it (`struct bpf_insn`). Loading a map or a 64-bit
/// constant takes two slots.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Insn {
    pub(super) code: u8,
    /// Destination in the low four bits, source in the high four (little endian machines).
    pub(super) registers: u8,
    pub(super) offset: i16,
    pub(super) immediate: i32,
}

#[cfg(not(target_endian = "little"))]
compile_error!("netio::bpf lays out registers and constants for little endian machines");

impl Insn {
    pub(super) fn destination(self) -> u8 {
        self.registers & 0x0f
    }

    pub(super) fn source(self) -> u8 {
        self.registers >> 4
    }
}

/// Shows one instruction as the verifier would; for a whole program see
/// [`Listing`](super::Listing).
impl std::fmt::Debug for Insn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        super::listing::write_insn(f, *self, None)
    }
}

/// Instruction classes (low three bits of the code).
pub(super) mod class {
    pub(crate) const LD: u8 = 0x00;
    pub(crate) const LDX: u8 = 0x01;
    pub(crate) const ST: u8 = 0x02;
    pub(crate) const STX: u8 = 0x03;
    pub(crate) const ALU32: u8 = 0x04;
    pub(crate) const JMP: u8 = 0x05;
    pub(crate) const JMP32: u8 = 0x06;
    pub(crate) const ALU64: u8 = 0x07;
}

/// Codes and fields that have no enum of their own.
pub(super) mod code {
    /// The operand is the source register.
    pub(crate) const FROM_REGISTER: u8 = 0x08;
    /// Load or store at register + offset.
    pub(crate) const MEMORY: u8 = 0x60;
    /// Atomic operation at register + offset.
    pub(crate) const ATOMIC: u8 = 0xc0;
    /// Two-slot load of a 64-bit constant: LD | IMM | DW.
    pub(crate) const LOAD_IMMEDIATE: u8 = 0x18;
    /// In the source field of `LOAD_IMMEDIATE`: the constant is a map's file descriptor.
    pub(crate) const PSEUDO_MAP_FD: u8 = 1;
    /// Change of byte order: ALU | END.
    pub(crate) const BYTE_ORDER: u8 = 0xd0;
    /// Negation.
    pub(crate) const NEGATE: u8 = 0x80;
    pub(crate) const JUMP: u8 = 0x00;
    pub(crate) const CALL: u8 = 0x80;
    pub(crate) const EXIT: u8 = 0x90;
}

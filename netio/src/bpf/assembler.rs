//! Instructions in order, with labels whose distances are filled in at the end.

use std::os::fd::{AsFd, AsRawFd};

use super::insn::{
    Alu, Condition, Helper, Insn, Operand,
    Register::{self, R0, R1, R2, R10},
    Size, class, code,
};

/// A place in a program that can be jumped to, before it is known where that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// Why a program could not be put together. All of them are mistakes in the code that wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// Something jumps to a label that was never placed.
    #[error("label {0:?} is jumped to but was never placed")]
    Unplaced(&'static str),
    /// A jump spans more than 32767 instructions.
    #[error("jump to label {0:?} is too far")]
    TooFar(&'static str),
}

struct LabelState {
    name: &'static str,
    place: Option<usize>,
}

/// Writes a program, one instruction per call.
///
/// ```
/// use netio::bpf::{Assembler, Register::*, Size, xdp};
///
/// // Drop IPv6, pass everything else.
/// let mut asm = Assembler::new();
/// let pass = asm.label("pass");
/// asm.load(Size::Word, R7, R1, xdp::context::DATA);
/// asm.load(Size::Word, R8, R1, xdp::context::DATA_END);
/// asm.bound(R7, 14, R8, R2, pass);
/// asm.load(Size::Half, R2, R7, 12);
/// asm.jump_if(netio::bpf::Condition::NotEqual, R2, i32::from(0x86dd_u16.to_be()), pass);
/// asm.mov(R0, xdp::DROP);
/// asm.exit();
/// asm.place(pass);
/// asm.mov(R0, xdp::PASS);
/// asm.exit();
/// let program = asm.assemble().expect("every label is placed");
/// assert_eq!(program.len(), 11);
/// ```
#[derive(Default)]
pub struct Assembler {
    insns: Vec<Insn>,
    labels: Vec<LabelState>,
    /// Which instruction jumps to which label.
    fixups: Vec<(usize, Label)>,
}

impl Assembler {
    /// An empty program.
    pub fn new() -> Assembler {
        Assembler::default()
    }

    /// A new label; the name is for error messages.
    pub fn label(&mut self, name: &'static str) -> Label {
        self.labels.push(LabelState { name, place: None });
        Label(self.labels.len() - 1)
    }

    /// The label stands for the next instruction.
    ///
    /// # Panics
    /// When it was already placed: a mistake in the program's text.
    pub fn place(&mut self, label: Label) {
        let state = &mut self.labels[label.0];
        assert!(state.place.is_none(), "label {:?} placed twice", state.name);
        state.place = Some(self.insns.len());
    }

    /// The finished program.
    ///
    /// # Errors
    /// When a label is missing or too far away.
    pub fn assemble(mut self) -> Result<Vec<Insn>, AssembleError> {
        for (at, label) in self.fixups {
            let LabelState { name, place } = self.labels[label.0];
            let place = place.ok_or(AssembleError::Unplaced(name))?;
            let distance = place as i64 - at as i64 - 1;
            self.insns[at].offset =
                i16::try_from(distance).map_err(|_| AssembleError::TooFar(name))?;
        }
        Ok(self.insns)
    }

    /// `to = value` (64 bits).
    pub fn mov(&mut self, to: Register, value: impl Into<Operand>) {
        self.alu(Alu::Move, to, value);
    }

    /// `to = to operation value` (64 bits).
    pub fn alu(&mut self, operation: Alu, to: Register, value: impl Into<Operand>) {
        self.operate(class::ALU64 | operation as u8, to, value.into(), 0);
    }

    /// `to = to operation value` on the low 32 bits; the high ones become 0.
    pub fn alu32(&mut self, operation: Alu, to: Register, value: impl Into<Operand>) {
        self.operate(class::ALU32 | operation as u8, to, value.into(), 0);
    }

    /// `register = -register` (64 bits).
    pub fn negate(&mut self, register: Register) {
        self.push(class::ALU64 | code::NEGATE, register, R0, 0, 0);
    }

    /// Turns the low `bits` (16, 32 or 64) from network to host order or back; bits above become 0.
    pub fn swap_network_order(&mut self, register: Register, bits: i32) {
        let to_big_endian = code::FROM_REGISTER;
        self.push(class::ALU32 | code::BYTE_ORDER | to_big_endian, register, R0, 0, bits);
    }

    /// `to = value`, all 64 bits (two slots).
    pub fn load_constant(&mut self, to: Register, value: u64) {
        self.wide(to, 0, value as i32, (value >> 32) as i32);
    }

    /// `to = the map`, for the helpers that take one (two slots).
    pub fn load_map(&mut self, to: Register, map: impl AsFd) {
        let fd = map.as_fd().as_raw_fd();
        self.wide(to, code::PSEUDO_MAP_FD, fd, 0);
    }

    /// `to = *(size *)(base + offset)`; bits above the size become 0.
    pub fn load(&mut self, size: Size, to: Register, base: Register, offset: i16) {
        self.push(class::LDX | code::MEMORY | size as u8, to, base, offset, 0);
    }

    /// `*(size *)(base + offset) = value`.
    pub fn store(&mut self, size: Size, base: Register, offset: i16, value: impl Into<Operand>) {
        let code = code::MEMORY | size as u8;
        match value.into() {
            Operand::Register(from) => self.push(class::STX | code, base, from, offset, 0),
            Operand::Immediate(value) => self.push(class::ST | code, base, R0, offset, value),
        }
    }

    /// `*(size *)(base + offset) += value`, in one step that other CPUs cannot tear. `size` is
    /// `Word` or `Double`.
    pub fn atomic_add(&mut self, size: Size, base: Register, offset: i16, value: Register) {
        let operation = Alu::Add as i32;
        self.push(class::STX | code::ATOMIC | size as u8, base, value, offset, operation);
    }

    /// Calls a function of the kernel.
    pub fn call(&mut self, helper: Helper) {
        self.push(class::JMP | code::CALL, R0, R0, 0, helper as i32);
    }

    /// Ends the program; the answer is in `R0`.
    pub fn exit(&mut self) {
        self.push(class::JMP | code::EXIT, R0, R0, 0, 0);
    }

    /// Goes on at the label.
    pub fn jump(&mut self, to: Label) {
        self.fixups.push((self.insns.len(), to));
        self.push(class::JMP | code::JUMP, R0, R0, 0, 0);
    }

    /// Goes on at the label if `left condition right` holds (64 bits).
    pub fn jump_if(
        &mut self,
        condition: Condition,
        left: Register,
        right: impl Into<Operand>,
        to: Label,
    ) {
        self.fixups.push((self.insns.len(), to));
        self.operate(class::JMP | condition as u8, left, right.into(), 0);
    }

    /// As [`jump_if`](Self::jump_if), comparing the low 32 bits only.
    pub fn jump_if32(
        &mut self,
        condition: Condition,
        left: Register,
        right: impl Into<Operand>,
        to: Label,
    ) {
        self.fixups.push((self.insns.len(), to));
        self.operate(class::JMP32 | condition as u8, left, right.into(), 0);
    }

    /// Proves that `bytes` bytes from the packet pointer `from` lie before the packet's `end`, or
    /// goes to `otherwise`. The verifier then admits loads and stores in that range through
    /// `from`. `scratch` is overwritten.
    pub fn bound(
        &mut self,
        from: Register,
        bytes: i32,
        end: Register,
        scratch: Register,
        otherwise: Label,
    ) {
        self.mov(scratch, from);
        self.alu(Alu::Add, scratch, bytes);
        self.jump_if(Condition::Greater, scratch, end, otherwise);
    }

    /// Copies `bytes` bytes from `base + offset` to the stack at `R10 + stack`, four at a time.
    /// `scratch` is overwritten.
    ///
    /// # Panics
    /// When `bytes` is no multiple of four: a mistake in the program's text.
    pub fn copy_to_stack(
        &mut self,
        stack: i16,
        base: Register,
        offset: i16,
        bytes: i16,
        scratch: Register,
    ) {
        assert!(bytes % 4 == 0, "copies whole words, not {bytes} bytes");
        for at in (0..bytes).step_by(4) {
            self.load(Size::Word, scratch, base, offset + at);
            self.store(Size::Word, R10, stack + at, scratch);
        }
    }

    /// Looks the key at `R10 + stack` up in the map; `R0` is then the value's address, or 0.
    /// `R1`..`R5` are lost.
    pub fn lookup(&mut self, map: impl AsFd, stack: i16) {
        self.load_map(R1, map);
        self.mov(R2, R10);
        self.alu(Alu::Add, R2, i32::from(stack));
        self.call(Helper::MapLookupElem);
    }

    fn operate(&mut self, code: u8, to: Register, value: Operand, offset: i16) {
        match value {
            Operand::Register(from) => self.push(code | code::FROM_REGISTER, to, from, offset, 0),
            Operand::Immediate(value) => self.push(code, to, R0, offset, value),
        }
    }

    fn wide(&mut self, to: Register, source: u8, low: i32, high: i32) {
        self.insns.push(Insn {
            code: code::LOAD_IMMEDIATE,
            registers: source << 4 | to as u8,
            offset: 0,
            immediate: low,
        });
        self.insns.push(Insn { code: class::LD, registers: 0, offset: 0, immediate: high });
    }

    fn push(&mut self, code: u8, to: Register, from: Register, offset: i16, immediate: i32) {
        self.insns.push(Insn { code, registers: (from as u8) << 4 | to as u8, offset, immediate });
    }
}

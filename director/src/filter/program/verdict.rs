//! The end: what every reason does with the frame.

use netio::bpf::Register::{R0, R1, R2, R3, R10};
use netio::bpf::{Condition, Label, Size, xdp};
use nlb::filter::Reason;

use super::Writer;
use super::stack::{CONTEXT, FIRST_FRAGMENT, INDEX, REASON, TO, To};

impl Writer<'_> {
    /// Where to go for a reason.
    pub(super) fn reason(&mut self, reason: Reason) -> Label {
        let place = usize::from(reason.number());
        *self.reasons[place].get_or_insert_with(|| self.asm.label(reason.label()))
    }

    /// Goes there.
    pub(super) fn end(&mut self, reason: Reason) {
        let label = self.reason(reason);
        self.asm.jump(label);
    }

    /// Writes the reasons, and what follows: note it for later fragments, count, pass or drop.
    pub(super) fn verdicts(&mut self) {
        let verdict = self.verdict;
        let whole = self.asm.label("no first fragment");
        // The verifier refuses what nobody can come to: reasons that are only in maps.
        for (reason, label) in Reason::ALL.iter().zip(std::mem::take(&mut self.reasons)) {
            let Some(label) = label else { continue };
            self.asm.place(label);
            self.asm.mov(REASON, i32::from(reason.number()));
            // What is malformed might not tell which packet it is of.
            self.asm.jump(if *reason == Reason::Malformed { whole } else { verdict });
        }
        self.asm.place(verdict);
        self.asm.load(Size::Byte, R1, R10, FIRST_FRAGMENT);
        self.asm.jump_if(Condition::Equal, R1, 0, whole);
        self.note_fragment();
        self.asm.place(whole);
        self.asm.store(Size::Word, R10, INDEX, REASON);
        let memory = self.memory;
        self.count(&memory.counters);

        let drop = self.asm.label("drop");
        self.asm.jump_if(Condition::GreaterOrEqual, REASON, first_drop(), drop);
        self.claim();
        self.asm.mov(R0, xdp::PASS);
        self.asm.exit();
        self.asm.place(drop);
        self.asm.mov(R0, xdp::DROP);
        self.asm.exit();
    }

    /// Gives a frame to the cluster's MAC address this host's own, unless its reason says that it
    /// is not for one host alone.
    fn claim(&mut self) {
        let asm = &mut self.asm;
        let leave = asm.label("leave the address");
        asm.load(Size::Byte, R1, R10, TO);
        asm.jump_if(Condition::NotEqual, R1, To::Cluster as i32, leave);
        for reason in Reason::ALL.iter().filter(|reason| reason.passes() && !reason.claims()) {
            asm.jump_if(Condition::Equal, REASON, i32::from(reason.number()), leave);
        }
        asm.load(Size::Word, R1, CONTEXT, xdp::context::DATA);
        asm.load(Size::Word, R2, CONTEXT, xdp::context::DATA_END);
        asm.bound(R1, 14, R2, R3, leave);
        let [a, b, c, d, e, f] = self.settings.own_mac;
        asm.store(Size::Word, R1, 0, i32::from_ne_bytes([a, b, c, d]));
        asm.store(Size::Half, R1, 4, i32::from(u16::from_ne_bytes([e, f])));
        asm.place(leave);
    }

    /// Ends with the verdict on the first fragment, whose entry is at `r0`: a later fragment
    /// follows it, up or down.
    pub(super) fn follow(&mut self) {
        let follow = self.reason(Reason::FragFollow);
        let verdict = self.verdict;
        let asm = &mut self.asm;
        asm.load(Size::Double, REASON, R0, 8);
        asm.jump_if(Condition::Less, REASON, first_drop(), follow);
        asm.jump(verdict);
    }

    /// Ends with the reason for which packets of the slot's rule pass.
    pub(super) fn pass_by_rule(&mut self) {
        use super::stack::SLOT;
        use crate::filter::layout::slot;
        let verdict = self.verdict;
        self.asm.load(Size::Word, REASON, SLOT, slot::REASON);
        self.asm.jump(verdict);
    }
}

/// Reasons from this number on are drops.
fn first_drop() -> i32 {
    Reason::ALL.iter().filter(|reason| reason.passes()).count() as i32
}

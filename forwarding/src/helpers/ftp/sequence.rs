//! The numbering of a TCP stream in which lines have been made longer or shorter on their way.
//!
//! The sender counts what it wrote, the receiver what it got. The kernel's conntrack keeps, per
//! direction, one correction position and an offset before and after it
//! (`nf_conntrack_seqadj.c`). We keep the last four alterations with their extent, so that a
//! retransmission from before the latest one is still numbered right, and an altered line is known
//! again in whatever segment it comes.
//!
//! ```text
//! sender    ──────────┤ 227 (10,0,0,11,195,80) ├──────────
//!            offset 0 position        old_len     offset +3
//! receiver  ──────────┤ 227 (192,0,2,100,195,80) ├────────
//!                       new_len
//! ```
//!
//! Knows numbers, all modulo 2^32. Must not know packets.

/// Alterations that are remembered. One takes a round trip of command and reply, so a segment from
/// before the fourth last has long been acknowledged; a copy of it that still arrives is numbered as
/// if the forgotten lines had not been altered.
const HISTORY: usize = 4;

/// Bytes after which alterations are forgotten. No window is larger (RFC 7323 section 2.3), and
/// positions stay comparable only up to 2^31 bytes.
const FORGET_AFTER: u32 = 1 << 30;

/// Numbers of one direction of a connection: the sender's on one side, the receiver's on the other.
///
/// ```
/// use forwarding::helpers::ftp::SequenceAdjustment;
///
/// let mut replies = SequenceAdjustment::default();
/// // The 48 bytes from number 1000 on have become 51.
/// assert!(replies.alter(1000, 48, 51));
/// assert_eq!(replies.sequence(1000), 1000);
/// assert_eq!(replies.sequence(1048), 1051);
/// assert_eq!(replies.acknowledgement(1051), 1048);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SequenceAdjustment {
    /// The first `count` are valid, in the order of their positions.
    alterations: [Alteration; HISTORY],
    count: usize,
    /// What is added to the sender's numbers before the first of them.
    offset: u32,
    /// The sender's number of the next byte that has not passed.
    frontier: Option<u32>,
    /// Bytes that have passed since the last alteration, repeated ones too.
    passed: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Alteration {
    /// The sender's number of the first altered byte.
    position: u32,
    /// Bytes that the sender wrote.
    old_len: u16,
    /// Bytes that the receiver gets.
    new_len: u16,
}

impl Alteration {
    /// What is added to the sender's numbers behind it, besides what was added before it.
    fn change(&self) -> u32 {
        u32::from(self.new_len).wrapping_sub(u32::from(self.old_len))
    }
}

/// Where a segment lies in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// From `offset` on its bytes are new: they may be altered.
    Next {
        /// Bytes of the segment that have passed before.
        offset: usize,
    },
    /// All of it has passed before, or it has no bytes: nothing may be altered.
    Old,
    /// It repeats a line that was altered: that must be altered again, the same way.
    Altered {
        /// Where in the segment the line begins.
        offset: usize,
    },
    /// Bytes before it are missing. If one of those will have to be altered, it must not pass
    /// before them.
    Ahead,
    /// It repeats part of an altered line, or two of them: it must not pass.
    Torn,
}

/// How far `to` lies behind `from`; negative when it lies before it.
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

/// What becomes of a number inside an altered line: it means nothing on the other side.
#[derive(Clone, Copy)]
enum Round {
    /// To the line's beginning.
    Down,
    /// To behind the line.
    Up,
}

impl SequenceAdjustment {
    /// Whether all numbers are the same on both sides.
    pub fn is_idle(&self) -> bool {
        self.count == 0 && self.offset == 0
    }

    /// Where the segment of `len` bytes from `sequence` (the sender's number) on lies. A FIN counts
    /// as a byte.
    pub fn place(&self, sequence: u32, len: usize) -> Place {
        let len = len as i64;
        let mut altered = None;
        for alteration in self.known() {
            let from = i64::from(distance(alteration.position, sequence));
            let to = from + len;
            let line = i64::from(alteration.old_len);
            // A keepalive has no bytes, or repeats the last one.
            let is_keepalive = len == 0 || len == 1 && to == line;
            if to <= 0 || from >= line || is_keepalive {
                continue;
            }
            if from > 0 || to < line || altered.is_some() {
                return Place::Torn;
            }
            altered = Some(Place::Altered { offset: from.unsigned_abs() as usize });
        }
        if let Some(altered) = altered {
            return altered;
        }
        let Some(frontier) = self.frontier else {
            return Place::Next { offset: 0 };
        };
        let repeated = i64::from(distance(sequence, frontier));
        if len == 0 || repeated >= len {
            Place::Old
        } else if repeated < 0 {
            Place::Ahead
        } else {
            Place::Next { offset: repeated as usize }
        }
    }

    /// Remembers that the line of `old_len` bytes from `sequence` on is given to the receiver as
    /// one of `new_len` bytes. Once more for the same line changes nothing. False, and no change,
    /// when it has passed otherwise before: as it was, or with other lengths. To be called before
    /// [`passed`](Self::passed).
    #[must_use]
    pub fn alter(&mut self, sequence: u32, old_len: u16, new_len: u16) -> bool {
        let new = Alteration { position: sequence, old_len, new_len };
        if let Some(known) = self.known().iter().find(|known| known.position == sequence) {
            return (known.old_len, known.new_len) == (old_len, new_len);
        }
        if self.frontier.is_some_and(|frontier| distance(frontier, sequence) < 0) {
            return false;
        }
        if self.count == HISTORY {
            self.offset = self.offset.wrapping_add(self.alterations[0].change());
            self.alterations.rotate_left(1);
            self.count -= 1;
        }
        self.alterations[self.count] = new;
        self.count += 1;
        self.passed = 0;
        true
    }

    /// The segment of `len` bytes from `sequence` on (a SYN or FIN counts as one) goes to the
    /// receiver.
    pub fn passed(&mut self, sequence: u32, len: usize) {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let end = sequence.wrapping_add(len);
        if self.frontier.is_none_or(|frontier| distance(frontier, end) > 0) {
            self.frontier = Some(end);
        }
        self.passed = self.passed.saturating_add(len);
        if self.passed > FORGET_AFTER {
            self.offset = self
                .known()
                .iter()
                .fold(self.offset, |offset, alteration| offset.wrapping_add(alteration.change()));
            self.count = 0;
        }
    }

    /// The receiver has everything before `acknowledgement` (the sender's number): what did not pass
    /// here (fragments) went another way, and is not waited for.
    pub fn acknowledged(&mut self, acknowledgement: u32) {
        if let Some(frontier) = self.frontier
            && (1..FORGET_AFTER as i32).contains(&distance(frontier, acknowledgement))
        {
            self.frontier = Some(acknowledgement);
        }
    }

    /// The receiver's number for the sender's.
    pub fn sequence(&self, sequence: u32) -> u32 {
        // Inside a line, as a keepalive's is, it counts from the line's end.
        let behind = |alteration: &&Alteration| distance(alteration.position, sequence) > 0;
        self.known()
            .iter()
            .take_while(behind)
            .fold(sequence.wrapping_add(self.offset), |number, alteration| {
                number.wrapping_add(alteration.change())
            })
    }

    /// The sender's number for one that the receiver acknowledges. Inside an altered line it is that
    /// of the line's beginning: the sender is to repeat the whole line.
    pub fn acknowledgement(&self, acknowledgement: u32) -> u32 {
        self.number_of_sender(acknowledgement, Round::Down)
    }

    /// The sender's numbers for a block that the receiver has selectively acknowledged (RFC 2018);
    /// lines of which it has only a part are not claimed. What is left may be empty, which a sender
    /// ignores.
    pub fn selective(&self, left: u32, right: u32) -> (u32, u32) {
        let right = self.number_of_sender(right, Round::Down);
        let left = self.number_of_sender(left, Round::Up);
        (if distance(left, right) < 0 { right } else { left }, right)
    }

    fn number_of_sender(&self, number: u32, round: Round) -> u32 {
        let mut offset = self.offset;
        for alteration in self.known() {
            let into = distance(alteration.position.wrapping_add(offset), number);
            if into <= 0 {
                break;
            }
            if into < i32::from(alteration.new_len) {
                return match round {
                    Round::Down => alteration.position,
                    Round::Up => alteration.position.wrapping_add(u32::from(alteration.old_len)),
                };
            }
            offset = offset.wrapping_add(alteration.change());
        }
        number.wrapping_sub(offset)
    }

    fn known(&self) -> &[Alteration] {
        self.alterations.get(..self.count).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;

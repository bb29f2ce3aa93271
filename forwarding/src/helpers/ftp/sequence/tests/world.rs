//! Two ends of a stream with a bad network between them, and in its middle the alteration. Every
//! step asserts what both ends rely on.

use super::{Place, SequenceAdjustment};

/// A line as it is written, and what it is to become.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) old: Vec<u8>,
    pub(super) new: Option<Vec<u8>>,
}

/// Segments on their way: where they begin and what they carry, from the stream's beginning.
type Segment = (usize, Vec<u8>);

/// A sender, a network that loses, repeats and reorders, the alteration in its middle, and a
/// receiver.
pub(super) struct World {
    pub(super) lines: Vec<Line>,
    /// Number of the stream's first byte.
    first: u32,
    /// All that the sender writes.
    stream: Vec<u8>,
    /// Where lines begin in `stream`; the last is its length.
    starts: Vec<usize>,
    acknowledged: usize,
    sent: usize,
    to_middle: Vec<Segment>,
    adjustment: SequenceAdjustment,
    /// By line: whether it was altered; `None` until it has passed.
    pub(super) altered: Vec<Option<bool>>,
    to_receiver: Vec<Segment>,
    received: Vec<Option<u8>>,
    to_sender: Vec<Vec<(usize, usize)>>,
}

impl World {
    pub(super) fn new(lines: Vec<Line>, first: u32) -> World {
        let mut starts = vec![0];
        let mut stream = Vec::new();
        for line in &lines {
            stream.extend_from_slice(&line.old);
            starts.push(stream.len());
        }
        World {
            altered: vec![None; lines.len()],
            lines,
            first,
            stream,
            starts,
            acknowledged: 0,
            sent: 0,
            to_middle: Vec::new(),
            adjustment: SequenceAdjustment::default(),
            to_receiver: Vec::new(),
            received: Vec::new(),
            to_sender: Vec::new(),
        }
    }

    fn number(&self, at: usize) -> u32 {
        self.first.wrapping_add(at as u32)
    }

    fn at(&self, number: u32) -> usize {
        let at = number.wrapping_sub(self.first) as usize;
        assert!(at < 1 << 20, "{number} is not a number of this stream");
        at
    }

    fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    /// How much further on the receiver sees the beginning of a line.
    fn receivers_start(&self, line: usize) -> usize {
        (0..line)
            .map(|line| match (&self.lines[line].new, self.altered[line]) {
                (Some(new), Some(true)) => new.len(),
                _ => self.lines[line].old.len(),
            })
            .sum()
    }

    fn transmit(&mut self, from: usize, to: usize) {
        if from < to {
            self.to_middle.push((from, self.stream[from..to].to_vec()));
            self.sent = self.sent.max(to);
        }
    }

    /// New lines, unless more alterations would be under way than the middle remembers.
    fn send(&mut self, lines: usize) {
        let line = self.line_of(self.sent);
        let to = (line + lines).min(self.lines.len());
        let unacknowledged = self.line_of(self.acknowledged);
        let alterations = self.lines[unacknowledged..to].iter().filter(|l| l.new.is_some()).count();
        if alterations <= 3 {
            self.transmit(self.sent, self.starts[to]);
        }
    }

    /// Repeats what is not acknowledged: so many bytes, or to the end of so many lines.
    fn retransmit(&mut self, lines: usize, bytes: Option<usize>) {
        let from = self.acknowledged;
        let end = (self.line_of(from) + lines).min(self.lines.len());
        let to = bytes.map_or(self.starts[end], |bytes| from + bytes);
        self.transmit(from, to.min(self.sent));
    }

    /// The middle gets a segment.
    fn pass(&mut self, (from, mut bytes): Segment) {
        let number = self.number(from);
        let len = bytes.len();
        let offset = match self.adjustment.place(number, len) {
            Place::Ahead | Place::Torn => return,
            Place::Old => None,
            Place::Next { offset } | Place::Altered { offset } => Some(offset),
        };
        if let Some(offset) = offset {
            let line = self.line_of(from + offset);
            let is_whole =
                self.starts[line] == from + offset && self.starts[line + 1] <= from + len;
            let old = self.lines[line].old.len();
            match self.lines[line].new.clone() {
                Some(new) if is_whole => {
                    let position = self.number(from + offset);
                    assert!(self.adjustment.alter(position, old as u16, new.len() as u16));
                    bytes.splice(offset..offset + old, new);
                    self.altered[line] = Some(true);
                }
                _ => {}
            }
        }
        for line in self.line_of(from)..self.lines.len() {
            if self.starts[line] < from + len {
                self.altered[line].get_or_insert(false);
            }
        }
        self.adjustment.passed(number, len);
        let there = self.at(self.adjustment.sequence(number));
        self.to_receiver.push((there, bytes));
    }

    /// The receiver gets a segment, and acknowledges.
    fn receive(&mut self, (from, bytes): Segment) {
        for (at, byte) in (from..).zip(bytes) {
            if self.received.len() <= at {
                self.received.resize(at + 1, None);
            }
            let known = self.received[at].get_or_insert(byte);
            assert_eq!(*known, byte, "byte {at} came twice and not the same");
        }
        let end = self.received.iter().position(Option::is_none).unwrap_or(self.received.len());
        let mut blocks = vec![(end, end)];
        for at in end..self.received.len() {
            match (self.received[at], blocks.last_mut()) {
                (Some(_), Some((_, right))) if *right == at && *right > end => *right += 1,
                (Some(_), _) => blocks.push((at, at + 1)),
                (None, _) => {}
            }
        }
        self.to_sender.push(blocks);
    }

    /// The sender gets an acknowledgement: first the end of what is complete, then blocks.
    fn acknowledge(&mut self, blocks: &[(usize, usize)]) {
        let acknowledgement = self.adjustment.acknowledgement(self.number(blocks[0].0));
        self.adjustment.acknowledged(acknowledgement);
        let at = self.at(acknowledgement);
        assert!(at <= self.sent, "acknowledged what was not sent");
        self.assert_received(0, at);
        self.acknowledged = self.acknowledged.max(at);
        for (left, right) in &blocks[1..] {
            let (left, right) = self.adjustment.selective(self.number(*left), self.number(*right));
            let (left, right) = (self.at(left), self.at(right));
            assert!(left <= right && right <= self.sent);
            self.assert_received(left, right);
        }
    }

    /// What the sender is told of has reached the receiver.
    fn assert_received(&self, from: usize, to: usize) {
        for at in from..to {
            let line = self.line_of(at);
            let start = self.receivers_start(line);
            let within = match (&self.lines[line].new, self.altered[line]) {
                (Some(new), Some(true)) => start..start + new.len(),
                _ => start + at - self.starts[line]..start + at - self.starts[line] + 1,
            };
            for there in within {
                assert!(
                    self.received.get(there).is_some_and(Option::is_some),
                    "byte {at} was lost"
                );
            }
        }
    }

    /// Copies and acknowledgements from the depths of the network that are older than what the
    /// middle remembers are none that TCP would still meet.
    fn forget_ancient(&mut self) {
        let newest = self.line_of(self.sent.saturating_sub(1));
        let altered = |from: usize| self.lines[from..=newest].iter().filter(|l| l.new.is_some());
        let oldest = (0..=newest).find(|from| altered(*from).count() <= 4).unwrap_or(newest);
        let (start, receivers_start) = (self.starts[oldest], self.receivers_start(oldest));
        self.to_middle.retain(|(from, _)| *from >= start);
        self.to_sender.retain(|blocks| blocks[0].0 >= receivers_start);
    }

    pub(super) fn step(&mut self, action: u8, choice: u8) {
        let choice = usize::from(choice);
        let pick = |len: usize| (len > 0).then(|| choice % len);
        match action % 12 {
            0 | 1 => self.send(1 + choice % 3),
            2 => self.retransmit(1 + choice % 4, None),
            3 => self.retransmit(1, Some(1 + choice % 40)),
            action @ 4..=6 => {
                if let Some(which) = pick(self.to_middle.len()) {
                    let segment = match action {
                        // Repeated by the network.
                        4 => self.to_middle[which].clone(),
                        _ => self.to_middle.remove(which),
                    };
                    self.pass(segment);
                }
            }
            action @ 7..=8 => {
                if let Some(which) = pick(self.to_receiver.len()) {
                    let segment = match action {
                        7 => self.to_receiver[which].clone(),
                        _ => self.to_receiver.remove(which),
                    };
                    self.receive(segment);
                }
            }
            9 => {
                if let Some(which) = pick(self.to_sender.len()) {
                    let blocks = self.to_sender.remove(which);
                    self.acknowledge(&blocks);
                }
            }
            10 => {
                if let Some(which) = pick(self.to_middle.len()) {
                    self.to_middle.remove(which);
                }
            }
            _ => {
                if let Some(which) = pick(self.to_receiver.len()) {
                    self.to_receiver.remove(which);
                }
            }
        }
        self.forget_ancient();
    }

    /// The network is well again: everything not acknowledged is repeated line by line.
    pub(super) fn finish(&mut self) {
        self.to_middle.clear();
        for _ in 0..4 * self.lines.len() {
            if self.acknowledged == self.stream.len() {
                break;
            }
            if self.acknowledged == self.sent {
                self.send(1);
            } else {
                self.retransmit(1, None);
            }
            while !self.to_middle.is_empty() {
                let segment = self.to_middle.remove(0);
                self.pass(segment);
            }
            while !self.to_receiver.is_empty() {
                let segment = self.to_receiver.remove(0);
                self.receive(segment);
            }
            while !self.to_sender.is_empty() {
                let blocks = self.to_sender.remove(0);
                self.acknowledge(&blocks);
            }
        }
        assert_eq!(self.acknowledged, self.stream.len(), "the connection is stuck");
        let mut expected = Vec::new();
        for (line, altered) in self.lines.iter().zip(&self.altered) {
            match (&line.new, altered) {
                (Some(new), Some(true)) => expected.extend_from_slice(new),
                _ => expected.extend_from_slice(&line.old),
            }
        }
        let received: Option<Vec<u8>> = self.received.iter().copied().collect();
        assert_eq!(received, Some(expected), "the receiver read something else");
    }
}

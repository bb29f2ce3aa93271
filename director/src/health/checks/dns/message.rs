//! A DNS question and what is an answer to it, byte by byte (RFC 1035 section 4).
//!
//! ```text
//!    0  id 16 | QR 1 | opcode 4 | AA 1 | TC 1 | RD 1 | RA 1 | 0 3 | response code 4
//!    4  questions 16 | answers 16 | authorities 16 | additional 16
//!   12  name: labels, each behind its length; 0 | type 16 | class 16
//! ```

/// Bytes of the header.
const HEADER: usize = 12;
/// Bytes of a label at most.
const LABEL: usize = 63;
/// Bytes of a name at most, with its lengths (RFC 1035 section 2.3.4).
const NAME: usize = 255;
/// Recursion desired.
const RECURSION: u8 = 0x01;
/// It is a response.
const RESPONSE: u8 = 0x80;
/// The operation, of which 0 is a query.
const OPERATION: u8 = 0x78;
/// It has been cut off to fit into a datagram.
const TRUNCATED: u8 = 0x02;
/// The Internet.
const CLASS: u16 = 1;

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question(Vec<u8>);

/// What a server says to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// NOERROR.
    Found,
    /// NXDOMAIN.
    NoSuchName,
    /// Any other response code, 1..=15.
    Failure(u8),
}

impl Question {
    /// Asks for `record` of `name`, `.` for the root; a dot at its end is as good as none. `None` when
    /// it is no name: printable ASCII without blanks in labels of 1..=63 bytes.
    pub(super) fn new(id: u16, name: &str, record: u16) -> Option<Question> {
        let mut bytes = Vec::with_capacity(HEADER + NAME + 4);
        bytes.extend(id.to_be_bytes());
        bytes.extend([RECURSION, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        let name = name.strip_suffix('.').unwrap_or(name);
        if !name.is_empty() {
            for label in name.split('.') {
                let is_fit = !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_graphic());
                let length = u8::try_from(label.len()).ok()?;
                if !is_fit || label.len() > LABEL {
                    return None;
                }
                bytes.push(length);
                bytes.extend(label.bytes());
            }
        }
        bytes.push(0);
        if bytes.len() - HEADER > NAME {
            return None;
        }
        bytes.extend(record.to_be_bytes());
        bytes.extend(CLASS.to_be_bytes());
        Some(Question(bytes))
    }

    /// What is sent.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What `datagram` answers; `None` when it is no answer to this question, or is cut off. Of the
    /// records nothing is looked at.
    pub(super) fn answer(&self, datagram: &[u8]) -> Option<Answer> {
        let theirs: &[u8; HEADER] = datagram.first_chunk()?;
        let [id0, id1, flags, code, q0, q1, ..] = *theirs;
        let is_ours = [id0, id1] == self.0[..2]
            && flags & (RESPONSE | OPERATION | TRUNCATED) == RESPONSE
            && [q0, q1] == [0, 1];
        let question = datagram.get(HEADER..self.0.len())?;
        // A name's letters may come back in another case, as may those of its lengths' bytes not:
        // they are below `A`.
        if !is_ours || !question.eq_ignore_ascii_case(&self.0[HEADER..]) {
            return None;
        }
        Some(match code & 0x0f {
            0 => Answer::Found,
            3 => Answer::NoSuchName,
            code => Answer::Failure(code),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answered(question: &Question, flags: u8, code: u8) -> Vec<u8> {
        let mut bytes = question.bytes().to_vec();
        (bytes[2], bytes[3]) = (flags, code);
        bytes
    }

    #[test]
    fn a_question_is_as_the_rfc_draws_it() {
        let question = Question::new(0x1234, "www.example.org.", 28).unwrap();
        let expected = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x1c\0\x01";
        assert_eq!(question.bytes(), expected);
        let root = Question::new(1, ".", 6).unwrap();
        assert_eq!(root.bytes()[HEADER..], [0, 0, 6, 0, 1]);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let longest = [["x"; 63].concat(), ["x"; 63].concat(), ["x"; 63].concat()].join(".");
        let with = |length: usize| format!("{longest}.{}", "x".repeat(length));
        assert!(Question::new(1, &with(61), 1).is_some());
        assert!(Question::new(1, &with(62), 1).is_none());
        let long_label = "x".repeat(64);
        for name in ["a..b", ".a", "..", "a b", "a\0b", "b\u{fc}cher.example", &long_label] {
            assert_eq!(Question::new(1, name, 1), None, "{name:?}");
        }
    }

    #[test]
    fn only_a_whole_response_to_this_very_question_counts() {
        let question = Question::new(7, "Example.org", 1).unwrap();
        let answer = |bytes: &[u8]| question.answer(bytes);
        assert_eq!(answer(&answered(&question, 0x81, 0x80)), Some(Answer::Found));
        assert_eq!(answer(&answered(&question, 0x85, 0x83)), Some(Answer::NoSuchName));
        assert_eq!(answer(&answered(&question, 0x81, 0x85)), Some(Answer::Failure(5)));
        let other_case = answered(&Question::new(7, "eXAMPLE.org", 1).unwrap(), 0x80, 0);
        assert_eq!(answer(&other_case), Some(Answer::Found));
        let with_records = [answered(&question, 0x80, 0).as_slice(), &[0xff; 600]].concat();
        assert_eq!(answer(&with_records), Some(Answer::Found));
        for (flags, why) in [(0x01, "a question"), (0x83, "cut off"), (0x89, "another operation")] {
            assert_eq!(answer(&answered(&question, flags, 0)), None, "{why}");
        }
        let others = [(8, "Example.org", 1), (7, "Example.net", 1), (7, "Example.org", 2)];
        for (id, name, record) in others {
            let other = Question::new(id, name, record).unwrap();
            assert_eq!(answer(&answered(&other, 0x80, 0)), None, "{id} {name} {record}");
        }
        let whole = answered(&question, 0x80, 0);
        for length in 0..whole.len() {
            assert_eq!(answer(&whole[..length]), None);
        }
    }

    proptest! {
        #[test]
        fn no_name_and_no_datagram_panics(
            name in ".{0,300}",
            datagram in prop::collection::vec(any::<u8>(), 0..600),
            ours in 0..40usize,
        ) {
            if let Some(question) = Question::new(1, &name, 1) {
                let length = ours.min(question.bytes().len());
                let mixed = [&question.bytes()[..length], &datagram].concat();
                question.answer(&mixed);
                question.answer(&datagram);
                prop_assert!(question.bytes().len() <= HEADER + NAME + 4);
            }
        }
    }
}

//! Answers that are longer than a message.
//!
//! | offset in the text | bytes | field |
//! |---|---|---|
//! | 0 | 1 | number of this part, from 0 |
//! | 1 | 1 | how many parts there are, 1 to [`MAX_PARTS`] |
//! | 2 | .. | the part |

use super::MAX_TEXT;

/// Most parts of an answer: 76 KB.
pub const MAX_PARTS: usize = 64;
const HEAD: usize = 2;
const PART: usize = MAX_TEXT - HEAD;

/// The texts that carry an answer; `None` when it is too long.
///
/// ```
/// use nlb::control::{Parts, split};
///
/// let answer = vec![7; 3000];
/// let mut parts = Parts::default();
/// let mut whole = split(&answer).unwrap().into_iter().rev().map(|text| parts.take(&text));
/// assert_eq!((whole.next(), whole.next()), (Some(None), Some(None)));
/// assert_eq!(whole.next(), Some(Some(answer)));
/// assert_eq!(split(&[0; 100_000]), None);
/// ```
pub fn split(answer: &[u8]) -> Option<Vec<Vec<u8>>> {
    let count = answer.len().div_ceil(PART).max(1);
    if count > MAX_PARTS {
        return None;
    }
    let mut chunks = answer.chunks(PART);
    let text = |number| {
        let mut text = vec![number as u8, count as u8];
        text.extend(chunks.next().unwrap_or_default());
        text
    };
    Some((0..count).map(text).collect())
}

/// An answer whose parts arrive in any order.
#[derive(Clone, Debug, Default)]
pub struct Parts(Vec<Option<Vec<u8>>>);

impl Parts {
    /// Another part has arrived; the answer, when it was the last one missing.
    pub fn take(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        let [number, count, part @ ..] = text else { return None };
        let count = usize::from(*count);
        if !(1..=MAX_PARTS).contains(&count) || (!self.0.is_empty() && self.0.len() != count) {
            return None;
        }
        self.0.resize(count, None);
        *self.0.get_mut(usize::from(*number))? = Some(part.to_vec());
        let whole: Option<Vec<&[u8]>> = self.0.iter().map(|part| part.as_deref()).collect();
        whole.map(|parts| parts.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_contradict_each_other_or_say_nothing_are_left_out() {
        let mut parts = Parts::default();
        for text in [&[][..], &[0], &[0, 0, 1], &[0, 65, 1], &[2, 2, 1], &[255, 255]] {
            assert_eq!(parts.take(text), None, "{text:?}");
        }
        let mut parts = Parts::default();
        assert_eq!(parts.take(&[1, 2, 5]), None);
        assert_eq!(parts.take(&[1, 3, 6]), None, "another number of parts");
        assert_eq!(parts.take(&[1, 2, 5]), None, "again");
        assert_eq!(parts.take(&[0, 2, 4]), Some(vec![4, 5]));
        assert_eq!(split(&[]).unwrap(), [[0, 1]]);
    }
}

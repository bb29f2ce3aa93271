//! Sets of buckets on the wire: a list while it is short, else all 512 bytes.

use super::reader::Reader;
use crate::buckets::{BUCKET_BYTES, Bucket, BucketSet};

const LIST: u8 = 0;
const BITMAP: u8 = 1;
/// Longest list; from here on the bitmap is as short.
const LIST_MOST: usize = 255;

/// Bytes that [`write()`] takes, the form byte included.
pub(super) fn size(buckets: &BucketSet) -> usize {
    match buckets.len() {
        count @ ..=LIST_MOST => 2 + 2 * count,
        _ => 1 + BUCKET_BYTES,
    }
}

pub(super) fn write(out: &mut Vec<u8>, buckets: &BucketSet) {
    match buckets.len() {
        count @ ..=LIST_MOST => {
            out.extend([LIST, count as u8]);
            out.extend(buckets.iter().flat_map(|bucket| bucket.get().to_be_bytes()));
        }
        _ => {
            out.push(BITMAP);
            out.extend(buckets.to_bytes());
        }
    }
}

/// Only what [`write()`] writes: rising numbers, and the shorter form.
pub(super) fn read(from: &mut Reader<'_>) -> Option<BucketSet> {
    match from.u8()? {
        LIST => {
            let mut set = BucketSet::EMPTY;
            let mut least = 0;
            for _ in 0..from.u8()? {
                let number = from.u16().filter(|&number| number >= least)?;
                set.insert(Bucket::new(number)?);
                least = number + 1;
            }
            Some(set)
        }
        BITMAP => Some(BucketSet::from_bytes(&from.array()?)).filter(|set| set.len() > LIST_MOST),
        _ => None,
    }
}

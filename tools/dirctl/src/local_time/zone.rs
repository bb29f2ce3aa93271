//! The file of a time zone (TZif of RFC 9636, version 2 and later).

use super::rule::Rule;

/// A time zone; by default UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Seconds since 1970-01-01 UTC, and the seconds east of Greenwich from then on.
    changes: Vec<(i64, i64)>,
    /// Before the first change.
    first: i64,
    /// After the last.
    rule: Option<Rule>,
}

/// Bytes of a header.
const HEADER: usize = 44;

impl Zone {
    /// Reads a file; `None` when it is no such file.
    pub fn from_file(bytes: &[u8]) -> Option<Zone> {
        // The first block is for readers that know 32 bits only.
        let (_, old) = Counts::read(bytes)?;
        let bytes = bytes.get(HEADER + old.len(4)?..)?;
        let (version, counts) = Counts::read(bytes)?;
        if version < b'2' {
            return None;
        }
        let len = counts.len(8)?;
        let block = bytes.get(HEADER..HEADER + len)?;
        let (times, rest) = block.split_at_checked(counts.times * 8)?;
        let (kinds, rest) = rest.split_at_checked(counts.times)?;
        let offsets: Vec<i64> = rest
            .chunks_exact(6)
            .take(counts.types)
            .map(|kind| i64::from(i32::from_be_bytes([kind[0], kind[1], kind[2], kind[3]])))
            .collect();
        let time = |bytes: &[u8]| Some(i64::from_be_bytes(bytes.try_into().ok()?));
        let changes = times
            .chunks_exact(8)
            .zip(kinds)
            .map(|(bytes, kind)| Some((time(bytes)?, *offsets.get(usize::from(*kind))?)));
        let changes: Vec<(i64, i64)> = changes.collect::<Option<_>>()?;
        if !changes.is_sorted_by_key(|(time, _)| *time) {
            return None;
        }
        let footer = std::str::from_utf8(bytes.get(HEADER + len..)?).ok()?;
        let rule = Rule::parse(footer.trim_matches('\n'));
        Some(Zone { changes, first: *offsets.first()?, rule })
    }

    /// What a rule alone says; `None` when it is none.
    pub fn from_rule(text: &str) -> Option<Zone> {
        Some(Zone { rule: Some(Rule::parse(text)?), ..Zone::default() })
    }

    /// Seconds east of Greenwich at `time`, seconds since 1970-01-01 UTC.
    pub fn offset(&self, time: i64) -> i64 {
        let past = self.changes.partition_point(|(change, _)| *change <= time);
        match &self.rule {
            Some(rule) if past == self.changes.len() => rule.offset(time),
            _ => past.checked_sub(1).map_or(self.first, |last| self.changes[last].1),
        }
    }
}

/// How much of what a block has.
struct Counts {
    times: usize,
    types: usize,
    letters: usize,
    leaps: usize,
    flags: usize,
}

impl Counts {
    /// Version and counts of a header.
    fn read(bytes: &[u8]) -> Option<(u8, Counts)> {
        let header = bytes.get(..HEADER).filter(|header| header.starts_with(b"TZif"))?;
        let count = |place: usize| {
            let at = 20 + place * 4;
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            // Enough for any zone, and nothing overflows.
            usize::try_from(u32::from_be_bytes(bytes)).ok().filter(|count| *count < 1 << 16)
        };
        let flags = count(0)? + count(1)?;
        let counts = Counts {
            leaps: count(2)?,
            times: count(3)?,
            types: count(4)?,
            letters: count(5)?,
            flags,
        };
        Some((header[4], counts))
    }

    /// Bytes of the block, with times of `width` bytes.
    fn len(&self, width: usize) -> Option<usize> {
        let Counts { times, types, letters, leaps, flags } = self;
        Some(times * (width + 1) + types * 6 + letters + leaps * (width + 4) + flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with two kinds of time, UTC+1 and UTC+2.
    fn file(times: &[(i64, u8)], footer: &str) -> Vec<u8> {
        let header = |times: usize, types: u32| {
            let mut header = b"TZif2".to_vec();
            header.resize(20, 0);
            for count in [0, 0, 0, times as u32, types, 4] {
                header.extend(count.to_be_bytes());
            }
            header
        };
        let mut file = header(0, 1);
        file.extend([0; 6]);
        file.extend(b"XXX\0");
        file.extend(header(times.len(), 2));
        file.extend(times.iter().flat_map(|(time, _)| time.to_be_bytes()));
        file.extend(times.iter().map(|(_, kind)| kind));
        for seconds in [3600_i32, 7200] {
            file.extend(seconds.to_be_bytes());
            file.extend([0, 0]);
        }
        file.extend(b"XXX\0");
        file.extend(format!("\n{footer}\n").bytes());
        file
    }

    #[test]
    fn changes_count_from_their_second_on_and_then_the_rule() {
        let zone = Zone::from_file(&file(&[(100, 1), (200, 0)], "XXX-3")).unwrap();
        let offsets = [i64::MIN, 99, 100, 199, 200, i64::MAX].map(|time| zone.offset(time));
        assert_eq!(offsets, [3600, 3600, 7200, 7200, 10_800, 10_800]);
        let bare = Zone::from_file(&file(&[(100, 1)], "")).unwrap();
        assert_eq!((bare.offset(99), bare.offset(500)), (3600, 7200));
    }

    #[test]
    fn a_file_cut_short_or_of_another_kind_is_no_zone_and_no_panic() {
        let whole = file(&[(100, 1), (200, 0)], "XXX-3");
        let end = whole.len() - "\nXXX-3\n".len();
        for length in 0..end {
            assert_eq!(Zone::from_file(&whole[..length]), None, "{length}");
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                if let Some(zone) = Zone::from_file(&bytes) {
                    zone.offset(150);
                }
            }
        }
        assert_eq!(Zone::from_file(&file(&[(200, 1), (100, 0)], "")), None, "not in order");
        assert_eq!(Zone::from_file(&file(&[(100, 2)], "")), None, "no such kind");
    }
}

//! Local time, as `date` shows it: by `TZ`, else `/etc/localtime` (files of RFC 9636). Where neither
//! says anything it is UTC.

mod rule;
mod zone;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use zone::Zone;

/// No file of a time zone is longer.
const LONGEST: u64 = 1 << 20;

/// The zone that this process is in.
pub fn here() -> Zone {
    let named = std::env::var("TZ").ok();
    find(named.as_deref(), Path::new("/usr/share/zoneinfo")).unwrap_or_default()
}

/// The zone that `TZ` says, with the zones of the system in `folder`.
fn find(named: Option<&str>, folder: &Path) -> Option<Zone> {
    let read = |path: PathBuf| {
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
        Zone::from_file(&bytes)
    };
    match named.map(|name| name.strip_prefix(':').unwrap_or(name)) {
        None => read(PathBuf::from("/etc/localtime")),
        Some("") => None,
        // An absolute name stays as it is.
        Some(name) => read(folder.join(name)).or_else(|| Zone::from_rule(name)),
    }
}

/// `2026-12-01 03:35:23.120` for milliseconds since 1970-01-01 UTC.
///
/// ```
/// use dirctl::local_time::{Zone, show};
///
/// assert_eq!(show(0, &Zone::default()), "1970-01-01 00:00:00.000");
/// ```
pub fn show(milliseconds: u64, zone: &Zone) -> String {
    let seconds = i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX / 4);
    let local = seconds.saturating_add(zone.offset(seconds));
    let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let (year, month, day) = rule::date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let thousandth = milliseconds % 1000;
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{thousandth:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_in_the_environment_is_local_time_and_nonsense_is_utc() {
        let nowhere = Path::new("/nowhere");
        // 2026-07-01 12:00 UTC
        let summer = 1_782_907_200_000;
        let at = |name| find(Some(name), nowhere).map(|zone| show(summer, &zone));
        assert_eq!(at("CET-1CEST,M3.5.0,M10.5.0/3").unwrap(), "2026-07-01 14:00:00.000");
        assert_eq!(at("<-0330>3:30").unwrap(), "2026-07-01 08:30:00.000");
        for nonsense in ["", "no such zone", "../../etc/passwd", ":x"] {
            assert_eq!(at(nonsense), None, "{nonsense}");
        }
        assert_eq!(show(summer + 7, &Zone::default()), "2026-07-01 12:00:00.007");
        assert!(!show(u64::MAX, &Zone::default()).is_empty());
    }
}

//! The columns of `--stats` and `--rate`: numbers nine wide whatever their size.

use std::fmt::Arguments;

use director::control::api::Stats;

use super::{Format, line};

/// Both title lines.
pub(super) fn titles(text: &mut String, first: &str, second: &str, format: &Format) {
    let [a, b, c, d, e] = if format.stats {
        ["Conns", "InPkts", "OutPkts", "InBytes", "OutBytes"]
    } else {
        ["CPS", "InPPS", "OutPPS", "InBPS", "OutBPS"]
    };
    line(text, format_args!("{first:<33} {a:>8} {b:>8} {c:>8} {d:>8} {e:>8}"));
    line(text, format_args!("{second}"));
}

/// A service's line.
pub(super) fn service(text: &mut String, name: &str, stats: &Stats, format: &Format) {
    let columns = columns(stats, format).map(|value| number(value, format.exact));
    line(text, format_args!("{name:<33}{}", columns.concat()));
}

/// A server's line. ipvsadm forgets to shorten the first three rates of servers, and so does this.
pub(super) fn server(text: &mut String, name: Arguments<'_>, stats: &Stats, format: &Format) {
    let mut columns = columns(stats, format).map(|value| number(value, format.exact));
    if !format.stats {
        for (column, value) in columns.iter_mut().zip([stats.cps, stats.in_pps, stats.out_pps]) {
            *column = format!(" {value:>8}");
        }
    }
    line(text, format_args!("{name}{}", columns.concat()));
}

fn columns(stats: &Stats, format: &Format) -> [u64; 5] {
    if format.stats {
        let Stats { connections, in_packets, out_packets, in_bytes, out_bytes, .. } = *stats;
        [connections, in_packets, out_packets, in_bytes, out_bytes]
    } else {
        let Stats { cps, in_pps, out_pps, in_bps, out_bps, .. } = *stats;
        [cps, in_pps, out_pps, in_bps, out_bps]
    }
}

/// Nine wide: a blank and up to eight digits, or fewer and a suffix, rounded down; exact numbers
/// take the width they need.
fn number(value: u64, exact: bool) -> String {
    match value {
        _ if exact && value > 99_999_999 => format!(" {value}"),
        _ if exact => format!("{value:>9}"),
        0..100_000_000 => format!("{value:>9}"),
        100_000_000..1_000_000_000 => format!("{:>8}K", value / 1000),
        1_000_000_000..100_000_000_000 => format!("{:>8}M", value / 1_000_000),
        100_000_000_000..100_000_000_000_000 => format!("{:>8}G", value / 1_000_000_000),
        _ => format!("{:>8}T", value / 1_000_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_change_their_suffix_where_the_reference_says_and_never_round_up() {
        for (value, text) in [
            (0, "        0"),
            (99_999_999, " 99999999"),
            (100_000_000, "  100000K"),
            (999_999_999, "  999999K"),
            (1_000_000_000, "    1000M"),
            (99_999_999_999, "   99999M"),
            (100_000_000_000, "     100G"),
            (99_999_999_999_999, "   99999G"),
            (100_000_000_000_000, "     100T"),
            (u64::MAX, "18446744T"),
        ] {
            assert_eq!(number(value, false), text);
        }
        assert_eq!(number(99_999_999, true), " 99999999");
        assert_eq!(number(100_000_000, true), " 100000000");
    }
}

//! When two answers are alike although time has passed between them: after traffic there are
//! connections that expire, and rates that fall. Everything else is compared to the byte, and so are
//! these but for the digits that time changes.

use super::Case;
use super::script::Answer;

/// Seconds by which remaining times may differ. Both sides get the same packets and the same
/// questions, but not in the same instant, and the kernel's guest is slow on a busy machine.
const TOLERANCE: u32 = 3;

/// How answers to a case are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alike {
    /// To the byte.
    Bytes,
    /// Connections: in any order (the kernel's is that of a hash with a random key), the digits of the
    /// time within [`TOLERANCE`].
    Connections,
    /// Rates: other digits in the same places. The kernel works them out every two seconds, each
    /// side at its own time.
    Rates,
}

impl Alike {
    /// By the words of the command.
    pub(super) fn of(case: &Case) -> Alike {
        let lists = |word: &str| word.starts_with("-L") && !word.starts_with("--");
        let words: Vec<&str> = case.line.split_whitespace().collect();
        let connections = words.iter().any(|word| {
            *word == "-c" || *word == "--connection" || (lists(word) && word.ends_with('c'))
        });
        if connections {
            Alike::Connections
        } else if words.contains(&"--rate") {
            Alike::Rates
        } else {
            Alike::Bytes
        }
    }

    /// Whether the answers are alike.
    pub(super) fn compare(self, theirs: &Answer, ours: &Answer) -> bool {
        let rest = (&theirs.errors, theirs.code) == (&ours.errors, ours.code);
        rest && match self {
            Alike::Bytes => theirs.output == ours.output,
            Alike::Connections => same_connections(&theirs.output, &ours.output),
            Alike::Rates => masked_rates(&theirs.output) == masked_rates(&ours.output),
        }
    }

    /// An answer as it is shown to the reader of a difference: connections in an order.
    pub(super) fn in_order(self, answer: &Answer) -> Answer {
        let mut answer = answer.clone();
        if self == Alike::Connections {
            let mut rows: Vec<_> =
                answer.output.split_inclusive('\n').map(|row| (without_time(row), row)).collect();
            rows.sort_by_key(|((masked, time), _)| (time.is_some(), masked.clone()));
            answer.output = rows.into_iter().map(|(_, row)| row).collect();
        }
        answer
    }
}

fn same_connections(theirs: &str, ours: &str) -> bool {
    let [theirs, ours] = [theirs, ours].map(|text| {
        let mut rows: Vec<_> = text.split_inclusive('\n').map(without_time).collect();
        // Headers have no time and come first anyway.
        rows.sort();
        rows
    });
    let near = |one: Option<u32>, other: Option<u32>| match (one, other) {
        (Some(one), Some(other)) => one.abs_diff(other) <= TOLERANCE,
        (one, other) => one == other,
    };
    theirs.len() == ours.len()
        && theirs.iter().zip(&ours).all(|(one, other)| one.0 == other.0 && near(one.1, other.1))
}

/// A row with `#` for every digit of its time, and the seconds; a line without a time as it is.
fn without_time(line: &str) -> (String, Option<u32>) {
    let time = line.split_whitespace().nth(1).and_then(|word| {
        let (minutes, seconds) = word.split_once(':')?;
        Some((word, minutes.parse::<u32>().ok()? * 60 + seconds.parse::<u32>().ok()?))
    });
    match time {
        Some((word, seconds)) => {
            let masked: String = word.chars().map(|it| if it == ':' { it } else { '#' }).collect();
            (line.replacen(word, &masked, 1), Some(seconds))
        }
        None => (line.to_owned(), None),
    }
}

/// With the last five numbers of each line as `#`, and all blanks as they are but those that make a
/// number as wide as its column.
fn masked_rates(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(masked).collect()
}

fn masked(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_rate = |word: &&str| {
        word.trim_end_matches(['K', 'M', 'G', 'T']).bytes().all(|byte| byte.is_ascii_digit())
    };
    let Some((_, rates)) =
        words.split_last_chunk::<5>().filter(|(_, five)| five.iter().all(is_rate))
    else {
        return line.to_owned();
    };
    let mut rest = line.trim_end();
    for word in rates.iter().rev() {
        rest = rest.strip_suffix(word).unwrap_or(rest).trim_end();
    }
    // The name, and how wide all of it is.
    format!("{rest} {}", line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(output: &str) -> Answer {
        Answer { output: output.to_owned(), errors: String::new(), code: 0 }
    }

    fn alike(line: &str, theirs: &str, ours: &str) -> bool {
        Alike::of(&Case::new(line)).compare(&answer(theirs), &answer(ours))
    }

    const ROW: &str =
        "TCP 01:59  FIN_WAIT    198.18.0.2:4002    192.0.2.10:80      10.77.0.11:80\n";

    #[test]
    fn connections_may_come_in_another_order_and_a_little_later_and_nothing_else() {
        let other = ROW.replace("198.18.0.2", "198.18.0.3");
        for list in ["ipvsadm -Lnc", "ipvsadm -L -n -c --persistent-conn"] {
            assert!(alike(list, &format!("{ROW}{other}"), &format!("{other}{ROW}")));
            assert!(alike(list, ROW, &ROW.replace("01:59", "02:02")));
            for changed in [
                ROW.replace("01:59", "02:03"),
                ROW.replace("01:59 ", "01:59"),
                ROW.replace(":80\n", ":80 \n"),
                ROW.replace("FIN_WAIT ", "TIME_WAIT"),
                String::new(),
            ] {
                assert!(!alike(list, ROW, &changed), "{changed:?}");
            }
        }
        assert!(!alike("ipvsadm -Ln", ROW, &ROW.replace("01:59", "02:00")));
    }

    #[test]
    fn rates_may_be_others_in_the_same_places_and_names_may_not() {
        let row =
            "TCP  192.0.2.10:80                        1        3        0      220        0\n";
        let list = "ipvsadm -Ln --rate";
        assert!(alike(list, row, &row.replace("  220", " 1220")));
        assert!(!alike(list, row, &row.replace("  220", "  1220")));
        assert!(!alike(list, row, &row.replace("2.10:80", "2.10:81")));
        assert!(!alike(list, row, &row.replace(" 220", " ")));
        assert!(!alike("ipvsadm -Ln --stats", row, &row.replace("  220", " 1220")));
    }
}

//! Listings of both sides, compared but for what must differ: the size of the connection table,
//! the order of the connections, and less than two seconds of their time.

/// Seconds by which the remaining time may differ: both sides are asked one after the other.
const TOLERANCE: u32 = 1;

/// Lines of both listings next to each other, with whether they are equal. `arguments` are those
/// of `ipvsadm`.
pub(super) fn compare(arguments: &str, theirs: &str, ours: &str) -> Vec<(String, String, bool)> {
    let connections = arguments.split_whitespace().any(|word| word == "-c");
    let [theirs, ours] = [theirs, ours].map(|text| lines(text, connections));
    let length = theirs.len().max(ours.len());
    let line = |lines: &[String], index: usize| lines.get(index).cloned().unwrap_or_default();
    (0..length)
        .map(|index| {
            let (theirs, ours) = (line(&theirs, index), line(&ours, index));
            let equal = if connections { same_entry(&theirs, &ours) } else { theirs == ours };
            (theirs, ours, equal)
        })
        .collect()
}

fn lines(text: &str, connections: bool) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(|line| without_size(line).to_owned()).collect();
    if connections {
        // By all but the time; headers come first because they do not begin with a protocol.
        lines.sort_by_key(|line| (entry(line).is_some(), entry(line).map(|(rest, _)| rest)));
    }
    lines
}

/// The first line without what it says of the size of the connection table.
fn without_size(line: &str) -> &str {
    match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (size=")) {
        Some((version, _)) => version,
        None => line,
    }
}

/// A connection without its remaining time, and that in seconds.
fn entry(line: &str) -> Option<(String, u32)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (minutes, seconds) = words.get(1)?.split_once(':')?;
    let time = minutes.parse::<u32>().ok()? * 60 + seconds.parse::<u32>().ok()?;
    // Behind the time, whose place depends on the protocol's name.
    let state = line.get(line.find(words[1])? + words[1].len()..)?;
    // Everything that tells entries apart comes first, the state last.
    let ends = words.get(3..)?.join(" ");
    Some((format!("{ends} {} {state}", words[0]), time))
}

fn same_entry(theirs: &str, ours: &str) -> bool {
    match (entry(theirs), entry(ours)) {
        (Some((theirs, left)), Some((ours, right))) => {
            theirs == ours && left.abs_diff(right) <= TOLERANCE
        }
        _ => theirs == ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str =
        "TCP 01:59  FIN_WAIT    198.51.100.7:4000  192.0.2.10:80      10.77.0.11:80";

    fn equal(theirs: &str, ours: &str) -> bool {
        compare("-L -n -c", theirs, ours).iter().all(|(_, _, equal)| *equal)
    }

    #[test]
    fn a_second_is_forgiven_and_two_are_not() {
        assert!(equal(ENTRY, &ENTRY.replace("01:59", "02:00")));
        assert!(!equal(ENTRY, &ENTRY.replace("01:59", "02:01")));
    }

    #[test]
    fn a_longer_protocol_moves_the_time_and_is_read_all_the_same() {
        let sctp = ENTRY.replace("TCP", "SCTP");
        assert!(equal(&sctp, &sctp.replace("01:59", "02:00")));
        assert!(!equal(&sctp, &sctp.replace("FIN_WAIT ", "TIME_WAIT")));
        assert!(!equal(&sctp, ENTRY));
    }

    #[test]
    fn a_state_or_a_server_that_differs_is_seen() {
        assert!(!equal(ENTRY, &ENTRY.replace("FIN_WAIT ", "TIME_WAIT")));
        assert!(!equal(ENTRY, &ENTRY.replace("10.77.0.11:80", "10.77.0.12:80")));
        assert!(!equal(ENTRY, ""));
    }

    #[test]
    fn the_order_of_connections_is_nobodys_promise() {
        let other = ENTRY.replace("198.51.100.7", "198.51.100.8");
        assert!(equal(&format!("{ENTRY}\n{other}\n"), &format!("{other}\n{ENTRY}\n")));
    }

    #[test]
    fn only_the_size_of_the_table_may_differ_in_the_first_line() {
        let line = "IP Virtual Server version 1.2.1 (size=4096)";
        let same = |ours: &str| compare("-L -n", line, ours)[0].2;
        assert!(same("IP Virtual Server version 1.2.1 (size=1048576)"));
        assert!(!same("IP Virtual Server version 1.2.2 (size=4096)"));
    }
}

//! "Did you mean": the nearest word of a list to one that is not in it.

/// The word of `known` that is nearest to `word`, if one is near enough to be a slip: at most a
/// third of its letters, and always one.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // A file of another program may hold words of any length; nothing of ours is longer than this.
    if word.chars().count() > 40 {
        return None;
    }
    let word = word.to_lowercase();
    known
        .iter()
        .map(|candidate| (distance(&word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be inserted, deleted, replaced or swapped with their neighbour (optimal
/// string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

/// The words in one line, for "known are ...".
pub fn list(words: &[&str]) -> String {
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn a_slip_finds_its_word_and_a_strange_word_finds_none() {
        let known = ["interfaces", "io", "weight", "upper_threshold"];
        assert_eq!(nearest("interface", &known), Some("interfaces"));
        assert_eq!(nearest("Weigth", &known), Some("weight"));
        assert_eq!(nearest("upper-treshold", &known), Some("upper_threshold"));
        assert_eq!(nearest("banana", &known), None);
        assert_eq!(nearest("", &known), None);
        assert_eq!(nearest(&"w".repeat(1000), &known), None);
    }

    #[test]
    fn the_distance_counts_single_slips() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("nat", "nat"), 0);
        assert_eq!(distance("nta", "nat"), 1);
        assert_eq!(distance("na", "nat"), 1);
        assert_eq!(distance("nate", "nat"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}

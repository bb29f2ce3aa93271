//! Cuts a command line into flags, their values and what is left over, by the rules of the popt
//! library: shorts may be bundled (`-Lnc`), the last of a bundle may take the rest as its value
//! (`-p300`, `-p=300`), longs take `--long=value` or the next word, `--` ends the flags, and words
//! that are no flags may stand anywhere. It knows which flags exist and nothing of what they mean.

use crate::flags::{self, Argument, Flag};

/// A flag with its value.
#[derive(Clone, Debug)]
pub struct Found {
    /// Which.
    pub flag: &'static Flag,
    /// Its value, when it has one.
    pub value: Option<String>,
    /// The word that was read last, which is what messages quote: of `-ZL` that is all of it, and of
    /// `--start-daemon master` it is `master`.
    pub word: String,
}

/// A word that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// No such flag.
    #[error("{0}: unknown option")]
    Unknown(String),
    /// It needs a value and is the last word.
    #[error("{0}: missing argument")]
    MissingArgument(String),
    /// `--flag=value` for a flag without one.
    #[error("{0}: option does not take an argument")]
    UnwantedArgument(String),
}

/// Reads a command line from left to right.
#[derive(Debug)]
pub struct Scanner<'a> {
    words: &'a [String],
    next: usize,
    /// What is left of a bundle of shorts.
    bundle: &'a str,
    flags_ended: bool,
    left_over: Vec<&'a str>,
}

impl<'a> Scanner<'a> {
    /// Over the words after the program's name.
    pub fn new(words: &'a [String]) -> Scanner<'a> {
        Scanner { words, next: 0, bundle: "", flags_ended: false, left_over: Vec::new() }
    }

    /// The next flag; `None` when there are no more.
    ///
    /// # Errors
    /// [`Bad`], whose text is what popt says about it.
    pub fn next_flag(&mut self) -> Result<Option<Found>, Bad> {
        if self.bundle.is_empty() {
            let Some(word) = self.next_word() else {
                return Ok(None);
            };
            if let Some(long) = word.strip_prefix("--") {
                return self.long(long, word).map(Some);
            }
            self.bundle = &word[1..];
        }
        self.short().map(Some)
    }

    /// The words that belong to no flag. Complete once [`Scanner::next_flag`] has given `None`.
    pub fn left_over(&self) -> &[&'a str] {
        &self.left_over
    }

    /// The next word that starts flags; the others are put aside.
    fn next_word(&mut self) -> Option<&'a str> {
        while let Some(word) = self.words.get(self.next) {
            self.next += 1;
            if word == "--" && !self.flags_ended {
                self.flags_ended = true;
            } else if self.flags_ended || word == "-" || !word.starts_with('-') {
                self.left_over.push(word);
            } else {
                return Some(word);
            }
        }
        None
    }

    fn long(&mut self, long: &'a str, word: &'a str) -> Result<Found, Bad> {
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let flag = flags::by_long(name).ok_or_else(|| Bad::Unknown(word.to_owned()))?;
        if !flag.argument.is_value() && attached.is_some() {
            return Err(Bad::UnwantedArgument(word.to_owned()));
        }
        self.finish(flag, attached)
    }

    fn short(&mut self) -> Result<Found, Bad> {
        let mut letters = self.bundle.chars();
        // The bundle is not empty here; an unknown letter is the answer to the impossible case too.
        let letter = letters.next().unwrap_or('-');
        let rest = letters.as_str();
        let Some(flag) = flags::by_short(letter) else {
            self.bundle = "";
            return Err(Bad::Unknown(self.last_word()));
        };
        if !flag.argument.is_value() && rest.starts_with('=') {
            self.bundle = "";
            return Err(Bad::UnwantedArgument(self.last_word()));
        }
        self.bundle = rest;
        let mut attached = None;
        if flag.argument.is_value() && !rest.is_empty() {
            self.bundle = "";
            attached = Some(rest.strip_prefix('=').unwrap_or(rest));
        }
        self.finish(flag, attached)
    }

    fn finish(&mut self, flag: &'static Flag, attached: Option<&str>) -> Result<Found, Bad> {
        let value = match (flag.argument, attached) {
            (Argument::None | Argument::Words(_), _) => None,
            (_, Some(value)) => Some(value.to_owned()),
            (argument, None) => match self.words.get(self.next) {
                // An optional value is taken from the next word unless that looks like a flag; a
                // required one is taken whatever it looks like.
                Some(word)
                    if matches!(argument, Argument::Optional(_)) && word.starts_with('-') =>
                {
                    None
                }
                Some(word) => {
                    self.next += 1;
                    Some(word.clone())
                }
                None if matches!(argument, Argument::Optional(_)) => None,
                None => return Err(Bad::MissingArgument(self.last_word())),
            },
        };
        Ok(Found { flag, value, word: self.last_word() })
    }

    fn last_word(&self) -> String {
        self.next.checked_sub(1).and_then(|last| self.words.get(last)).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(line: &str) -> (Vec<String>, Option<Bad>, Vec<String>) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut scanner = Scanner::new(&words);
        let mut found = Vec::new();
        let bad = loop {
            match scanner.next_flag() {
                Ok(Some(Found { flag, value, .. })) => found.push(match value {
                    Some(value) => format!("{}={value}", flag.long),
                    None => flag.long.to_owned(),
                }),
                Ok(None) => break None,
                Err(bad) => break Some(bad),
            }
        };
        let left = scanner.left_over().iter().map(|word| (*word).to_owned()).collect();
        (found, bad, left)
    }

    #[test]
    fn bundled_shorts_are_taken_one_by_one_and_the_last_may_have_a_value() {
        assert_eq!(scan("-Lnc").0, ["list", "numeric", "connection"]);
        assert_eq!(scan("-at 10.0.0.1:80").0, ["add-server", "tcp-service=10.0.0.1:80"]);
        assert_eq!(scan("-At10.0.0.1:80").0, ["add-service", "tcp-service=10.0.0.1:80"]);
    }

    #[test]
    fn all_ways_to_give_a_value_give_the_same() {
        for line in ["-p300", "-p=300", "-p 300", "--persistent=300", "--persistent 300"] {
            assert_eq!(scan(line).0, ["persistent=300"], "{line}");
        }
    }

    #[test]
    fn optional_value_does_not_swallow_the_next_flag() {
        assert_eq!(scan("-p -o").0, ["persistent", "ops"]);
        assert_eq!(scan("-p").0, ["persistent"]);
        assert_eq!(scan("-w -o").0, ["weight=-o"]);
    }

    #[test]
    fn words_that_are_no_flags_are_left_over_wherever_they_stand() {
        let (found, bad, left) = scan("x -L - y -- -n");
        assert_eq!((found, bad), (vec!["list".to_owned()], None));
        assert_eq!(left, ["x", "-", "y", "-n"]);
    }

    #[test]
    fn bad_words_are_quoted_as_popt_quotes_them() {
        for (line, text) in [
            ("-L --foo", "--foo: unknown option"),
            ("-L --foo=1", "--foo=1: unknown option"),
            ("-Lz", "-Lz: unknown option"),
            ("-A -s", "-s: missing argument"),
            ("-A --scheduler", "--scheduler: missing argument"),
            ("-L --numeric=1", "--numeric=1: option does not take an argument"),
            ("-L -n=1", "-n=1: option does not take an argument"),
        ] {
            assert_eq!(scan(line).1.map(|bad| bad.to_string()).as_deref(), Some(text), "{line}");
        }
    }

    #[test]
    fn letters_beyond_ascii_are_unknown_and_cut_nothing_in_half() {
        assert_eq!(scan("-Lé").1, Some(Bad::Unknown("-Lé".to_owned())));
    }
}

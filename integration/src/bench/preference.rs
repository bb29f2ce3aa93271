//! Being preferred by the scheduler while measuring: on a machine with other work a latency is
//! that of the scheduler otherwise.
//!
//! Linux weighs sessions against each other before the programs in them, so it is the session's
//! weight that counts (`sched(7)`, autogroups): that of this shell and all that was started from
//! it.

use std::fs::{read_to_string, write};

use anyhow::{Context, Result};

const FILE: &str = "/proc/self/autogroup";

/// For as long as this lives, everything in this session goes before everything outside.
#[derive(Debug)]
pub struct Preference {
    before: String,
}

impl Preference {
    /// Asks for it.
    ///
    /// # Errors
    /// When the caller is not root, or the kernel does not group by session.
    pub fn ask() -> Result<Preference> {
        let text = read_to_string(FILE).with_context(|| {
            format!("{FILE}: this kernel does not group by session; run without --prefer")
        })?;
        let before = nice(&text).with_context(|| format!("{FILE} says {text:?}"))?.to_owned();
        write(FILE, "-20").context("only root may prefer a session: run without --prefer")?;
        Ok(Preference { before })
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // Root until now, root still.
        let _ = write(FILE, &self.before);
    }
}

/// The number in `/autogroup-4 nice 0`.
fn nice(text: &str) -> Option<&str> {
    text.trim().rsplit_once("nice ").map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_before_is_read_to_be_put_back() {
        assert_eq!(nice("/autogroup-4 nice 0\n"), Some("0"));
        assert_eq!(nice("/autogroup-77 nice -5\n"), Some("-5"));
        assert_eq!(nice("/\n"), None);
    }
}

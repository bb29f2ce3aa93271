//! Colour, where a person looks at a terminal that has it.

/// Colours text or leaves it alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    colourful: bool,
}

impl Paint {
    /// For an output that is a terminal or not. `NO_COLOR` and `TERM=dumb` switch colour off.
    pub fn new(terminal: bool, no_color: Option<&str>, term: Option<&str>) -> Paint {
        let refused = no_color.is_some_and(|value| !value.is_empty()) || term == Some("dumb");
        Paint { colourful: terminal && !refused }
    }

    /// A heading.
    pub fn heading(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Something to look into.
    pub fn warning(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// Something lost.
    pub fn loss(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colourful { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_willing_terminal_gets_colour() {
        assert_eq!(Paint::new(true, None, Some("xterm")).heading("x"), "\x1b[1mx\x1b[0m");
        for plain in [
            Paint::new(false, None, Some("xterm")),
            Paint::new(true, Some("1"), Some("xterm")),
            Paint::new(true, None, Some("dumb")),
        ] {
            assert_eq!(plain.warning("x"), "x");
        }
    }
}

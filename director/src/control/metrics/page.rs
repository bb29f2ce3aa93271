//! The text format: families, samples, labels.

use std::fmt::{Display, Write};

use super::super::api::{Protocol, ServiceKey};
use super::super::workers::HistogramView;

/// A page that is being written.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
    name: String,
}

impl Page {
    /// Opens a metric family; samples that follow belong to it.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.name = name.to_owned();
        // Writing into a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample of the family.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.put("", labels, None, value);
    }

    /// A family with one sample and no labels.
    pub(super) fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(&[], value);
    }

    /// A histogram of the family: cumulative buckets, sum and count.
    pub(super) fn histogram(&mut self, labels: &[(&str, &str)], histogram: &HistogramView) {
        let mut below = 0;
        let bounds = histogram.bounds.iter().map(|bound| format!("{bound:.9}"));
        let bounds =
            bounds.map(|bound| bound.trim_end_matches('0').trim_end_matches('.').to_owned());
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&histogram.counts) {
            below += count;
            self.put("_bucket", labels, Some(&bound), below);
        }
        self.put("_sum", labels, None, histogram.sum);
        self.put("_count", labels, None, below);
    }

    fn put(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        bound: Option<&str>,
        value: impl Display,
    ) {
        let bound = bound.map(|bound| ("le", bound));
        self.text.push_str(&self.name);
        self.text.push_str(suffix);
        let mut before = '{';
        for (label, word) in labels.iter().copied().chain(bound) {
            let _ = write!(self.text, "{before}{label}=\"{}\"", escape(word));
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// Label values escape backslash, quote and newline, nothing else.
fn escape(word: &str) -> String {
    word.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A service's label, in the notation of the configuration file: `192.0.2.10:80/tcp`,
/// `fwmark 7/ipv4`.
pub(super) fn name_of(key: &ServiceKey) -> String {
    match key {
        ServiceKey::Address { protocol, address } => {
            let protocol = match protocol {
                Protocol::Tcp => "tcp",
                Protocol::Udp => "udp",
                Protocol::Sctp => "sctp",
            };
            format!("{address}/{protocol}")
        }
        ServiceKey::Fwmark { fwmark, ipv6 } => {
            format!("fwmark {fwmark}/{}", if *ipv6 { "ipv6" } else { "ipv4" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_with_quote_backslash_or_newline_does_not_break_the_page() {
        let mut page = Page::default();
        page.family("m", "gauge", "Help.");
        page.sample(&[("a", "x\"y\\z\nw"), ("b", "é")], 3);
        assert_eq!(
            page.text,
            "# HELP m Help.\n# TYPE m gauge\nm{a=\"x\\\"y\\\\z\\nw\",b=\"é\"} 3\n"
        );
    }

    #[test]
    fn services_of_one_mark_and_both_families_have_different_labels() {
        let names = [false, true].map(|ipv6| name_of(&ServiceKey::Fwmark { fwmark: 7, ipv6 }));
        assert_eq!(names, ["fwmark 7/ipv4", "fwmark 7/ipv6"]);
    }

    #[test]
    fn buckets_of_a_histogram_count_what_is_below_them_and_end_with_all() {
        let mut page = Page::default();
        page.family("h", "histogram", "Help.");
        let view =
            HistogramView { bounds: vec![0.000001, 0.5, 8.0], counts: vec![1, 0, 2, 4], sum: 9.5 };
        page.histogram(&[("w", "0")], &view);
        let lines: Vec<&str> = page.text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "h_bucket{w=\"0\",le=\"0.000001\"} 1",
                "h_bucket{w=\"0\",le=\"0.5\"} 1",
                "h_bucket{w=\"0\",le=\"8\"} 3",
                "h_bucket{w=\"0\",le=\"+Inf\"} 7",
                "h_sum{w=\"0\"} 9.5",
                "h_count{w=\"0\"} 7",
            ]
        );
    }
}

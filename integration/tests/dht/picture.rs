//! Questions that reached upstream, over time: one curve for each scheduler. Plain SVG.

use std::fmt::Write;
use std::time::Instant;

use integration::dns::Asked;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 280.0;
const RIGHT: f64 = 870.0;
const TOP: f64 = 40.0;
const COLOURS: [&str; 3] = ["#b5502e", "#2f7d4f", "#4a6d8c"];

/// Draws what each scheduler's caches asked upstream: its name, when its run began, the questions.
pub(crate) fn draw(runs: &[(&str, Instant, &[Asked])]) -> String {
    let seconds = |start: &Instant, asked: &Asked| asked.at.duration_since(*start).as_secs_f64();
    let last =
        |run: &(&str, Instant, &[Asked])| run.2.last().map_or(0.0, |asked| seconds(&run.1, asked));
    let longest = runs.iter().map(last).fold(1.0, f64::max);
    let most = runs.iter().map(|run| run.2.len()).max().unwrap_or(1).max(1) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"14\">Questions that reached upstream, in all: \
         20,000 for 2,000 names through three caches</text>\n\
         <path d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\" fill=\"none\" stroke=\"#222\"/>\n"
    );
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let (x, y) = (LEFT + (RIGHT - LEFT) * share, BOTTOM - (BOTTOM - TOP) * share);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{y:.0}\" text-anchor=\"end\">{:.0}</text>\
             <text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{:.1} s</text>",
            LEFT - 6.0,
            most * share,
            BOTTOM + 18.0,
            longest * share
        );
    }
    for ((name, start, asked), colour) in runs.iter().zip(COLOURS) {
        let mut path = format!("M{LEFT} {BOTTOM}");
        let stride = (asked.len() / 400).max(1);
        let mut end = (LEFT, BOTTOM);
        for (count, question) in asked.iter().enumerate().step_by(stride) {
            let x = LEFT + (RIGHT - LEFT) * seconds(start, question) / longest;
            let y = BOTTOM - (BOTTOM - TOP) * (count + 1) as f64 / most;
            let _ = write!(path, "L{x:.1} {y:.1}");
            end = (x, y);
        }
        let _ = writeln!(
            svg,
            "<path d=\"{path}H{RIGHT}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\" fill=\"{colour}\">{name}: {}</text>",
            RIGHT,
            end.1 - 8.0,
            asked.len()
        );
    }
    svg.push_str("</svg>\n");
    svg
}

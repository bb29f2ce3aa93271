//! The figures as a picture: a bar for each value, a mark where its floor is, and a line where the
//! target is. Plain SVG that a browser or a code host shows.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Figure;
use super::report::{number, share};

const WIDTH: f64 = 900.0;
/// Where bars begin, and how long the longest is.
const LEFT: f64 = 280.0;
const LENGTH: f64 = 440.0;
/// A floor that is so many times the largest value is far beyond.
const FAR: f64 = 4.0;
const ROW: f64 = 18.0;
const HEAD: f64 = 30.0;

const REACHED: &str = "#2f7d4f";
const MISSED: &str = "#b5502e";
const NEUTRAL: &str = "#4a6d8c";
const INK: &str = "#222";

/// Draws all figures, those of one unit and kind on one scale. `title` names the machine.
pub fn chart(figures: &[Figure], title: &str) -> String {
    let groups = groups(figures);
    let rows: f64 = groups.iter().map(|group| HEAD + group.figures.len() as f64 * ROW).sum();
    let height = 70.0 + rows;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"{INK}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"20\" font-size=\"13\">{}</text>\n\
         <text x=\"10\" y=\"38\">bar: value (green: targets reached, red: not, blue: none); \
         black mark: floor, measured in turn with it, if it is near</text>\n",
        escape(title)
    );
    let mut y = 50.0;
    for group in &groups {
        y += HEAD;
        let _ = writeln!(
            svg,
            "<text x=\"10\" y=\"{:.1}\" font-weight=\"bold\">{}, {}</text>",
            y - 8.0,
            escape(&group.kind),
            escape(&group.unit)
        );
        let largest = group.largest();
        for figure in &group.figures {
            bar(&mut svg, figure, y, LENGTH / largest);
            y += ROW;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Figures on one scale.
struct Group<'a> {
    kind: String,
    unit: String,
    figures: Vec<&'a Figure>,
}

impl Group<'_> {
    /// A floor that is far beyond all values (a rate that nothing comes near) is not drawn.
    fn largest(&self) -> f64 {
        let largest =
            self.figures.iter().map(|figure| figure.value).fold(f64::MIN_POSITIVE, f64::max);
        let floors = self.figures.iter().filter_map(|figure| figure.floor);
        floors.filter(|floor| *floor < largest * FAR).fold(largest, f64::max)
    }
}

/// By the first word of the name, the unit, and for the pipeline the number of connections: in the
/// order in which they come first.
fn groups(figures: &[Figure]) -> Vec<Group<'_>> {
    let mut order = BTreeMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for figure in figures {
        let words: Vec<_> = figure.name.split('/').collect();
        let kind = match words[..] {
            ["pipeline", _, connections, _] => format!("pipeline, {connections} connections"),
            [first, ..] => first.to_owned(),
            [] => String::new(),
        };
        let next = groups.len();
        let place = *order.entry((kind.clone(), figure.unit.clone())).or_insert(next);
        if place == next {
            groups.push(Group { kind, unit: figure.unit.clone(), figures: Vec::new() });
        }
        groups[place].figures.push(figure);
    }
    groups
}

fn bar(svg: &mut String, figure: &Figure, y: f64, scale: f64) {
    let color = match figure.reached() {
        Some(true) => REACHED,
        Some(false) => MISSED,
        None => NEUTRAL,
    };
    let length = (figure.value * scale).max(1.0);
    let (middle, top) = (y + ROW / 2.0 + 4.0, y + 3.0);
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>\
         <rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{:.1}\" fill=\"{color}\"/>",
        LEFT - 8.0,
        escape(&figure.name),
        ROW - 6.0
    );
    let mut label = number(figure.value);
    let floor = figure.floor.map(|floor| floor * scale).filter(|floor| *floor <= LENGTH);
    if let Some(floor) = floor {
        let x = LEFT + floor;
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"2\" height=\"{:.1}\" fill=\"black\"/>",
            x - 1.0,
            y + 1.0,
            ROW - 2.0
        );
    }
    if let Some(ratio) = figure.ratio {
        let _ = write!(label, " ({} x floor)", share(ratio));
    }
    let past = LEFT + length.max(floor.unwrap_or(0.0)) + 6.0;
    let _ = writeln!(svg, "<text x=\"{past:.1}\" y=\"{middle:.1}\">{}</text>", escape(&label));
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::Better;
    use super::*;

    #[test]
    fn bars_are_as_long_as_values_and_marks_are_at_floors() {
        let figures = [
            Figure::new("pipeline/nat/1000/1", 100.0, "ns", Better::Less)
                .over(50.0, "bare")
                .ratio_target(2.5),
            Figure::new("pipeline/direct/1000/1", 25.0, "ns", Better::Less),
            Figure::new("idle/cpu", 0.5, "%", Better::Less).value_target(0.1, " %"),
        ];
        let svg = chart(&figures, "CPU <1> & \"more\"");
        assert!(svg.contains("CPU &lt;1&gt; &amp; &quot;more&quot;"));
        for (name, width, color) in
            [("nat/1000", 440.0, REACHED), ("direct", 110.0, NEUTRAL), ("idle/cpu", 440.0, MISSED)]
        {
            let line = svg.lines().find(|line| line.contains(name)).unwrap();
            let expected = format!("width=\"{width:.1}\" height=\"12.0\" fill=\"{color}\"");
            assert!(line.contains(&expected), "{line}");
        }
        assert!(
            svg.contains(&format!("<rect x=\"{:.1}\"", LEFT + 220.0 - 1.0)),
            "the floor's mark"
        );
    }

    #[test]
    fn what_is_drawn_is_well_formed() {
        let figure = Figure::new("a/b", 0.0, "ns", Better::Less);
        let svg = chart(&[figure], "");
        for element in ["svg", "text"] {
            let opened = svg.matches(&format!("<{element} ")).count();
            assert_eq!(opened, svg.matches(&format!("</{element}>")).count(), "{element}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

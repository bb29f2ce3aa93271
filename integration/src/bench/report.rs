//! Figures for people and for programs.

use std::fmt::Write;

use super::Figure;

/// A table that says what its columns are.
pub fn table(figures: &[Figure]) -> String {
    let mut text = String::from(
        "Median nanoseconds per packet in a worker over a memory port, one core.\n\
         packet    from the wire's queue to the wire's queue: receive, pipeline, transmit\n\
         floor     the same frames through the same port without the pipeline, measured in turn\n\
         pipeline  packet - floor: parse, connection, rewrite, route, Ethernet header\n\
         ratio     packet / floor\n\n",
    );
    let width = figures.iter().map(|figure| figure.name.len()).max().unwrap_or(0);
    let _ = writeln!(
        text,
        "{:width$} {:>9} {:>9} {:>9} {:>7}",
        "", "packet", "floor", "pipeline", "ratio"
    );
    for Figure { name, value, floor, ratio, .. } in figures {
        let pipeline = value - floor;
        let _ =
            writeln!(text, "{name:width$} {value:>9.1} {floor:>9.1} {pipeline:>9.1} {ratio:>7.2}");
    }
    text
}

/// An array of `{name, value, unit, floor, ratio}`, numbers to a tenth of a nanosecond and a
/// hundredth.
///
/// # Errors
/// None that a figure could cause.
pub fn json(figures: &[Figure]) -> serde_json::Result<String> {
    let round = |number: f64, places: f64| (number * places).round() / places;
    let rounded: Vec<Figure> = figures
        .iter()
        .map(|figure| Figure {
            value: round(figure.value, 10.0),
            floor: round(figure.floor, 10.0),
            ratio: round(figure.ratio, 100.0),
            ..figure.clone()
        })
        .collect();
    serde_json::to_string_pretty(&rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> [Figure; 1] {
        let name = "nat/ipv4/1000-flows".to_owned();
        [Figure { name, value: 151.26, unit: "ns/packet", floor: 50.0, ratio: 3.0252 }]
    }

    #[test]
    fn programs_get_exactly_the_five_fields() {
        let text = json(&figures()).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!([
            {"name": "nat/ipv4/1000-flows", "value": 151.3, "unit": "ns/packet", "floor": 50.0, "ratio": 3.03}
        ]);
        assert_eq!(parsed, expected);
    }

    #[test]
    fn people_are_told_what_the_pipeline_itself_costs() {
        let text = table(&figures());
        let line = text.lines().last().unwrap();
        let columns: Vec<_> = line.split_whitespace().collect();
        assert_eq!(columns, ["nat/ipv4/1000-flows", "151.3", "50.0", "101.3", "3.03"]);
    }
}

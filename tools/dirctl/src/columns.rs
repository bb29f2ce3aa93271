//! Text in columns as wide as their widest cell.

/// On which side a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Lays rows out under each other, two blanks between columns and before the first, without blanks
/// at the end of a line. Cells must be plain text: colour comes afterwards.
pub fn columns<const N: usize>(sides: [Side; N], rows: &[[String; N]]) -> Vec<String> {
    let width = |place: usize| rows.iter().map(|row| row[place].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let lines = rows.iter().map(|row| {
        let mut line = String::new();
        for ((cell, width), side) in row.iter().zip(widths).zip(sides) {
            line.push_str("  ");
            line.push_str(&match side {
                Side::Left => format!("{cell:<width$}"),
                Side::Right => format!("{cell:>width$}"),
            });
        }
        line.truncate(line.trim_end().len());
        line
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks() {
        let rows = [["a", "1", "x"], ["bcd", "200", ""]].map(|row| row.map(str::to_owned));
        let lines = columns([Side::Left, Side::Right, Side::Left], &rows);
        assert_eq!(lines, ["  a      1  x", "  bcd  200"]);
    }
}

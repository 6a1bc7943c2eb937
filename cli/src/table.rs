//! Aligned columns for people.

use std::io::{self, Write};

/// Columns between two cells.
const GAP: usize = 2;

/// Prints rows in columns, each as wide as its widest cell. Nothing is padded at the end of a line.
pub(crate) fn print<const N: usize>(rows: &[[String; N]], out: &mut impl Write) -> io::Result<()> {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let missing = width - cell.chars().count();
            line.push_str(cell);
            line.push_str(&" ".repeat(missing + GAP));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "bb", "c"], ["äää", "b", ""]].map(|row| row.map(str::to_string));
        let mut out = Vec::new();
        print(&rows, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a    bb  c\näää  b\n");
    }
}

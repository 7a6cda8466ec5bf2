//! Text from outside on its way into a log line, an answer or a page.

/// Fit for one line: what is no plain character is written as an escape, so that nobody outside forges a line of the log or moves
/// the cursor of whoever reads it, and what is longer than `most` characters ends in `…`.
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut left = most;
    for c in text.chars() {
        let escaped = match c {
            // Quoting is for whoever puts the text into a sentence; what is quoted already stays as it is.
            '"' | '\'' | '\\' => c.to_string(),
            c => c.escape_debug().to_string(),
        };
        let Some(rest) = left.checked_sub(escaped.chars().count()) else {
            line.push('…');
            break;
        };
        left = rest;
        line.push_str(&escaped);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_makes_a_second_line() {
        for (text, line) in [
            ("Müller \"12\"", "Müller \"12\""),
            ("a\n2027-04-02 ERROR b\r\t", "a\\n2027-04-02 ERROR b\\r\\t"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{2028}\u{202e}x", "\\u{2028}\\u{202e}x"),
            ("\\n", "\\n"),
            ("", ""),
        ] {
            assert_eq!(one_line(text, 100), line);
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdef", 5), "abcde…");
        // Never within an escape.
        assert_eq!(one_line("ab\u{1b}", 5), "ab…");
    }
}

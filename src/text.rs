//! Text from outside on its way into a log line, an answer or a page; and the fixed words of those values that have some.

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

/// At most `most` characters; what is cut off is marked by `…`.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    text.chars()
        .take(most.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// Declares an enum whose values are written as fixed words, the same in traces, payloads, configuration and command line.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$about])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::text::UnknownWord;

            fn from_str(text: &str) -> Result<$name, $crate::text::UnknownWord> {
                $name::ALL
                    .iter()
                    .copied()
                    .find(|value| value.as_str() == text)
                    .ok_or($crate::text::UnknownWord($crate::text::concat_words!($($word),+)))
            }
        }
    };
}

macro_rules! concat_words {
    ($first:literal $(, $word:literal)*) => {
        concat!($first $(, " | ", $word)*)
    };
}

pub(crate) use {concat_words, words};

/// The text is none of the words that may stand here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is expected")]
pub struct UnknownWord(pub(crate) &'static str);

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
        assert_eq!(shortened("Žofie", 5), "Žofie");
        assert_eq!(shortened("Žofie", 4), "Žof…");
        assert_eq!(shortened("", 0), "");
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdef", 5), "abcde…");
        // Never within an escape.
        assert_eq!(one_line("ab\u{1b}", 5), "ab…");
    }
}

//! What PGN text consists of (its standard, sections 5 to 8). Nothing that stands in it is passed over unsaid, but what can be no
//! move: glyphs, and evaluations without letters or digits.

use std::mem;

use shakmaty::{Color, KnownOutcome, Outcome};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Tag {
        name: &'a str,
        value: String,
    },
    /// A line that begins like a tag pair and is none.
    BadTag(&'a str),
    /// The number of a move, without its dots.
    Number(&'a str),
    /// A move, or what stands where one should.
    Word(&'a str),
    Comment(&'a str),
    /// A comment that goes on until the end of the text.
    OpenComment,
    VariationBegins,
    VariationEnds,
    Outcome(Outcome),
}

/// Gives each token, and whether there was a blank line between it and the last one that is no comment.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    rest: &'a str,
    is_new_line: bool,
    /// Several tag pairs may share a line.
    is_after_tag: bool,
    is_after_blank: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Tokens<'a> {
        Tokens {
            rest: text.strip_prefix('\u{feff}').unwrap_or(text),
            is_new_line: true,
            is_after_tag: false,
            is_after_blank: false,
        }
    }

    /// What stands before this place of the rest, which is passed.
    fn pass(&mut self, bytes: usize) -> &'a str {
        let (passed, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        passed
    }

    fn pass_until(&mut self, is_end: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        self.pass(end)
    }

    fn token(&mut self, first: char) -> Option<Token<'a>> {
        match first {
            '{' => {
                self.pass(1);
                let comment = self.pass_until(|c| c == '}');
                Some(match self.rest.is_empty() {
                    true => Token::OpenComment,
                    false => {
                        self.pass(1);
                        Token::Comment(comment)
                    }
                })
            }
            '(' | ')' | '*' => {
                self.pass(1);
                Some(match first {
                    '(' => Token::VariationBegins,
                    ')' => Token::VariationEnds,
                    _ => Token::Outcome(Outcome::Unknown),
                })
            }
            '$' => {
                self.pass(1);
                self.pass_until(|c| !c.is_ascii_digit());
                None
            }
            '}' => Some(Token::Word(self.pass(1))),
            _ => self.word(),
        }
    }

    /// `None` for what has no meaning here.
    fn word(&mut self) -> Option<Token<'a>> {
        let is_end = |c: char| c.is_whitespace() || "{}()!?$;*".contains(c);
        let word = &self.rest[..self.rest.find(is_end).unwrap_or(self.rest.len())];
        if let Some(outcome) = outcome(word) {
            self.pass(word.len());
            return Some(Token::Outcome(outcome));
        }
        let after = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = word.len() - after.len();
        if digits > 0 && (after.is_empty() || after.starts_with(|c| is_dot(c) || c.is_alphabetic()))
        {
            return Some(Token::Number(self.pass(digits)));
        }
        self.pass(word.len());
        let word = word.trim_end_matches("e.p.").trim_end_matches(is_dot);
        // What is no UTF-8 was replaced; it can have been letters.
        let tells = |c: char| c.is_alphanumeric() || c == char::REPLACEMENT_CHARACTER;
        (word.contains(tells) || word == "--").then_some(Token::Word(word))
    }

    fn tag(&mut self) -> Token<'a> {
        let line = &self.rest[..self.rest.find('\n').unwrap_or(self.rest.len())];
        match tag(line) {
            Some((name, value, bytes)) => {
                self.pass(bytes);
                Token::Tag { name, value }
            }
            None => Token::BadTag(self.pass(line.len()).trim_end()),
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (Token<'a>, bool);

    fn next(&mut self) -> Option<(Token<'a>, bool)> {
        loop {
            let first = self.rest.chars().next()?;
            let is_new_line = mem::take(&mut self.is_new_line);
            match first {
                '\n' => {
                    self.pass(1);
                    self.is_after_blank |= is_new_line;
                    self.is_new_line = true;
                }
                ';' => {
                    self.pass_until(|c| c == '\n');
                }
                '%' if is_new_line => {
                    self.pass_until(|c| c == '\n');
                }
                c if c.is_whitespace() => {
                    self.pass(c.len_utf8());
                    self.is_new_line = is_new_line;
                }
                c if is_dot(c) || matches!(c, '!' | '?') => {
                    self.pass(c.len_utf8());
                }
                c => {
                    let is_tag = c == '[' && (is_new_line || self.is_after_tag);
                    self.is_after_tag = is_tag;
                    let token = match is_tag {
                        true => Some(self.tag()),
                        false => self.token(c),
                    };
                    if let Some(token) = token {
                        let is_after_blank = self.is_after_blank;
                        self.is_after_blank &= matches!(token, Token::Comment(_));
                        return Some((token, is_after_blank));
                    }
                }
            }
        }
    }
}

fn is_dot(c: char) -> bool {
    matches!(c, '.' | '…')
}

fn is_dash(c: char) -> bool {
    matches!(c, '-' | '–' | '—')
}

fn outcome(word: &str) -> Option<Outcome> {
    let decisive = |winner| Outcome::Known(KnownOutcome::Decisive { winner });
    match word.split_once(is_dash)? {
        ("1", "0") => Some(decisive(Color::White)),
        ("0", "1") => Some(decisive(Color::Black)),
        ("1/2", "1/2") | ("½", "½") => Some(Outcome::Known(KnownOutcome::Draw)),
        _ => None,
    }
}

/// Name and value of the tag pair with which the line begins, and its bytes. A value may hold quotes that its writer did not
/// escape: it ends with the first one before a bracket.
fn tag(line: &str) -> Option<(&str, String, usize)> {
    let inside = line.strip_prefix('[')?.trim_start();
    let (name, rest) = inside.split_once('"')?;
    let mut value = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.push(chars.next()?.1),
            '"' => {
                let after = rest[at + 1..].trim_start();
                if let Some(after) = after.strip_prefix(']') {
                    return Some((name.trim_end(), value, line.len() - after.len()));
                }
                value.push(c);
            }
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        Tokens::new(text)
            .map(|(token, _)| match token {
                Token::Tag { name, value } => format!("[{name}={value}]"),
                Token::BadTag(line) => format!("bad {line}"),
                Token::Number(number) => format!("{number}."),
                Token::Word(word) => word.to_owned(),
                Token::Comment(comment) => format!("{{{comment}}}"),
                Token::OpenComment => "{".to_owned(),
                Token::VariationBegins => "(".to_owned(),
                Token::VariationEnds => ")".to_owned(),
                Token::Outcome(outcome) => outcome.to_string(),
            })
            .collect()
    }

    #[test]
    fn movetext_is_taken_apart() {
        for (text, expected) in [
            ("1.e4 e5 2. Nf3", "1. e4 e5 2. Nf3"),
            ("1 e4 1... e5 2…Nf3", "1. e4 1. e5 2. Nf3"),
            ("1e4!? e5$13 2.f4?? *", "1. e4 e5 2. f4 *"),
            ("1. ... e5+- += ± -+ 2.--", "1. e5+- 2. --"),
            ("exd6e.p. exd6 e.p. 0-0 0-0-0+", "exd6 exd6 0-0 0-0-0+"),
            ("e4{a (b;}e5(d5 (c5))e6", "e4 {a (b;} e5 ( d5 ( c5 ) ) e6"),
            ("e4 ; e5 {\ne6\n%e7\ne8", "e4 e6 e8"),
            ("1-0 0–1 ½-½ 1/2-1/2", "1-0 0-1 1/2-1/2 1/2-1/2"),
            ("1-e4 1/2-", "1-e4 1/2-"),
            ("e4 {e5 e6", "e4 {"),
            ("e4 } [x] O-O", "e4 } [x] O-O"),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn tag_pairs_are_taken_apart() {
        for (text, expected) in [
            ("\u{feff}[A \"b\"] [C \"d\"]\r\n", "[A=b] [C=d]"),
            ("%[A \"b\"]\n  [ C  \"d\" ]", "[C=d]"),
            (r#"[A "\"b\" \\ c"]"#, r#"[A="b" \ c]"#),
            (r#"[A "the "b" c"]"#, r#"[A=the "b" c]"#),
            ("[A \"b]\n[C d]\n[E \"f\"]", "bad [A \"b] bad [C d] [E=f]"),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn blank_lines_are_told() {
        let blank: Vec<bool> = Tokens::new("a\nb\n\nc\r\n \r\n{x}\nd")
            .map(|(_, blank)| blank)
            .collect();
        assert_eq!(blank, [false, false, true, true, true]);
    }
}

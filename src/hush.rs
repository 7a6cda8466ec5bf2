//! Log lines that somebody outside can cause as often as he likes: each reason once a minute, the rest counted.

use std::collections::BTreeMap;
use std::ops::Add;
use std::time::Duration;

/// Knows what was said lately. Time is what whoever asks goes by: an instant, or how long something has run.
#[derive(Debug)]
pub struct Hush<T> {
    said: BTreeMap<String, Said<T>>,
}

#[derive(Debug)]
struct Said<T> {
    at: T,
    kept: Option<Kept>,
}

/// What was kept quiet for a minute.
#[derive(Debug, PartialEq, Eq)]
pub struct Kept {
    /// What all of them say; where they differ stands `…`.
    pub text: String,
    pub times: u64,
}

impl<T> Default for Hush<T> {
    fn default() -> Hush<T> {
        let said = BTreeMap::new();
        Hush { said }
    }
}

impl<T: Copy + PartialOrd + Add<Duration, Output = T>> Hush<T> {
    /// Whether this line is to be said. Lines that differ only in numbers and in what they quote count as one.
    pub fn may_say(&mut self, text: &str, now: T) -> bool {
        let mut reason = reason(text);
        if self.said.len() >= MOST_REASONS && !self.said.contains_key(&reason) {
            reason = String::new();
        }
        if let Some(said) = self.said.get_mut(&reason)
            && (said.kept.is_some() || now < said.at + EVERY)
        {
            let kept = said.kept.get_or_insert_with(|| Kept {
                text: text.to_owned(),
                times: 0,
            });
            kept.text = common(&kept.text, text);
            kept.times += 1;
            return false;
        }
        let said = Said {
            at: now,
            kept: None,
        };
        self.said.insert(reason, said);
        true
    }

    /// What is to be said now of lines that were not; to be asked now and then.
    pub fn poll(&mut self, now: T) -> Vec<Kept> {
        let mut kept = Vec::new();
        self.said.retain(|_, said| {
            if now < said.at + EVERY {
                return true;
            }
            let Some(more) = said.kept.take() else {
                return false;
            };
            kept.push(more);
            said.at = now;
            true
        });
        kept
    }
}

const EVERY: Duration = Duration::from_secs(60);
/// Further ones are counted as one.
const MOST_REASONS: usize = 32;

fn reason(text: &str) -> String {
    let start: String = text.chars().take(200).collect();
    blanked(&start)
}

/// With `…` in the place of each number and of what is quoted.
fn blanked(text: &str) -> String {
    let mut quote = None;
    let mut kept = String::new();
    for c in text.chars() {
        match quote {
            Some(end) if c == end => {
                quote = None;
                kept.push(c);
            }
            Some(_) => {}
            None if matches!(c, '"' | '`') => {
                quote = Some(c);
                kept.push(c);
                kept.push('…');
            }
            None if c.is_ascii_digit() => {
                if !kept.ends_with('…') {
                    kept.push('…');
                }
            }
            None => kept.push(c),
        }
    }
    kept
}

fn common(one: &str, other: &str) -> String {
    let (blank, other_blank) = (blanked(one), blanked(other));
    match (one == other, blank == other_blank) {
        (true, _) => one.to_owned(),
        (_, true) => blank,
        _ => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_once_a_minute_and_then_counted() {
        let mut hush = Hush::default();
        let at = Duration::from_secs;
        assert!(hush.may_say("no alert \"a1\" is open, ply 7", at(0)));
        assert!(!hush.may_say("no alert \"a2\" is open, ply 8", at(1)));
        assert!(hush.may_say("unknown verb \"x\"", at(2)));
        assert!(!hush.may_say("no alert \"a1\" is open, ply 7", at(59)));
        assert_eq!(hush.poll(at(59)), []);
        let kept = Kept {
            text: "no alert \"…\" is open, ply …".into(),
            times: 2,
        };
        assert_eq!(hush.poll(at(70)), [kept]);
        assert!(!hush.may_say("no alert \"a1\" is open, ply 7", at(80)));
        assert!(hush.may_say("unknown verb \"y\"", at(80)));
        let kept = Kept {
            text: "no alert \"a1\" is open, ply 7".into(),
            times: 1,
        };
        assert_eq!(hush.poll(at(200)), [kept]);
        assert_eq!(hush.poll(at(300)), []);
        assert!(hush.said.is_empty());
    }

    #[test]
    fn so_many_reasons_are_too_many() {
        let mut hush = Hush::default();
        let now = Duration::ZERO;
        let letters = |n: u32| char::from_u32(0x4e00 + n).unwrap().to_string();
        let said = (0..1000).filter(|n| hush.may_say(&letters(*n), now));
        assert_eq!(said.count(), MOST_REASONS + 1);
    }
}

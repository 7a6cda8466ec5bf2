//! How often the log repeats what a board says is wrong with it: a loose wire may have it say so at every look.

use crate::Millis;

/// What the log was told last.
#[derive(Debug, Default)]
pub(super) struct FaultsSaid {
    last: Option<(Millis, String)>,
    kept: u64,
}

/// The same is told again after so long.
const SAME_EVERY_MS: Millis = 60_000;
/// And something else.
const OTHER_EVERY_MS: Millis = 10_000;

impl FaultsSaid {
    /// Whether the log is to be told of this now; if so, how many it was not told of since the last.
    pub(super) fn handle_fault(&mut self, now: Millis, text: &str) -> Option<u64> {
        if let Some((at, last)) = &self.last {
            let every = match last == text {
                true => SAME_EVERY_MS,
                false => OTHER_EVERY_MS,
            };
            if now < at + every {
                self.kept += 1;
                return None;
            }
        }
        self.last = Some((now, text.to_owned()));
        Some(std::mem::take(&mut self.kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_told_of_the_same_once_a_minute() {
        let mut said = FaultsSaid::default();
        assert_eq!(said.handle_fault(0, "row 3"), Some(0));
        let told = (1..=600).filter_map(|n| said.handle_fault(n * 100, "row 3"));
        assert_eq!(told.collect::<Vec<_>>(), [599]);
        assert_eq!(said.handle_fault(65_000, "row 4"), None);
        assert_eq!(said.handle_fault(70_000, "row 4"), Some(1));
    }

    #[test]
    fn ever_new_words_are_no_way_round_it() {
        let mut said = FaultsSaid::default();
        let told = (0..60_000).filter(|ms| said.handle_fault(*ms, &ms.to_string()).is_some());
        assert_eq!(told.count(), 6);
    }
}

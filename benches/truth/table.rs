//! The figures of many games in one line.

use crate::verdict::Verdict;
use jadoube::Millis;

/// What the columns are.
pub const HEAD: &str = "kind               games exact         plies  silent  doubts  alarms  corrections  median      99 %";

/// All games of a kind.
#[derive(Default)]
pub struct Row {
    games: usize,
    exact: usize,
    plies: usize,
    unbroken: usize,
    silent: usize,
    doubts: usize,
    false_alarms: usize,
    corrections: usize,
    delays: Vec<Millis>,
}

impl Row {
    pub fn add(&mut self, verdict: &Verdict) {
        self.games += 1;
        self.exact += usize::from(verdict.exact);
        self.plies += verdict.plies;
        self.unbroken += verdict.unbroken;
        self.silent += usize::from(verdict.silent);
        self.doubts += verdict.doubts;
        self.false_alarms += verdict.false_alarms.len();
        self.corrections += verdict.corrections;
        self.delays.extend(&verdict.delays);
    }

    pub fn line(&mut self, name: &str) -> String {
        self.delays.sort_unstable();
        format!(
            "{name:<18} {:>11} {:>13} {:>7} {:>7} {:>7} {:>12.2} {:>7} {:>9}",
            format!("{}/{}", self.exact, self.games),
            format!("{}/{}", self.unbroken, self.plies),
            self.silent,
            self.doubts,
            self.false_alarms,
            self.corrections as f64 * 100.0 / self.plies.max(1) as f64,
            self.delay(50),
            self.delay(99),
        )
    }

    fn delay(&self, percent: usize) -> String {
        match self.delays.get(self.delays.len() * percent / 100) {
            Some(ms) => format!("{ms} ms"),
            None => "-".into(),
        }
    }
}

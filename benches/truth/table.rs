//! The figures of many games in one line.

use crate::kinds::Origin;
use crate::verdict::Verdict;
use jadoube::Millis;

/// What the columns are.
pub const HEAD: &str = "kind                       of corpus       random         plies  silent  doubts  false alarms  irregularities  \
    to the illegal  corrections  median      99 %";

/// All games of a kind.
#[derive(Default)]
pub struct Row {
    corpus: Exact,
    random: Exact,
    plies: usize,
    unbroken: usize,
    silent: usize,
    doubts: usize,
    false_alarms: usize,
    irregularities: usize,
    told: usize,
    /// Games in which an illegal move stands, and those that are read rightly up to it.
    standing: usize,
    exact_up_to: usize,
    corrections: usize,
    delays: Vec<Millis>,
}

/// How many games of one origin were read exactly.
#[derive(Default)]
struct Exact {
    games: usize,
    exact: usize,
    named: usize,
}

impl Exact {
    fn add(&mut self, verdict: &Verdict) {
        self.games += 1;
        self.exact += usize::from(verdict.exact);
        self.named += usize::from(verdict.named);
    }

    /// So many exactly, and so many with the alternatives that are named.
    fn of(&self) -> String {
        match self.games {
            0 => "-".into(),
            games => format!("{}+{}/{games}", self.exact, self.named - self.exact),
        }
    }
}

impl Row {
    pub fn add(&mut self, origin: Origin, verdict: &Verdict) {
        match origin {
            Origin::Corpus => self.corpus.add(verdict),
            Origin::Random => self.random.add(verdict),
        }
        self.plies += verdict.plies;
        self.unbroken += verdict.unbroken;
        self.silent += usize::from(verdict.silent);
        self.doubts += verdict.doubts;
        self.false_alarms += verdict.false_alarms.len();
        self.irregularities += verdict.irregularities;
        self.told += verdict.irregularities - verdict.missed.len();
        if verdict.ends_irregularly {
            self.standing += 1;
            self.exact_up_to += usize::from(verdict.exact);
        }
        self.corrections += verdict.corrections;
        self.delays.extend(&verdict.delays);
    }

    pub fn line(&mut self, name: &str) -> String {
        self.delays.sort_unstable();
        format!(
            "{name:<21} {:>12} {:>12} {:>13} {:>7} {:>7} {:>13} {:>15} {:>15} {:>12.2} {:>7} {:>9}",
            self.corpus.of(),
            self.random.of(),
            of(self.unbroken, self.plies),
            self.silent,
            self.doubts,
            self.false_alarms,
            of(self.told, self.irregularities),
            of(self.exact_up_to, self.standing),
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

fn of(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "-".into();
    }
    format!("{part}/{whole}")
}

//! What the record of a game is worth, beside what was really played.

use crate::live::{Alert, Live, Ply, Told};
use jadoube::Millis;
use jadoube::publish::AlertKind;
use jadoube::sim::script::GameTruth;
use std::collections::BTreeMap;

/// How well a game was read.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Plies that were played.
    pub plies: usize,
    /// Plies that stand in the record as they were played, from the first one on.
    pub unbroken: usize,
    /// The record is what was played, no more and no less.
    pub exact: bool,
    /// A ply is wrong, and neither doubt nor alert says so.
    pub silent: bool,
    /// Plies in doubt.
    pub doubts: usize,
    /// Alerts at `warn` and louder for which there is no cause, in words.
    pub false_alarms: Vec<String>,
    pub corrections: usize,
    /// From the hand to the publication of each ply.
    pub delays: Vec<Millis>,
    why: String,
}

impl Verdict {
    pub fn new(live: &Live) -> Verdict {
        let Live {
            truth,
            told,
            began_ms,
            ..
        } = live;
        let played = truth.uci();
        let unbroken = unbroken(&told.record, &played);
        let exact = unbroken == played.len() && unbroken == told.record.len();
        let false_alarms: Vec<String> = told
            .alerts
            .iter()
            .filter(|alert| alert.loud_ms.is_some())
            .map(|alert| in_words(alert, *began_ms))
            .collect();
        Verdict {
            plies: played.len(),
            unbroken,
            exact,
            silent: !exact && !is_told_of(live, unbroken),
            doubts: told.record.iter().filter(|ply| ply.doubt.is_some()).count(),
            corrections: told.corrections,
            delays: delays(truth, *began_ms, &told.first),
            why: why(truth, told, unbroken, *began_ms),
            false_alarms,
        }
    }

    pub fn is_clean(&self) -> bool {
        self.exact && self.false_alarms.is_empty()
    }

    /// Where it went wrong, in one line.
    pub fn why(&self) -> String {
        format!(
            "{}{}; alarms {:?}",
            if self.silent { "SILENT " } else { "" },
            self.why,
            self.false_alarms
        )
    }
}

fn unbroken(record: &[Ply], played: &[&str]) -> usize {
    record
        .iter()
        .zip(played)
        .take_while(|(ply, played)| ply.uci == **played)
        .count()
}

/// Whether anything says that the record may be wrong from this place on: doubt on that ply or an earlier one, or an alert about the
/// board that was open about when the ply was told, or ought to have been.
fn is_told_of(live: &Live, at: usize) -> bool {
    let Told { record, first, .. } = &live.told;
    if record.iter().take(at + 1).any(|ply| ply.doubt.is_some()) {
        return true;
    }
    let told_ms = record
        .get(at)
        .and_then(|ply| first.get(&(at, ply.uci.clone())))
        .copied();
    let played_ms = live
        .truth
        .plies
        .get(at)
        .map(|played| live.began_ms + played.placed_ms);
    [told_ms, played_ms].into_iter().flatten().any(|ms| {
        live.told
            .alerts
            .iter()
            .filter(|alert| is_about_the_board(alert.kind))
            .any(|alert| {
                let open_until = alert.closed_ms.unwrap_or(Millis::MAX);
                alert.raised_ms <= ms + NEAR_MS && open_until.saturating_add(NEAR_MS) >= ms
            })
    })
}

fn is_about_the_board(kind: AlertKind) -> bool {
    matches!(
        kind,
        AlertKind::IllegalMove
            | AlertKind::OutOfTurn
            | AlertKind::Displaced
            | AlertKind::CastlingUnfinished
            | AlertKind::PromotionUnfinished
            | AlertKind::PressWithoutMove
            | AlertKind::Ambiguous
            | AlertKind::Gap
            | AlertKind::IllegalPosition
            | AlertKind::SquareFaulty
            | AlertKind::BoardMissing
            | AlertKind::BoardSilent
    )
}

fn delays(
    truth: &GameTruth,
    began_ms: Millis,
    first: &BTreeMap<(usize, String), Millis>,
) -> Vec<Millis> {
    truth
        .plies
        .iter()
        .enumerate()
        .filter_map(|(index, played)| {
            let told = first.get(&(index, played.uci.clone()))?;
            Some(told.saturating_sub(began_ms + played.placed_ms))
        })
        .collect()
}

fn in_words(alert: &Alert, began_ms: Millis) -> String {
    let ms = alert.loud_ms.unwrap_or(alert.raised_ms);
    format!(
        "{:?} {} at {:.1} s",
        alert.kind,
        alert.squares.join(" "),
        ms.saturating_sub(began_ms) as f64 / 1000.0
    )
}

fn why(truth: &GameTruth, told: &Told, at: usize, began_ms: Millis) -> String {
    let played: Vec<&str> = truth.uci();
    let read: Vec<&str> = told.record.iter().map(|ply| ply.uci.as_str()).collect();
    let next = |all: &[&str]| -> String { all[at..all.len().min(at + 3)].join(" ") };
    let seconds = truth.plies.get(at).map_or(0, |played| played.placed_ms) as f64 / 1000.0;
    format!(
        "{at} of {} (read {}), then [{}] for [{}], {seconds:.1} s after {:.1} s; doubts {}",
        played.len(),
        read.len(),
        next(&read),
        next(&played),
        began_ms as f64 / 1000.0,
        told.record.iter().filter(|ply| ply.doubt.is_some()).count(),
    )
}

/// An alert speaks of what happened within so long before or after it.
const NEAR_MS: Millis = 10_000;

//! What the record of a game is worth, beside what was really played.

use crate::live::{Alert, Live, Ply, Told};
use jadoube::Millis;
use jadoube::publish::AlertKind;
use jadoube::sim::script::{GameTruth, Incident, IncidentKind};
use jadoube::wire::Family;
use shakmaty::Square;
use std::collections::BTreeMap;

/// How well a game was read.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Plies that were played.
    pub plies: usize,
    /// Plies that stand in the record as they were played, from the first one on.
    pub unbroken: usize,
    /// The record is what was played, no more and no less; where an illegal move stands, up to that.
    pub exact: bool,
    /// It is what was played, or names that among the alternatives to what it has.
    pub named: bool,
    /// Whether an illegal move stands, so that there is no right record of the whole.
    pub ends_irregularly: bool,
    /// A ply is wrong, and neither doubt nor alert says so.
    pub silent: bool,
    /// Plies in doubt.
    pub doubts: usize,
    /// What somebody should have been told of, and the board could show.
    pub irregularities: usize,
    /// Irregularities of which nobody was told in time, in words.
    pub missed: Vec<String>,
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
        let ends_irregularly = truth.ends_irregularly();
        let exact = unbroken == played.len() && (ends_irregularly || unbroken == told.record.len());
        let due: Vec<&Incident> = truth
            .incidents
            .iter()
            .filter(|incident| incident.due_ms.is_some())
            .filter(|incident| incident.in_outline || live.family == Family::Dgt)
            .collect();
        let missed = due
            .iter()
            .filter(|incident| {
                !told
                    .alerts
                    .iter()
                    .any(|alert| is_in_time(alert, incident, *began_ms))
            })
            .map(|incident| incident_in_words(incident))
            .collect();
        let false_alarms: Vec<String> = told
            .alerts
            .iter()
            .filter(|alert| !FROM_HANDS.contains(&alert.kind))
            .filter(|alert| {
                alert.loud_ms.is_some_and(|loud_ms| {
                    !truth
                        .incidents
                        .iter()
                        .any(|incident| explains(incident, alert, loud_ms, *began_ms))
                })
            })
            .map(|alert| in_words(alert, *began_ms))
            .collect();
        Verdict {
            plies: played.len(),
            unbroken,
            exact,
            named: exact || is_named(&told.record, &played),
            ends_irregularly,
            silent: !exact && !is_told_of(live, unbroken),
            doubts: told.record.iter().filter(|ply| ply.doubt.is_some()).count(),
            irregularities: due.len(),
            missed,
            corrections: told.corrections,
            delays: delays(truth, *began_ms, &told.first),
            why: why(truth, told, unbroken, *began_ms),
            false_alarms,
        }
    }

    pub fn is_clean(&self) -> bool {
        self.exact && self.false_alarms.is_empty() && self.missed.is_empty()
    }

    /// Whether whoever reads along has more to take back than to read.
    pub fn is_restless(&self) -> bool {
        self.corrections > self.plies
    }

    /// Where it went wrong, in one line.
    pub fn why(&self) -> String {
        let mut text = String::new();
        if self.silent {
            text += "SILENT ";
        }
        if !self.exact && self.named {
            text += "NAMED ";
        }
        if !self.exact {
            text += &self.why;
        }
        for (name, all) in [("false", &self.false_alarms), ("missed", &self.missed)] {
            if !all.is_empty() {
                text += &format!("; {name}: {}", all.join(", "));
            }
        }
        if self.is_restless() {
            text += &format!("; {} corrections", self.corrections);
        }
        text
    }
}

fn unbroken(record: &[Ply], played: &[&str]) -> usize {
    record
        .iter()
        .zip(played)
        .take_while(|(ply, played)| ply.uci == **played)
        .count()
}

/// Whether the game is what the record says, or offers as an alternative.
fn is_named(record: &[Ply], played: &[&str]) -> bool {
    let (Some((ply, rest)), Some((first, later))) = (record.split_first(), played.split_first())
    else {
        return record.is_empty() && played.is_empty();
    };
    let alternative = |line: &String| {
        let line: Vec<&str> = line.split(' ').collect();
        line.len() <= record.len()
            && played.starts_with(&line)
            && is_named(&record[line.len()..], &played[line.len()..])
    };
    (ply.uci == *first && is_named(rest, later)) || ply.alternatives.iter().any(alternative)
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

/// Whether the alert tells of the incident, and soon enough.
fn is_in_time(alert: &Alert, incident: &Incident, began_ms: Millis) -> bool {
    let due_ms = incident.due_ms.unwrap_or(incident.from_ms);
    let times = began_ms + incident.from_ms..=began_ms + due_ms + IN_TIME_MS;
    times.contains(&alert.raised_ms) && is_where(alert, incident)
}

/// Whether the incident is a cause for this alert to be loud now.
fn explains(incident: &Incident, alert: &Alert, loud_ms: Millis, began_ms: Millis) -> bool {
    let until = incident
        .to_ms
        .map_or(Millis::MAX, |to_ms| began_ms + to_ms + IN_TIME_MS);
    let anything = incident.kind == IncidentKind::IllegalStands;
    is_irregular(incident.kind)
        && (began_ms + incident.from_ms..=until).contains(&loud_ms)
        && (anything || is_where(alert, incident))
}

/// Whether something was on the board that no legal play explains, or a press that nothing does.
fn is_irregular(kind: IncidentKind) -> bool {
    match kind {
        IncidentKind::IllegalThenCorrected
        | IncidentKind::IllegalPressedThenRestored
        | IncidentKind::IllegalStands
        | IncidentKind::OutOfTurn
        | IncidentKind::Displaced
        | IncidentKind::BesideSquare
        | IncidentKind::HalfCastled
        | IncidentKind::PawnLeftOnLastRank
        | IncidentKind::VictimForgotten
        | IncidentKind::WrongColour
        | IncidentKind::PressedWithoutMove
        | IncidentKind::KnockedOver
        | IncidentKind::DeadSquare => true,
        IncidentKind::Retracted
        | IncidentKind::TakenBack
        | IncidentKind::Flicker
        | IncidentKind::Misread
        | IncidentKind::Analysis
        | IncidentKind::ResultKings
        | IncidentKind::SetUp
        | IncidentKind::SetUpWrong
        | IncidentKind::Adjusted
        | IncidentKind::Honorary
        | IncidentKind::EarlyStart
        | IncidentKind::Fetched
        | IncidentKind::Dispute
        | IncidentKind::ForFun
        | IncidentKind::ResultEntered
        | IncidentKind::BoardSwapped => false,
    }
}

fn is_where(alert: &Alert, incident: &Incident) -> bool {
    if incident.kind == IncidentKind::PressedWithoutMove {
        return alert.kind == AlertKind::PressWithoutMove;
    }
    incident
        .squares
        .iter()
        .any(|square| alert.squares.contains(&square.to_string()))
}

fn incident_in_words(incident: &Incident) -> String {
    let squares: Vec<String> = incident.squares.iter().map(Square::to_string).collect();
    let ms = incident.due_ms.unwrap_or(incident.from_ms);
    format!(
        "{}{} ({}) before ply {} at {:.1} s",
        incident.kind,
        incident
            .breach
            .map(|breach| format!(" {breach:?}"))
            .unwrap_or_default(),
        squares.join(" "),
        incident.ply,
        ms as f64 / 1000.0
    )
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

/// Whoever is to be told of something is told within this time.
const IN_TIME_MS: Millis = 5_000;

/// Alerts about what hands do to men, which may well be true of human ones.
const FROM_HANDS: &[AlertKind] = &[AlertKind::TouchViolation, AlertKind::ReleaseViolation];

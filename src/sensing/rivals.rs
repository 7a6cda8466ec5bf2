//! What else may have been played: lines that explain all that the board showed as well as the record does, or nearly.
//!
//! A board that knows its men leaves rivals only where several plies went unseen. One that sees no more than that something stands on
//! a square leaves one for each capture that the man could have made. Each rival is as long as the record, plays what is played after
//! it, and is dropped once that cannot be played from there; what is left over of the doubt is told with the record.

use super::search::MISSED;
use super::weigh::{Weighed, Weight};
use super::*;
use crate::board::Sense;
use crate::game::Readings;
use std::ops::Range;

/// So much less likely than the record, a rival is a doubt about it.
const DOUBT: i64 = 45;
/// So much less likely, it is kept in case that later play knows better.
pub(super) const KEPT: i64 = 90;
/// So much likelier than the record, it takes its place.
const BETTER: i64 = 15;
/// No more are carried on; the likeliest are.
const MOST: usize = 64;
/// A man on his way off the board does not often stand still; no rival that is less likely than that explains him better.
pub(super) const PASSING: i64 = DOUBT;
/// Their state is kept for so many plies: what was seen of the last ones may still turn out to be something else.
const REMEMBERED: usize = 3;

/// All of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Rivals {
    others: Vec<Rival>,
    /// What speaks against each ply of the record.
    weights: Vec<Weight>,
    /// What they were after each of the last plies, the latest last.
    past: Vec<Past>,
}

/// The rivals of a shorter record. What contradicted a ply is in question again where that ply was none.
#[derive(Debug, Clone)]
struct Past {
    /// So many plies the record had.
    plies: usize,
    others: Vec<Rival>,
    weights: Vec<Weight>,
}

/// A line that may have been played instead of the record.
#[derive(Debug, Clone)]
struct Rival {
    /// How many plies of the record are its own too.
    base: usize,
    /// The others.
    moves: Vec<Seen>,
    /// What speaks against each of these.
    weights: Vec<Weight>,
    /// It leads to where the record leads, and ends there: nothing later tells the two apart.
    joined: bool,
}

impl Rival {
    fn end(&self) -> usize {
        self.base + self.moves.len()
    }

    /// Whether it is the record but for what a pawn was exchanged for. Nothing that is played over the new man tells what he was, so
    /// that this stays in doubt as long as he can have been another.
    fn differs_in_exchange(&self, record: &View<'_>) -> bool {
        let alike = |one: Move, other: Move| {
            (one.from(), one.to()) == (other.from(), other.to())
                && one.promotion().is_some() == other.promotion().is_some()
        };
        self.moves.iter().enumerate().all(|(index, seen)| {
            record
                .mv(self.base + index)
                .is_some_and(|mv| alike(mv, seen.mv))
        })
    }

    fn truncate(&mut self, plies: usize) {
        let left = plies.saturating_sub(self.base);
        self.moves.truncate(left);
        self.weights.truncate(left);
    }
}

impl Rivals {
    pub(super) fn clear(&mut self) {
        *self = Rivals::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// Keeps what they are now that the record has so many plies, of which the first `keep` are as they were.
    fn remember(&mut self, keep: usize, plies: usize) {
        self.past.retain(|past| past.plies <= keep);
        self.past.push(Past {
            plies,
            others: self.others.clone(),
            weights: self.weights.clone(),
        });
        let oldest = self.past.len().saturating_sub(REMEMBERED);
        self.past.drain(..oldest);
    }

    /// How much less likely than the record this rival is.
    fn behind(&self, rival: &Rival) -> i64 {
        let sum = |weights: &[Weight]| weights.iter().map(|weight| i64::from(*weight)).sum::<i64>();
        let end = rival.end().min(self.weights.len());
        let own = self.weights.get(rival.base.min(end)..end).unwrap_or(&[]);
        sum(&rival.weights) - sum(own)
    }

    /// The lines that are a doubt about the record, which is the first of them; nothing where there is none.
    fn readings(&self, record: &View<'_>, told: bool) -> Option<Readings> {
        let doubts: Vec<&Rival> = self
            .others
            .iter()
            .filter(|rival| self.behind(rival) <= DOUBT || rival.differs_in_exchange(record))
            .collect();
        let keep = doubts.iter().map(|rival| rival.base).min();
        let Some(keep) = keep else {
            return told.then(Readings::default);
        };
        let own: Vec<Move> = (keep..record.len())
            .filter_map(|ply| record.mv(ply))
            .collect();
        let mut lines = vec![own.clone()];
        for rival in doubts {
            let mut line = own.clone();
            for (index, seen) in rival.moves.iter().enumerate() {
                if let Some(slot) = line.get_mut(rival.base - keep + index) {
                    *slot = seen.mv;
                }
            }
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let last = (0..own.len())
            .rev()
            .find(|index| lines.iter().any(|line| line[*index] != own[*index]));
        for line in &mut lines {
            line.truncate(last.map_or(0, |last| last + 1));
        }
        Some(Readings { keep, lines })
    }
}

impl Sensing {
    /// The record with what was told of it in this call, and was not taken yet.
    pub(super) fn record<'a>(&'a self, cx: &Context<'a>) -> View<'a> {
        match &self.ahead {
            Some((keep, moves)) => View::new(cx.line, *keep, moves),
            None => View::new(cx.line, cx.line.len(), &[]),
        }
    }

    /// Tells that the record becomes `keep` of its plies and `moves`. From ply `stem` on that is play; what is before it is read
    /// otherwise. `found` are lines from `keep` on that fit as well.
    pub(super) fn tell_change(
        &mut self,
        keep: usize,
        moves: Vec<Seen>,
        stem: usize,
        why: CorrectionReason,
        found: Vec<Weighed>,
        cx: &Context<'_>,
    ) {
        if why == CorrectionReason::MovedOn {
            self.check_if_fast(keep, &moves, cx);
        }
        let had = !self.rivals.is_empty();
        if had || !found.is_empty() || !self.picture.is_exact() {
            self.advance(keep, &moves, stem, found, cx);
        }
        // What is known now may tell which squares are dead.
        self.look_due |= !self.unread.is_empty();
        match &mut self.ahead {
            Some((base, told)) if *base <= keep => {
                told.truncate(keep - *base);
                told.extend(moves.iter().cloned());
            }
            _ => self.ahead = Some((keep, moves.clone())),
        }
        let readings = self.rivals.readings(&self.record(cx), had);
        if readings.is_some() || moves.iter().any(|seen| seen.doubt.is_some()) {
            self.promotions_seen = false;
        }
        self.observations.push_back(Observation::Moved(Change {
            keep,
            moves,
            why,
            readings,
        }));
    }

    /// Tells that the record may read otherwise from ply `keep` on: as one of these lines, of which the first is its own. So many of
    /// their plies are recorded.
    pub(super) fn tell_doubt(
        &mut self,
        keep: usize,
        recorded: usize,
        lines: Vec<Weighed>,
        cx: &Context<'_>,
    ) {
        let n = cx.line.len();
        let from = cx.line.position(keep);
        let mut lines = lines.into_iter().map(|line| Weighed {
            moves: line.moves.into_iter().take(recorded).collect(),
            ..line
        });
        let Some(own) = lines.next() else { return };
        // They are weighed against each other, and not as the record was.
        self.rivals.weights.resize(n, 0);
        for (index, weight) in self.rivals.weights[keep.min(n)..].iter_mut().enumerate() {
            *weight = if index == 0 { own.weight } else { 0 };
        }
        for line in lines.filter(|line| line.moves != own.moves) {
            let since = self.record(cx).seen_at(keep);
            let moves = self.seen_along(from, &line.moves, since);
            let rest = line.moves.len().saturating_sub(1);
            self.rivals.others.push(Rival {
                base: keep,
                weights: std::iter::once(line.weight)
                    .chain(std::iter::repeat_n(0, rest))
                    .collect(),
                joined: moves
                    .last()
                    .is_some_and(|last| is_same(&last.after, cx.line.tip())),
                moves,
            });
        }
        let readings = self.rivals.readings(&self.record(cx), false);
        if readings.is_some() {
            self.observations.push_back(Observation::Moved(Change {
                keep: n,
                moves: Vec::new(),
                why: CorrectionReason::Reread,
                readings,
            }));
        }
    }

    /// Somebody has said what these plies were: the record becomes this, and what contradicts it was not played. What else it may
    /// read then is told with it.
    pub fn resolve(&mut self, change: Change, plies: Range<usize>, cx: &Context<'_>) {
        let Change {
            keep, moves, why, ..
        } = change;
        self.promotions_seen = false;
        // What was seen and not told stands on the record as it was.
        if !moves.is_empty() {
            self.tentative = None;
            self.look_due = true;
        }
        if self.rivals.is_empty() {
            self.observations.push_back(Observation::Moved(Change {
                keep,
                moves,
                ..change
            }));
            return;
        }
        self.advance(keep, &moves, cx.line.len(), Vec::new(), cx);
        self.rivals.past.clear();
        let told = |ply: usize| match ply.checked_sub(keep) {
            Some(index) => moves.get(index).map(|seen| seen.mv),
            None => cx.line.plies.get(ply).map(|ply| ply.mv),
        };
        self.rivals.others.retain(|rival| {
            plies.clone().all(|ply| {
                let own = ply.checked_sub(rival.base);
                own.and_then(|index| rival.moves.get(index))
                    .is_none_or(|seen| Some(seen.mv) == told(ply))
            })
        });
        self.ahead = Some((keep, moves.clone()));
        let readings = self.rivals.readings(&self.record(cx), true);
        self.observations.push_back(Observation::Moved(Change {
            keep,
            moves,
            why,
            readings,
        }));
    }

    /// Carries all lines on by what the record is carried on by.
    fn advance(
        &mut self,
        keep: usize,
        moves: &[Seen],
        stem: usize,
        found: Vec<Weighed>,
        cx: &Context<'_>,
    ) {
        let record = self.record(cx);
        let length = keep + moves.len();
        let cut = stem.min(record.len()).min(length);
        if cut < record.len()
            && let Some(past) = self.rivals.past.iter().position(|past| past.plies == cut)
        {
            let past = self.rivals.past.swap_remove(past);
            (self.rivals.others, self.rivals.weights) = (past.others, past.weights);
        }
        let record = self.record(cx);
        let after = match moves.last() {
            Some(seen) => seen.after.clone(),
            None => record.position(keep).clone(),
        };
        let mut target = Picture::of(after.board(), self.picture.sense());
        for square in self.unread_squares() {
            target.forget(square);
        }
        // Each line as it stood before this play: the record itself, and its rivals.
        let mut stems: Vec<Rival> = vec![Rival {
            base: cut,
            moves: Vec::new(),
            weights: Vec::new(),
            joined: false,
        }];
        let mut next: Vec<Rival> = Vec::new();
        for rival in &self.rivals.others {
            if rival.joined {
                if rival.end() <= cut.min(keep) {
                    next.push(rival.clone());
                }
            } else if rival.base < cut {
                let mut rival = rival.clone();
                rival.truncate(cut);
                stems.push(rival);
            }
        }
        let given = !found.is_empty();
        for line in found {
            let from = record.position(keep).clone();
            let rest = line.moves.len().saturating_sub(1);
            next.push(Rival {
                base: keep,
                weights: std::iter::once(line.weight)
                    .chain(std::iter::repeat_n(0, rest))
                    .take(line.moves.len())
                    .collect(),
                moves: self.seen_along(&from, &line.moves, record.seen_at(keep)),
                joined: false,
            });
        }
        for stem in stems {
            // Those that were found are all that begin with the record; what is longer was asked for all that was seen.
            if given && (stem.moves.is_empty() || length - cut > MISSED) {
                continue;
            }
            let (from, since, last) = match stem.moves.last() {
                Some(seen) => (seen.after.clone(), seen.at, Some(seen.mv)),
                None => (
                    record.position(cut).clone(),
                    record.seen_at(cut),
                    record.last_of(cut),
                ),
            };
            let mut target = target.clone();
            if self.picture.is_exact() {
                // They differ in men that nobody saw: neither need stand where the other has them.
                let own = Picture::from(record.position(cut).board());
                for square in own.differing(from.board()) {
                    target.forget(square);
                }
            }
            let lines = match length - cut {
                0 => vec![Vec::new()],
                1 => {
                    let differing = target.differing(from.board());
                    explain::moves_to(&from, &target, differing, Bitboard::EMPTY)
                        .into_iter()
                        .map(|m| vec![m])
                        .collect()
                }
                depth => explain::lines_to(&from, &target, Bitboard::EMPTY, depth, |_| true).found,
            };
            for line in lines {
                let mut rival = stem.clone();
                let weight = self.weigh(&from, &line, last, since) + weigh::choices(&from);
                rival.weights.extend(
                    std::iter::once(weight)
                        .chain(std::iter::repeat(0))
                        .take(line.len()),
                );
                rival.moves.extend(self.seen_along(&from, &line, since));
                next.push(rival);
            }
        }
        // The one that the record becomes.
        let told = |ply: usize| match ply.checked_sub(keep) {
            Some(index) => moves.get(index).map(|seen| seen.mv),
            None => record.mv(ply),
        };
        let is_told = |rival: &Rival| {
            !rival.joined
                && (rival.base.min(keep)..length).all(|ply| match ply.checked_sub(rival.base) {
                    Some(index) => rival.moves.get(index).map(|seen| seen.mv) == told(ply),
                    None => record.mv(ply) == told(ply),
                })
        };
        let own = next
            .iter()
            .position(is_told)
            .map(|index| next.remove(index));
        let old_weights = self.rivals.weights.clone();
        let mut weights = old_weights.clone();
        weights.resize(cut, 0);
        match own {
            Some(own) => {
                weights.truncate(own.base);
                weights.extend(own.weights);
            }
            None => {
                // Nothing leads there on the whole board, as beside a fault.
                let line: Vec<Move> = (cut..length).filter_map(told).collect();
                let from = record.position(cut);
                let last = cut.checked_sub(1).and_then(told);
                if cut >= keep && !line.is_empty() {
                    weights.push(
                        self.weigh(from, &line, last, record.seen_at(cut)) + weigh::choices(from),
                    );
                }
            }
        }
        weights.resize(length, 0);
        // All others, as they differ from what the record is now.
        let old: Vec<Seen> = (keep..record.len().min(length))
            .filter_map(|ply| {
                Some(Seen {
                    mv: record.mv(ply)?,
                    after: record.position(ply + 1).clone(),
                    at: record.seen_at(ply + 1),
                    doubt: None,
                })
            })
            .collect();
        let mut rivals = Rivals {
            others: Vec::new(),
            weights,
            past: Vec::new(),
        };
        for mut rival in next {
            if rival.base > keep && !rival.joined {
                let own = rival.base - keep;
                rival
                    .moves
                    .splice(0..0, old[..own.min(old.len())].iter().cloned());
                let before =
                    (keep..rival.base).map(|ply| old_weights.get(ply).copied().unwrap_or(0));
                rival.weights.splice(0..0, before.collect::<Vec<_>>());
                rival.base = keep;
            }
            while rival.moves.first().map(|seen| seen.mv) == told(rival.base)
                && !rival.moves.is_empty()
            {
                rival.moves.remove(0);
                rival.weights.remove(0);
                rival.base += 1;
            }
            if rival.moves.is_empty() || rivals.behind(&rival) > KEPT {
                continue;
            }
            if !rival.joined
                && let Some(last) = rival.moves.last()
                && is_same(&last.after, &after)
            {
                rival.joined = true;
                while rival.end() > 0
                    && rival.moves.last().map(|seen| seen.mv) == told(rival.end() - 1)
                    && !rival.moves.is_empty()
                {
                    rival.moves.pop();
                    rival.weights.pop();
                }
                if rival.moves.is_empty() {
                    continue;
                }
            }
            rivals.others.push(rival);
        }
        let mut ranked: Vec<(i64, Rival)> = std::mem::take(&mut rivals.others)
            .into_iter()
            .map(|rival| (rivals.behind(&rival), rival))
            .collect();
        ranked.sort_by_key(|(behind, _)| *behind);
        ranked.truncate(MOST);
        rivals.others = ranked.into_iter().map(|(_, rival)| rival).collect();
        rivals.past = std::mem::take(&mut self.rivals.past);
        rivals.remember(keep, length);
        self.rivals = rivals;
    }

    /// The plies of a line, each with the time at which the board first showed it.
    fn seen_along(&self, from: &Position, line: &[Move], since: Millis) -> Vec<Seen> {
        let mut position = from.clone();
        let mut since = since;
        line.iter()
            .map(|m| {
                since = self.shown_at(&position, *m, since, self.last_change);
                let seen = Seen::new(&position, *m, since);
                position = seen.after.clone();
                seen
            })
            .collect()
    }

    /// Looks the placement up beside each rival, where the record does not explain it: what cannot be played on from is not what was
    /// played.
    pub(super) fn match_rivals(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        self.match_rivals_within(KEPT, now, cx)
    }

    /// The same among those that are not so much less likely than the record.
    pub(super) fn match_rivals_within(
        &mut self,
        behind: i64,
        now: Millis,
        cx: &Context<'_>,
    ) -> bool {
        let ask = |sensing: &mut Sensing| sensing.match_near(now, cx).then_some(());
        self.try_rivals_within(behind, cx, ask).is_some()
    }

    /// The same beside those that the last move contradicts.
    pub(super) fn match_past_rivals(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let ask = |sensing: &mut Sensing| sensing.match_near(now, cx).then_some(());
        self.try_past_rivals(cx, ask).is_some()
    }

    /// Asks a question of each rival as if the record read so, and leaves the first that answers in the place of the record, untold.
    pub(super) fn try_rivals<T>(
        &mut self,
        cx: &Context<'_>,
        ask: impl FnMut(&mut Sensing) -> Option<T>,
    ) -> Option<T> {
        self.try_rivals_within(KEPT, cx, ask)
    }

    fn try_rivals_within<T>(
        &mut self,
        behind: i64,
        cx: &Context<'_>,
        mut ask: impl FnMut(&mut Sensing) -> Option<T>,
    ) -> Option<T> {
        if self.tentative.is_some() || self.frozen_since.is_some() || self.ahead.is_some() {
            return None;
        }
        for index in 0..self.rivals.others.len() {
            let rival = &self.rivals.others[index];
            let is_behind = self.rivals.behind(rival) > behind;
            if rival.joined || rival.end() != cx.line.len() || is_behind {
                continue;
            }
            self.tentative = Some(Tentative {
                keep: rival.base,
                moves: rival.moves.clone(),
                stem: cx.line.len(),
                since: self.last_change,
                hold: 0,
                shown: true,
                supposed: false,
                why: CorrectionReason::Reread,
            });
            let answer = ask(self);
            // Who stands as the record does explains no more than it.
            let rival = &self.rivals.others.get(index);
            let goes_on = match (&self.tentative, rival) {
                (Some(tentative), Some(rival)) => tentative.moves.len() != rival.moves.len(),
                _ => true,
            };
            if answer.is_some() && goes_on {
                return answer;
            }
            self.tentative = None;
        }
        None
    }

    /// The same of those that the last move contradicts, whose man is gone from where he stopped: he may only have rested there.
    pub(super) fn try_past_rivals<T>(
        &mut self,
        cx: &Context<'_>,
        mut ask: impl FnMut(&mut Sensing) -> Option<T>,
    ) -> Option<T> {
        let n = cx.line.len();
        let last = cx.line.plies.last()?;
        let has_gone_on = self.picture.is_empty(last.mv.to()) && last.by.is_none();
        if !has_gone_on || self.tentative.is_some() || self.frozen_since.is_some() {
            return None;
        }
        let past = self.rivals.past.iter().find(|past| past.plies + 1 == n)?;
        let others = past.others.clone();
        for rival in others {
            if rival.joined || rival.end() + 1 != n {
                continue;
            }
            self.tentative = Some(Tentative {
                keep: rival.base,
                moves: rival.moves.clone(),
                stem: n - 1,
                since: self.last_change,
                hold: 0,
                shown: true,
                supposed: false,
                why: CorrectionReason::Reread,
            });
            let answer = ask(self);
            let goes_on = self
                .tentative
                .as_ref()
                .is_none_or(|tentative| tentative.moves.len() != rival.moves.len());
            if answer.is_some() && goes_on {
                return answer;
            }
            self.tentative = None;
        }
        None
    }

    /// Reads the record otherwise where a rival has become likelier.
    pub(super) fn reconsider(&mut self, cx: &Context<'_>) {
        if self.tentative.is_some() || self.ahead.is_some() {
            return;
        }
        let better = self.rivals.others.iter().find(|rival| {
            !rival.joined && rival.end() == cx.line.len() && self.rivals.behind(rival) < -BETTER
        });
        if let Some(rival) = better {
            let (keep, moves) = (rival.base, rival.moves.clone());
            let stem = cx.line.len();
            self.tell_change(keep, moves, stem, CorrectionReason::Reread, Vec::new(), cx);
        }
    }

    /// Whether all lines that may be the game have a man of this side, or none, on this square.
    pub(super) fn agree_on(&self, square: Square, man: Option<Color>) -> bool {
        self.rivals.others.iter().all(|rival| {
            rival.joined
                || rival
                    .moves
                    .last()
                    .is_none_or(|seen| seen.after.board().color_at(square) == man)
        })
    }

    /// Whether the board tells of a man no more than that he stands there, or whose he is.
    pub(super) fn is_poor(&self) -> bool {
        self.picture.sense() != Sense::Piece
    }
}

/// Whether the same can be played from both.
fn is_same(one: &Position, other: &Position) -> bool {
    let (one, other) = (one.setup(), other.setup());
    one.board == other.board
        && one.turn == other.turn
        && one.castling_rights == other.castling_rights
        && one.ep_square == other.ep_square
}

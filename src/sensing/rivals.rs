//! What else may have been played: lines that explain all that the board showed as well as the record does, or nearly.
//!
//! A board that knows its men leaves rivals only where several plies went unseen. One that sees no more than that something stands on
//! a square leaves one for each capture that the man could have made. Each rival is as long as the record, plays what is played after
//! it, and is dropped once that cannot be played from there; what is left over of the doubt is told with the record.

use super::weigh::{Weighed, Weight};
use super::*;
use crate::board::Sense;
use crate::game::Readings;
use std::ops::Range;

mod asked;
mod carried;

use carried::Onward;

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
    /// What squares did in passing until then has been weighed, and is not once more.
    weighed_at: Millis,
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
    weighed_at: Millis,
}

impl Past {
    /// The record of then becomes one of its rivals, and what it is carried on by now takes its place; not if that was no rival.
    fn take_for_record(&mut self, onward: &Onward<'_>, replaced: &[Seen]) -> bool {
        let Onward { keep, stem, .. } = *onward;
        let own = self.plies.saturating_sub(keep);
        let (Some(moves), Some(replaced)) = (onward.moves.get(..own), replaced.get(..own)) else {
            return false;
        };
        self.others.retain(|rival| !rival.joined);
        for rival in &mut self.others {
            rival.begin_at(keep, replaced, &self.weights);
        }
        let is_taken = |rival: &Rival| {
            let same = |(one, other): (&Seen, &Seen)| one.mv == other.mv;
            rival.base == keep
                && rival.moves.len() == own
                && rival.moves.iter().zip(moves).all(same)
        };
        let Some(index) = self
            .others
            .iter()
            .position(is_taken)
            .filter(|_| self.plies <= stem)
        else {
            return false;
        };
        let taken = self.others.swap_remove(index);
        self.weights.resize(self.plies, 0);
        self.others.push(Rival {
            base: keep,
            moves: replaced.to_vec(),
            weights: self.weights.split_off(keep),
            joined: false,
        });
        self.weights.extend(taken.weights);
        true
    }
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

    /// What speaks against it because of what pawns were exchanged for.
    fn exchanges(&self) -> i64 {
        let weights = self.moves.iter().map(|seen| weigh::exchange(seen.mv));
        weights.map(i64::from).sum()
    }

    fn truncate(&mut self, plies: usize) {
        let left = plies.saturating_sub(self.base);
        self.moves.truncate(left);
        self.weights.truncate(left);
    }

    /// It begins after so many plies, with what the record had from there, and what spoke against that.
    fn begin_at(&mut self, keep: usize, record: &[Seen], weights: &[Weight]) {
        let Some(more) = self.base.checked_sub(keep) else {
            return;
        };
        let own = &record[..more.min(record.len())];
        self.moves.splice(0..0, own.iter().cloned());
        let own = (keep..self.base).map(|ply| weights.get(ply).copied().unwrap_or(0));
        self.weights.splice(0..0, own);
        self.base = keep;
    }

    /// Its first plies are none of its own where they are what the record becomes.
    fn leave_out_first(&mut self, onward: &Onward<'_>, record: &View<'_>) {
        let alike = |(ply, seen): &(usize, &Seen)| onward.mv(*ply, record) == Some(seen.mv);
        let plies = (self.base..).zip(&self.moves);
        let same = plies.take_while(alike).count();
        self.moves.drain(..same);
        self.weights.drain(..same);
        self.base += same;
    }

    /// Nor are its last ones.
    fn leave_out_last(&mut self, onward: &Onward<'_>, record: &View<'_>) {
        let alike = |(ply, seen): &(usize, &Seen)| onward.mv(*ply, record) == Some(seen.mv);
        let plies = (self.base..self.end()).zip(&self.moves).rev();
        let same = plies.take_while(alike).count();
        self.truncate(self.end() - same);
    }
}

impl Rivals {
    pub(super) fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// Keeps what they are now that the record has so many plies, of which the first `keep` are as they were, and those in `past`
    /// are one of the rivals of then.
    fn remember(&mut self, keep: usize, past: usize, plies: usize) {
        self.past.retain(|known| known.plies <= keep.max(past));
        self.past.push(Past {
            plies,
            others: self.others.clone(),
            weights: self.weights.clone(),
            weighed_at: self.weighed_at,
        });
        let oldest = self.past.len().saturating_sub(REMEMBERED);
        self.past.drain(..oldest);
    }

    /// They are again what they were when the record had so many plies, or fewer, as far as anybody remembers. Tells how many.
    fn go_back_to(&mut self, plies: usize) -> Option<usize> {
        let known = |past: &&Past| past.plies <= plies;
        let past = self
            .past
            .iter()
            .filter(known)
            .max_by_key(|past| past.plies)?
            .clone();
        (self.others, self.weights) = (past.others, past.weights);
        self.weighed_at = past.weighed_at;
        Some(past.plies)
    }

    /// Each line as it stood after so many plies: the record itself, and those that differ from it by then.
    fn branches(&self, plies: usize) -> Vec<Rival> {
        let mut branches = vec![Rival {
            base: plies,
            moves: Vec::new(),
            weights: Vec::new(),
            joined: false,
        }];
        let differs = |rival: &&Rival| !rival.joined && rival.base < plies;
        branches.extend(self.others.iter().filter(differs).cloned());
        for branch in &mut branches {
            branch.truncate(plies);
        }
        branches
    }

    fn keep_the_likeliest(&mut self) {
        let mut others = std::mem::take(&mut self.others);
        others.sort_by_cached_key(|rival| self.behind(rival));
        others.truncate(MOST);
        self.others = others;
    }

    /// How much less likely than the record this rival is.
    fn behind(&self, rival: &Rival) -> i64 {
        let sum = |weights: &[Weight]| weights.iter().map(|weight| i64::from(*weight)).sum::<i64>();
        let end = rival.end().min(self.weights.len());
        let own = self.weights.get(rival.base.min(end)..end).unwrap_or(&[]);
        sum(&rival.weights) - sum(own)
    }

    /// These, each alone, and then those that may all be right together: one of them is over where the next begins.
    fn chains<'a>(&self, doubts: Vec<&'a Rival>, record: &View<'_>) -> Vec<Vec<&'a Rival>> {
        let mut chains: Vec<Vec<&Rival>> = doubts.iter().map(|rival| vec![*rival]).collect();
        let mut index = 0;
        while let Some(chain) = chains.get(index).cloned() {
            index += 1;
            let Some(last) = chain.last().filter(|last| last.joined) else {
                continue;
            };
            let behind: i64 = chain.iter().map(|rival| self.behind(rival)).sum();
            let is_exchange = chain.iter().all(|rival| rival.differs_in_exchange(record));
            let may_follow = |next: &&&Rival| {
                next.base >= last.end()
                    && (behind + self.behind(next) <= DOUBT
                        || (is_exchange && next.differs_in_exchange(record)))
            };
            for next in doubts.iter().filter(may_follow) {
                if chains.len() >= MOST {
                    return chains;
                }
                chains.push([chain.as_slice(), &[*next]].concat());
            }
        }
        chains
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
        for chain in self.chains(doubts, record) {
            let mut line = own.clone();
            for rival in chain {
                for (index, seen) in rival.moves.iter().enumerate() {
                    if let Some(slot) = line.get_mut(rival.base - keep + index) {
                        *slot = seen.mv;
                    }
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
            None => View::of(cx.line),
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
        match why {
            CorrectionReason::TakenBack => {
                self.tally.settle(keep + moves.len());
                if moves.is_empty() {
                    self.leave_out_taken_back(keep, cx);
                }
            }
            CorrectionReason::Reread => self.tally.read_otherwise(keep),
            _ => {}
        }
        let had = !self.rivals.is_empty();
        if had || !found.is_empty() || !self.picture.is_exact() {
            self.advance(keep, &moves, stem, found, cx);
        }
        // What is known now may tell which squares are dead.
        self.look_due |= !self.unread.is_empty();
        let change = Change {
            keep,
            moves,
            why,
            readings: None,
        };
        self.tell_with_readings(change, had, cx);
    }

    /// Tells of this change, and what else the record may read then: also that there is nothing else, if something was `told` before.
    fn tell_with_readings(&mut self, mut change: Change, told: bool, cx: &Context<'_>) {
        let Change { keep, moves, .. } = &change;
        match &mut self.ahead {
            Some((base, ahead)) if *base <= *keep => {
                ahead.truncate(keep - *base);
                ahead.extend(moves.iter().cloned());
            }
            _ => self.ahead = Some((*keep, moves.clone())),
        }
        change.readings = self.rivals.readings(&self.record(cx), told);
        if change.readings.is_some() || change.moves.iter().any(|seen| seen.doubt.is_some()) {
            self.promotions_seen = false;
        }
        self.observations.push_back(Observation::Moved(change));
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
            self.rivals.others.push(Rival {
                base: keep,
                weights: line.weights(),
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
        self.promotions_seen = false;
        // What was seen and not told stands on the record as it was.
        if !change.moves.is_empty() {
            self.tentative = None;
            self.look_due = true;
        }
        if self.rivals.is_empty() {
            self.observations.push_back(Observation::Moved(change));
            return;
        }
        self.advance(change.keep, &change.moves, cx.line.len(), Vec::new(), cx);
        self.rivals.past.clear();
        let told = View::new(cx.line, change.keep, &change.moves);
        self.rivals.others.retain(|rival| {
            plies.clone().all(|ply| {
                let own = ply.checked_sub(rival.base);
                own.and_then(|index| rival.moves.get(index))
                    .is_none_or(|seen| Some(seen.mv) == told.mv(ply))
            })
        });
        self.tell_with_readings(change, true, cx);
    }

    /// The record was cut short by something else than what the board shows of the last plies: what contradicted the others was no play.
    pub fn recall(&mut self, cx: &Context<'_>) {
        let n = cx.line.len();
        self.tally.settle(n);
        if !self.is_poor() {
            return;
        }
        self.go_back_to(n, cx);
        let readings = self.rivals.readings(&self.record(cx), false);
        let is_doubt = |readings: &Readings| readings.lines.len() > 1;
        if let Some(readings) = readings.filter(is_doubt) {
            self.observations.push_back(Observation::Moved(Change {
                keep: n,
                moves: Vec::new(),
                why: CorrectionReason::Reread,
                readings: Some(readings),
            }));
        }
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

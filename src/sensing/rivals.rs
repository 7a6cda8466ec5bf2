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

/// What the record is carried on by.
struct Onward<'a> {
    /// So many of its plies stay.
    keep: usize,
    /// And these come after them.
    moves: &'a [Seen],
    /// From this ply on that is play; what is before it is read otherwise.
    stem: usize,
}

impl Onward<'_> {
    /// How many plies the record has then.
    fn len(&self) -> usize {
        self.keep + self.moves.len()
    }

    /// The move that it has then at this index.
    fn mv(&self, index: usize, record: &View<'_>) -> Option<Move> {
        match index.checked_sub(self.keep) {
            Some(index) => Some(self.moves.get(index)?.mv),
            None => record.mv(index),
        }
    }

    /// Where it leads then.
    fn after<'a>(&'a self, record: &View<'a>) -> &'a Position {
        match self.moves.last() {
            Some(seen) => &seen.after,
            None => record.position(self.keep),
        }
    }

    /// Whether this line, which begins with the record as it was, is all that it is then.
    fn is_led_to_by(&self, line: &Rival, record: &View<'_>) -> bool {
        let mv = |ply: usize| match ply.checked_sub(line.base) {
            Some(index) => line.moves.get(index).map(|seen| seen.mv),
            None => record.mv(ply),
        };
        let mut plies = line.base.min(self.keep)..self.len();
        !line.joined && plies.all(|ply| mv(ply) == self.mv(ply, record))
    }

    /// The plies that it no longer has, as far as others take their place.
    fn replaced(&self, record: &View<'_>) -> Vec<Seen> {
        let seen = |ply: usize| {
            Some(Seen {
                mv: record.mv(ply)?,
                after: record.position(ply + 1).clone(),
                at: record.seen_at(ply + 1),
                doubt: None,
            })
        };
        let until = record.len().min(self.len());
        (self.keep..until).filter_map(seen).collect()
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
        match why {
            CorrectionReason::TakenBack => self.tally.settle(keep + moves.len()),
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

    /// Carries all lines on by what the record is carried on by.
    fn advance(
        &mut self,
        keep: usize,
        moves: &[Seen],
        stem: usize,
        found: Vec<Weighed>,
        cx: &Context<'_>,
    ) {
        let n = self.record(cx).len();
        let onward = Onward {
            keep,
            moves,
            stem: stem.min(n).min(keep + moves.len()),
        };
        if onward.stem < n {
            self.go_back_to(onward.stem, cx);
        }
        let record = self.record(cx);
        let replaced = onward.replaced(&record);
        let mut rivals = self.carried(&onward, found, &record);
        rivals.past = std::mem::take(&mut self.rivals.past);
        rivals
            .past
            .retain_mut(|past| past.plies <= keep || past.take_for_record(&onward, &replaced));
        rivals.remember(keep, onward.stem, onward.len());
        self.rivals = rivals;
    }

    /// All of them as they are once the record is carried on.
    fn carried(&self, onward: &Onward<'_>, found: Vec<Weighed>, record: &View<'_>) -> Rivals {
        let mut lines = self.carried_on(onward, found, record);
        let own = lines
            .iter()
            .position(|line| onward.is_led_to_by(line, record))
            .map(|index| lines.remove(index));
        let mut rivals = Rivals {
            others: Vec::new(),
            weights: self.weights_of_record(onward, own, record),
            weighed_at: self.last_change,
            past: Vec::new(),
        };
        let replaced = onward.replaced(record);
        let after = onward.after(record);
        for mut rival in lines {
            if !rival.joined {
                rival.begin_at(onward.keep, &replaced, &self.rivals.weights);
            }
            rival.leave_out_first(onward, record);
            // Nothing that is played over the new man tells what he was, however many there are.
            if rival.moves.is_empty() || rivals.behind(&rival) > KEPT + rival.exchanges() {
                continue;
            }
            if !rival.joined
                && let Some(last) = rival.moves.last()
                && is_same(&last.after, after)
            {
                rival.joined = true;
                rival.leave_out_last(onward, record);
            }
            if !rival.moves.is_empty() {
                rivals.others.push(rival);
            }
        }
        rivals.keep_the_likeliest();
        rivals
    }

    /// They become what they were when the record had so many plies. Where nobody remembers, as of plies that were told all at once, its
    /// last ones are read anew, one after the other: what a later ply contradicted is in question again without it.
    fn go_back_to(&mut self, plies: usize, cx: &Context<'_>) {
        let known = self.rivals.go_back_to(plies);
        if known == Some(plies) || self.picture.is_exact() {
            return;
        }
        let since = known.filter(|known| known + REMEMBERED >= plies);
        let from = since.unwrap_or(plies.saturating_sub(1));
        if since.is_none() {
            // Those that still compete did so then.
            self.rivals.others.retain_mut(|rival| {
                if rival.joined {
                    return rival.end() <= from;
                }
                rival.truncate(from);
                rival.base < from
            });
            self.rivals.weights.resize(from, 0);
            self.rivals.weighed_at = self.record(cx).seen_at(from);
        }
        for ply in from..plies {
            let record = self.record(cx);
            let Some(mv) = record.mv(ply) else { return };
            let moves = [Seen {
                mv,
                after: record.position(ply + 1).clone(),
                at: record.seen_at(ply + 1),
                doubt: None,
            }];
            let onward = Onward {
                keep: ply,
                moves: &moves,
                stem: ply,
            };
            let carried = self.carried(&onward, Vec::new(), &record);
            let past = std::mem::take(&mut self.rivals.past);
            self.rivals = Rivals { past, ..carried };
        }
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

    /// The record and its rivals, each with all that it may have been carried on by: as they stood before this play, or as they were
    /// found from where it differs.
    fn carried_on(
        &self,
        onward: &Onward<'_>,
        found: Vec<Weighed>,
        record: &View<'_>,
    ) -> Vec<Rival> {
        let Onward { keep, stem, .. } = *onward;
        let joined_before = |rival: &&Rival| rival.joined && rival.end() <= stem.min(keep);
        let joined = self.rivals.others.iter().filter(joined_before);
        let mut lines: Vec<Rival> = joined.cloned().collect();

        let given = !found.is_empty();
        lines.extend(found.into_iter().map(|line| Rival {
            base: keep,
            weights: line.weights(),
            moves: self.seen_along(record.position(keep), &line.moves, record.seen_at(keep)),
            joined: false,
        }));

        let target = self.target(onward, record);
        if !given {
            lines.extend(self.read_together(onward, &target, record));
        }
        for branch in self.rivals.branches(stem) {
            // Those that were found are all that begin with the record; what is longer was asked for all that was seen.
            if given && (branch.moves.is_empty() || onward.len() - stem > MISSED) {
                continue;
            }
            lines.extend(self.carried_on_from(&branch, onward, &target, record));
        }
        lines
    }

    /// A ply whose man was lifted before the one before it was put down: what was put down may be the answer to another one, that
    /// nobody saw. All that both of them may be.
    fn read_together(
        &self,
        onward: &Onward<'_>,
        target: &Picture,
        record: &View<'_>,
    ) -> Vec<Rival> {
        let [reply] = onward.moves else {
            return Vec::new();
        };
        let n = record.len();
        let before = n.checked_sub(1);
        let Some((base, m)) = before.and_then(|base| Some((base, record.mv(base)?))) else {
            return Vec::new();
        };
        if onward.keep != n || !self.is_poor() {
            return Vec::new();
        }
        let standpoint = record.standpoint(base);
        let (from, since) = (standpoint.position, standpoint.since);
        // In fast play men are lifted early as a rule.
        let is_fast = record.seen_at(n) < since + fast::FAST_MS;
        if is_fast || !self.lifted_early(m, reply.mv, since) {
            return Vec::new();
        }
        let lines = explain::lines_to(from, target, Bitboard::EMPTY, 2, |_| true).found;
        // They are weighed against the record as it is read.
        if !lines.iter().any(|line| line[..] == [m, reply.mv]) {
            return Vec::new();
        }
        let rival = |moves: Vec<Move>| {
            let mut weight = self.weigh(&standpoint, &moves)
                + weigh::choices(from)
                + weigh::choices(&from.play(moves[0]));
            if self.lifted_early(moves[0], moves[1], since) {
                weight += weigh::LIFTED_EARLY;
            }
            Rival {
                base,
                moves: self.seen_along(from, &moves, since),
                weights: Weighed { moves, weight }.weights(),
                joined: false,
            }
        };
        lines.into_iter().map(rival).collect()
    }

    /// What the board shows once the record is carried on, where sensors tell it.
    fn target(&self, onward: &Onward<'_>, record: &View<'_>) -> Picture {
        let mut target = Picture::of(onward.after(record).board(), self.picture.sense());
        for square in self.unread_squares() {
            target.forget(square);
        }
        target
    }

    /// This line with each way on to what the board shows.
    fn carried_on_from(
        &self,
        branch: &Rival,
        onward: &Onward<'_>,
        target: &Picture,
        record: &View<'_>,
    ) -> Vec<Rival> {
        let stem = onward.stem;
        let standpoint = match branch.moves.last() {
            Some(seen) => Standpoint {
                position: &seen.after,
                last: Some(seen.mv),
                since: seen.at,
            },
            None => record.standpoint(stem),
        };
        let (from, since) = (standpoint.position, standpoint.since);
        let mut target = target.clone();
        if self.picture.is_exact() {
            // They differ in men that nobody saw: neither need stand where the other has them.
            let own = Picture::from(record.position(stem).board());
            for square in own.differing(from.board()) {
                target.forget(square);
            }
        }
        let ways: Vec<Vec<Move>> = match onward.len() - stem {
            0 => vec![Vec::new()],
            1 => {
                let differing = target.differing(from.board());
                let moves = explain::moves_to(from, &target, differing, Bitboard::EMPTY);
                moves.into_iter().map(|m| vec![m]).collect()
            }
            depth => explain::lines_to(from, &target, Bitboard::EMPTY, depth, |_| true).found,
        };
        let unweighed = since.max(self.rivals.weighed_at);
        let carry_on = |way: Vec<Move>| {
            let weight =
                self.weigh_touches_from(unweighed, &standpoint, &way) + weigh::choices(from);
            let mut line = branch.clone();
            line.moves.extend(self.seen_along(from, &way, since));
            line.weights
                .extend(Weighed { moves: way, weight }.weights());
            line
        };
        ways.into_iter().map(carry_on).collect()
    }

    /// What speaks against each ply of the record, carried on as the line does that leads there.
    fn weights_of_record(
        &self,
        onward: &Onward<'_>,
        own: Option<Rival>,
        record: &View<'_>,
    ) -> Vec<Weight> {
        let Onward { keep, stem, .. } = *onward;
        let mut weights = self.rivals.weights.clone();
        weights.resize(stem, 0);
        match own {
            Some(own) => {
                weights.truncate(own.base);
                weights.extend(own.weights);
            }
            None if stem >= keep && stem < onward.len() => {
                // Nothing leads there on the whole board, as beside a fault.
                let line: Vec<Move> = (stem..onward.len())
                    .filter_map(|ply| onward.mv(ply, record))
                    .collect();
                let from = Standpoint {
                    last: stem.checked_sub(1).and_then(|ply| onward.mv(ply, record)),
                    ..record.standpoint(stem)
                };
                weights.push(self.weigh(&from, &line) + weigh::choices(from.position));
            }
            None => {}
        }
        weights.resize(onward.len(), 0);
        weights
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
        let ask = |sensing: &mut Sensing| sensing.match_near(now, cx);
        self.try_rivals_within(behind, cx, ask)
    }

    /// The same beside those that the last move contradicts.
    pub(super) fn match_past_rivals(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let ask = |sensing: &mut Sensing| sensing.match_near(now, cx);
        self.try_past_rivals(cx, ask)
    }

    /// Asks a question of each rival as if the record read so, and leaves the first that answers in the place of the record, untold.
    pub(super) fn try_rivals(
        &mut self,
        cx: &Context<'_>,
        ask: impl FnMut(&mut Sensing) -> bool,
    ) -> bool {
        self.try_rivals_within(KEPT, cx, ask)
    }

    /// Asks a question of each rival that is a doubt about the record, as [`Sensing::try_rivals`] does of all.
    pub(super) fn try_doubts(
        &mut self,
        cx: &Context<'_>,
        ask: impl FnMut(&mut Sensing) -> bool,
    ) -> bool {
        self.try_rivals_within(DOUBT, cx, ask)
    }

    fn try_rivals_within(
        &mut self,
        behind: i64,
        cx: &Context<'_>,
        mut ask: impl FnMut(&mut Sensing) -> bool,
    ) -> bool {
        if self.tentative.is_some()
            || self.frozen_since.is_some()
            || self.ahead.is_some()
            || self.is_pushed(&self.record(cx))
        {
            return false;
        }
        let n = cx.line.len();
        for index in 0..self.rivals.others.len() {
            let is_near = |rival: &&Rival| {
                !rival.joined && rival.end() == n && self.rivals.behind(rival) <= behind
            };
            let rival = self.rivals.others.get(index).filter(is_near).cloned();
            if rival.is_some_and(|rival| self.try_rival(rival, &mut ask)) {
                return true;
            }
        }
        false
    }

    /// Looks the placement up beside the record with this ply in place of those from there on.
    pub(super) fn match_after(
        &mut self,
        keep: usize,
        seen: Seen,
        now: Millis,
        cx: &Context<'_>,
    ) -> bool {
        let rival = Rival {
            base: keep,
            moves: vec![seen],
            weights: vec![0],
            joined: false,
        };
        let mut ask = |sensing: &mut Sensing| sensing.match_near(now, cx);
        self.try_rival(rival, &mut ask)
    }

    /// Asks this one.
    fn try_rival(&mut self, rival: Rival, ask: &mut impl FnMut(&mut Sensing) -> bool) -> bool {
        let (plies, last) = (rival.moves.len(), rival.moves.last().map(|seen| seen.mv));
        let (base, stem, why) = (rival.base, rival.end(), CorrectionReason::Reread);
        self.tentative = Some(Tentative {
            stem,
            ..Tentative::new(base, rival.moves, self.last_change, 0, why)
        });
        let told = self.observations.len();
        let is_it = ask(self);
        // Who stands as the record does explains no more than it, unless half of a castling has become all of it. What leads back to the
        // record is no other reading of it, nor is what takes all of it back.
        let goes_on = match &self.tentative {
            Some(tentative) => {
                let castled = tentative.moves.last().map(|seen| seen.mv);
                let goes_on = !tentative.moves.is_empty() && tentative.moves.len() != plies;
                goes_on || (castled != last && castled.is_some_and(Move::is_castle))
            }
            None => self.observations.len() > told,
        };
        let answers = is_it && goes_on;
        if !answers {
            self.tentative = None;
        }
        answers
    }

    /// Asks a question of each rival that the last move contradicts, whose man is gone from where he stopped: he may only have rested there.
    pub(super) fn try_past_rivals(
        &mut self,
        cx: &Context<'_>,
        mut ask: impl FnMut(&mut Sensing) -> bool,
    ) -> bool {
        // This is asked at each change: the cheap refusal first.
        if self.rivals.past.is_empty() {
            return false;
        }
        let n = cx.line.len();
        let record = self.record(cx);
        // Who has pressed had moved, unless he was hardly seen where he seems to have gone.
        let may_be_another = |last: &Ply| last.by.is_none() || self.was_glimpsed(&record, n - 1);
        if !cx.line.plies.last().is_some_and(may_be_another)
            || !self.has_gone_on(&record)
            || self.tentative.is_some()
            || self.frozen_since.is_some()
        {
            return false;
        }
        let past = self.rivals.past.iter().find(|past| past.plies + 1 == n);
        let ends_before = |rival: &&Rival| !rival.joined && rival.end() + 1 == n;
        let before: Vec<Rival> = past
            .into_iter()
            .flat_map(|past| past.others.iter().filter(ends_before).cloned())
            .collect();
        before
            .into_iter()
            .any(|rival| self.try_rival(rival, &mut ask))
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

    /// Whether this is so where some other line leads that may be the game.
    pub(super) fn is_so_in_a_rival(&self, is_so: impl Fn(&Position) -> bool) -> bool {
        let open = self.rivals.others.iter().filter(|rival| !rival.joined);
        open.filter_map(|rival| rival.moves.last())
            .any(|last| is_so(&last.after))
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

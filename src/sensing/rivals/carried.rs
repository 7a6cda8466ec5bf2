//! Carries the rivals on by what the record is carried on by, and back where it is cut short.

use super::*;
use crate::sensing::search::MISSED;

/// What the record is carried on by.
pub(super) struct Onward<'a> {
    /// So many of its plies stay.
    pub(super) keep: usize,
    /// And these come after them.
    pub(super) moves: &'a [Seen],
    /// From this ply on that is play; what is before it is read otherwise.
    pub(super) stem: usize,
}

impl Onward<'_> {
    /// How many plies the record has then.
    pub(super) fn len(&self) -> usize {
        self.keep + self.moves.len()
    }

    /// The move that it has then at this index.
    pub(super) fn mv(&self, index: usize, record: &View<'_>) -> Option<Move> {
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

impl Sensing {
    /// Carries all lines on by what the record is carried on by.
    pub(super) fn advance(
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
    pub(super) fn go_back_to(&mut self, plies: usize, cx: &Context<'_>) {
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
        let shows = |position: &Position| self.picture.agrees_with(position.board());
        let ways: Vec<Vec<Move>> = match onward.len() - stem {
            // What the board contradicts, and the record explains whole, is no doubt about it.
            0 if shows(onward.after(record)) && !shows(from) => Vec::new(),
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
}

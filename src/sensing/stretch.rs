//! Fast play is read once more when what followed is known, and wherever the board does not show what the record says.

use super::fast::FAST_MS;
use super::reread::{Reading, Stretch};
use super::search::MISSED;
use super::weigh::{Weighed, Weight};
use super::*;

/// A board that shows nothing new is not read once more so often.
const MOST_TIMES: u32 = 3;
/// So many plies are read anew at once; more where fewer do not explain the board.
pub(super) const STRETCHES: [usize; 3] = [12, 30, 80];
/// So many plies one after the other, each without thought, are fast play.
const FAST_PLIES: usize = 4;
/// So long after a ply that was played fast the record is read once more.
const CHECK_MS: Millis = 1_500;
/// So much likelier, another reading takes the place of the record.
const SURE: Weight = 20;
/// So much less likely, at most, it is a doubt.
const DOUBTFUL: Weight = 30;
/// More than this, and this for each ply, speaks against no reading of what hands do.
const SOUND: Weight = 60;
const SOUND_PER_PLY: Weight = 15;

/// The last plies, as they read from all that was seen of them.
struct Reread {
    keep: usize,
    /// It is what the record says, but for a last move that may not be finished.
    confirms: bool,
    /// It begins with all that was read so far.
    goes_on: bool,
    /// It is not what was read so far, or more than that.
    is_news: bool,
    seen: Vec<Seen>,
    /// All that it may read; the first is itself.
    lines: Vec<Weighed>,
}

impl Sensing {
    /// Reads the last plies anew where the record does not explain the board.
    pub(super) fn read_stretch(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if self.has_looked_back() {
            return false;
        }
        let n = self.view(cx).len();
        // The whole of a short game is asked once.
        let mut keeps = STRETCHES.map(|back| n.saturating_sub(back)).to_vec();
        keeps.dedup();
        let reread = keeps
            .into_iter()
            .find_map(|keep| self.reread(keep, now, cx).filter(|reread| reread.is_news))
            .filter(|reread| !self.is_against_order(reread, cx))
            .and_then(|reread| self.of_what_was_not_thought_over(reread, cx));
        self.tell_if_read(reread, now, cx)
    }

    /// Whether it goes on with plies that the board, telling of each square as it changed, showed in another order.
    fn is_against_order(&self, reread: &Reread, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let tip = view.tip();
        let read = view.len().saturating_sub(reread.keep);
        let onward: Vec<Move> = reread.seen.iter().skip(read).map(|seen| seen.mv).collect();
        reread.goes_on
            && self.picture.is_exact()
            && onward.len() <= MISSED
            && (self.picture.differing(tip.board()) & self.trail.unwatched()).is_empty()
            && self.order(tip, &onward) == Order::Against
    }

    /// Reads what follows the record from all that was seen of the last plies.
    pub(super) fn read_onward(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if self.has_looked_back() {
            return false;
        }
        let keep = self.view(cx).len().saturating_sub(STRETCHES[0]);
        let reread = self
            .reread(keep, now, cx)
            .filter(|reread| reread.goes_on && reread.is_news);
        self.tell_if_read(reread, now, cx)
    }

    /// Reads the last plies anew where the players have pressed for more than the record has, if that finds as many.
    pub(super) fn read_all_pressed(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if self.has_looked_back() {
            return false;
        }
        let keep = self.view(cx).len().saturating_sub(STRETCHES[0]);
        let tally = self.tally;
        let has_all = |reread: &Reread| !tally.is_ahead_of(reread.keep + reread.seen.len());
        let reread = self.reread(keep, now, cx).filter(has_all);
        let reread = reread.and_then(|reread| self.of_what_was_not_thought_over(reread, cx));
        self.tell_if_read(reread, now, cx)
    }

    fn tell_if_read(&mut self, reread: Option<Reread>, now: Millis, cx: &Context<'_>) -> bool {
        let is_read = reread.is_some();
        if let Some(reread) = reread {
            self.tell_reread(reread, now, cx);
        }
        is_read
    }

    /// Whether what was seen so far was read otherwise so often that nobody can know: two readings may each lead to the other.
    fn has_looked_back(&mut self) -> bool {
        let pressed_at = self.film.last_press().map_or(0, |press| press.at);
        let news = self.last_change.max(pressed_at);
        if self.looked_back.1 != news {
            self.looked_back = (0, news);
        }
        self.looked_back.0 >= MOST_TIMES
    }

    /// What is told now is asked once more if it was played fast.
    pub(super) fn check_if_fast(&mut self, keep: usize, moves: &[Seen], cx: &Context<'_>) {
        let record = self.record(cx);
        let n = keep + moves.len();
        let seen_at = |plies: usize| match plies.checked_sub(keep + 1) {
            Some(index) => moves[index].at,
            None => record.seen_at(plies),
        };
        let is_soon = |plies: usize| seen_at(plies + 1) < seen_at(plies) + FAST_MS;
        let first = (n + 1).checked_sub(FAST_PLIES);
        if first.is_some_and(|first| (first..n).rev().all(is_soon)) {
            self.check_at.get_or_insert(seen_at(n) + CHECK_MS);
        }
    }

    /// The same where men were put down fast that no ply has explained yet.
    pub(super) fn check_after_fast_men(&mut self, now: Millis) {
        if self.are_men_put_down_fast(now) {
            self.check_at.get_or_insert(now + CHECK_MS);
        }
    }

    /// Hands were fast of late: whether the record is what was played is asked once more, now that what followed is known.
    pub(super) fn check_stretch(&mut self, now: Millis, cx: &Context<'_>) {
        if self.has_looked_back() {
            return;
        }
        let n = self.view(cx).len();
        let keep = n.saturating_sub(STRETCHES[0]);
        let Some(reread) = self
            .reread(keep, now, cx)
            .and_then(|reread| self.of_what_was_not_thought_over(reread, cx))
        else {
            return;
        };
        let read = n - reread.keep;
        let is_more = match reread.goes_on {
            // The next ply is looked up as any is.
            true => reread.seen.len() > read + 1,
            false => reread.seen.len() > read,
        };
        if !reread.confirms || is_more {
            self.tell_reread(reread, now, cx);
        } else if self.rivals.is_empty() && self.view(cx).keep >= reread.keep {
            let told = cx.line.len().saturating_sub(reread.keep);
            self.tell_doubt(reread.keep, told, reread.lines, cx);
        }
    }

    /// Leaves none of its readings that lacks a move which was pressed, with time before it and after it: that is no fast play, and
    /// stays. Nothing where it lacks one itself.
    fn of_what_was_not_thought_over(&self, mut reread: Reread, cx: &Context<'_>) -> Option<Reread> {
        let view = self.view(cx);
        let n = view.len();
        let is_slow = |index: usize| {
            let at = view.seen_at(index + 1);
            let before = view.seen_at(index);
            at >= before + FAST_MS && (index + 1 == n || view.seen_at(index + 2) >= at + FAST_MS)
        };
        let keep = reread.keep;
        let stays = |index: &usize| cx.line.plies[*index].pressed && is_slow(*index);
        let thought_over: Vec<usize> = (keep..cx.line.len()).filter(stays).collect();
        let has_all = |line: &Weighed| {
            let mut all = thought_over.iter();
            all.all(|index| line.moves.get(index - keep) == Some(&cx.line.plies[*index].mv))
        };
        reread.lines.first().is_some_and(has_all).then(|| {
            reread.lines.retain(has_all);
            reread
        })
    }

    /// After which of the plies from `keep` on all is known that was seen, and since when.
    fn whole_from(&self, keep: usize, view: &View<'_>) -> Option<(usize, Millis)> {
        let whole = self.film.whole_since();
        let mut plies = keep..=view.len();
        // A position that stood when nothing was missing any more stood there since.
        let (picture, _) = self.film.since(whole, &self.picture);
        let stood = |keep: &usize| {
            view.seen_at(*keep) < whole && picture.agrees_with(view.position(*keep).board())
        };
        if view.seen_at(keep) < whole
            && let Some(keep) = plies.clone().rev().find(stood)
        {
            return Some((keep, whole));
        }
        let keep = plies.find(|keep| view.seen_at(*keep) >= whole)?;
        Some((keep, view.seen_at(keep)))
    }

    /// What was seen since these plies, or since later ones where not all of that is known.
    fn stretch(&self, keep: usize, cx: &Context<'_>) -> Option<(usize, Stretch)> {
        let view = self.view(cx);
        if self.is_pushed(&view) {
            return None;
        }
        let (keep, since) = self.whole_from(keep, &view)?;
        let (mut picture, mut scenes) = self.film.since(since, &self.picture);
        // What is set aside tells nothing of the play beside it.
        let beside = self.beside_play();
        let sense = picture.sense();
        for square in &beside {
            let man = view.position(keep).board().piece_at(*square);
            picture.set(*square, man.map_or(Contents::Empty, |man| sense.shows(man)));
        }
        scenes.retain(|(_, scene)| scene.square().is_none_or(|of| !beside.contains(&of)));
        let stretch = Stretch {
            from: view.position(keep).clone(),
            last: view.last_of(keep),
            picture,
            since,
            scenes,
        };
        Some((keep, stretch))
    }

    /// What follows these plies, or later ones where not all of that is known, as it reads from all that was seen of it, if that
    /// explains the board.
    fn reread(&mut self, keep: usize, now: Millis, cx: &Context<'_>) -> Option<Reread> {
        let (keep, stretch) = self.stretch(keep, cx)?;
        let from = stretch.from.clone();
        let readings = self.readers.readings(stretch, now);
        let view = self.view(cx);
        let n = view.len();
        let read: Vec<Move> = (keep..n).filter_map(|index| view.mv(index)).collect();
        let likeliest = readings.first()?;
        // One that leaves men unexplained is none where another is about as likely.
        let best = readings
            .iter()
            .take_while(|reading| reading.weight <= likeliest.weight + SURE)
            .find(|reading| !reading.is_unexplained)
            .unwrap_or(likeliest);
        // What was read last may not be finished.
        let settled = &read[..read.len().saturating_sub(1)];
        let own = readings
            .iter()
            .find(|reading| reading.moves().starts_with(settled))
            .filter(|own| own.weight < best.weight + SURE)
            // One that leaves men unexplained gives way to a likelier one that does not.
            .filter(|own| !own.is_unexplained || own.weight <= best.weight);
        let chosen = own.unwrap_or(best);
        let line = chosen.moves();
        if chosen.is_unexplained || chosen.weight > SOUND + SOUND_PER_PLY * line.len() as Weight {
            return None;
        }
        let is_doubt = |reading: &&Reading| {
            reading.weight <= best.weight + DOUBTFUL
                && !reading.is_unexplained
                && reading.plies.len() == line.len()
        };
        let weighed = |reading: &Reading| Weighed {
            moves: reading.moves(),
            weight: reading.weight.saturating_sub(best.weight),
        };
        let mut lines = vec![weighed(chosen)];
        lines.extend(
            readings
                .iter()
                .filter(is_doubt)
                .map(weighed)
                .filter(|other| other.moves != line),
        );
        let mut position = from.clone();
        let seen = chosen
            .plies
            .iter()
            .map(|(m, at)| {
                let seen = Seen::found(&position, *m, *at);
                position = seen.after.clone();
                seen
            })
            .collect();
        Some(Reread {
            keep,
            confirms: own.is_some(),
            goes_on: line.starts_with(&read),
            is_news: line != read,
            seen,
            lines,
        })
    }

    fn tell_reread(&mut self, reread: Reread, now: Millis, cx: &Context<'_>) {
        self.looked_back.0 += 1;
        let Reread {
            keep,
            mut seen,
            mut lines,
            ..
        } = reread;
        // What it begins with may not be told yet.
        let (keep, held) = self.take_held_back(keep);
        let held_moves = || held.iter().map(|seen| seen.mv);
        for line in &mut lines {
            line.moves.splice(0..0, held_moves());
        }
        seen.splice(0..0, held);
        let recorded = |index: usize| cx.line.plies.get(keep + index).map(|ply| ply.mv);
        let same = (0..seen.len())
            .take_while(|index| {
                let mut alike = lines.iter().map(|line| line.moves[*index]);
                alike.all(|m| Some(m) == recorded(*index))
            })
            .count();
        let base = keep + same;
        let moves: Vec<Seen> = seen.into_iter().skip(same).collect();
        let lines = lines
            .into_iter()
            .map(|line| Weighed {
                moves: line.moves[same..].to_vec(),
                ..line
            })
            .collect();
        self.tell_change(base, moves, base, CorrectionReason::Reread, lines, cx);
        // What follows may know better.
        if self.last_change + CHECK_MS > now {
            self.check_at.get_or_insert(self.last_change + CHECK_MS);
        }
        // The record has to be brought up to date before it can be seen that nothing is wrong any more.
        self.look_due = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Sense;

    /// Two readings may each lead to the other: what is asked again and again is asked no more until there are news.
    #[test]
    fn a_board_that_shows_nothing_new_is_read_a_few_times_only() {
        let line = Line::new(Position::initial());
        let cx = Context {
            line: &line,
            following: true,
            setting_up: false,
            has_clock: true,
            unstarted: false,
            can_dump: false,
            time_trouble: false,
        };
        let mut sensing = Sensing::new(Timing::default());
        sensing.restart(Picture::of(line.tip().board(), Sense::Presence), 0);
        sensing.handle_squares(1_000, &[(Square::E2, Contents::Empty)], Look::Update, &cx);
        for _ in 0..MOST_TIMES {
            assert!(!sensing.has_looked_back());
            sensing.looked_back.0 += 1;
        }
        assert!(sensing.has_looked_back());
        sensing.handle_press(2_000, Color::White, &cx);
        assert!(!sensing.has_looked_back());
    }
}

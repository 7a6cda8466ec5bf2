//! What stood on the board when the other side began to answer what no legal move explains. A press is judged by that: what its player
//! left, and not what the opponent has made of it since, who may have been quick or heard the clock before it told.

use super::press::CLOCK_LAG_MS;
use super::*;

/// The board as the answer began.
#[derive(Debug, Clone)]
pub(super) struct BeforeAnswer {
    picture: Picture,
    trail: Trail,
    last_change: Millis,
    /// When that was, and after how many plies.
    at: Millis,
    plies: usize,
}

impl Sensing {
    /// Notes what stands before these changes, if with them the other side begins to answer what the mover has put down where nothing
    /// explains it. Whoever puts down more after that had not been answered yet.
    pub(super) fn note_answer(
        &mut self,
        now: Millis,
        changes: &[(Square, Contents)],
        cx: &Context<'_>,
    ) {
        // Asked at each change: the cheap refusal first.
        let lifts = changes.iter().any(|(_, shown)| shown.is_empty());
        if self.before_answer.is_none() && (!lifts || !self.picture.is_exact()) {
            return;
        }
        let plies = self.view(cx).len();
        self.before_answer.take_if(|before| before.plies != plies);
        let view = self.view(cx);
        let tip = view.tip();
        let mover = tip.turn();
        let differing = self.picture.differing(tip.board());
        let is_mans_of = |color: Color, contents: Contents| {
            contents.piece().is_some_and(|man| man.color == color)
        };
        // Nothing of his is answered while all that he had moved stands where it stood, or while he puts it down.
        let has_moved = (differing & tip.board().by_color(mover)).any();
        if !has_moved || changes.iter().any(|(_, shown)| is_mans_of(mover, *shown)) {
            self.before_answer = None;
            return;
        }
        // Once it was pressed over, the answer may begin with the man that stands astray: he is taken.
        let astray = differing & !self.picture.vacant();
        let is_pressed = self.presses.iter().any(|press| press.side == mover);
        let is_lifted = |(square, shown): &(Square, Contents)| {
            let before = self.picture.at(*square);
            let is_theirs = before.is_some_and(|before| is_mans_of(!mover, before));
            shown.is_empty() && (is_theirs || (is_pressed && astray.contains(*square)))
        };
        let begins = self.before_answer.is_none()
            && astray.any()
            && changes.iter().any(is_lifted)
            && self.is_deed_of_mover(&view, differing, is_pressed);
        if begins {
            self.before_answer = Some(Box::new(BeforeAnswer {
                picture: self.picture.clone(),
                trail: self.trail.clone(),
                last_change: self.last_change,
                at: now,
                plies,
            }));
        }
    }

    /// Whether all that differs is one deed of the mover's: an irregular move, or a move that is not finished. What he has pressed over
    /// is his whatever it is, if all of it is about men of his own.
    fn is_deed_of_mover(&self, view: &View<'_>, differing: Bitboard, is_pressed: bool) -> bool {
        let tip = view.tip();
        let open = differing & !self.mask_of(view, differing);
        let mut squares = open.into_iter();
        self.classify(tip, open).side == Some(tip.turn())
            || self.unfinished(tip, open).is_some()
            || (is_pressed && squares.all(|square| self.concerns(square, tip.turn(), tip)))
    }

    /// Whether this press is for what stood then: its player had the move, and was answered after it, as near as a clock tells. Of a
    /// board that is gone nothing is judged.
    pub(super) fn is_answered(&self, press: Press, cx: &Context<'_>) -> bool {
        self.before_answer.as_ref().is_some_and(|before| {
            let view = self.view(cx);
            !self.silent
                && !press.spent
                && view.tip().turn() == press.side
                && before.plies == view.len()
                && press.at <= before.at + CLOCK_LAG_MS
        })
    }

    /// Judges a press by what stood then. What has come since is looked at after that.
    pub(super) fn judge_before_answer(&mut self, now: Millis, press: Press, cx: &Context<'_>) {
        let Some(mut before) = self.before_answer.take() else {
            return;
        };
        self.exchange(&mut before);
        let film = self.film.clone();
        self.film.rewind(before.at);
        let waiting = self.presses.len();
        // Where the other side has pressed since, nothing is waited for; that says nothing else of what stood then.
        let press = Press {
            answered: true,
            overtaken: false,
            waits_for: match press.overtaken {
                true => Wait::Nothing,
                false => press.waits_for,
            },
            ..press
        };
        self.judge_as_shown(now, press, cx);
        self.exchange(&mut before);
        self.film = film;
        self.forget_unread();
        if self.presses.len() > waiting {
            // It waits, and is judged once more.
            self.before_answer = Some(before);
        } else {
            // What was left to wait for it is looked at now.
            self.look_due = true;
            self.searched = false;
        }
    }

    fn exchange(&mut self, before: &mut BeforeAnswer) {
        std::mem::swap(&mut self.picture, &mut before.picture);
        std::mem::swap(&mut self.trail, &mut before.trail);
        std::mem::swap(&mut self.last_change, &mut before.last_change);
    }
}

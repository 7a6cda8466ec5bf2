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
        let view = self.view(cx);
        let (tip, plies) = (view.tip(), view.len());
        let mover = tip.turn();
        let differing = self.picture.differing(tip.board());
        // All that he had moved stands where it stood.
        if (differing & tip.board().by_color(mover)).is_empty() {
            self.before_answer = None;
        }
        let astray = differing & !self.picture.vacant();
        if astray.is_empty() || !self.picture.is_exact() {
            return;
        }
        let is_mans_of = |color: Color, contents: Contents| {
            contents.piece().is_some_and(|man| man.color == color)
        };
        // Once it was pressed over, the answer may begin with the man that stands astray: he is taken.
        let is_pressed = self.presses.iter().any(|press| press.side == mover);
        let is_lifted = |(square, contents): &(Square, Contents)| {
            let before = self.picture.at(*square);
            let is_theirs = before.is_some_and(|before| is_mans_of(!mover, before));
            contents.is_empty() && (is_theirs || (is_pressed && astray.contains(*square)))
        };
        if changes.iter().any(|(_, contents)| is_mans_of(mover, *contents)) {
            self.before_answer = None;
        } else if self.before_answer.is_none() && changes.iter().any(is_lifted) {
            self.before_answer = Some(Box::new(BeforeAnswer {
                picture: self.picture.clone(),
                trail: self.trail.clone(),
                last_change: self.last_change,
                at: now,
                plies,
            }));
        }
    }

    /// Whether this press is for what stood then: its player had the move, and was answered after it, as near as a clock tells.
    pub(super) fn is_answered(&self, press: Press, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        !press.spent
            && view.tip().turn() == press.side
            && self.before_answer.as_ref().is_some_and(|before| {
                before.plies == view.len() && press.at <= before.at + CLOCK_LAG_MS
            })
    }

    /// Judges a press by what stood then. What has come since is looked at after that.
    pub(super) fn judge_before_answer(&mut self, now: Millis, press: Press, cx: &Context<'_>) {
        let Some(mut before) = self.before_answer.take() else {
            return;
        };
        self.exchange(&mut before);
        let (told, waiting) = (self.observations.len(), self.presses.len());
        // Where the other side has pressed since it is not waited for; it says nothing else of what stood then.
        let press = match press.overtaken {
            true => Press {
                overtaken: false,
                waits: true,
                dump_seen: true,
                ..press
            },
            false => press,
        };
        self.judge_as_shown(now, press, cx);
        self.exchange(&mut before);
        if self.presses.len() > waiting {
            // It waits, and is judged once more.
            self.before_answer = Some(before);
        } else {
            self.look_due |= self.observations.len() > told;
        }
    }

    fn exchange(&mut self, before: &mut BeforeAnswer) {
        std::mem::swap(&mut self.picture, &mut before.picture);
        std::mem::swap(&mut self.trail, &mut before.trail);
        std::mem::swap(&mut self.last_change, &mut before.last_change);
    }
}

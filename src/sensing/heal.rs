//! Looks past what was told already: plies that went missing may explain all of it by now.

use super::explain::Lines;
use super::look::is_continued;
use super::search::MISSED;
use super::*;

impl Sensing {
    /// Looks past what was told already: plies that went missing may explain all of it by now, also such as were played before some
    /// that were followed beside the fault.
    pub(super) fn heal(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if self.faults.is_empty() {
            return false;
        }
        let view = self.view(cx);
        let n = view.len();
        let tip = view.tip();
        let differing = self.picture.differing(tip.board());
        if differing.is_empty() || explain::is_only_missing(tip, &self.picture, differing) {
            return false;
        }
        let healed = (n.saturating_sub(1)..=n + MISSED).find_map(|plies| self.healed(plies, &view));
        self.read_anew(healed, now, cx)
    }

    /// The same where one more ply would explain the board: it was no ply if fewer explain it too.
    pub(super) fn heal_with_fewer(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let n = view.len();
        let healed = (n.saturating_sub(1)..=n).find_map(|plies| self.healed(plies, &view));
        self.read_anew(healed, now, cx)
    }

    fn read_anew(&mut self, healed: Option<Healed>, now: Millis, cx: &Context<'_>) -> bool {
        let Some((keep, from, lines)) = healed else {
            return false;
        };
        self.jumped(&from, keep, lines, now, cx);
        // The record has to be brought up to date before it can be seen that nothing is wrong any more.
        self.look_due = true;
        true
    }

    /// Games of so many plies that end with what the board shows: what was recorded, continued, or with more plies before what was
    /// seen of it.
    fn healed(&self, plies: usize, view: &View<'_>) -> Option<Healed> {
        let n = view.len();
        let shortest = plies.saturating_sub(MISSED);
        (shortest..=n.min(plies.checked_sub(1)?))
            .rev()
            .filter(|keep| (2..=MISSED).contains(&(plies - keep)) || *keep < n)
            .find_map(|keep| {
                let from = view.position(keep);
                let recorded: Vec<Recorded> = (keep..n)
                    .filter_map(|index| {
                        let mv = view.mv(index)?;
                        // He may have gone on if he had left where he stopped before the answer came, and had not been let go of.
                        let answered = (index + 1 < n).then(|| view.seen_at(index + 2));
                        let left = self.trail.at(mv.to());
                        let may_go_on = self.picture.is_empty(mv.to())
                            && answered.is_none_or(|at| left <= at)
                            && !self.was_pressed_before(view, index, left);
                        Some(Recorded { mv, may_go_on })
                    })
                    .collect();
                let since = view.seen_at(keep);
                let depth = plies - keep;
                let lines =
                    explain::lines_to(from, &self.picture, Bitboard::EMPTY, depth, |line| {
                        self.fits(from, line, since) && holds_what_was_seen(line, &recorded)
                    });
                lines.explain().then(|| (keep, from.clone(), lines))
            })
    }
}

/// How many plies stand, and the lines of several plies from there that lead to what the board shows.
type Healed = (usize, Position, Lines);

/// A ply that was read, and whether its man may have gone on from there.
struct Recorded {
    mv: Move,
    may_go_on: bool,
}

/// Whether a line tells of all that was recorded, in its order, but for one man that went on.
fn holds_what_was_seen(line: &[Move], recorded: &[Recorded]) -> bool {
    let mut seen = recorded.iter().peekable();
    let mut gone_on = false;
    for m in line {
        let Some(next) = seen.peek() else { break };
        if next.mv == *m {
            seen.next();
        } else if !gone_on && next.may_go_on && is_continued(next.mv, *m) {
            gone_on = true;
            seen.next();
        }
    }
    seen.peek().is_none()
}

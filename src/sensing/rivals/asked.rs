//! Asks what else may have been played for what the board shows: what cannot be played on from is not what was played.

use super::*;

impl Sensing {
    /// Looks the placement up beside each rival, where the record does not explain it: what cannot be played on from is not what was
    /// played.
    pub(in crate::sensing) fn match_rivals(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        self.match_rivals_within(KEPT, now, cx)
    }

    /// The same among those that are not so much less likely than the record.
    pub(in crate::sensing) fn match_rivals_within(
        &mut self,
        behind: i64,
        now: Millis,
        cx: &Context<'_>,
    ) -> bool {
        let ask = |sensing: &mut Sensing| sensing.match_near(now, cx);
        self.try_rivals_within(behind, cx, ask)
    }

    /// The same beside those that the last move contradicts.
    pub(in crate::sensing) fn match_past_rivals(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let ask = |sensing: &mut Sensing| sensing.match_near(now, cx);
        self.try_past_rivals(cx, ask)
    }

    /// Asks a question of each rival as if the record read so, and leaves the first that answers in the place of the record, untold.
    pub(in crate::sensing) fn try_rivals(
        &mut self,
        cx: &Context<'_>,
        ask: impl FnMut(&mut Sensing) -> bool,
    ) -> bool {
        self.try_rivals_within(KEPT, cx, ask)
    }

    /// Asks a question of each rival that is a doubt about the record, as [`Sensing::try_rivals`] does of all.
    pub(in crate::sensing) fn try_doubts(
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
            if rival.is_some_and(|rival| self.try_rival(rival, cx, &mut ask)) {
                return true;
            }
        }
        false
    }

    /// Looks the placement up beside the record with this ply in place of those from there on.
    pub(in crate::sensing) fn match_after(
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
        self.try_rival(rival, cx, &mut ask)
    }

    /// Asks this one.
    fn try_rival(
        &mut self,
        rival: Rival,
        cx: &Context<'_>,
        ask: &mut impl FnMut(&mut Sensing) -> bool,
    ) -> bool {
        let (plies, last) = (rival.moves.len(), rival.moves.last().map(|seen| seen.mv));
        let (base, stem, why) = (rival.base, rival.end(), CorrectionReason::Reread);
        self.tentative = Some(Tentative {
            stem,
            ..Tentative::new(base, rival.moves, self.last_change, 0, why)
        });
        // What was answered is not read otherwise for what may be a man on his way off the board.
        let replaces_last = base + 1 >= cx.line.len();
        let told = self.observations.len();
        let is_it = ask(self);
        // Who stands as the record does explains no more than it, unless half of a castling has become all of it, or a board that is quiet
        // shows all of this where the record differs. What leads back to the record is no other reading of it, nor is what takes all of it
        // back.
        let goes_on = match &self.tentative {
            Some(tentative) => {
                let castled = tentative.moves.last().map(|seen| seen.mv);
                let goes_on = !tentative.moves.is_empty() && tentative.moves.len() != plies;
                let is_shown = |seen: &Seen| self.picture.agrees_with(seen.after.board());
                goes_on
                    || (castled != last && castled.is_some_and(Move::is_castle))
                    || (replaces_last
                        && self.searched
                        && tentative.moves.last().is_some_and(is_shown)
                        && !self.picture.agrees_with(cx.line.tip().board()))
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
    pub(in crate::sensing) fn try_past_rivals(
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
            .any(|rival| self.try_rival(rival, cx, &mut ask))
    }

    /// Reads the record otherwise where a rival has become likelier.
    pub(in crate::sensing) fn reconsider(&mut self, cx: &Context<'_>) {
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
    pub(in crate::sensing) fn agree_on(&self, square: Square, man: Option<Color>) -> bool {
        self.rivals.others.iter().all(|rival| {
            rival.joined
                || rival
                    .moves
                    .last()
                    .is_none_or(|seen| seen.after.board().color_at(square) == man)
        })
    }

    /// Whether this is so where some other line leads that may be the game.
    pub(in crate::sensing) fn is_so_in_a_rival(&self, is_so: impl Fn(&Position) -> bool) -> bool {
        let open = self.rivals.others.iter().filter(|rival| !rival.joined);
        open.filter_map(|rival| rival.moves.last())
            .any(|last| is_so(&last.after))
    }
}

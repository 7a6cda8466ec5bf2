//! What differs from the record and may: what is set aside, in a hand, or gone for good.

use super::*;

impl Sensing {
    /// Squares set aside: those of standing faults that still differ, and of men that were gone already when the last move was made.
    pub(super) fn mask(&self, view: &View<'_>) -> Bitboard {
        self.mask_of(view, self.picture.differing(view.tip().board()))
    }

    /// The same where it is known already what differs.
    pub(super) fn mask_of(&self, view: &View<'_>, differing: Bitboard) -> Bitboard {
        if differing.is_empty() {
            return differing;
        }
        let pushed = self.pushed_aside(view, differing);
        let aside = self.faulty() | self.gone(view) | self.half_castled(view);
        pushed.into_iter().fold(aside, |all, pushed| all | pushed) & differing
    }

    /// The squares of all standing faults.
    pub(super) fn faulty(&self) -> Bitboard {
        let aside = self
            .faults
            .iter()
            .filter(|fault| fault.kind != FaultKind::Gap);
        aside.fold(Bitboard::EMPTY, |all, fault| {
            all | fault.squares | fault.over
        })
    }

    /// Squares set aside that have changed since that was told. What follows an irregular move is not read from there.
    pub(super) fn changed_since_told(&self) -> Bitboard {
        let changed = |fault: &Fault| {
            let squares = match fault.side {
                None => fault.squares,
                Some(_) => Bitboard::EMPTY,
            };
            let since = fault.since;
            squares
                .into_iter()
                .filter(move |square| self.trail.at(*square) > since)
        };
        self.faults.iter().flat_map(changed).collect()
    }

    /// Men that are in no hand: each side has moved since its own went. Who has the move may have lifted his man while the other was
    /// still moving.
    pub(super) fn gone(&self, view: &View<'_>) -> Bitboard {
        let tip = view.tip();
        let lifted = tip.board().occupied() & self.picture.vacant();
        if lifted.is_empty() {
            return lifted;
        }
        let n = view.len();
        let seen = view.seen_at(n);
        let early = seen.saturating_sub(trail::EARLY_MS);
        let own = view.seen_at(n.saturating_sub(1)).max(early);
        let ours = tip.board().by_color(tip.turn());
        let is_gone = |square: &Square| {
            let until = if ours.contains(*square) { own } else { seen };
            self.trail.at(*square) < until
        };
        lifted.into_iter().filter(is_gone).collect()
    }

    /// Men of this side that were off the board before this time.
    pub(super) fn gone_until(&self, view: &View<'_>, until: Millis, color: Color) -> Bitboard {
        let gone = view.tip().board().by_color(color) & self.picture.vacant();
        gone.into_iter()
            .filter(|square| self.trail.at(*square) < until)
            .collect()
    }

    /// Men that are in no hand any more: their own side has made a move since they went.
    pub(super) fn forgotten(&self, view: &View<'_>) -> Bitboard {
        let n = view.len();
        let forgotten = (n.saturating_sub(1)..=n)
            .filter_map(|ply| Some(self.gone_until(view, view.seen_at(ply), view.mover(ply)?)))
            .fold(Bitboard::EMPTY, |all, squares| all | squares)
            & !self.faulty();
        if forgotten.is_empty() {
            return forgotten;
        }
        let castling = Color::ALL.map(|side| self.castling_with(view, side));
        forgotten & !self.half_castled(view) & !(castling[0] | castling[1])
    }

    /// Whether the placement is something that no legal play, no hand and no fault told already explains.
    pub(super) fn is_unexplained(&self, cx: &Context<'_>) -> bool {
        self.unexplained(&self.view(cx)).any()
    }

    /// Its squares.
    pub(super) fn unexplained(&self, view: &View<'_>) -> Bitboard {
        let differing = self.picture.differing(view.tip().board());
        match differing.any() && self.shadow_shown() {
            true => Bitboard::EMPTY,
            false => differing & !self.mask_of(view, differing),
        }
    }

    /// Things that are never told, however long: men in the hands, a move on its way.
    pub(super) fn is_patient(
        &self,
        view: &View<'_>,
        open: Bitboard,
        pressed: Option<Color>,
        cx: &Context<'_>,
    ) -> bool {
        let tip = view.tip();
        // Who stood there by the press, and stands there when it has been judged, is passing no more.
        let is_his = |press: &Pressed| pressed == Some(press.side);
        let pressed_at = self
            .film
            .last_press()
            .filter(is_his)
            .map_or(0, |press| press.at);
        let mut astray = (open & !self.picture.vacant()).into_iter();
        let at_rest = self.grace_passed || astray.all(|square| self.trail.at(square) <= pressed_at);
        // More men than there are, and a dump agrees: one that is on its way does not stand where it came from.
        if self.grace_passed && self.dump_seen && explain::has_too_many(tip, &self.picture) {
            return false;
        }
        let is_in_hands = |position: &Position, open: Bitboard| {
            let is_on_its_way = match at_rest {
                true => explain::is_in_progress_at_rest,
                false => explain::is_in_progress,
            };
            explain::only_hands(position, &self.picture, open)
                || is_on_its_way(position, &self.picture, open)
        };
        if is_in_hands(tip, open) {
            return true;
        }
        let n = view.len();
        if n == 0 {
            return false;
        }
        let before = view.position(n - 1);
        let open = self.picture.differing(before.board());
        if self.is_completed(n, cx) {
            // Who takes a capture back puts his own man down first; where men are not known apart, a victim that waits long for its
            // captor looks the same.
            return self.is_poor()
                && view.last().is_some_and(|last| last.is_capture())
                && explain::only_hands(before, &self.picture, open);
        }
        is_in_hands(before, open)
    }

    /// Men that went off the board in the middle of the last move, which could have taken them and did not: they may be what was
    /// taken, and their captor stands beside their square.
    pub(super) fn lost_beside(&self, view: &View<'_>) -> Bitboard {
        let n = view.len();
        let Some(last) = view.last().filter(|m| !m.is_capture()) else {
            return Bitboard::EMPTY;
        };
        let before = view.position(n - 1);
        let (since, until) = (view.seen_at(n - 1), self.trail.at(last.to()));
        let victims: Bitboard = before
            .moves()
            .into_iter()
            .filter(|m| m.from() == last.from() && m.is_capture())
            .map(super::look::capture_square)
            .collect();
        (victims & self.picture.vacant())
            .into_iter()
            .filter(|square| (since + 1..=until).contains(&self.trail.at(*square)))
            .collect()
    }

    /// Whether all that is wrong is a man of the side that has the move, who may have been in the hand since its last one.
    pub(super) fn may_be_in_hand(&self, squares: Bitboard, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let turn = view.tip().turn();
        let own = squares & view.tip().board().by_color(turn);
        let until = view.seen_at(view.len().saturating_sub(1));
        own == squares
            && squares.count() == 1
            && (squares & self.gone_until(&view, until, turn)).is_empty()
    }

    /// The squares of men of the presser's that are nowhere on the board, if that is all that is wrong.
    pub(super) fn own_men_missing(
        &self,
        side: Color,
        his_turn: bool,
        after: Bitboard,
        cx: &Context<'_>,
    ) -> Bitboard {
        let view = self.view(cx);
        let tip = view.tip();
        let open = self.picture.differing(tip.board()) & !self.faulty() & !after;
        if !explain::is_only_missing(tip, &self.picture, open) {
            return Bitboard::EMPTY;
        }
        let own = open & tip.board().by_color(side);
        if own.is_empty() {
            return own;
        }
        if tip.turn() == side {
            return if his_turn { own } else { Bitboard::EMPTY };
        }
        // What the opponent can take he may have in his hand already.
        let victims: Bitboard = tip
            .moves()
            .into_iter()
            .filter(|m| m.is_capture())
            .map(super::look::capture_square)
            .collect();
        own & !victims
    }

    /// The squares of the presser's men that are nowhere on the board, where the other squares show what his opponent has done since.
    pub(super) fn in_hand_under_answer(&self, press: Press, cx: &Context<'_>) -> Bitboard {
        let view = self.view(cx);
        let (side, board) = (press.side, view.tip().board());
        let open = self.picture.differing(board) & !self.faulty();
        let missing = open & board.by_color(side) & self.picture.vacant();
        let is_his = |square: Square| {
            let man = self.picture.piece(square);
            man.is_some_and(|man| man.color == side)
        };
        let is_answer = !press.spent
            && view.tip().turn() == side
            && self.picture.is_exact()
            && (open & board.by_color(!side) & self.picture.vacant()).any()
            && !open.into_iter().any(is_his);
        if is_answer { missing } else { Bitboard::EMPTY }
    }

    pub(super) fn is_put_back(&self, square: Square, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let man = view.tip().board().piece_at(square);
        self.picture
            .at(square)
            .is_none_or(|contents| contents.agrees(man))
    }
}

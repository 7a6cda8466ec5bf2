//! Men that stand where nobody can have put them, while play goes on beside them.

use super::*;

/// More of them are no accident.
const MOST: usize = 2;
/// A board may tell so late that a man has left.
const LATE_MS: Millis = 1_000;

impl Sensing {
    /// Sets aside who has stood for long where nobody can have gone, so that what is played beside him can be read: it may never come to
    /// rest. Whether there is such a man.
    pub(super) fn set_aside_strangers(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        // What a board that is gone showed last is held against nobody.
        if self.silent || !self.may_find_faults(cx) {
            return false;
        }
        let strangers = self.strangers(now.saturating_sub(self.timing.grace), &self.view(cx));
        let found = (1..=MOST).contains(&strangers.count());
        if found {
            for square in strangers {
                let since = self.trail.at(square);
                let fault = Fault::new(FaultKind::Displaced, Bitboard::from(square), since);
                self.raise(fault);
            }
        }
        found
    }

    /// Squares where one man stands, or is missing, by nobody's move. Where men are not known it may be anybody's.
    pub(super) fn beside_play(&self) -> Vec<Square> {
        let is_known = !self.is_poor();
        let beside = self.faults.iter().filter_map(Fault::beside_play);
        beside.filter(|_| is_known).collect()
    }

    /// Men who have stood since then where none of those who are gone can have come to.
    pub(super) fn strangers(&self, since: Millis, view: &View<'_>) -> Bitboard {
        let board = view.tip().board();
        // Where men are not known, anybody who has gone may stand anywhere.
        if self.is_poor() {
            return Bitboard::EMPTY;
        }
        let open = self.unexplained(view);
        let gone = self.picture.differing(board) & board.occupied();
        let may_have_gone = |from: Square, to: Square| {
            let has_left = self.trail.left(from) <= self.trail.filled(to) + LATE_MS;
            has_left && self.may_stand(board.piece_at(from), to)
        };
        (open & !self.picture.vacant())
            .into_iter()
            .filter(|to| self.trail.at(*to) <= since)
            .filter(|to| !gone.into_iter().any(|from| may_have_gone(from, *to)))
            .filter(|to| self.dump_seen || !self.may_be_half_of_a_move(view.tip(), *to))
            .collect()
    }

    /// Whether a move leads here of which the board may not have told that its man has left.
    fn may_be_half_of_a_move(&self, tip: &Position, to: Square) -> bool {
        let shows = |position: &Position, m: Move| {
            let effects = position.effects(m);
            effects.iter().any(|(square, man)| {
                square == to && man.is_some() && self.picture.agrees_at(to, man)
            })
        };
        let turned = tip.with_turn(!tip.turn());
        [tip, &turned].into_iter().any(|position| {
            let mut moves = position.moves().into_iter();
            moves.any(|m| shows(position, m))
        })
    }

    /// Whether it may be this man, or what he became, who is seen on the square.
    fn may_stand(&self, man: Option<Piece>, square: Square) -> bool {
        let Some(man) = man else {
            return false;
        };
        let promoted = man.role == Role::Pawn && square.rank() == (!man.color).backrank();
        let men = Role::ALL.map(|role| role.of(man.color));
        self.picture.agrees_at(square, Some(man))
            || (promoted
                && men
                    .iter()
                    .any(|man| self.picture.agrees_at(square, Some(*man))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Sense;

    /// A pawn that belongs to no move stands on this square of the initial array.
    fn with_stranger(color: Color, square: Square, cx: &Context<'_>) -> Sensing {
        let mut sensing = Sensing::new(Timing::default());
        sensing.restart(Picture::of(cx.line.tip().board(), Sense::Piece), 0);
        let pawn = Contents::Piece(Role::Pawn.of(color));
        sensing.handle_squares(1_000, &[(square, pawn)], Look::Update, cx);
        sensing
    }

    #[test]
    fn a_stranger_is_set_aside_where_play_is_followed() {
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
        let setting_up = Context {
            setting_up: true,
            ..cx
        };
        for (color, square) in [(Color::White, Square::H5), (Color::Black, Square::H4)] {
            let begun = with_stranger(color, square, &cx);
            assert!(!begun.clone().set_aside_strangers(2_000, &cx));
            assert!(!begun.clone().set_aside_strangers(9_000, &setting_up));
            let mut unheard = begun.clone();
            unheard.handle_silence();
            assert!(!unheard.set_aside_strangers(9_000, &cx));
            let mut heard = begun;
            assert!(heard.set_aside_strangers(9_000, &cx));
            assert_eq!(heard.faulty(), Bitboard::from(square));
            assert_eq!(heard.beside_play(), [square]);
            // He is told once.
            assert!(!heard.set_aside_strangers(10_000, &cx));
        }
    }
}

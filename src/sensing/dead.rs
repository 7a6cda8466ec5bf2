//! Squares whose sensor is not to be believed: one that shows no man though one must stand there, or goes on showing one that has
//! gone. What such a square shows is read no more, as if it had never been read: it agrees with everything, and play goes on over it.
//!
//! A man that is seen nowhere is told at the press, as any man is; only once the other side has answered is it plain that he was
//! moved. Where he may be on several squares all of them are left unread, and each is a reading of its own until later play tells.

use super::*;
use shakmaty::Board;

/// A man that is missed through so many plies may stand on a dead square.
const PLIES_MISSED: usize = 6;

/// A square that is not read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unread {
    square: Square,
    /// What its sensor shows.
    shows: Contents,
    /// How long the record was when it was last read.
    since: usize,
    /// Who may stand there.
    man: Option<Piece>,
    /// No man was known to stand there, or to have gone, but by the answer: it is still told to the arbiter.
    in_question: bool,
    /// It changes again and again: nothing that is played bears out what it shows.
    is_restless: bool,
}

impl Sensing {
    /// Whatever the picture shows of squares that are left unread counts for nothing.
    pub(super) fn forget_unread(&mut self) {
        for unread in &self.unread {
            self.picture.forget(unread.square);
        }
    }

    /// The squares that may be dead: those that are not read, and those where a man has been missed for long.
    pub fn suspect_squares(&self, line: &Line) -> Bitboard {
        let missed = self
            .faults
            .iter()
            .filter(|fault| self.is_missed(fault, PLIES_MISSED, line));
        missed.fold(self.unread_squares(), |all, fault| all | fault.squares)
    }

    /// The squares that are not believed.
    pub fn unread_squares(&self) -> Bitboard {
        self.unread.iter().map(|unread| unread.square).collect()
    }

    /// Those that are told to the arbiter: nothing has borne out yet that they are dead.
    pub(super) fn squares_in_question(&self) -> Bitboard {
        let in_question = self.unread.iter().filter(|unread| unread.in_question);
        in_question.map(|unread| unread.square).collect()
    }

    /// Whether this tells of one man who is gone, and so many plies were made since without him.
    fn is_missed(&self, fault: &Fault, plies: usize, line: &Line) -> bool {
        let since = line.plies.iter().rev();
        matches!(
            fault.kind,
            FaultKind::Displaced | FaultKind::CastlingUnfinished
        ) && fault.squares.single_square().is_some_and(|square| {
            self.picture.is_empty(square) && line.tip().board().piece_at(square).is_some()
        }) && since.take_while(|ply| ply.seen_at > fault.since).count() >= plies
    }

    /// The square is not read from here on.
    fn stop_reading(
        &mut self,
        square: Square,
        man: Option<Piece>,
        since: usize,
        in_question: bool,
    ) {
        if let Some(shows) = self.picture.at(square) {
            self.picture.forget(square);
            self.unread.push(Unread {
                square,
                shows,
                since,
                man,
                in_question,
                is_restless: false,
            });
        }
    }

    /// These squares of the array show no man though one must stand there: they are not read from the beginning.
    pub fn leave_unread(&mut self, squares: Bitboard, array: &Board) {
        for square in squares {
            self.stop_reading(square, array.piece_at(square), 0, false);
        }
    }

    /// The sensor of this square has shown a change: it is believed again. Where it is somebody else who came, the man that is missed
    /// does not stand there.
    pub(super) fn read_again(&mut self, square: Square) {
        let Some(index) = (self.unread.iter()).position(|unread| unread.square == square) else {
            return;
        };
        let Unread { man, .. } = self.unread.swap_remove(index);
        let came = self.picture.piece(square);
        if came.is_some() && came != man {
            let missed = self.faults.iter_mut();
            for fault in missed.filter(|fault| fault.squares.more_than_one()) {
                fault.squares.discard(square);
            }
        }
    }

    /// The man of the side to move who was nowhere when his player pressed: he has moved, and nobody knows where to.
    pub(super) fn pressed_missing(&self, tip: &Position) -> Option<Square> {
        let own = tip.board().by_color(tip.turn()) & self.picture.vacant();
        let told = |fault: &&Fault| fault.is_told_displaced() && fault.squares.is_subset(own);
        self.faults
            .iter()
            .filter(told)
            .find_map(|fault| fault.squares.single_square())
    }

    /// The sensor of this square has told of a change that leaves it as it was read last: only word of the change before was lost.
    /// Tells whether it was not read so far.
    pub(super) fn read_as_shown(&mut self, square: Square) -> bool {
        let unread = self
            .unread
            .iter()
            .position(|unread| unread.square == square);
        if let Some(index) = unread {
            let Unread { shows, .. } = self.unread.swap_remove(index);
            self.picture.set(square, shows);
        }
        unread.is_some()
    }

    /// What the sensors show, whether they are believed or not.
    pub fn shown(&self) -> Picture {
        let mut shown = self.picture.clone();
        for unread in &self.unread {
            shown.set(unread.square, unread.shows);
        }
        shown
    }

    /// All squares are believed again, as the board shows them, but for those that do not rest.
    pub(super) fn read_all_again(&mut self) {
        for unread in self.unread.extract_if(.., |unread| !unread.is_restless) {
            self.picture.set(unread.square, unread.shows);
        }
    }

    /// This square, which shows that just now, changes again and again: it is not read, until it is handed in with other squares.
    pub fn leave_restless(&mut self, square: Square, shows: Contents) {
        self.picture.forget(square);
        self.unread.retain(|unread| unread.square != square);
        self.unread.push(Unread {
            square,
            shows,
            since: 0,
            man: None,
            in_question: false,
            is_restless: true,
        });
    }

    /// The same, found only now: it has been so since this time, and until then it had shown `before`. What it has shown is forgotten.
    pub fn find_restless(
        &mut self,
        square: Square,
        since: Millis,
        before: Option<Contents>,
        cx: &Context<'_>,
    ) {
        let man = cx.line.tip().board().piece_at(square);
        // What brought it to show what is played is play.
        let is_unrest = before.is_some_and(|before| before.agrees(man));
        let since = since + Millis::from(!is_unrest);
        self.film.forget(square, since);
        self.trail.put_right(square, since.saturating_sub(1));
        if let Some(shows) = self.picture.at(square) {
            self.leave_restless(square, shows);
        }
        self.searched = false;
        self.look_due = true;
    }

    /// A restless square shows this now.
    pub fn note_restless(&mut self, square: Square, shows: Contents) {
        let known = self.unread.iter_mut();
        for unread in known.filter(|unread| unread.square == square) {
            unread.shows = shows;
        }
    }

    /// The squares that are not read because they do not rest.
    pub fn restless_squares(&self) -> Bitboard {
        let restless = self.unread.iter().filter(|unread| unread.is_restless);
        restless.map(|unread| unread.square).collect()
    }

    /// Men that were missed have moved from where nothing had shown them while both sides moved others: those squares are dead.
    pub(super) fn note_dead(&mut self, restored: &[Fault], cx: &Context<'_>) {
        let from = self.view(cx).last().and_then(Move::from);
        let dead = restored
            .iter()
            .filter(|fault| self.is_missed(fault, 2, cx.line))
            .any(|fault| from.is_some_and(|from| fault.squares == Bitboard::from(from)));
        if let Some(from) = from.filter(|_| dead) {
            self.stop_reading(from, None, cx.line.len(), false);
        }
    }

    /// Whether this line has a man taken where a board that knows its men, asked when his move was pressed, did not show him.
    pub(super) fn was_never_there(&self, tip: &Position, line: &[Move]) -> bool {
        let [m, reply, ..] = line else { return false };
        let missing = self.pressed_missing(tip).filter(|_| !self.is_poor());
        missing.is_some() && m.from() == missing && reply.to() == m.to()
    }

    /// What is played tells which squares were wrongly suspected, and which are dead for certain.
    pub(super) fn reconsider_unread(&mut self, cx: &Context<'_>) {
        if self.unread.is_empty() || !self.rivals.is_empty() || self.ahead.is_some() {
            return;
        }
        let line = cx.line;
        let mut unread = std::mem::take(&mut self.unread);
        unread.retain_mut(|unread| {
            if unread.is_restless {
                return true;
            }
            let agrees = |plies: usize| {
                let man = line.position(plies).board().piece_at(unread.square);
                unread.shows.agrees(man)
            };
            unread.in_question &= !agrees(line.len());
            let was_needed = (unread.since..=line.len()).any(|plies| !agrees(plies));
            if !was_needed {
                self.picture.set(unread.square, unread.shows);
            }
            was_needed
        });
        self.unread = unread;
    }

    /// A move of which a dead square shows no more than one half, and which was pressed and answered: either its man is seen nowhere,
    /// or he is still seen where he came from.
    pub(super) fn read_over_dead(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let (keep, tip) = (view.len(), view.tip());
        let since = view.seen_at(keep);
        let answered = self
            .picture
            .differing(tip.board())
            .into_iter()
            .filter(|half| self.is_gone_on_over(*half, cx))
            .find_map(|half| Some((half, self.answered_over_dead(tip, half, since)?)));
        let Some((half, (lines, dead))) = answered else {
            return false;
        };
        let tip = tip.clone();
        let man = tip.board().piece_at(half);
        for square in dead {
            self.stop_reading(square, man, keep, true);
        }
        self.jumped(&tip, keep, lines, now, cx);
        // What was told of the one half is told of the other.
        let told = self
            .faults
            .iter_mut()
            .find(|fault| fault.squares.single_square() == Some(half));
        if let Some(fault) = told {
            fault.squares = dead;
            faults::tell(&mut self.observations, fault);
        }
        self.look_due = true;
        true
    }

    /// The presser's man stands where one of his can have gone, and that one is still shown where he came from: of a board that cannot be
    /// asked the word of it was lost. His move, if it can have been one man only, and the square that does not fit.
    pub(super) fn word_lost(&self, side: Color, cx: &Context<'_>) -> Option<(Move, Square)> {
        let view = self.view(cx);
        let tip = view.tip();
        if cx.can_dump || self.is_poor() || tip.turn() != side || self.frozen_since.is_some() {
            return None;
        }
        let came = self.unexplained(&view).single_square();
        let own = |square: &Square| self.picture.piece(*square).is_some_and(|m| m.color == side);
        let to = came.filter(own)?;
        let left_unseen = |m: &Move| {
            let effects = tip.effects(*m);
            let wrong = effects.iter().filter_map(|(square, man)| {
                let agrees = self.picture.agrees_at(square, man);
                (!agrees).then_some(square)
            });
            m.to() == to && wrong.eq(m.from())
        };
        let found: Vec<Move> = tip.moves().into_iter().filter(left_unseen).collect();
        let m = look::sole(&found)?;
        Some((m, m.from()?))
    }

    /// Tells this move, and that its man is still shown where he came from.
    pub(super) fn read_word_lost(
        &mut self,
        now: Millis,
        (m, from): (Move, Square),
        cx: &Context<'_>,
    ) {
        let view = self.view(cx);
        let moves = self.seen(view.tip(), &[m], now);
        let keep = view.len();
        self.stop_reading(from, None, keep, true);
        self.arrived_by(moves, now, cx);
        self.flush(cx);
        // It may be a man too many all the same.
        self.raise(Fault {
            level: Level::Told,
            ..Fault::new(FaultKind::Displaced, from.into(), self.last_change)
        });
        self.tell_sync();
    }

    /// Whether this square has been pressed over: that was told. Without a clock whoever answers and rests says the same.
    fn is_gone_on_over(&self, square: Square, cx: &Context<'_>) -> bool {
        let told = |fault: &Fault| {
            fault.is_told_displaced() && fault.squares.single_square() == Some(square)
        };
        self.faults.iter().any(told) || (!cx.has_clock && self.grace_passed)
    }

    /// The lines of two plies that this can have been, and the squares that are dead then.
    fn answered_over_dead(
        &self,
        tip: &Position,
        half: Square,
        since: Millis,
    ) -> Option<(explain::Lines, Bitboard)> {
        let shows = self.picture.at(half)?;
        let board = tip.board();
        let is_own = board.color_at(half) == Some(tip.turn());
        let aside = self.faulty().without(half);
        // He left, and is seen nowhere; or he came, and nobody is seen to have left.
        if shows.is_empty() != is_own {
            return None;
        }
        let stays = |square: Square| match is_own {
            true => self.picture.is_empty(square),
            false => self.picture.agrees_at(square, board.piece_at(square)),
        };
        let only_wrong = |m: Move| {
            let effects = tip.effects(m);
            let wrong = effects
                .iter()
                .filter(|(square, man)| !self.picture.agrees_at(*square, *man))
                .map(|(square, _)| square);
            let is_of_half = effects.squares().contains(half);
            let wrong = wrong.collect::<Bitboard>().single_square();
            wrong.filter(|square| is_of_half && *square != half && stays(*square))
        };
        let candidates = tip
            .moves()
            .into_iter()
            .filter_map(|m| Some((m, only_wrong(m)?)));
        let mut lines = explain::Lines {
            complete: true,
            ..explain::Lines::default()
        };
        let mut dead = Bitboard::EMPTY;
        for (m, square) in candidates {
            if m.promotion().is_some_and(|role| role != Role::Queen) {
                continue;
            }
            let after = tip.play(m);
            let mask = aside.with(square);
            let differing = self.picture.differing(after.board());
            let mut replies = explain::moves_to(&after, &self.picture, differing, mask);
            // Where nobody sees who is taken, two men in the hands are no answer.
            replies.retain(|reply| self.is_put_down(&after, *reply, since));
            // Who came to stand there after the replying man had left is that one.
            let comes_himself = |reply: &Move| {
                let left = reply.from().map(|from| self.trail.at(from));
                reply.to() == half && left.is_some_and(|left| self.trail.came_since(half, left))
            };
            if let Some(reply) = look::sole(&replies).filter(|reply| !comes_himself(reply)) {
                lines.found.push(vec![m, reply]);
                dead.add(square);
            }
        }
        (!dead.is_empty()).then_some((lines, dead))
    }
}

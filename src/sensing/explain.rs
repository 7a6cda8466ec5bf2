//! Whether a position, and what follows from it, agrees with what the board shows.
//!
//! Every question here is asked of any sensor alike: a poorer one only leaves more answers.

use crate::board::{Contents, Picture, Sense};
use crate::laws::position::{Castling, Position};
use shakmaty::{Bitboard, Color, Move, Role, Square, attacks};

/// The moves from `position` that lead to exactly what the board shows, squares in `mask` aside. A move that needs one of those
/// waits until it is put right.
pub fn moves_to(
    position: &Position,
    picture: &Picture,
    differing: Bitboard,
    mask: Bitboard,
) -> Vec<Move> {
    let open = differing & !mask;
    // Every move vacates an own man's square, be it one that is not read; castling changes four squares at most.
    let own = position.board().by_color(position.turn());
    let vacated = open | picture.unread();
    if open.is_empty() || open.count() > 4 || (vacated & own).is_empty() {
        return Vec::new();
    }
    let fits = |m: &Move| leads_to(position, *m, picture, open, mask);
    match picture.is_exact() {
        true => {
            let mut moves = moves_changing(position, open);
            moves.retain(fits);
            moves
        }
        false => position.moves().iter().copied().filter(fits).collect(),
    }
}

/// The moves that can have changed just these squares. A board that knows its men shows every square that a move changes, so that
/// their number tells the kind of move; only in Chess960 can castling change fewer than four.
fn moves_changing(position: &Position, squares: Bitboard) -> Vec<Move> {
    let mut moves = match (squares.count(), squares.first(), squares.last()) {
        (2, Some(one), Some(other)) => {
            let own = position.board().by_color(position.turn());
            match own.contains(one) {
                true => position.moves_between(one, other),
                false => position.moves_between(other, one),
            }
        }
        (3, ..) => position.en_passant_moves(),
        (4, ..) => position.castling_moves(),
        _ => Vec::new(),
    };
    if position.castling_mode().is_chess960() && (2..=3).contains(&squares.count()) {
        moves.extend(position.castling_moves());
    }
    moves
}

/// Whether `m` explains all of `open`, and nothing against it.
fn leads_to(
    position: &Position,
    m: Move,
    picture: &Picture,
    open: Bitboard,
    mask: Bitboard,
) -> bool {
    // Cheap refusals first: this runs for every legal move.
    if let Move::Normal { from, to, .. } = m
        && !open.is_subset(Bitboard::from(from) | Bitboard::from(to))
    {
        return false;
    }
    let effects = position.effects(m);
    let squares = effects.squares();
    open.is_subset(squares)
        && (squares & mask).is_empty()
        && effects
            .iter()
            .all(|(square, man)| picture.agrees_at(square, man))
}

/// Lines of several plies that lead to what the board shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    pub found: Vec<Vec<Move>>,
    /// Whether there is none besides. Where the search was cut short nothing that was found is the only one.
    pub complete: bool,
    /// Whether others lead there too that did not fit.
    pub refused: bool,
}

impl Lines {
    /// The only one.
    pub fn sole(&self) -> Option<&[Move]> {
        match self.found.as_slice() {
            [line] if self.complete => Some(line),
            _ => None,
        }
    }

    /// Whether the board is explained, be it in several ways.
    pub fn explain(&self) -> bool {
        self.found.len() > 1 || self.sole().is_some()
    }
}

/// Lines of exactly `depth` plies that lead to what the board shows, and that `fits` lets pass. Each ply changes a square that differs
/// now: a man that went out and came back while nobody looked would explain almost anything, also a move that is against the Laws.
pub fn lines_to(
    position: &Position,
    picture: &Picture,
    mask: Bitboard,
    depth: usize,
    fits: impl Fn(&[Move]) -> bool,
) -> Lines {
    lines_over(position, picture, mask, Bitboard::EMPTY, depth, fits)
}

/// The same where the squares in `touched` are known to have changed, be it that they show again what they showed: on a board that knows
/// no men the square of a man who took is as good as untouched once the answering man stands there.
pub fn lines_over(
    position: &Position,
    picture: &Picture,
    mask: Bitboard,
    touched: Bitboard,
    depth: usize,
    fits: impl Fn(&[Move]) -> bool,
) -> Lines {
    let touched = touched & !mask;
    let differing = picture.differing(position.board());
    let mut search = Search {
        picture,
        mask,
        touched,
        to_explain: (differing & !mask) | touched,
        fits,
        budget: BUDGET,
        line: Vec::with_capacity(depth),
        lines: Lines {
            found: Vec::new(),
            complete: true,
            refused: false,
        },
    };
    if men_allow(position, picture, mask, depth) && search.spend() {
        search.go_on(position, differing, depth);
    }
    search.lines
}

/// More readings than this are as good as any number.
const MANY: usize = 16;

/// How many positions are looked at; four plies that change few squares need some thousands.
const BUDGET: usize = 20_000;

struct Search<'a, F> {
    picture: &'a Picture,
    mask: Bitboard,
    touched: Bitboard,
    to_explain: Bitboard,
    fits: F,
    budget: usize,
    line: Vec<Move>,
    lines: Lines,
}

impl<F: Fn(&[Move]) -> bool> Search<'_, F> {
    /// Whether one more position may be looked at.
    fn spend(&mut self) -> bool {
        if self.lines.found.len() >= MANY || self.budget == 0 {
            self.lines.complete = false;
            return false;
        }
        self.budget -= 1;
        true
    }

    /// Plays on from a position that differs from the board on these squares.
    fn go_on(&mut self, position: &Position, differing: Bitboard, depth: usize) {
        if depth == 1 {
            for m in moves_to(position, self.picture, differing, self.mask) {
                if (position.squares(m) & self.to_explain).is_empty() {
                    continue;
                }
                self.line.push(m);
                match (self.fits)(&self.line) {
                    true => self.lines.found.push(self.line.clone()),
                    false => self.lines.refused = true,
                }
                self.line.pop();
            }
            return;
        }
        let open = differing & !self.mask;
        if !is_mendable(open, depth) {
            return;
        }
        let theirs = position.board().by_color(!position.turn());
        for m in &position.moves() {
            let squares = position.squares(*m);
            if (squares & self.mask).any() {
                continue;
            }
            let mends = (squares & (open | self.touched)).any();
            if (squares & self.to_explain).is_empty() || (!mends && depth <= 2) {
                continue;
            }
            if !self.spend() {
                return;
            }
            // Most lines end here: the reply has nothing to mend, or too much.
            let differing = self.differing_after(position, *m, differing);
            let open = differing & !self.mask;
            let may_reply = depth > 2 || (open & theirs & !squares).any();
            if !may_reply || !is_mendable(open, depth - 1) {
                continue;
            }
            self.line.push(*m);
            self.go_on(&position.play_playable(*m), differing, depth - 1);
            self.line.pop();
        }
    }

    /// The squares that cannot show what stands there after this move, where these cannot show what stands there before it.
    fn differing_after(&self, position: &Position, m: Move, differing: Bitboard) -> Bitboard {
        let mut after = differing;
        for (square, man) in position.effects(m).iter() {
            after.set(square, !self.picture.agrees_at(square, man));
        }
        after
    }
}

/// Whether so many plies can mend so many squares: four each at most, and two unless it is a castling or en passant.
fn is_mendable(open: Bitboard, depth: usize) -> bool {
    match depth {
        1 => open.count() <= 4,
        depth => open.count() <= 2 * depth + 4,
    }
}

/// Whether the men on the board can be what so many plies leave: none came out of nothing, and no side lost more men than the other
/// had plies to take them.
fn men_allow(position: &Position, picture: &Picture, mask: Bitboard, depth: usize) -> bool {
    let board = position.board();
    // On a square that is not read a man may stand, or not.
    let unread = picture.unread().count();
    if picture.sense() == Sense::Presence {
        // Whose man stands on a square where none stood nobody can tell.
        let open = picture.differing(board) & !mask;
        let gone = (open & board.occupied()).count();
        let came = (open & !board.occupied()).count();
        return came <= gone + unread && gone <= came + depth + unread;
    }
    Color::ALL.into_iter().all(|color| {
        let had = board.by_color(color).count();
        let shown = shown_of(color, position, picture, mask);
        // The side to move makes the odd plies.
        let plies_of_other = if color == position.turn() {
            depth / 2
        } else {
            depth.div_ceil(2)
        };
        shown <= had + unread && had <= shown + plies_of_other + unread
    })
}

/// Whether the board may show this on the way of some legal move: each square that the move changes shows what stood there, what
/// will stand there, or nothing, or a pawn that waits on the last rank for its exchange.
pub fn is_in_progress(position: &Position, picture: &Picture, open: Bitboard) -> bool {
    is_begun(position, open, |m| may_pass(position, m, picture, open))
}

/// The same where the board has stood still for so long that nothing is passing over other squares.
pub fn is_in_progress_at_rest(position: &Position, picture: &Picture, open: Bitboard) -> bool {
    is_begun(position, open, |m| {
        open.is_subset(position.squares(m)) && may_pass(position, m, picture, open)
    })
}

fn is_begun(position: &Position, open: Bitboard, may_be_on_its_way: impl Fn(Move) -> bool) -> bool {
    let own = position.board().by_color(position.turn());
    if open.count() > 4 || open.is_empty() {
        return false;
    }
    // A move that has begun either lifted its man already or placed it before the lift was seen.
    let begun = |m: &Move| m.from().is_some_and(|from| own.contains(from));
    position
        .moves()
        .into_iter()
        .filter(begun)
        .any(may_be_on_its_way)
}

/// Whether the board may show this on the way of `m`, be it with the man standing on a square that it passes, or just after it with
/// the captured man still passing over another square.
pub fn may_pass(position: &Position, m: Move, picture: &Picture, open: Bitboard) -> bool {
    // Cheap refusals first: this is asked of every move.
    let beside = open & !position.squares(m);
    if beside.any()
        && !is_mover_passing(position, m, picture, beside)
        && !is_victim_passing(position, m, picture, beside)
    {
        return false;
    }
    position.effects(m).iter().all(|(square, new)| {
        let Some(contents) = picture.at(square) else {
            return true;
        };
        contents.is_empty()
            || contents.agrees(position.board().piece_at(square))
            || contents.agrees(new)
            || waits_for_exchange(position, m, square, contents)
            || is_laid_down(position, m, square, contents)
    })
}

/// Whether this may be the captured man, laid down where his captor had stood.
pub fn is_laid_down(position: &Position, m: Move, square: Square, contents: Contents) -> bool {
    let victim = m.capture().map(|role| role.of(!position.turn()));
    victim.is_some() && m.from() == Some(square) && contents.agrees(victim)
}

/// The only capture that the board shows whole while the man that was taken still passes over another square.
pub fn made_with_victim_about(
    position: &Position,
    picture: &Picture,
    open: Bitboard,
) -> Option<Move> {
    if !(3..=4).contains(&open.count()) {
        return None;
    }
    let mut made = position.moves().into_iter().filter(|m| {
        let effects = position.effects(*m);
        let beside = open & !effects.squares();
        is_victim_passing(position, *m, picture, beside)
            && effects
                .iter()
                .all(|(square, man)| picture.agrees_at(square, man))
    });
    made.next().filter(|_| made.next().is_none())
}

/// A man that slides over the board is seen on squares on its way.
fn is_mover_passing(position: &Position, m: Move, picture: &Picture, beside: Bitboard) -> bool {
    let (Some(from), Some(square)) = (m.from(), beside.single_square()) else {
        return false;
    };
    attacks::between(from, m.to()).contains(square)
        && picture.is_empty(from)
        && picture
            .at(square)
            .is_some_and(|contents| contents.agrees(Some(m.role().of(position.turn()))))
}

/// A captured man in a hand that passes low over the board is seen for a moment on a vacant square (three of four recordings).
fn is_victim_passing(position: &Position, m: Move, picture: &Picture, beside: Bitboard) -> bool {
    let (Some(role), Some(square)) = (m.capture(), beside.single_square()) else {
        return false;
    };
    let victim = role.of(!position.turn());
    position.board().piece_at(square).is_none()
        && picture
            .at(square)
            .is_some_and(|contents| contents.agrees(Some(victim)))
}

fn waits_for_exchange(position: &Position, m: Move, square: Square, contents: Contents) -> bool {
    m.promotion().is_some()
        && m.to() == square
        && contents.agrees(Some(Role::Pawn.of(position.turn())))
}

/// A move whose man has arrived while the rest of it is still to do: one of king and rook stands where castling puts him and no move
/// of his own does, a pawn stands on the last rank, a pawn was taken en passant and is still there. Tells what is still to do.
pub fn unfinished(
    position: &Position,
    picture: &Picture,
    open: Bitboard,
) -> Option<(Move, Bitboard)> {
    let moves = position.moves().into_iter();
    moves
        .filter_map(|m| Some((m, left_of(position, m, picture, open)?)))
        .next()
}

/// What is still to do of `m`, if the board shows it so; nothing where it shows less of it, or all.
pub fn left_of(
    position: &Position,
    m: Move,
    picture: &Picture,
    open: Bitboard,
) -> Option<Bitboard> {
    let us = position.turn();
    let shows = |square, man| picture.agrees_at(square, man);
    let arrived = match m {
        Move::Castle { king, rook } => {
            has_begun_to_castle(position, picture, Castling::new(king, rook, us))
        }
        Move::EnPassant { from, to } => {
            let taken = Square::from_coords(to.file(), from.rank());
            let is_laid_down =
                |contents| picture.is_empty(taken) && is_laid_down(position, m, from, contents);
            shows(to, Some(Role::Pawn.of(us)))
                && (picture.is_empty(from) || picture.at(from).is_some_and(is_laid_down))
        }
        Move::Normal {
            from,
            to,
            promotion: Some(Role::Queen),
            ..
        } => shows(to, Some(Role::Pawn.of(us))) && picture.is_empty(from),
        _ => false,
    };
    // Of most moves nothing can be left: the cheap refusal first.
    if !arrived || !may_pass(position, m, picture, open) {
        return None;
    }
    let effects = position.effects(m);
    let left: Bitboard = effects
        .iter()
        .filter(|(square, man)| !shows(*square, *man))
        .map(|(square, _)| square)
        .collect();
    left.any().then_some(left)
}

/// Whether the king stands where he castles to, wherever the rook is, or the rook does and both have left.
pub fn has_begun_to_castle(position: &Position, picture: &Picture, castling: Castling) -> bool {
    let us = position.turn();
    let has_left = |from: Square| !picture.agrees_at(from, position.board().piece_at(from));
    // In Chess960 one of them may look like the other, who stood there before.
    let has_come =
        |to: Square, role: Role| has_left(to) && picture.agrees_at(to, Some(role.of(us)));
    let Castling {
        king,
        rook,
        king_to,
        rook_to,
    } = castling;
    let by_king = has_come(king_to, Role::King) && picture.is_empty(king);
    let by_rook = has_come(rook_to, Role::Rook) && picture.is_empty(king_to);
    by_king || (by_rook && has_left(king) && has_left(rook))
}

/// Whether all that is missing can be in the players' hands: one man of each side at most, or king and rook of one (design of the
/// alerts: never, however long).
pub fn only_hands(position: &Position, picture: &Picture, open: Bitboard) -> bool {
    let board = position.board();
    if !is_only_missing(position, picture, open) {
        return false;
    }
    let fits = |color: Color| {
        let missing = open & board.by_color(color);
        missing.count() <= 1
            || (missing.count() == 2
                && (missing & board.kings()).count() == 1
                && (missing & board.rooks()).count() == 1)
    };
    fits(Color::White) && fits(Color::Black)
}

/// Whether the board shows more men of one side than there are, or of both where it cannot tell them apart.
pub fn has_too_many(position: &Position, picture: &Picture) -> bool {
    if picture.sense() == Sense::Presence {
        let shown = Square::ALL.into_iter().filter(|square| {
            picture
                .at(*square)
                .is_some_and(|contents| !contents.is_empty())
        });
        return shown.count() > position.board().occupied().count();
    }
    Color::ALL.into_iter().any(|color| {
        shown_of(color, position, picture, Bitboard::EMPTY)
            > position.board().by_color(color).count()
    })
}

/// How many men of this side the board shows. What cannot be told apart, was not read or is set aside counts as it should be.
fn shown_of(color: Color, position: &Position, picture: &Picture, mask: Bitboard) -> usize {
    let as_it_should_be = picture.untold() | mask;
    let shown = picture.by_color(color) & !as_it_should_be;
    (shown | (position.board().by_color(color) & as_it_should_be)).count()
}

/// Whether every difference is a man that has gone.
pub fn is_only_missing(position: &Position, picture: &Picture, open: Bitboard) -> bool {
    open.into_iter()
        .all(|square| picture.is_empty(square) && position.board().piece_at(square).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::Board;

    fn picture(placement: &str) -> Picture {
        let board = Board::from_ascii_board_fen(placement.as_bytes()).expect("test board");
        let mut picture = Picture::default();
        for square in Square::ALL {
            picture.set(
                square,
                board
                    .piece_at(square)
                    .map_or(Contents::Empty, Contents::Piece),
            );
        }
        picture
    }

    fn found(fen: &str, shown: &str, depth: usize) -> Vec<String> {
        let position = Position::from_fen(fen, false).expect("test fen");
        let picture = picture(shown);
        let text = |line: Vec<Move>| {
            line.iter()
                .map(|m| position.uci(*m))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let mut lines: Vec<String> =
            lines_to(&position, &picture, Bitboard::EMPTY, depth, |_| true)
                .found
                .into_iter()
                .map(text)
                .collect();
        lines.sort();
        lines
    }

    /// Case H3: the jump has four legal explanations, H2 has two.
    #[test]
    fn several_plies_at_once() {
        let fen = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2";
        let shown = "r1bqkbnr/1ppp1ppp/p1n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R";
        assert_eq!(found(fen, shown, 4).len(), 4);
        let fen = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";
        let shown = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R";
        assert_eq!(found(fen, shown, 3), ["b8c6 g1f3 e7e5", "e7e5 g1f3 b8c6"]);
    }

    /// No detour of the other side's men makes a legal line of an irregular move.
    #[test]
    fn irregular_moves_are_no_gaps() {
        let table = [
            // A bishop over a knight's square that it cannot reach in one.
            (
                "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2",
                "rnbqkbnr/pppp1ppp/8/4p3/4P3/5B2/PPPP1PPP/RNBQK1NR",
            ),
            // White moves twice.
            (
                "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1",
                "rnbqkbnr/pppppppp/8/8/3PP3/8/PPP2PPP/RNBQKBNR",
            ),
        ];
        for (fen, shown) in table {
            for depth in 2..=4 {
                assert_eq!(found(fen, shown, depth), Vec::<String>::new(), "{shown}");
            }
        }
    }

    #[test]
    fn hands_and_moves_on_the_way() {
        let position = Position::from_fen(
            "r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4",
            false,
        )
        .expect("fen");
        let table = [
            (
                "king lifted",
                "r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQ3R",
                true,
                true,
            ),
            (
                "king and rook lifted",
                "r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQ4",
                true,
                true,
            ),
            (
                "half castled",
                "r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQ2KR",
                false,
                true,
            ),
            (
                "queen gone over",
                "r1bqk1nr/pppp1ppp/2n5/2b1p3/2BQP3/5N2/PPPP1PPP/RNB1K2R",
                false,
                false,
            ),
            (
                "three gone",
                "r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/P4PPP/RNBQK2R",
                false,
                false,
            ),
        ];
        for (name, shown, hands, progress) in table {
            let picture = picture(shown);
            let differing = picture.differing(position.board());
            assert_eq!(only_hands(&position, &picture, differing), hands, "{name}");
            assert_eq!(
                is_in_progress(&position, &picture, differing),
                progress,
                "{name}"
            );
        }
    }
}

//! A position as the record holds it: one that the Laws know, or one that both players let stand.

use super::result::GameResult;
use shakmaty::{
    Bitboard, Board, CastlingMode, CastlingSide, Chess, Color, EnPassantMode, File, FromSetup,
    Move, MoveList, Piece, Position as _, Rank, Role, Setup, Square, attacks, fen::Fen,
    san::SanPlus, uci::UciMove,
};
use std::fmt;

/// Men, side to move and rights. Moves are the legal ones where the Laws know the position, else those that the men can make by
/// their geometry: after an irregular move that stands (A.5.2), a king may be in check while the opponent has the move.
#[derive(Debug, Clone)]
pub struct Position {
    inner: Inner,
    mode: CastlingMode,
}

#[derive(Debug, Clone)]
enum Inner {
    Legal(Chess),
    Geometric(Box<Setup>),
}

/// Where castling takes king and rook from, and where to. In Chess960 one of them may stay, or go to where the other stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Castling {
    pub king: Square,
    pub rook: Square,
    pub king_to: Square,
    pub rook_to: Square,
}

/// The squares that a move changes, with what stands there afterwards: two, three (en passant) or four (castling).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    items: [Option<(Square, Option<Piece>)>; 4],
    squares: Bitboard,
}

/// A text that is not a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FenError {
    #[error("bad FEN {fen:?}: {error}")]
    Syntax { fen: String, error: String },
    #[error("FEN {fen:?} has {count} {color} kings, and each side has one")]
    Kings {
        fen: String,
        color: Color,
        count: usize,
    },
}

/// A text that is not a move of this position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoveTextError {
    #[error("{0:?} is neither UCI nor SAN")]
    Syntax(String),
    #[error("{0:?} cannot be played here")]
    NotPlayable(String),
}

impl Position {
    /// The initial position.
    pub fn initial() -> Position {
        Position {
            inner: Inner::Legal(Chess::default()),
            mode: CastlingMode::Standard,
        }
    }

    /// Where a game begins: at this FEN, else at the usual position.
    pub fn start(fen: Option<&str>, chess960: bool) -> Result<Position, FenError> {
        let mode = CastlingMode::from_chess960(chess960);
        match fen {
            Some(fen) => Position::from_fen(fen, chess960),
            None => Ok(Position::from_setup(Setup::initial(), mode)),
        }
    }

    /// Reads a FEN. Positions that no game can reach are taken too, as long as both sides have their king.
    pub fn from_fen(fen: &str, chess960: bool) -> Result<Position, FenError> {
        let parsed: Fen = fen.trim().parse().map_err(|error| FenError::Syntax {
            fen: fen.to_owned(),
            error: format!("{error}"),
        })?;
        let setup = parsed.into_setup();
        for color in Color::ALL {
            let count = setup.board.by_piece(Role::King.of(color)).count();
            if count != 1 {
                return Err(FenError::Kings {
                    fen: fen.to_owned(),
                    color,
                    count,
                });
            }
        }
        Ok(Position::from_setup(
            setup,
            CastlingMode::from_chess960(chess960),
        ))
    }

    /// The position of this set-up, judged by the Laws where they know it.
    // The error holds the position that is wanted: it is no failure, and it goes nowhere.
    #[allow(clippy::result_large_err)]
    pub fn from_setup(setup: Setup, mode: CastlingMode) -> Position {
        let legal = Chess::from_setup(setup.clone(), mode)
            .or_else(|error| error.ignore_invalid_castling_rights())
            .or_else(|error| error.ignore_invalid_ep_square())
            .or_else(|error| error.ignore_too_much_material())
            .or_else(|error| error.ignore_impossible_check());
        let inner = match legal {
            Ok(chess) => Inner::Legal(chess),
            Err(_) => Inner::Geometric(Box::new(setup)),
        };
        Position { inner, mode }
    }

    /// A position of which only the men and the side to move are known: every castling right that the men allow is granted, and en
    /// passant where just one pawn can have come by it (case E4).
    pub fn from_board(board: Board, turn: Color, mode: CastlingMode) -> Position {
        let mut setup = Setup {
            board,
            turn,
            ..Setup::empty()
        };
        for color in Color::ALL {
            let back = Bitboard::from_rank(color.backrank());
            let home = Square::from_coords(File::E, color.fold_wb(Rank::First, Rank::Eighth));
            if setup.board.king_of(color) == Some(home) {
                let corners = Bitboard::CORNERS & back;
                setup.castling_rights |= setup.board.by_piece(Role::Rook.of(color)) & corners;
            }
        }
        setup.ep_square = only_en_passant(&setup.board, turn);
        Position::from_setup(setup, mode)
    }

    pub fn board(&self) -> &Board {
        match &self.inner {
            Inner::Legal(chess) => chess.board(),
            Inner::Geometric(setup) => &setup.board,
        }
    }

    pub fn turn(&self) -> Color {
        match &self.inner {
            Inner::Legal(chess) => chess.turn(),
            Inner::Geometric(setup) => setup.turn,
        }
    }

    pub fn castling_mode(&self) -> CastlingMode {
        self.mode
    }

    /// The plies before it, as its move number counts them.
    pub fn plies_before(&self) -> u32 {
        let setup = self.setup();
        (u32::from(setup.fullmoves) - 1)
            .saturating_mul(2)
            .saturating_add(setup.turn.fold_wb(0, 1))
    }

    /// The number of a ply that is played from here, the first being 1, as people write it: `23.` or `23...`
    pub fn number_of(&self, ply: u32) -> String {
        let half = self.plies_before().saturating_add(ply.saturating_sub(1));
        let dots = if half.is_multiple_of(2) { "." } else { "..." };
        format!("{}{dots}", half / 2 + 1)
    }

    /// The position as the Laws know it, if they do.
    pub fn legal(&self) -> Option<&Chess> {
        match &self.inner {
            Inner::Legal(chess) => Some(chess),
            Inner::Geometric(_) => None,
        }
    }

    pub fn setup(&self) -> Setup {
        match &self.inner {
            Inner::Legal(chess) => chess.to_setup(EnPassantMode::Legal),
            Inner::Geometric(setup) => (**setup).clone(),
        }
    }

    /// The moves that may be played: legal ones, or by geometry where the Laws do not know the position.
    pub fn moves(&self) -> MoveList {
        match &self.inner {
            Inner::Legal(chess) => chess.legal_moves(),
            Inner::Geometric(setup) => geometric_moves(setup, self.mode),
        }
    }

    pub fn is_playable(&self, m: Move) -> bool {
        match &self.inner {
            Inner::Legal(chess) => is_legal(chess, m),
            Inner::Geometric(_) => self.moves().contains(&m),
        }
    }

    /// The moves of the man on `from`, in the same sense as [`Position::moves`].
    pub fn moves_from(&self, from: Square) -> impl Iterator<Item = Move> {
        self.moves()
            .into_iter()
            .filter(move |m| m.from() == Some(from))
    }

    /// The move of the man on `from` to the square `to`, in the same sense as [`Position::moves`], castling aside; of a pawn that can
    /// become several men there, the first. Much cheaper than all moves where the Laws know the position.
    pub fn move_between(&self, from: Square, to: Square) -> Option<Move> {
        let fits = |m: &Move| !m.is_castle() && m.from() == Some(from) && m.to() == to;
        match &self.inner {
            Inner::Legal(chess) => legal_move_between(chess, from, to),
            Inner::Geometric(_) => self.moves().into_iter().find(fits),
        }
    }

    /// The same with all that a pawn can become there.
    pub fn moves_between(&self, from: Square, to: Square) -> Vec<Move> {
        let first = self.move_between(from, to);
        first.map_or_else(Vec::new, |m| exchanged(m).collect())
    }

    /// The captures en passant among [`Position::moves`]; as cheap.
    pub fn en_passant_moves(&self) -> Vec<Move> {
        match &self.inner {
            Inner::Legal(chess) => match chess.maybe_ep_square() {
                Some(_) => chess.en_passant_moves().to_vec(),
                None => Vec::new(),
            },
            Inner::Geometric(_) => {
                let moves = self.moves();
                moves
                    .iter()
                    .filter(|m| m.is_en_passant())
                    .copied()
                    .collect()
            }
        }
    }

    /// [`Position::castling_moves`], with where both men go.
    pub fn castlings(&self) -> impl Iterator<Item = Castling> {
        let us = self.turn();
        let moves = self.castling_moves().into_iter();
        moves.filter_map(move |m| Castling::of(m, us))
    }

    /// The castlings among [`Position::moves`]; as cheap.
    pub fn castling_moves(&self) -> Vec<Move> {
        match &self.inner {
            Inner::Legal(chess) if !chess.castles().has_color(chess.turn()) => Vec::new(),
            Inner::Legal(chess) => {
                let of = |side| chess.castling_moves(side).to_vec();
                CastlingSide::ALL.into_iter().flat_map(of).collect()
            }
            Inner::Geometric(_) => {
                let moves = self.moves();
                moves.iter().filter(|m| m.is_castle()).copied().collect()
            }
        }
    }

    /// Whether the man on `square` is a king or rook that has not lost the right to castle.
    pub fn may_castle_with(&self, square: Square) -> bool {
        let rights = match &self.inner {
            Inner::Legal(chess) => chess.castles().castling_rights(),
            Inner::Geometric(setup) => setup.castling_rights,
        };
        match self.board().piece_at(square) {
            Some(man) if man.role == Role::King => {
                (rights & self.board().by_color(man.color)).any()
            }
            Some(_) => rights.contains(square),
            None => false,
        }
    }

    /// Whether a game begins here: nothing was played before.
    pub fn is_array(&self) -> bool {
        let setup = self.setup();
        setup.turn == Color::White && u32::from(setup.fullmoves) == 1
    }

    /// The moves that the men can make by their geometry, king safety and legality of castling aside.
    pub fn geometric_moves(&self) -> MoveList {
        geometric_moves(&self.setup(), self.mode)
    }

    /// The position with these squares as they are said to be.
    pub fn with_squares(
        &self,
        squares: impl IntoIterator<Item = (Square, Option<Piece>)>,
    ) -> Position {
        let mut setup = self.setup();
        for (square, man) in squares {
            match man {
                Some(man) => setup.board.set_piece_at(square, man),
                None => setup.board.discard_piece_at(square),
            }
        }
        Position::from_setup(setup, self.mode)
    }

    /// The position with the other side to move; en passant is over.
    pub fn with_turn(&self, turn: Color) -> Position {
        let mut setup = self.setup();
        if setup.turn == turn {
            return self.clone();
        }
        setup.turn = turn;
        setup.ep_square = None;
        Position::from_setup(setup, self.mode)
    }

    /// The position after `m`, which is one of [`Position::moves`]; [`Position::play`] without asking that again.
    pub fn play_playable(&self, m: Move) -> Position {
        match &self.inner {
            Inner::Legal(chess) => {
                let mut next = chess.clone();
                next.play_unchecked(m);
                Position {
                    inner: Inner::Legal(next),
                    mode: self.mode,
                }
            }
            Inner::Geometric(_) => self.play_by_geometry(m),
        }
    }

    /// The position after `m`, which is one of [`Position::moves`] or of [`Position::geometric_moves`].
    pub fn play(&self, m: Move) -> Position {
        match &self.inner {
            Inner::Legal(chess) if is_legal(chess, m) => {
                let mut next = chess.clone();
                next.play_unchecked(m);
                Position {
                    inner: Inner::Legal(next),
                    mode: self.mode,
                }
            }
            _ => self.play_by_geometry(m),
        }
    }

    /// Which squares `m` changes.
    pub fn squares(&self, m: Move) -> Bitboard {
        match m {
            Move::Normal { from, to, .. } => Bitboard::from(from) | Bitboard::from(to),
            m => self.effects(m).squares(),
        }
    }

    /// Which squares `m` changes, and to what.
    pub fn effects(&self, m: Move) -> Effects {
        let us = self.turn();
        let mut effects = Effects::default();
        match m {
            Move::Normal {
                role,
                from,
                to,
                promotion,
                ..
            } => {
                effects.push(from, None);
                effects.push(to, Some(promotion.unwrap_or(role).of(us)));
            }
            Move::EnPassant { from, to } => {
                effects.push(from, None);
                effects.push(to, Some(Role::Pawn.of(us)));
                effects.push(Square::from_coords(to.file(), from.rank()), None);
            }
            Move::Castle { king, rook } => {
                let Castling {
                    king_to, rook_to, ..
                } = Castling::new(king, rook, us);
                for square in [king, rook] {
                    if square != king_to && square != rook_to {
                        effects.push(square, None);
                    }
                }
                // In Chess960 one of the two may stand there already.
                if king != king_to {
                    effects.push(king_to, Some(Role::King.of(us)));
                }
                if rook != rook_to {
                    effects.push(rook_to, Some(Role::Rook.of(us)));
                }
            }
            Move::Put { role, to } => effects.push(to, Some(role.of(us))),
        }
        effects
    }

    /// UCI: castling as `e1g1`, in Chess960 king takes rook.
    pub fn uci(&self, m: Move) -> String {
        UciMove::from_move(m, self.mode).to_string()
    }

    /// SAN; where the Laws do not know the move, the long form of the same letters (`Nf3-d4`).
    pub fn san(&self, m: Move) -> String {
        match &self.inner {
            Inner::Legal(chess) if chess.is_legal(m) => {
                SanPlus::from_move(chess.clone(), m).to_string()
            }
            _ => long_algebraic(m),
        }
    }

    /// Reads UCI or SAN. With `by_geometry` also moves that are not legal.
    pub fn parse_move(&self, text: &str, by_geometry: bool) -> Result<Move, MoveTextError> {
        let text = text.trim();
        if text.parse::<UciMove>().is_ok() {
            return self
                .parse_uci(text, by_geometry)
                .ok_or_else(|| MoveTextError::NotPlayable(text.to_owned()));
        }
        let playable = self.moves();
        let san: SanPlus = text
            .parse()
            .map_err(|_| MoveTextError::Syntax(text.to_owned()))?;
        san.san
            .find_move(&playable)
            .copied()
            .map_err(|_| MoveTextError::NotPlayable(text.to_owned()))
    }

    /// Reads UCI, castling in either of its spellings. With `by_geometry` also moves that are not legal; none where it cannot be played.
    pub fn parse_uci(&self, text: &str, by_geometry: bool) -> Option<Move> {
        let uci: UciMove = text.parse().ok()?;
        let matching = |m: &Move| {
            UciMove::from_move(*m, self.mode) == uci
                || UciMove::from_standard(*m) == uci
                || UciMove::from_chess960(*m) == uci
        };
        let playable = self.moves().iter().copied().find(matching);
        playable.or_else(|| self.move_by_squares(uci).filter(|_| by_geometry))
    }

    pub fn fen(&self) -> String {
        match &self.inner {
            Inner::Legal(chess) => Fen::from_position(chess, EnPassantMode::Legal).to_string(),
            Inner::Geometric(setup) => Fen::try_from_setup((**setup).clone())
                .unwrap_or_else(|error| error.ignore())
                .to_string(),
        }
    }

    /// The first field of the FEN.
    pub fn placement(&self) -> String {
        self.board().board_fen().to_string()
    }

    /// Whether the Laws end the game here: mate (5.1.1) or stalemate (5.2.1).
    pub fn ending(&self) -> Option<Ending> {
        let chess = self.legal()?;
        if !chess.legal_moves().is_empty() {
            return None;
        }
        Some(if chess.is_check() {
            Ending::Checkmate {
                winner: !chess.turn(),
            }
        } else {
            Ending::Stalemate
        })
    }

    /// The move of any man to any square, as far as it can be written down at all.
    fn move_by_squares(&self, uci: UciMove) -> Option<Move> {
        let UciMove::Normal {
            from,
            to,
            promotion,
        } = uci
        else {
            return None;
        };
        let piece = self
            .board()
            .piece_at(from)
            .filter(|piece| piece.color == self.turn())?;
        let geometric = geometric_moves(&self.setup(), self.mode);
        if let Some(m) = geometric
            .into_iter()
            .find(|m| UciMove::from_move(*m, self.mode) == uci)
        {
            return Some(m);
        }
        if let Some(rook) = self.castling_rook(piece, from, to) {
            return Some(Move::Castle { king: from, rook });
        }
        Some(Move::Normal {
            role: piece.role,
            from,
            to,
            capture: self.board().role_at(to),
            promotion,
        })
    }

    /// The rook with which UCI's squares are castling, be the right lost or the way not free: the king goes onto it, or two squares
    /// towards the corner where it stands.
    fn castling_rook(&self, king: Piece, from: Square, to: Square) -> Option<Square> {
        let back = king.color.backrank();
        if king.role != Role::King || from.rank() != back || to.rank() != back {
            return None;
        }
        let own_rook = Role::Rook.of(king.color);
        let corner = || {
            let file = if from < to { File::H } else { File::A };
            (self.mode == CastlingMode::Standard && from.distance(to) == 2)
                .then(|| Square::from_coords(file, back))
        };
        [Some(to), corner()]
            .into_iter()
            .flatten()
            .find(|square| self.board().piece_at(*square) == Some(own_rook))
    }

    fn play_by_geometry(&self, m: Move) -> Position {
        let mut setup = self.setup();
        let us = setup.turn;
        let effects = self.effects(m);
        for (square, man) in effects.iter() {
            match man {
                None => setup.board.discard_piece_at(square),
                Some(piece) => setup.board.set_piece_at(square, piece),
            }
            setup.castling_rights.discard(square);
        }
        if m.role() == Role::King {
            setup.castling_rights = setup
                .castling_rights
                .without(Bitboard::from_rank(us.backrank()));
        }
        setup.ep_square = match m {
            Move::Normal {
                role: Role::Pawn,
                from,
                to,
                ..
            } if from.file() == to.file() && from.rank().distance(to.rank()) == 2 => {
                from.offset(us.fold_wb(8, -8))
            }
            _ => None,
        };
        if m.is_zeroing() {
            setup.halfmoves = 0;
        } else {
            setup.halfmoves = setup.halfmoves.saturating_add(1);
        }
        if us == Color::Black {
            setup.fullmoves = setup.fullmoves.saturating_add(1);
        }
        setup.turn = !us;
        Position::from_setup(setup, self.mode)
    }
}

impl Castling {
    /// Of this side's king and rook on these squares.
    pub fn new(king: Square, rook: Square, side: Color) -> Castling {
        let wing = CastlingSide::from_king_side(king < rook);
        Castling {
            king,
            rook,
            king_to: wing.king_to(side),
            rook_to: wing.rook_to(side),
        }
    }

    /// Of a move of this side, if it is castling.
    pub fn of(m: Move, side: Color) -> Option<Castling> {
        match m {
            Move::Castle { king, rook } => Some(Castling::new(king, rook, side)),
            _ => None,
        }
    }

    /// Where the man of a move of this side comes to stand; of castling, the king.
    pub fn stop(m: Move, side: Color) -> Square {
        Castling::of(m, side).map_or(m.to(), |castling| castling.king_to)
    }

    /// The squares that both leave.
    pub fn from(self) -> Bitboard {
        Bitboard::from(self.king).with(self.rook)
    }

    /// The squares where both stand afterwards.
    pub fn to(self) -> Bitboard {
        Bitboard::from(self.king_to).with(self.rook_to)
    }
}

impl Effects {
    fn push(&mut self, square: Square, man: Option<Piece>) {
        if let Some(slot) = self.items.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some((square, man));
            self.squares.add(square);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Square, Option<Piece>)> + '_ {
        self.items.iter().flatten().copied()
    }

    /// The squares as a set.
    pub fn squares(&self) -> Bitboard {
        self.squares
    }
}

impl PartialEq for Position {
    fn eq(&self, other: &Position) -> bool {
        match (&self.inner, &other.inner) {
            (Inner::Legal(a), Inner::Legal(b)) => a == b,
            (Inner::Geometric(a), Inner::Geometric(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Position {}

/// How the Laws end a game without anybody's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// 5.1.1
    Checkmate { winner: Color },
    /// 5.2.1
    Stalemate,
}

impl Ending {
    pub fn result(self) -> GameResult {
        match self {
            Ending::Checkmate { winner } => GameResult::won_by(winner),
            Ending::Stalemate => GameResult::Draw,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ending::Checkmate { .. } => "checkmate",
            Ending::Stalemate => "stalemate",
        })
    }
}

/// The only square on which a pawn of the side to move could take another en passant, if that one has just come two squares.
fn only_en_passant(board: &Board, turn: Color) -> Option<Square> {
    let ahead = turn.fold_wb(8, -8);
    let vacant = !board.occupied();
    let ours = board.by_piece(Role::Pawn.of(turn));
    let crossed_by = |pawn: Square| {
        let crossed = pawn.offset(ahead)?;
        let home = crossed.offset(ahead)?;
        let taken_from = attacks::pawn_attacks(!turn, crossed) & ours;
        (vacant.contains(crossed) && vacant.contains(home) && taken_from.any()).then_some(crossed)
    };
    let rank = Bitboard::from_rank(turn.fold_wb(Rank::Fifth, Rank::Fourth));
    let theirs = board.by_piece(Role::Pawn.of(!turn)) & rank;
    let mut found = theirs.into_iter().filter_map(crossed_by);
    found.next().filter(|_| found.next().is_none())
}

fn long_algebraic(m: Move) -> String {
    match m {
        Move::Castle { king, rook } if king < rook => "O-O".into(),
        Move::Castle { .. } => "O-O-O".into(),
        Move::Normal {
            role,
            from,
            to,
            capture,
            promotion,
        } => {
            let letter = if role == Role::Pawn {
                String::new()
            } else {
                role.upper_char().to_string()
            };
            let dash = if capture.is_some() { 'x' } else { '-' };
            let promotion = promotion
                .map(|role| format!("={}", role.upper_char()))
                .unwrap_or_default();
            format!("{letter}{from}{dash}{to}{promotion}")
        }
        Move::EnPassant { from, to } => format!("{from}x{to}"),
        Move::Put { role, to } => format!("{}@{to}", role.upper_char()),
    }
}

fn is_legal(chess: &Chess, m: Move) -> bool {
    match (m, m.from()) {
        (Move::Normal { .. } | Move::EnPassant { .. }, Some(from)) => {
            let first = legal_move_between(chess, from, m.to());
            first.is_some_and(|first| exchanged(first).any(|exchanged| exchanged == m))
        }
        _ => chess.is_legal(m),
    }
}

/// The legal move of the man on `from` to the square `to`, castling aside; of a pawn that can become several men there, the first. No
/// other man is looked at but those that attack the king.
fn legal_move_between(chess: &Chess, from: Square, to: Square) -> Option<Move> {
    let (board, us) = (chess.board(), chess.turn());
    let own = board.by_color(us);
    if !own.contains(from) || own.contains(to) {
        return None;
    }
    let role = board.role_at(from)?;
    let capture = board.role_at(to);
    let en_passant = role == Role::Pawn
        && chess.maybe_ep_square() == Some(to)
        && attacks::pawn_attacks(us, from).contains(to);
    let reaches = match role {
        Role::Pawn if capture.is_some() => attacks::pawn_attacks(us, from).contains(to),
        Role::Pawn => en_passant || pawn_steps(board, from, us).any(|step| step == to),
        _ => attacks::attacks(from, role.of(us), board.occupied()).contains(to),
    };
    if !reaches {
        return None;
    }
    let taken = match en_passant {
        true => Square::from_coords(to.file(), from.rank()),
        false => to,
    };
    let king = match role {
        Role::King => Some(to),
        _ => board.king_of(us),
    };
    let occupied = board.occupied().without(from).without(taken).with(to);
    let attacked = |king| board.attacks_to(king, !us, occupied).without(taken).any();
    if king.is_some_and(attacked) {
        return None;
    }
    let is_exchanged = role == Role::Pawn && to.rank() == (!us).backrank();
    Some(match en_passant {
        true => Move::EnPassant { from, to },
        false => Move::Normal {
            role,
            from,
            to,
            capture,
            promotion: EXCHANGES[0].filter(|_| is_exchanged),
        },
    })
}

/// A move with each man that its pawn can become, if it becomes one.
fn exchanged(m: Move) -> impl Iterator<Item = Move> {
    let exchanges = match m.promotion() {
        Some(_) => &EXCHANGES[..],
        None => &[None],
    };
    exchanges.iter().map(move |exchange| match m {
        Move::Normal {
            role,
            from,
            to,
            capture,
            ..
        } => Move::Normal {
            role,
            from,
            to,
            capture,
            promotion: *exchange,
        },
        m => m,
    })
}

/// What a pawn can become (3.7.3.3).
const EXCHANGES: [Option<Role>; 4] = [
    Some(Role::Queen),
    Some(Role::Rook),
    Some(Role::Bishop),
    Some(Role::Knight),
];

/// Where a pawn can go without taking anything.
fn pawn_steps(board: &Board, from: Square, us: Color) -> impl Iterator<Item = Square> {
    let step = us.fold_wb(8, -8);
    let vacant = |square: &Square| !board.occupied().contains(*square);
    let is_home = from.rank() == us.fold_wb(Rank::Second, Rank::Seventh);
    let one = from.offset(step).filter(vacant);
    let two = one.filter(|_| is_home);
    let two = two.and_then(|one| one.offset(step)).filter(vacant);
    one.into_iter().chain(two)
}

/// How each man can move by Article 3, without asking for the king's safety. A king may be taken.
fn geometric_moves(setup: &Setup, mode: CastlingMode) -> MoveList {
    let mut moves = MoveList::new();
    let us = setup.turn;
    let board = &setup.board;
    let occupied = board.occupied();
    let own = board.by_color(us);
    for from in own {
        let Some(role) = board.role_at(from) else {
            continue;
        };
        if role == Role::Pawn {
            pawn_moves(setup, from, &mut moves);
            continue;
        }
        for to in attacks::attacks(from, role.of(us), occupied) & !own {
            push(
                &mut moves,
                Move::Normal {
                    role,
                    from,
                    to,
                    capture: board.role_at(to),
                    promotion: None,
                },
            );
        }
    }
    let castles = shakmaty::Castles::from_setup(setup, mode).unwrap_or_else(|castles| castles);
    if let Some(king) = board.king_of(us) {
        for side in CastlingSide::ALL {
            if let Some(rook) = castles.rook(us, side)
                && (castles.path(us, side) & occupied).is_empty()
            {
                push(&mut moves, Move::Castle { king, rook });
            }
        }
    }
    moves
}

fn pawn_moves(setup: &Setup, from: Square, moves: &mut MoveList) {
    let us = setup.turn;
    let board = &setup.board;
    let captures = attacks::pawn_attacks(us, from) & board.by_color(!us);
    for to in pawn_steps(board, from, us).chain(captures) {
        let exchanges: &[Option<Role>] = match to.rank() == (!us).backrank() {
            true => &EXCHANGES,
            false => &[None],
        };
        for promotion in exchanges {
            push(
                moves,
                Move::Normal {
                    role: Role::Pawn,
                    from,
                    to,
                    capture: board.role_at(to),
                    promotion: *promotion,
                },
            );
        }
    }
    if let Some(to) = setup
        .ep_square
        .filter(|to| attacks::pawn_attacks(us, from).contains(*to))
    {
        push(moves, Move::EnPassant { from, to });
    }
}

/// A set-up with more moves than the list holds loses the rest; no game comes near it.
fn push(moves: &mut MoveList, m: Move) {
    if !moves.is_full() {
        moves.push(m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_one_king() {
        for (fen, what) in [
            ("4k3/8/8/8/8/8/8/8 w - - 0 1", "has 0 white kings"),
            ("kkkkkkkk/8/8/8/8/8/8/4K3 w - - 0 1", "has 8 black kings"),
        ] {
            let refused = Position::from_fen(fen, false).expect_err("the kings");
            assert!(refused.to_string().contains(what), "{refused}");
        }
    }

    #[test]
    fn plies_are_numbered_from_where_they_begin() {
        let late = |number: u32| {
            let fen = format!("8/8/8/8/8/k7/8/K6R b - - 0 {number}");
            Position::from_fen(&fen, false).expect("a test's position")
        };
        assert_eq!(Position::initial().number_of(1), "1.");
        assert_eq!(Position::initial().number_of(46), "23...");
        assert_eq!(late(40).number_of(1), "40...");
        assert_eq!(late(40).number_of(2), "41.");
        assert_eq!(late(u32::MAX).plies_before(), u32::MAX);
    }

    /// What is asked of one man alone is answered as by all moves, in their order.
    #[test]
    fn moves_of_one_man_are_those_among_all() {
        let table = [
            (
                "initial",
                "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            ),
            (
                "castling, pins and checks",
                "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            ),
            (
                "en passant that would leave the king in check",
                "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
            ),
            (
                "exchanges, also by capture",
                "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
            ),
            (
                "the king can be taken",
                "4k3/4R3/8/3pP3/8/8/8/4K3 w - d6 0 2",
            ),
        ];
        for (name, fen) in table {
            for seed in 0..6 {
                let mut rng = fastrand::Rng::with_seed(seed);
                let mut position = Position::from_fen(fen, false).expect("test fen");
                for _ in 0..40 {
                    assert_moves_between(&position, name);
                    let moves = position.moves();
                    let Some(m) = moves.get(rng.usize(..moves.len().max(1))) else {
                        break;
                    };
                    position = position.play(*m);
                }
            }
        }
    }

    fn assert_moves_between(position: &Position, name: &str) {
        let all = position.moves();
        for from in Square::ALL {
            for to in Square::ALL {
                let among: Vec<Move> = all
                    .iter()
                    .filter(|m| !m.is_castle() && m.from() == Some(from) && m.to() == to)
                    .copied()
                    .collect();
                let alone = position.moves_between(from, to);
                assert_eq!(alone, among, "{name}: {} {from}{to}", position.fen());
            }
        }
        assert!(
            all.iter().all(|m| position.is_playable(*m)),
            "{name}: {}",
            position.fen()
        );
    }
}

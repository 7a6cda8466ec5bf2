//! What happens at a table, second by second, and what is true of it.

use std::fmt;

use shakmaty::{Bitboard, Board, Color, Outcome, Piece, Square};

use crate::Millis;

/// What the hands do, from the first man touched to the last.
///
/// The men stand as in `start` before the first action and as in `last` after the last one. Times count from the start of the first
/// game's clock. `games` says what really was played, for whoever wants to compare.
#[derive(Debug, Clone)]
pub struct Script {
    pub start: Board,
    /// In order of time.
    pub actions: Vec<Action>,
    pub last: Board,
    pub games: Vec<GameTruth>,
}

impl Script {
    /// When who presses.
    pub fn presses(&self) -> impl Iterator<Item = (Millis, Color)> + '_ {
        self.actions.iter().filter_map(|action| match action.kind {
            Act::Press { side } => Some((action.at_ms, side)),
            _ => None,
        })
    }
}

/// Something that happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    pub at_ms: Millis,
    pub kind: Act,
}

/// What can happen at a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A square becomes empty, or shows this man from now on.
    Square {
        square: Square,
        piece: Option<Piece>,
    },
    /// A player presses his end of the clock's lever down.
    Press { side: Color },
    /// Both times stop.
    ClockStop,
    /// The time of this side starts.
    ClockStart { side: Color },
    /// The clock is set for the next game.
    ClockReset,
    /// The board is pulled off its cable.
    Unplugged,
    /// A board is plugged in, another one where there is one, and stands this way round. The men stand on it.
    Plugged { rotated: bool },
    /// The pairing of this round is told to the hall's computer.
    Paired { round: u8 },
    /// The arbiter enters a result there.
    Result { result: Outcome },
}

/// One game as it was really played.
#[derive(Debug, Clone)]
pub struct GameTruth {
    /// The place of the game in its file, from 1.
    pub number: usize,
    pub start_fen: String,
    pub chess960: bool,
    /// When the clock was started.
    pub from_ms: Millis,
    /// When the last man was let go or the clock stopped for good.
    pub to_ms: Millis,
    /// What the record should be when all is over: without what was retracted or taken back, and up to the first move that stands
    /// though it is illegal.
    pub plies: Vec<Played>,
    pub incidents: Vec<Incident>,
    pub result: Outcome,
}

impl GameTruth {
    /// The moves in UCI notation; castling in Chess960 as king takes rook.
    pub fn uci(&self) -> Vec<&str> {
        self.plies
            .iter()
            .map(|played| played.uci.as_str())
            .collect()
    }
}

impl GameTruth {
    /// Whether the game went on from a move that no record can hold.
    pub fn ends_irregularly(&self) -> bool {
        self.incidents
            .iter()
            .any(|incident| incident.kind == IncidentKind::IllegalStands)
    }
}

/// One move as it was really played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    pub ply: usize,
    pub side: Color,
    pub uci: String,
    /// When the first man was touched for it, not counting men that were put back.
    pub touched_ms: Millis,
    /// When the position stood on the board.
    pub placed_ms: Millis,
    /// When the clock was pressed; `None` if it never was. It can be before the position stood there.
    pub pressed_ms: Option<Millis>,
    /// How it was done, where there was a choice.
    pub manners: Vec<Manner>,
}

/// How a move was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Manner {
    /// The capturing man took the victim's square without that ever being empty.
    Overwritten,
    /// The captured man was lifted first.
    VictimFirst,
    /// The capturing man was lifted first.
    OwnFirst,
    /// The captured man was seen for a moment beside the square.
    VictimDragged,
    /// Seen on squares on the way.
    Slid,
    /// A knight seen beside its square.
    Brushed,
    /// Seen on its new square before the old one was empty.
    TargetFirst,
    /// Lifted and put back before it was moved.
    PutBack,
    /// Another own man was adjusted before the move.
    Adjusted,
    KingFirst,
    RookFirst,
    /// King and rook at once, one in each hand.
    TwoHanded,
    /// King or rook straightened after castling.
    Straightened,
    /// The pawn stood on the last rank before it was exchanged.
    PawnFirst,
    /// The new piece was put where the pawn was to go.
    PieceDirect,
    /// The clock was pressed only after the reply.
    PressForgotten,
    /// The clock was pressed just before the man was put down, or at the same time: before any board can have shown the move.
    PressedEarly,
    /// His first man was in the air before the opponent's stood on its square.
    Overlapped,
}

/// Something beside the game that a person might have to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    pub kind: IncidentKind,
    /// The ply that was due.
    pub ply: usize,
    /// Whose hand it was; `None` where it was nobody's or a third one's.
    pub side: Option<Color>,
    pub squares: Vec<Square>,
    /// What was wrong, where a move was.
    pub breach: Option<Breach>,
    pub from_ms: Millis,
    /// From when on somebody should be told of it: the press, or else when the men had come to rest. `None` where nobody need be.
    pub due_ms: Option<Millis>,
    /// When all was put right; `None` where it stands to the end.
    pub to_ms: Option<Millis>,
    /// Whether it can be seen where men are in the way and where none are: occupied squares, without what stands on them.
    pub in_outline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IncidentKind {
    /// A man stood where no legal move takes it, and was moved on before the press.
    IllegalThenCorrected,
    /// The same, but the clock was pressed; the position was restored with stopped clocks.
    IllegalPressedThenRestored,
    /// The same, but nobody said a word: play goes on from there, and the game's record ends before it.
    IllegalStands,
    /// A man of the side that had not the move went where he might have gone with it, and back.
    OutOfTurn,
    /// A man was moved by a third hand, and put back.
    Displaced,
    /// The move's man was put down on a square beside its own and the clock pressed; then it was pushed over.
    BesideSquare,
    /// The king has castled and the clock was pressed; the rook came later.
    HalfCastled,
    /// The pawn stood on the last rank at the press; it was exchanged later.
    PawnLeftOnLastRank,
    /// The pawn taken in passing was still there at the press; it was taken off later.
    VictimForgotten,
    /// The pawn was exchanged for a man of the other colour and the clock pressed; that was put right later.
    WrongColour,
    /// The clock was pressed and nothing had been moved; the clock was set right.
    PressedWithoutMove,
    /// Men fell and were put back.
    KnockedOver,
    /// A legal move was put on the board and retracted before the press; another was played.
    Retracted,
    /// Completed moves were taken back by agreement; the game goes on from before them.
    TakenBack,
    /// A square showed nothing for less than a man needs to be moved.
    Flicker,
    /// A square showed another man for as short a time.
    Misread,
    /// A square showed nothing while a man stood there, for some moves.
    DeadSquare,
    /// Men were moved about with stopped clocks after the game.
    Analysis,
    /// The kings show the result.
    ResultKings,
    /// The men were set up again.
    SetUp,
    /// All men were there, and some stood where others belong; that was put right before the game.
    SetUpWrong,
    /// Men were straightened on their squares.
    Adjusted,
    /// A guest made first moves that are none of the game's, and they were taken back.
    Honorary,
    /// The first move was made before the clock was started.
    EarlyStart,
    /// The clocks were stopped until the man for a pawn on the last rank had been fetched.
    Fetched,
    /// With stopped clocks men were moved to show what had happened, and put back.
    Dispute,
    /// The players set up again and moved on for fun, with stopped clocks, and set up again.
    ForFun,
    /// The arbiter entered the result.
    ResultEntered,
    /// Another board was put on the table.
    BoardSwapped,
}

impl fmt::Display for IncidentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IncidentKind::IllegalThenCorrected => "an illegal move, corrected before the press",
            IncidentKind::IllegalPressedThenRestored => "an illegal move, pressed and restored",
            IncidentKind::IllegalStands => "an illegal move that stands",
            IncidentKind::OutOfTurn => "a man moved out of turn and back",
            IncidentKind::Displaced => "a man displaced and put back",
            IncidentKind::BesideSquare => "a man put down beside its square",
            IncidentKind::HalfCastled => "half a castling pressed",
            IncidentKind::PawnLeftOnLastRank => "a pawn left on the last rank",
            IncidentKind::VictimForgotten => "a pawn taken in passing left on the board",
            IncidentKind::WrongColour => "a promotion to a man of the other colour",
            IncidentKind::PressedWithoutMove => "a press without a move",
            IncidentKind::KnockedOver => "men knocked over and put back",
            IncidentKind::Retracted => "a move retracted",
            IncidentKind::TakenBack => "moves taken back",
            IncidentKind::Flicker => "a square that flickers",
            IncidentKind::Misread => "a man misread for a moment",
            IncidentKind::DeadSquare => "a dead square",
            IncidentKind::Analysis => "analysis",
            IncidentKind::ResultKings => "the kings show the result",
            IncidentKind::SetUp => "the men are set up again",
            IncidentKind::SetUpWrong => "men set up on each other's squares",
            IncidentKind::Adjusted => "men adjusted",
            IncidentKind::Honorary => "a guest's moves, taken back",
            IncidentKind::EarlyStart => "a first move before the clock runs",
            IncidentKind::Fetched => "a man fetched with the clocks stopped",
            IncidentKind::Dispute => "men moved to and fro with the clocks stopped",
            IncidentKind::ForFun => "moves for fun from the array",
            IncidentKind::ResultEntered => "the arbiter enters the result",
            IncidentKind::BoardSwapped => "another board on the table",
        })
    }
}

/// What is wrong with a move that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Breach {
    /// No man of this kind moves so (Articles 3.2 to 3.8).
    CannotMoveSo,
    /// Another man is in the way (Article 3.5).
    PathBlocked,
    /// The own king is left in check, or put there (Article 3.9).
    KingInCheck,
    /// Castling without the right to it, or through check (Article 3.8).
    Castling,
    /// A pawn taken in passing when that was not allowed (Article 3.7).
    EnPassant,
    /// An own man was taken (Article 3.1).
    OwnManTaken,
}

impl Breach {
    pub const ALL: [Breach; 6] = [
        Breach::CannotMoveSo,
        Breach::PathBlocked,
        Breach::KingInCheck,
        Breach::Castling,
        Breach::EnPassant,
        Breach::OwnManTaken,
    ];
}

/// A script while it is written: a table with its men and a time that goes on.
#[derive(Debug)]
pub(super) struct Table {
    pub now: Millis,
    pub board: Board,
    start: Board,
    actions: Vec<Action>,
    /// Squares that show a captured man in passing, until when.
    ghosts: Vec<Ghost>,
    /// Squares that show nothing, whatever stands there.
    dead: Bitboard,
}

#[derive(Debug, Clone, Copy)]
struct Ghost {
    square: Square,
    ply: usize,
    until_ms: Millis,
}

impl Table {
    pub fn new(start: Board) -> Table {
        Table {
            now: 0,
            board: start.clone(),
            start,
            actions: Vec::new(),
            ghosts: Vec::new(),
            dead: Bitboard::EMPTY,
        }
    }

    pub fn finish(mut self, games: Vec<GameTruth>) -> Script {
        // What happens beside something else is not written down in order of time.
        self.actions.sort_by_key(|action| action.at_ms);
        Script {
            start: self.start,
            actions: self.actions,
            last: self.board,
            games,
        }
    }

    pub fn wait(&mut self, ms: Millis) {
        self.now += ms;
    }

    pub fn lift(&mut self, square: Square) -> Option<Piece> {
        let piece = self.board.remove_piece_at(square);
        self.act(Act::Square {
            square,
            piece: None,
        });
        piece
    }

    pub fn place(&mut self, square: Square, piece: Piece) {
        self.board.set_piece_at(square, piece);
        self.act(Act::Square {
            square,
            piece: Some(piece),
        });
    }

    pub fn act(&mut self, kind: Act) {
        self.act_at(self.now, kind);
    }

    /// Something that happens at another time than now, say a press while a man is still in the hand.
    pub fn act_at(&mut self, at_ms: Millis, kind: Act) {
        let unseen = matches!(kind, Act::Square { square, .. } if self.dead.contains(square));
        if !unseen {
            self.actions.push(Action { at_ms, kind });
        }
    }

    /// The square shows nothing from now on.
    pub fn go_dead(&mut self, square: Square) {
        self.act(Act::Square {
            square,
            piece: None,
        });
        self.dead.add(square);
    }

    /// The square shows again what stands there.
    pub fn come_alive(&mut self, square: Square) {
        self.dead.discard(square);
        self.act(Act::Square {
            square,
            piece: self.board.piece_at(square),
        });
    }

    /// Where the next action will be written down.
    pub fn mark(&self) -> usize {
        self.actions.len()
    }

    /// Where what was written down since `mark` began with lifting the man on `square`: that happened earlier already.
    pub fn lift_earlier(&mut self, mark: usize, square: Square, at_ms: Millis) -> bool {
        let lift = Act::Square {
            square,
            piece: None,
        };
        match self.actions.get_mut(mark) {
            Some(first) if first.kind == lift && at_ms < first.at_ms => {
                first.at_ms = at_ms;
                true
            }
            _ => false,
        }
    }

    /// A captured man shows on an empty square for a while, whatever else goes on meanwhile.
    pub fn ghost(
        &mut self,
        ply: usize,
        square: Square,
        piece: Piece,
        from_ms: Millis,
        until_ms: Millis,
    ) {
        for (at_ms, piece) in [(from_ms, Some(piece)), (until_ms, None)] {
            self.actions.push(Action {
                at_ms,
                kind: Act::Square { square, piece },
            });
        }
        self.ghosts.push(Ghost {
            square,
            ply,
            until_ms,
        });
    }

    /// Whether nothing stands on the square, not even in passing.
    pub fn is_free(&self, square: Square) -> bool {
        self.board.piece_at(square).is_none()
            && !self
                .ghosts
                .iter()
                .any(|ghost| ghost.square == square && ghost.until_ms >= self.now)
    }

    /// Waits until the men dragged at plies before `ply` are off the board, so that each position stands there for a moment.
    pub fn settle_before(&mut self, ply: usize) {
        if let Some(until_ms) = self
            .ghosts
            .iter()
            .filter(|ghost| ghost.ply < ply)
            .map(|ghost| ghost.until_ms)
            .max()
        {
            self.now = self.now.max(until_ms + 20);
        }
    }
}

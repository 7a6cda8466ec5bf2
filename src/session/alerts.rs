//! What is open at a table, and what is said of it.

use crate::board::Picture;
use crate::laws::Side;
use crate::laws::ruleset::Matter;
use crate::publish::{
    Ack, ActUntil, AlertBody, AlertDetail, AlertKind, AlertState, Audience, CloseReason, Law,
    Severity,
};
use crate::sensing::{FaultEnd, FaultKind};
use crate::text::shortened;
use shakmaty::{Bitboard, Board, ByColor, Color, Piece, Square};
use std::collections::BTreeMap;

/// What an alert is about; one source has one alert at a time. Two kinds share one only where the one turns into the other, as a board
/// that is gone and one that is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A fault that sensing has told.
    Fault(u32),
    Flag(Side),
    BothFlags,
    Setup,
    Board,
    ClockAbsent,
    ClockStopped,
    ClockSides,
    Press,
    ResultMissing,
    ResultMismatch,
    Doubt,
    /// Another board than before stands on the table.
    Swapped,
    /// Squares that may be dead.
    DeadSquares,
    /// A square that is often misread, by the board's own number.
    Misread(Square),
}

impl Source {
    /// Whether it is about what stands on the table, and not about a game: it outlasts the game in which it was seen.
    pub fn is_of_the_table(self) -> bool {
        matches!(
            self,
            Source::Board | Source::ClockAbsent | Source::Swapped | Source::Misread(_)
        )
    }
}

/// The alerts that are not closed yet, in the order in which they were raised.
#[derive(Debug, Clone, Default)]
pub struct Alerts {
    open: BTreeMap<Source, Open>,
    /// How many were ever raised: numbers the next.
    raised: u32,
}

#[derive(Debug, Clone)]
struct Open {
    number: u32,
    body: AlertBody,
}

impl Alerts {
    /// The id that the next one has.
    pub fn next_id(&self) -> String {
        format!("a{}", self.raised + 1)
    }

    /// Keeps what is told of this source from now on.
    pub fn set(&mut self, source: Source, body: AlertBody) {
        match self.open.get_mut(&source) {
            Some(open) => open.body = body,
            None => {
                self.raised += 1;
                let number = self.raised;
                self.open.insert(source, Open { number, body });
            }
        }
    }

    /// Somebody has seen it; none if this source has none open.
    pub fn ack(&mut self, source: Source, ack: Ack) -> Option<AlertBody> {
        let open = self.open.get_mut(&source)?;
        open.body.ack = Some(ack);
        Some(open.body.clone())
    }

    pub fn close(&mut self, source: Source) -> Option<AlertBody> {
        Some(self.open.remove(&source)?.body)
    }

    pub fn of(&self, source: Source) -> Option<&AlertBody> {
        Some(&self.open.get(&source)?.body)
    }

    pub fn source_of(&self, id: &str) -> Option<Source> {
        let (source, _) = self.open.iter().find(|(_, open)| open.body.id == id)?;
        Some(*source)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Source, &AlertBody)> {
        let mut open: Vec<(&Source, &Open)> = self.open.iter().collect();
        open.sort_by_key(|(_, open)| open.number);
        open.into_iter().map(|(source, open)| (*source, &open.body))
    }
}

/// What a new alert, or a change of one, says.
#[derive(Debug, Clone)]
pub struct Notice {
    pub kind: AlertKind,
    pub audience: Audience,
    pub severity: Severity,
    pub state: AlertState,
    pub side: Option<Color>,
    pub squares: Bitboard,
    /// The ply that it is about, where that is not the next one.
    pub ply: Option<usize>,
    /// What the board or clock shows, and what to look at; the table and the move number are put before it.
    pub says: String,
    pub detail: AlertDetail,
}

impl Notice {
    pub fn new(
        kind: AlertKind,
        audience: Audience,
        severity: Severity,
        says: impl Into<String>,
    ) -> Notice {
        Notice {
            kind,
            audience,
            severity,
            state: AlertState::Confirmed,
            side: None,
            squares: Bitboard::EMPTY,
            ply: None,
            says: says.into(),
            detail: AlertDetail::default(),
        }
    }

    /// What the clocks show, for whoever has to put them right.
    pub fn show_clocks(&mut self, shown: ByColor<Option<u64>>) {
        self.detail.white_ms = shown.white;
        self.detail.black_ms = shown.black;
    }
}

/// Where an alert stands: what its notice does not know.
#[derive(Debug, Clone)]
pub struct Place {
    pub table: String,
    pub game: Option<String>,
    pub ply: u32,
    pub move_number: u32,
    pub since: String,
    pub law: Option<Law>,
}

impl Notice {
    pub fn into_body(self, id: String, place: Place) -> AlertBody {
        let side = self.side.map(Side::from);
        let who = match side {
            Some(Side::White) => " White",
            Some(Side::Black) => " Black",
            None => "",
        };
        let text = format!(
            "{} · {}{who} · {}",
            place.table, place.move_number, self.says
        );
        AlertBody {
            kind: self.kind,
            id,
            table: place.table,
            game: place.game,
            audience: self.audience,
            severity: self.severity,
            state: self.state,
            act_until: ActUntil::None,
            ack: None,
            since: place.since,
            ply: place.ply,
            side,
            squares: names(self.squares),
            law: place.law,
            text: shortened(&text, 100),
            detail: self.detail,
        }
    }
}

impl From<FaultKind> for AlertKind {
    fn from(kind: FaultKind) -> AlertKind {
        match kind {
            FaultKind::IllegalMove => AlertKind::IllegalMove,
            FaultKind::OutOfTurn => AlertKind::OutOfTurn,
            FaultKind::Displaced => AlertKind::Displaced,
            FaultKind::CastlingUnfinished => AlertKind::CastlingUnfinished,
            FaultKind::PromotionUnfinished => AlertKind::PromotionUnfinished,
            FaultKind::Gap | FaultKind::PliesMissing => AlertKind::Gap,
        }
    }
}

impl From<FaultEnd> for CloseReason {
    fn from(end: FaultEnd) -> CloseReason {
        match end {
            FaultEnd::Restored => CloseReason::Restored,
            FaultEnd::Superseded => CloseReason::Superseded,
            FaultEnd::Ended => CloseReason::Ended,
        }
    }
}

/// What the Laws are asked for an alert's article; none where they say nothing of it, or none is known to us.
pub fn matter(kind: AlertKind) -> Option<Matter> {
    Some(match kind {
        AlertKind::IllegalMove => Matter::IllegalMove,
        AlertKind::OutOfTurn => Matter::OutOfTurn,
        AlertKind::Displaced => Matter::Displaced,
        AlertKind::CastlingUnfinished => Matter::CastlingUnfinished,
        AlertKind::PromotionUnfinished => Matter::PromotionUnfinished,
        AlertKind::PressWithoutMove => Matter::PressWithoutMove,
        AlertKind::SetupWrong => Matter::SetupWrong,
        AlertKind::Flag => Matter::Flag,
        _ => return None,
    })
}

/// The squares by name, a1 first.
pub fn names(squares: Bitboard) -> Vec<String> {
    squares
        .into_iter()
        .map(|square| square.to_string())
        .collect()
}

/// A few squares for a line of text.
pub fn named_in_text(squares: Bitboard) -> String {
    let names = names(squares);
    match names.len() {
        0..=4 => names.join(", "),
        n => format!("{}, +{}", names[..3].join(", "), n - 3),
    }
}

/// How the board is put right: men that stand wrong go back to where one of their kind is missing (`d4-f3`), the others come off
/// (`-d7`), and what is still missing is put there (`+Qd1`).
pub fn way_back(picture: &Picture, board: &Board) -> Vec<String> {
    let differing = picture.differing(board);
    let mut wrong: Vec<(Square, Option<Piece>)> = differing
        .into_iter()
        .filter(|square| {
            picture
                .at(*square)
                .is_some_and(|contents| !contents.is_empty())
        })
        .map(|square| (square, picture.piece(square)))
        .collect();
    let mut lacking: Vec<(Square, Piece)> = differing
        .into_iter()
        .filter_map(|square| Some((square, board.piece_at(square)?)))
        .collect();
    let mut steps = Vec::new();
    wrong.retain(|(from, man)| {
        let goes = lacking
            .iter()
            .position(|(square, piece)| man.is_none_or(|man| man == *piece) && square != from);
        match goes {
            Some(index) => {
                let (to, _) = lacking.remove(index);
                steps.push(format!("{from}-{to}"));
                false
            }
            None => true,
        }
    });
    steps.extend(wrong.into_iter().map(|(square, _)| format!("-{square}")));
    steps.extend(
        lacking
            .into_iter()
            .map(|(square, piece)| format!("+{}{square}", piece.char())),
    );
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Contents;

    #[test]
    fn the_way_back_moves_men_before_it_adds_any() {
        let board = Board::new();
        let mut picture = Picture::from(&board);
        picture.set(Square::F1, Contents::Empty);
        picture.set(Square::B5, Contents::Piece(shakmaty::Color::White.bishop()));
        picture.set(Square::D8, Contents::Empty);
        assert_eq!(way_back(&picture, &board), ["b5-f1", "+qd8"]);
    }

    #[test]
    fn text_fits_a_phone() {
        let notice = Notice::new(
            AlertKind::Displaced,
            Audience::Arbiter,
            Severity::Warn,
            "these squares differ from the game: ".repeat(4),
        );
        let place = Place {
            table: "12".into(),
            game: None,
            ply: 1,
            move_number: 1,
            since: String::new(),
            law: None,
        };
        assert_eq!(
            notice.into_body("a1".into(), place).text.chars().count(),
            100
        );
    }
}

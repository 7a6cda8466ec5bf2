//! The plies as they stand, and what is known of each.

use crate::Millis;
use crate::laws::position::Position;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{Color, Move};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MoveState {
    Provisional,
    Final,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompletedBy {
    Press,
    Reply,
    End,
    Quiet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    Ambiguous,
    PromotionUnseen,
    Gap,
    IllegalAccepted,
}

/// Why plies that were published are no longer in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CorrectionReason {
    /// The same man went on to another square, or castling was completed.
    MovedOn,
    /// The move was taken back on the board.
    TakenBack,
    /// The first moves fell away when the array was set up again.
    SetUpAgain,
    /// King moves that were the result sign.
    ResultSign,
    /// The placement reads differently by now.
    Reread,
    /// By command.
    Command,
}

/// A ply of the line.
#[derive(Debug, Clone, PartialEq)]
pub struct Ply {
    pub mv: Move,
    /// The position after it.
    pub after: Position,
    /// When the board first showed it.
    pub seen_at: Millis,
    pub state: MoveState,
    pub by: Option<CompletedBy>,
    /// The mover has pressed, be it before the reply or after it.
    pub pressed: bool,
    pub clk_ms: Option<u64>,
    pub emt_ms: Option<u64>,
    pub doubt: Option<Doubt>,
    /// The doubt is what else the board may have shown, and goes when that is settled.
    pub may_read_otherwise: bool,
    pub alternatives: Vec<String>,
}

impl Ply {
    pub fn new(mv: Move, after: Position, seen_at: Millis) -> Ply {
        Ply {
            mv,
            after,
            seen_at,
            state: MoveState::Provisional,
            by: None,
            pressed: false,
            clk_ms: None,
            emt_ms: None,
            doubt: None,
            may_read_otherwise: false,
            alternatives: Vec::new(),
        }
    }
}

/// A move, and when the board first showed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub mv: Move,
    pub after: Position,
    pub at: Millis,
    /// What the board did not show of it.
    pub doubt: Option<Doubt>,
}

impl Seen {
    /// `mv`, played from `before`, legal or by geometry.
    pub fn new(before: &Position, mv: Move, at: Millis) -> Seen {
        Seen {
            mv,
            after: before.play(mv),
            at,
            doubt: None,
        }
    }

    /// The same for a move that was found among those of `before`.
    pub fn found(before: &Position, mv: Move, at: Millis) -> Seen {
        Seen {
            mv,
            after: before.play_playable(mv),
            at,
            doubt: None,
        }
    }
}

/// The moves as they stand now, with every position on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub start: Position,
    pub plies: Vec<Ply>,
}

impl Line {
    pub fn new(start: Position) -> Line {
        Line {
            start,
            plies: Vec::new(),
        }
    }

    /// How many plies were played.
    pub fn len(&self) -> usize {
        self.plies.len()
    }

    pub fn is_empty(&self) -> bool {
        self.plies.is_empty()
    }

    /// The position after the first `plies` plies.
    pub fn position(&self, plies: usize) -> &Position {
        match plies.checked_sub(1).and_then(|index| self.plies.get(index)) {
            Some(ply) => &ply.after,
            None if plies == 0 => &self.start,
            None => self.tip(),
        }
    }

    /// The position that the board should show.
    pub fn tip(&self) -> &Position {
        self.plies.last().map_or(&self.start, |ply| &ply.after)
    }

    /// Who played ply number `ply`, counted from 1.
    pub fn mover(&self, ply: usize) -> Color {
        self.position(ply.saturating_sub(1)).turn()
    }

    /// The last ply that this side played, counted from 1.
    pub fn last_of(&self, side: Color) -> Option<usize> {
        (1..=self.len()).rev().find(|ply| self.mover(*ply) == side)
    }

    /// Whether some of its plies may have been others.
    pub fn has_alternatives(&self) -> bool {
        let in_doubt =
            |ply: &Ply| ply.doubt == Some(Doubt::Ambiguous) || !ply.alternatives.is_empty();
        self.plies.iter().any(in_doubt)
    }

    /// How many readings there are of where it is in doubt; of several such places the most.
    pub fn most_alternatives(&self) -> usize {
        let readings = self.plies.iter().map(|ply| ply.alternatives.len());
        readings.max().unwrap_or(0)
    }

    /// How many of the last plies put men back to where earlier ones had moved them from.
    pub fn steps_back(&self) -> usize {
        let mut moved: Vec<Move> = self.plies.iter().map(|ply| ply.mv).collect();
        let mut steps = 0;
        while let Some(last) = moved.pop()
            && let Some(undone) = moved.iter().rposition(|earlier| puts_back(last, *earlier))
        {
            moved.remove(undone);
            steps += 1;
        }
        steps
    }

    /// Whether these moves can be played after the first `keep` plies, each by the side that has the move there, and lead where they
    /// say. An irregular move can where it stands already, or is said to be one.
    pub fn can_go_on(&self, keep: usize, moves: &[Seen]) -> bool {
        if keep > self.len() {
            return false;
        }
        let mut before = self.position(keep);
        moves.iter().enumerate().all(|(index, seen)| {
            let Seen { mv, after, .. } = seen;
            let stands = self.plies.get(keep + index).is_some_and(|p| p.mv == *mv);
            let irregular = stands || seen.doubt == Some(Doubt::IllegalAccepted);
            let is_his = mv
                .from()
                .is_some_and(|from| before.board().color_at(from) == Some(before.turn()));
            let leads_there =
                after.turn() == !before.turn() && before.play(*mv).board() == after.board();
            let can = is_his && leads_there && (irregular || before.is_playable(*mv));
            before = after;
            can
        })
    }

    /// UCI of the ply at this index, counted from 0.
    pub fn uci(&self, index: usize) -> String {
        self.position(index).uci(self.plies[index].mv)
    }

    pub fn san(&self, index: usize) -> String {
        self.position(index).san(self.plies[index].mv)
    }

    /// The plies after the first `keep`, were these the ones that were played there, in UCI, and the rest of the record after them;
    /// nothing where that cannot be played.
    pub fn reading(&self, keep: usize, line: &str) -> Option<Vec<Seen>> {
        let mut position = self.position(keep).clone();
        let mut words = line.split_whitespace();
        let read = self.plies.iter().skip(keep).map(|ply| {
            let mv = match words.next() {
                Some(word) => position.parse_uci(word, false)?,
                // The man may be another by now.
                None => {
                    let irregular = ply.doubt == Some(Doubt::IllegalAccepted);
                    position.parse_uci(&position.uci(ply.mv), irregular)?
                }
            };
            let seen = Seen::new(&position, mv, ply.seen_at);
            position = seen.after.clone();
            Some(seen)
        });
        let read: Option<Vec<Seen>> = read.collect();
        read.filter(|_| words.next().is_none())
    }

    /// Leaves out all after the first `keep` plies, also from what is named beside them; what is in doubt no more is settled by that.
    pub fn truncate(&mut self, keep: usize) {
        self.plies.truncate(keep);
        for first in 0..self.plies.len() {
            let left = keep - first;
            let mut lines: Vec<Vec<String>> = Vec::new();
            for line in std::mem::take(&mut self.plies[first].alternatives) {
                let line: Vec<String> = line.split(' ').take(left).map(str::to_owned).collect();
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
            let Some(own) = lines.first().cloned() else {
                continue;
            };
            for (index, ply) in self.plies[first..].iter_mut().take(own.len()).enumerate() {
                let differs = lines.iter().any(|line| line.get(index) != own.get(index));
                if ply.may_read_otherwise && !differs {
                    (ply.may_read_otherwise, ply.doubt) = (false, None);
                }
            }
            if lines.len() > 1 {
                let lines = lines.iter().map(|line| line.join(" "));
                self.plies[first].alternatives = lines.collect();
            }
        }
    }

    /// The lines that the record names beside itself: after how many plies each begins, and its moves.
    pub fn alternatives(&self) -> impl Iterator<Item = (usize, &str)> {
        let plies = self.plies.iter().enumerate();
        plies.flat_map(|(keep, ply)| ply.alternatives.iter().map(move |line| (keep, &**line)))
    }

    /// UCI of moves that were not played, from the position after the first `keep` plies.
    pub fn uci_of(&self, keep: usize, moves: &[Move]) -> String {
        let mut position = self.position(keep).clone();
        let mut words = Vec::new();
        for m in moves {
            words.push(position.uci(*m));
            position = position.play(*m);
        }
        words.join(" ")
    }
}

/// Whether a move puts a man back to where another had moved him from.
pub fn puts_back(m: Move, moved: Move) -> bool {
    match (m, moved) {
        (
            Move::Normal {
                role,
                from,
                to,
                capture: None,
                promotion: None,
            },
            Move::Normal {
                role: same,
                from: home,
                to: stood,
                capture: None,
                promotion: None,
            },
        ) => role == same && from == stood && to == home,
        _ => false,
    }
}

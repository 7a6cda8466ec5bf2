//! Somebody says what was played where the record is in doubt.

use super::Table;
use crate::command::Resolve;
use crate::game::{Change, CorrectionReason, Doubt, Game, Line, Readings, Seen};
use shakmaty::{Move, Role};
use std::ops::Range;

/// What was played, as far as it was said.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    /// The plies that are beyond doubt by that, as indices.
    plies: Range<usize>,
    /// What they were, and with them the first of the lines that the record named beside itself.
    line: String,
    /// After so many plies that line begins.
    keep: usize,
    /// What may have been played all the same.
    readings: Readings,
}

impl Table {
    pub(super) fn check_resolve(&self, asked: &Resolve) -> Result<Resolved, String> {
        let game = self.game.as_ref();
        let game = game.ok_or("no game is open at this table, so that nothing is in doubt")?;
        let line = &game.line;
        if line.is_empty() {
            return Err("no move was played yet, so that nothing is in doubt".into());
        }
        let index = (asked.ply as usize).checked_sub(1);
        let index = index
            .filter(|index| *index < line.len())
            .ok_or_else(|| format!("ply must be 1 to {}, the plies played", line.len()))?;
        let ply = &line.plies[index];
        if ply
            .doubt
            .is_none_or(|doubt| doubt == Doubt::IllegalAccepted)
        {
            return Err(format!(
                "ply {} is not in doubt; play replaces a move",
                asked.ply
            ));
        }
        let words: Vec<String> = match (&asked.line, asked.promotion) {
            (Some(text), None) => text.split_whitespace().map(str::to_lowercase).collect(),
            (None, Some(exchange)) => vec![exchanged(line, index, exchange.into())?],
            _ => {
                return Err(
                    "one of line and promotion is expected: \"line\":\"e4d5\" or \"promotion\":\"knight\""
                        .into(),
                );
            }
        };
        if words.is_empty() {
            return Err("line is empty; moves in UCI are expected".into());
        }
        let goes_so = |(keep, named): &(usize, &str)| {
            let from_here = named.split(' ').skip(index.saturating_sub(*keep));
            *keep <= index && from_here.take(words.len()).eq(&words)
        };
        let fitting: Vec<(usize, &str)> = line.alternatives().filter(goes_so).collect();
        let (keep, named) = match fitting.first() {
            Some((keep, named)) => (*keep, (*named).to_owned()),
            // What a pawn became may never have been seen; of other plies the record names what they can have been.
            None if asked.promotion.is_some() || words == own(line, index, words.len()) => {
                (index, words.join(" "))
            }
            None => {
                let named: Vec<&str> = line.alternatives().map(|(_, named)| named).collect();
                return Err(format!(
                    "{:?} is none of the lines that may have been played from ply {}: {}",
                    words.join(" "),
                    asked.ply,
                    match named.as_slice() {
                        [] => own(line, index, 1).join(" "),
                        named => named.join(", "),
                    }
                ));
            }
        };
        if line.reading(keep, &named).is_none() {
            return Err(format!(
                "what was played later cannot be played after {}",
                words.join(" ")
            ));
        }
        let readings = match fitting.len() {
            0 | 1 => Readings::default(),
            _ => Readings {
                keep,
                lines: fitting
                    .iter()
                    .filter_map(|(_, named)| moves(line, keep, named))
                    .collect(),
            },
        };
        Ok(Resolved {
            plies: index..index + words.len(),
            line: named,
            keep,
            readings,
        })
    }

    /// The record becomes what was said, and sensing follows it.
    pub(super) fn resolve(&mut self, resolved: Resolved) {
        let now = self.now;
        let differing = |table: &Table| {
            let picture = table.sensing.picture();
            picture.differing(table.line().tip().board())
        };
        let before = differing(self);
        let attached = self.clock.is_attached();
        let Some(game) = &mut self.game else { return };
        let Some(change) = resolved.change(game) else {
            return;
        };
        if game.is_over() {
            game.settle_doubts(resolved.plies.clone());
            game.take(now, change, attached);
            game.make_final();
            self.resolve_after_the_end(&resolved);
            self.tell_ended();
            return;
        }
        game.settle_doubts(resolved.plies.clone());
        let (sensing, cx) = self.sensing();
        sensing.resolve(change, resolved.plies.clone(), &cx);
        self.take_observations();
        self.resolve_after_the_end(&resolved);
        // A man that has to be exchanged on the board is waited for.
        let differs = !differing(self).is_subset(before);
        if differs && self.open_game().is_some() {
            self.follow_record(true);
        }
        self.tell_game();
        self.changed();
    }
}

impl Resolved {
    /// What it changes in the record of this game.
    pub(super) fn change(&self, game: &Game) -> Option<Change> {
        let line = &game.line;
        let mut moves: Vec<Seen> = line.reading(self.keep, &self.line)?;
        for (index, seen) in moves.iter_mut().enumerate() {
            let index = self.keep + index;
            let known = &line.plies[index];
            if !self.plies.contains(&index) && !known.may_read_otherwise {
                seen.doubt = known.doubt;
            }
        }
        let same = moves.iter().zip(&line.plies[self.keep..]);
        let same = same.take_while(|(seen, ply)| seen.mv == ply.mv).count();
        moves.drain(..same);
        Some(Change {
            keep: self.keep + same,
            moves,
            why: CorrectionReason::Command,
            readings: Some(self.readings.clone()),
        })
    }

    pub(super) fn plies(&self) -> Range<usize> {
        self.plies.clone()
    }
}

/// The move at this index with another piece for the pawn.
fn exchanged(line: &Line, index: usize, role: Role) -> Result<String, String> {
    let mv = match line.plies[index].mv {
        Move::Normal {
            role: Role::Pawn,
            from,
            to,
            capture,
            promotion: Some(_),
        } => Move::Normal {
            role: Role::Pawn,
            from,
            to,
            capture,
            promotion: Some(role),
        },
        _ => return Err(format!("ply {} is no promotion", index + 1)),
    };
    Ok(line.position(index).uci(mv))
}

/// So many moves of the record, in UCI.
fn own(line: &Line, index: usize, count: usize) -> Vec<String> {
    let until = line.len().min(index + count);
    (index..until).map(|index| line.uci(index)).collect()
}

fn moves(line: &Line, keep: usize, named: &str) -> Option<Vec<Move>> {
    let read = line.reading(keep, named)?;
    let count = named.split(' ').count();
    Some(read.into_iter().take(count).map(|seen| seen.mv).collect())
}

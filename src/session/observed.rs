//! What sensing has seen: the record changes, and what nothing explains becomes an alert.

use super::Table;
use super::alerts::{Notice, Source, named_in_text, names, way_back};
use crate::game::{CompletedBy, Game};
use crate::laws::illegal::IllegalReason;
use crate::publish::{
    AlertDetail, AlertKind, AlertState, Audience, CloseReason, EventKind, Link, Severity,
};
use crate::sensing::{Fault, FaultKind, Level, Observation};
use shakmaty::Color;

impl Table {
    pub(super) fn observe(&mut self, observation: Observation) {
        match observation {
            Observation::Moved(change) => self.change_record(change),
            Observation::Completed { side, by } => {
                if by == CompletedBy::Press {
                    self.check_clock_sides(side);
                }
                if let Some(game) = &mut self.game {
                    game.complete_last_of(side, by);
                }
                self.tell_game();
            }
            Observation::PressWithoutMove { side } => self.tell_press_without_move(side),
            Observation::PromotionSeen { ply } => {
                if let Some(game) = &mut self.game {
                    game.settle_promotion(ply);
                }
                self.tell_game();
                self.close_doubt();
            }
            Observation::WrongSidePressed { side } => self.tell_clock_sides(side),
            Observation::Fault(fault) => self.tell_fault(&fault),
            Observation::FaultClosed { id, why } => self.close_alert(Source::Fault(id), why.into()),
            Observation::Sync { in_sync } => {
                let squares = names(self.sensing.picture().differing(self.line().tip().board()));
                self.event(if in_sync {
                    EventKind::InSync
                } else {
                    EventKind::OutOfSync { squares }
                });
                self.changed();
                self.publish_position();
            }
            Observation::Stable => {
                self.unrest = None;
                self.withdraw_sign();
                self.publish_position();
            }
            Observation::AskDump => self.ask_dump = true,
            Observation::ResultSign {
                result,
                may_be_play,
                set_out,
            } => {
                self.result_sign(result, may_be_play, set_out);
            }
        }
    }

    fn tell_fault(&mut self, fault: &Fault) {
        let level = match fault.kind {
            // The operator knows the square, and the arbiter would find nothing.
            FaultKind::Displaced if self.are_restless(fault.squares) => {
                fault.level.min(Level::Noted)
            }
            _ => fault.level,
        };
        let (audience, severity, state) = match level {
            _ if fault.is_gap() => {
                let severity = match level {
                    Level::Unsaid | Level::Noted => Severity::Info,
                    _ => Severity::Warn,
                };
                (Audience::Operator, severity, AlertState::Suspected)
            }
            Level::Unsaid | Level::Noted => {
                (Audience::Operator, Severity::Info, AlertState::Suspected)
            }
            Level::Told if matches!(fault.kind, FaultKind::IllegalMove | FaultKind::OutOfTurn) => {
                (Audience::Arbiter, Severity::Warn, AlertState::Suspected)
            }
            Level::Told => (Audience::Arbiter, Severity::Warn, AlertState::Confirmed),
            Level::Confirmed => (Audience::Arbiter, Severity::Urgent, AlertState::Confirmed),
        };
        let picture = self.sensing.picture();
        let board = self.line().tip().board();
        let squares = named_in_text(fault.squares);
        let says = match fault.kind {
            FaultKind::IllegalMove if fault.level == Level::Confirmed => {
                format!("pressed; no legal move leads here ({squares}). Look at the board.")
            }
            FaultKind::IllegalMove if fault.shadow.len() > 1 => {
                format!("answered; no legal move leads here ({squares}). Look at the board.")
            }
            FaultKind::IllegalMove => {
                format!("no legal move leads here ({squares}). Look at the board.")
            }
            FaultKind::OutOfTurn => {
                format!("moved while the other side has the move ({squares}). Look.")
            }
            FaultKind::CastlingUnfinished => {
                let man = match (board.kings() & fault.squares).any() {
                    true => "king",
                    false => "rook",
                };
                format!(
                    "{} before the {man} was moved ({squares}). Look at the board.",
                    ended_by(fault)
                )
            }
            FaultKind::PromotionUnfinished => {
                format!(
                    "{} with a pawn on the last rank ({squares}). Look at the board.",
                    ended_by(fault)
                )
            }
            FaultKind::Gap => format!(
                "moves were not seen; {} squares differ. Enter them, or accept the position.",
                fault.squares.count()
            ),
            FaultKind::PliesMissing => {
                "pressed more often than moves were seen. Compare the score sheets.".to_owned()
            }
            FaultKind::Displaced => {
                format!("these squares differ from the game: {squares}. Look at the board.")
            }
        };
        let reason = match fault.kind {
            FaultKind::Displaced | FaultKind::CastlingUnfinished => fault.reason.filter(|reason| {
                matches!(
                    reason,
                    IllegalReason::PiecesSwapped | IllegalReason::OwnPieceCaptured
                )
            }),
            FaultKind::IllegalMove | FaultKind::OutOfTurn | FaultKind::PromotionUnfinished => {
                fault.reason
            }
            FaultKind::Gap | FaultKind::PliesMissing => None,
        };
        // Nobody goes back to before what was not seen.
        let has_way_back = !fault.is_gap();
        let detail = AlertDetail {
            uci: fault.uci.clone(),
            reason,
            way_back: match has_way_back {
                true => way_back(picture, board),
                false => Vec::new(),
            },
            restore: has_way_back.then(|| board.board_fen().to_string()),
            ..AlertDetail::default()
        };
        let mut notice = Notice {
            kind: fault.kind.into(),
            audience,
            severity,
            state,
            side: fault.side,
            squares: fault.squares,
            ply: fault.ply,
            says,
            detail,
        };
        notice.show_clocks(self.clock_times());
        self.raise(Source::Fault(fault.id), notice);
    }

    /// A press over a move of this side: it shows whether the clock stands the right way round.
    fn check_clock_sides(&mut self, side: Color) {
        let Some(game) = &mut self.game else { return };
        if game.is_answered_on_his_time(side) {
            self.tell_clock_sides(side);
        } else {
            game.handle_right_press();
            self.close_alert(Source::ClockSides, CloseReason::Restored);
        }
    }

    /// The clock that ran is not that of the player who moved (case L1); it is told, and never put right in silence.
    fn tell_clock_sides(&mut self, side: Color) {
        let game = self.game.as_mut().filter(|_| self.clock.is_attached());
        if !game.is_some_and(Game::handle_wrong_press) || self.is_open(Source::ClockSides) {
            return;
        }
        let mut notice = Notice::new(
            AlertKind::ClockSides,
            Audience::Operator,
            Severity::Info,
            "moved on the other side's time. Does the clock stand the wrong way round?",
        );
        notice.side = Some(!side);
        self.raise(Source::ClockSides, notice);
    }

    fn tell_press_without_move(&mut self, side: Color) {
        if self.link != Link::Ok {
            return;
        }
        // Article 6.2.3 wants the clock pressed after a move; the first start, a resume and a press after the reply are none of this.
        let mut notice = Notice::new(
            AlertKind::PressWithoutMove,
            Audience::Arbiter,
            Severity::Warn,
            "pressed; the position is as before. Look at the board.",
        );
        notice.side = Some(side);
        notice.state = AlertState::Suspected;
        notice.show_clocks(self.clock_times());
        self.raise(Source::Press, notice);
    }
}

/// What came before a move was finished.
fn ended_by(fault: &Fault) -> &'static str {
    if fault.answered {
        "answered"
    } else {
        "pressed"
    }
}

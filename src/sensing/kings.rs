//! The result sign: both kings on two of d4 e4 d5 e5.

use super::*;

impl Sensing {
    /// Since when the last plies are kings on their way to the centre: steps that nobody pressed and that went on at once.
    pub(super) fn kings_set_out(&self, cx: &Context<'_>) -> Option<Millis> {
        let is_step = |ply: &&Ply| {
            let to = ply.mv.to();
            matches!(
                ply.mv,
                Move::Normal {
                    role: Role::King,
                    ..
                }
            ) && !ply.pressed
                && (CENTRE.contains(&to) || self.trail.at(to) <= ply.seen_at + self.timing.walk)
        };
        let steps = cx.line.plies.iter().rev().take_while(is_step);
        steps.last().map(|ply| ply.seen_at)
    }

    /// Both kings on two of d4 e4 d5 e5 can be no position of play: those squares all touch.
    pub(super) fn watch_kings(&mut self, now: Millis) {
        let king = |color: Color| {
            CENTRE
                .into_iter()
                .find(|square| self.picture.piece(*square) == Some(Role::King.of(color)))
        };
        let result = match (king(Color::White), king(Color::Black)) {
            (Some(white), Some(black)) => Some(match (white.is_light(), black.is_light()) {
                (true, true) => GameResult::WhiteWins,
                (false, false) => GameResult::BlackWins,
                _ => GameResult::Draw,
            }),
            _ => None,
        };
        match (self.sign, result) {
            (Some((_, old)), Some(new)) if old == new => {}
            (_, new) => {
                self.sign = new.map(|result| (now, result));
                self.sign_told = false;
            }
        }
    }
}

//! The result sign: both kings on two of d4 e4 d5 e5.

use super::*;
use crate::board::Sense;

/// What the kings show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sign {
    pub(super) since: Millis,
    pub(super) result: GameResult,
    /// The same would be seen if men were only in the hand.
    pub(super) may_be_play: bool,
}

impl Sensing {
    /// Since when the last plies are kings on their way to the centre: steps that nobody pressed and that went on at once.
    pub(super) fn kings_set_out(&self, cx: &Context<'_>) -> Option<Millis> {
        if self.is_poor()
            && let Some((n, _)) = self.kings_unseen(cx.line)
            && let Some(taken) = cx.line.plies.get(n)
        {
            return Some(taken.seen_at);
        }
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

    /// Both kings on two of d4 e4 d5 e5 can be no position of play: those squares all touch. `line` is the game that ends so, or has
    /// ended.
    pub(super) fn watch_kings(&mut self, now: Millis, line: Option<&Line>) {
        let shown = match line {
            Some(line) if self.is_poor() => self.kings_unseen(line),
            _ => self.kings_seen().map(|kings| (0, kings)),
        };
        let new = shown.map(|(n, [one, other])| Sign {
            since: now,
            result: match (one.is_light(), other.is_light()) {
                (true, true) => GameResult::WhiteWins,
                (false, false) => GameResult::BlackWins,
                _ => GameResult::Draw,
            },
            may_be_play: self.is_poor()
                && line.is_some_and(|line| self.may_be_play(line.position(n))),
        });
        let is_same = |old: Sign, new: Sign| Sign { since: now, ..old } == new;
        match (self.sign, new) {
            (Some(old), Some(new)) if is_same(old, new) => {}
            (_, new) => {
                self.sign = new;
                self.sign_told = false;
            }
        }
    }

    /// Whether all that is seen would be so if men were only in the hand, before the next move or after it. Nobody makes it with his
    /// king in the other hand.
    fn may_be_play(&self, position: &Position) -> bool {
        let is_played = |position: &Position| {
            let wrong = self.picture.differing(position.board());
            explain::is_only_missing(position, &self.picture, wrong)
        };
        let king = position.board().king_of(position.turn());
        let holds = king.filter(|square| self.picture.is_empty(*square));
        let is_free = |m: &Move| holds.is_none() || m.from() == holds;
        is_played(position)
            || (position.moves().into_iter())
                .filter(is_free)
                .any(|m| is_played(&position.play(m)))
    }

    /// Whether one king has come to the centre, the other is gone from where he stood, and nothing else has changed: they are on their
    /// way to show the result, and neither moves nor answers.
    pub(super) fn are_kings_going(&self, position: &Position) -> bool {
        let board = position.board();
        let open = self.picture.differing(board);
        let came = (open & !self.picture.vacant()).single_square();
        let is_king = |square: &Square| {
            let man = self.picture.piece(*square);
            CENTRE.contains(square) && man.is_none_or(|man| man.role == Role::King)
        };
        let left = open & self.picture.vacant();
        came.filter(is_king).is_some() && left == board.kings() && !self.grace_passed
    }

    fn kings_seen(&self) -> Option<[Square; 2]> {
        let king = |color: Color| {
            CENTRE
                .into_iter()
                .find(|square| self.picture.piece(*square) == Some(Role::King.of(color)))
        };
        Some([king(Color::White)?, king(Color::Black)?])
    }

    /// The same on a board that knows no men: the kings have gone from where they stood, and two squares of the centre are filled that were
    /// not, or are again. Men that stood in the centre may have been taken away for it, or set aside; nothing else has changed but that a
    /// man may be gone, who has captured. With it goes how many plies had been played: where a king comes while a man who could go there is
    /// off the board, he may have been read as that man's move.
    fn kings_unseen(&self, line: &Line) -> Option<(usize, [Square; 2])> {
        let n = line.len();
        let is_to_centre = |ply: &&Ply| !ply.pressed && CENTRE.contains(&ply.mv.to());
        let taken = line.plies.iter().rev().take(2).take_while(is_to_centre);
        let played = (n - taken.count()..=n).rev().map(|plies| {
            let last = line.plies.get(plies.wrapping_sub(1));
            (
                plies,
                line.position(plies),
                last.map_or(0, |ply| ply.seen_at),
            )
        });
        // The men may have been set up again since the game ended (case K6).
        let anew = (n, &line.start, 0);
        played.chain([anew]).find_map(|(plies, position, since)| {
            Some((plies, self.kings_gone_from(position, since)?))
        })
    }

    fn kings_gone_from(&self, position: &Position, since: Millis) -> Option<[Square; 2]> {
        let board = position.board();
        let centre: Bitboard = CENTRE.into_iter().collect();
        let kings = board.kings();
        let open = self.picture.differing(board);
        // Whoever made the last move may have captured: where he stands now nobody saw him come.
        let own = board.by_color(position.turn()) & self.picture.vacant();
        let elsewhere = open & !(kings | centre);
        let aside = elsewhere & !self.picture.vacant();
        let missing = elsewhere & !aside;
        if !missing.is_subset(own) || missing.count() > 1 {
            return None;
        }
        let gone = kings & self.picture.vacant();
        // One of them may stand there since a move of his; both cannot.
        if gone.is_empty() || !(kings & !gone).is_subset(centre) {
            return None;
        }
        let left = gone.into_iter().map(|square| self.trail.at(square)).min()?;
        let came = |square: &Square| {
            if self.picture.is_empty(*square) {
                return false;
            }
            let filled = self.trail.at(*square);
            kings.contains(*square) || open.contains(*square) || (filled > since && filled > left)
        };
        let two: Vec<Square> = CENTRE.into_iter().filter(came).collect();
        let [one, other] = two.as_slice() else {
            return None;
        };
        // Who stands elsewhere was in the way.
        let in_the_way =
            board.occupied() & !kings & (open | Bitboard::from(*one) | *other) & centre;
        if aside.count() > in_the_way.count() {
            return None;
        }
        // A board that sees colours shows one of each.
        let alike = self.picture.at(*one) == self.picture.at(*other);
        (self.picture.sense() != Sense::Side || !alike).then_some([*one, *other])
    }
}

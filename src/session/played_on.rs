//! What the board shows after a game has ended: nothing, as a rule. Where a result was set by mistake play goes on, and its moves are
//! kept here until the result is taken back (case K12). A mate that was only shown, or that its man passed over, ended nothing: it is
//! taken back once something else is played in its place.

use super::Table;
use super::alerts::{Notice, Source};
use super::fold::context;
use super::resolve::Resolved;
use crate::Millis;
use crate::game::{Change, CorrectionReason, Game, Ply, ResultState};
use crate::publish::{AlertKind, Audience, CloseReason, Severity};
use crate::sensing::{CLEARED, Context, Observation, Sensing};
use shakmaty::Move;

/// The game as if it had not been ended.
#[derive(Debug)]
pub(super) struct PlayedOn {
    game: Game,
    sensing: Sensing,
    ended_at: Millis,
    /// The plies that the game ended with, where the last of them ended it.
    ended_by: Option<Vec<Move>>,
    /// What a player had pressed was taken back since: nobody does that but in analysis, or by agreement.
    pressed_is_undone: bool,
    /// What was seen until the end was read otherwise since.
    is_reread: bool,
    told: Told,
}

/// Who has been told that play goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Nobody,
    /// Two moves may be players who look at what could have been.
    Operator,
    /// Nobody presses a clock for that.
    Arbiter,
}

/// A man who mates and goes on so soon was only passing: nobody has let go of him.
const PASSING_MS: Millis = 1_000;

impl PlayedOn {
    fn take(&mut self, now: Millis, change: Change, clock_attached: bool) {
        let mut undone = self.game.line.plies.iter().skip(change.keep);
        self.pressed_is_undone |= undone.any(|ply| ply.pressed);
        self.is_reread |= change.why == CorrectionReason::Reread;
        self.game.take(now, change, clock_attached);
    }

    /// Whether the moves that ended the game were none: something else was played in their place. The man that ended it has gone on at
    /// once, or nobody had pressed them, and what was played instead is pressed; or what was seen until then reads otherwise, and ends so
    /// too.
    fn is_end_undone(&self) -> bool {
        let plies = &self.game.line.plies;
        let Some(ended_by) = &self.ended_by else {
            return false;
        };
        let same = plies.iter().zip(ended_by);
        let keep = same.take_while(|(ply, m)| ply.mv == **m).count();
        let (Some(instead), Some(undone)) = (plies.get(keep), ended_by.get(keep)) else {
            return false;
        };
        let goes_on = keep + 1 == ended_by.len()
            && instead.mv.from() == undone.from()
            && instead.seen_at <= self.ended_at + PASSING_MS;
        let until = self.ended_at + PASSING_MS;
        let ends_too = self.is_reread
            && plies.last().is_some_and(|last| last.seen_at <= until)
            && (self.game.ended_by_the_board())
                .is_some_and(|verdict| verdict.state == Some(ResultState::Set));
        goes_on || ends_too || (instead.pressed && !self.pressed_is_undone)
    }

    fn plies_since(&self) -> impl Iterator<Item = &Ply> {
        let since = |ply: &&Ply| ply.seen_at > self.ended_at;
        self.game.line.plies.iter().filter(since)
    }

    fn is_pressed_since(&self) -> bool {
        self.plies_since().any(|ply| ply.pressed)
    }
}

impl Table {
    /// The game is about to end, by its last move or by something that the board does not show.
    pub(super) fn watch_on(&mut self, by_the_board: bool) {
        self.played_on = self.game.as_ref().map(|game| {
            let moves = || game.line.plies.iter().map(|ply| ply.mv).collect();
            let mut goes_on = game.clone();
            goes_on.reopen(None);
            Box::new(PlayedOn {
                game: goes_on,
                sensing: self.sensing.clone(),
                ended_at: self.now,
                ended_by: by_the_board.then(moves),
                pressed_is_undone: false,
                is_reread: false,
                told: Told::Nobody,
            })
        });
    }

    /// The kings have shown a result that is not set: nothing on the board is play before somebody presses, or says so.
    pub(super) fn hold_game(&mut self) {
        self.take_observations();
        self.watch_on(false);
        self.sensing.finish();
        self.take_observations();
    }

    /// Whether presses are still of interest: play may go on.
    pub(super) fn is_watched_on(&self) -> bool {
        self.played_on.is_some()
    }

    /// Whether players have gone on and pressed the clock: that is no analysis.
    pub(super) fn is_pressed_after_the_end(&self) -> bool {
        let on = self.played_on.as_ref();
        on.is_some_and(|on| on.is_pressed_since())
    }

    /// Whether somebody was told that play may go on.
    pub(super) fn is_told_after_the_end(&self) -> bool {
        let on = self.played_on.as_ref();
        on.is_some_and(|on| on.told > Told::Nobody)
    }

    /// The result was set anew: whoever does that knows of what was played until now.
    pub(super) fn watch_on_from_here(&mut self) {
        if let Some(on) = &mut self.played_on {
            (on.ended_at, on.ended_by, on.told) = (self.now, None, Told::Nobody);
        }
    }

    /// Has the table's sensing do this, and that of the game as it would have gone on.
    pub(super) fn sense(&mut self, act: impl Fn(&mut Sensing, &Context<'_>)) {
        let (sensing, cx) = self.sensing();
        act(sensing, &cx);
        self.sense_after_the_end(act);
    }

    /// The same with what the game takes first: where it does not, its sensing is not told either. Whether the game of the table took it.
    pub(super) fn hand_in(
        &mut self,
        take: impl Fn(&mut Game) -> bool,
        act: impl Fn(&mut Sensing, &Context<'_>),
    ) -> bool {
        let is_taken = self.game.as_mut().is_some_and(&take);
        if is_taken {
            let (sensing, cx) = self.sensing();
            act(sensing, &cx);
        }
        if self.played_on.as_mut().is_some_and(|on| take(&mut on.game)) {
            self.sense_after_the_end(act);
        }
        is_taken
    }

    /// A board that is cleared or set up shows no play any more.
    pub(super) fn leave_cleared(&mut self) {
        self.played_on.take_if(|on| {
            let board = on.game.line.tip().board();
            on.sensing.picture().differing(board).count() > CLEARED
        });
    }

    pub(super) fn awaits_dump_after_the_end(&self) -> bool {
        let cx = self.context_after_the_end();
        cx.is_some_and(|(sensing, cx)| sensing.awaits_dump(&cx))
    }

    pub(super) fn show_times_after_the_end(&mut self, at: Millis) {
        let shown = self.clock_times();
        if let Some(on) = &mut self.played_on {
            on.game.show_times(at, shown);
        }
    }

    pub(super) fn next_timer_after_the_end(&self) -> Option<Millis> {
        let (sensing, cx) = self.context_after_the_end()?;
        sensing.poll_timeout(&cx)
    }

    fn context_after_the_end(&self) -> Option<(&Sensing, Context<'_>)> {
        let on = self.played_on.as_ref()?;
        let game = Some(&on.game);
        let cx = context(&self.settings, self.abilities, game, false, &self.clock);
        Some((&on.sensing, cx))
    }

    pub(super) fn fire_after_the_end(&mut self) {
        let now = self.now;
        if self.next_timer_after_the_end().is_some_and(|at| at <= now) {
            self.sense_after_the_end(|sensing, cx| {
                sensing.handle_timeout(now, cx);
            });
        }
    }

    /// What was played before the end is known better by now.
    pub(super) fn resolve_after_the_end(&mut self, resolved: &Resolved) {
        let Some(on) = &mut self.played_on else {
            return;
        };
        let Some(change) = resolved.change(&on.game) else {
            return;
        };
        on.game.settle_doubts(resolved.plies());
        self.sense_after_the_end(|sensing, cx| sensing.resolve(change, resolved.plies(), cx));
        self.settle_after_the_end();
    }

    /// Takes what was seen since the end into that game, and tells of it.
    pub(super) fn settle_after_the_end(&mut self) {
        let (now, attached) = (self.now, self.clock.is_attached());
        while let Some(on) = &mut self.played_on
            && let Some(seen) = on.sensing.poll_observation()
        {
            match seen {
                Observation::Moved(change) => on.take(now, change, attached),
                Observation::Completed { side, by } => on.game.complete_last_of(side, by),
                Observation::PromotionSeen { ply } => on.game.settle_promotion(ply),
                Observation::AskDump => self.ask_dump = true,
                // In what may be analysis nothing is a fault, and nothing a sign.
                _ => {}
            }
        }
        let is_held = self.game.as_ref().is_some_and(Game::is_held);
        let goes_on = |on: &PlayedOn| on.is_end_undone() || (is_held && on.is_pressed_since());
        if self.played_on.as_deref().is_some_and(goes_on) {
            self.take_end_back();
        } else {
            self.tell_played_on();
        }
    }

    /// What ended the game was no move, or no end: it goes on, as what was seen since has it, or ends by that.
    fn take_end_back(&mut self) {
        let Some(on) = self.played_on.take() else {
            return;
        };
        if let Some(game) = &mut self.game {
            game.reopen(None);
        }
        self.play_on(*on);
        self.catch_up_flags();
        self.close_alert(Source::ResultMismatch, CloseReason::Superseded);
        self.sensing.tell_again();
        self.take_observations();
        self.end_by_the_board();
    }

    pub(super) fn disarm_after_the_end(&mut self) {
        if let Some(on) = &mut self.played_on {
            on.sensing.disarm();
        }
    }

    /// The result is taken back: what was played since is in the record. What nobody pressed was play only if it still stands on the
    /// board. Tells whether the record is what the board shows.
    pub(super) fn take_played_on(&mut self) -> bool {
        let Some(on) = self.played_on.take() else {
            return false;
        };
        let stands = (on.sensing.picture()).agrees_with(on.game.line.tip().board());
        if !stands && !on.is_pressed_since() {
            return false;
        }
        self.play_on(*on);
        true
    }

    fn play_on(&mut self, on: PlayedOn) {
        if let Some(game) = &mut self.game {
            game.play_on(on.game);
            self.sensing = on.sensing;
        }
        self.tell_game();
    }

    fn tell_played_on(&mut self) {
        let Some(on) = &mut self.played_on else {
            return;
        };
        while on.game.poll_event().is_some() {}
        // Of kings that the clock contradicts the arbiter knows.
        if self.game.as_ref().is_none_or(Game::is_held) {
            return;
        }
        let (told, audience, severity) = if on.is_pressed_since() {
            (Told::Arbiter, Audience::Arbiter, Severity::Warn)
        } else if on.plies_since().count() >= 2 {
            (Told::Operator, Audience::Operator, Severity::Info)
        } else {
            return;
        };
        if on.told >= told {
            return;
        }
        on.told = told;
        let result = self.game.as_ref().map(|game| game.verdict.result);
        let says = format!(
            "the result {} is set, and play goes on. Look at the board.",
            result.unwrap_or_default()
        );
        let notice = Notice::new(AlertKind::ResultMismatch, audience, severity, says);
        self.raise(Source::ResultMismatch, notice);
    }

    pub(super) fn sense_after_the_end(&mut self, act: impl FnOnce(&mut Sensing, &Context<'_>)) {
        if let Some(on) = self.played_on.as_deref_mut() {
            let game = Some(&on.game);
            let cx = context(&self.settings, self.abilities, game, false, &self.clock);
            act(&mut on.sensing, &cx);
        }
    }
}

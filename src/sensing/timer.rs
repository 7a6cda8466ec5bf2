//! What waits for a time: when each of it is due, what is done then, and how it is let go of.

use super::*;

/// What waits for a time. Where several are due at once the first of these is done first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    /// When to look up a placement that changed while the record had to be brought up to date.
    Look,
    /// When both kings have stood in the centre for long enough to show the result.
    Sign,
    /// When the placement is quiet.
    Settle,
    /// When to tell the move that is held back.
    Hold,
    /// When to judge the first of the presses.
    Press,
    /// When to look into what nothing explains while hands go on.
    Lost,
    /// When to read once more what was played fast.
    Reread,
    /// When the opponent who lifted a man over an irregular move has begun to answer it.
    ReplyLift,
    /// When to tell the arbiter of what nothing explains.
    Displaced,
    /// When steps that put men back, one by one, are a takeback.
    Retraced,
    /// When the placement is at rest: the board is asked what it shows, and what it does not show is supposed.
    Dump,
    /// When a man that is gone is in nobody's hand any more.
    Gone,
    /// When to tell the operator of what nothing explains.
    Grace,
    /// When to tell the operator that plies are missing which were pressed for.
    PliesMissing,
}

impl Timer {
    const ALL: [Timer; 14] = [
        Timer::Look,
        Timer::Sign,
        Timer::Settle,
        Timer::Hold,
        Timer::Press,
        Timer::Lost,
        Timer::Reread,
        Timer::ReplyLift,
        Timer::Displaced,
        Timer::Retraced,
        Timer::Dump,
        Timer::Gone,
        Timer::Grace,
        Timer::PliesMissing,
    ];

    fn name(self) -> &'static str {
        match self {
            Timer::Look => "look",
            Timer::Sign => "sign",
            Timer::Settle => "settle",
            Timer::Hold => "hold",
            Timer::Press => "press",
            Timer::Lost => "lost",
            Timer::Reread => "reread",
            Timer::Retraced => "retraced",
            Timer::ReplyLift => "reply_lift",
            Timer::Dump => "dump",
            Timer::Gone => "gone",
            Timer::Grace => "grace",
            Timer::Displaced => "displaced",
            Timer::PliesMissing => "plies_missing",
        }
    }
}

impl Sensing {
    /// The next moment at which [`Sensing::handle_timeout`] has something to do.
    pub fn poll_timeout(&self, cx: &Context<'_>) -> Option<Millis> {
        self.first_due(0, cx).map(|(at, _)| at)
    }

    /// Fires what is due at `now`, which is the earliest deadline; tells the name of the timer.
    pub fn handle_timeout(&mut self, now: Millis, cx: &Context<'_>) -> &'static str {
        let Some((_, timer)) = self.first_due(now, cx).filter(|(at, _)| *at <= now) else {
            return "none";
        };
        self.fire(timer, now, cx);
        self.tell_sync();
        timer.name()
    }

    /// Lets go of everything that waits for a time. For whoever finds that a timer does not go off.
    pub fn disarm(&mut self) {
        for timer in Timer::ALL {
            self.let_go_of(timer);
        }
    }

    /// What is due first, and when; of all that is due by `now`, and of what is due at once, the first in the order of [`Timer::ALL`].
    /// It is asked after whatever happens, so that they are written out: a loop over them makes all of sensing slower by a fifth.
    fn first_due(&self, now: Millis, cx: &Context<'_>) -> Option<(Millis, Timer)> {
        let (mut first, mut at_first) = (None, Millis::MAX);
        let mut ask = |timer| {
            let at = self.due(timer, cx).map(|at| at.max(now));
            if let Some(at) = at.filter(|at| *at < at_first) {
                (first, at_first) = (Some(timer), at);
            }
            at_first
        };
        // Of a board that cannot be heard nothing tells that it goes on showing what it shows.
        let heard = !self.silent;
        if cx.following {
            ask(Timer::Look);
        }
        if heard {
            ask(Timer::Sign);
        }
        // Once something is due by `now` nothing else is asked.
        if ask(Timer::Settle) > now && cx.following {
            ask(Timer::Hold);
            ask(Timer::Press);
            ask(Timer::Lost);
            if ask(Timer::Reread) > now && heard {
                ask(Timer::ReplyLift);
                let at_first = ask(Timer::Displaced);
                // Nothing that waits for rest is due sooner.
                let timing = &self.timing;
                let rest = timing.takeback.min(timing.gone).min(timing.grace);
                if at_first >= self.last_change + rest {
                    ask(Timer::Retraced);
                    ask(Timer::Dump);
                    ask(Timer::Gone);
                    ask(Timer::Grace);
                    ask(Timer::PliesMissing);
                }
            }
        }
        first.map(|timer| (at_first, timer))
    }

    /// When this is due, if it waits at all.
    #[inline(always)]
    fn due(&self, timer: Timer, cx: &Context<'_>) -> Option<Millis> {
        let rested = |time: Millis| self.last_change.max(self.heard_since) + time;
        match timer {
            Timer::Look => self.look_due.then_some(self.last_change),
            Timer::Sign => {
                let sign = self.sign.filter(|_| !self.sign_told)?;
                Some(sign.since.max(self.heard_since) + self.timing.sign)
            }
            Timer::Settle => (!self.searched).then(|| self.quiet_at()),
            Timer::Hold => {
                let tentative = self.tentative.as_ref()?;
                (tentative.shown).then_some(tentative.since + tentative.hold)
            }
            Timer::Press => Some(self.press_due(self.presses.front()?)),
            Timer::Lost => Some(self.lost_due(self.lost.filter(|lost| !lost.rests)?)),
            Timer::Reread => self.check_at,
            Timer::Retraced => self.retraced.then(|| rested(self.timing.takeback)),
            Timer::ReplyLift => {
                let (at, _) = self.lift_over_fault?;
                Some(at.max(self.heard_since) + self.timing.reply_lift)
            }
            Timer::Dump => (!self.dump_asked && (cx.can_dump || self.is_poor()))
                .then(|| rested(self.timing.takeback)),
            Timer::Gone => self.waits_for_gone(cx).then(|| rested(self.timing.gone)),
            Timer::Grace => (!self.grace_passed).then(|| rested(self.timing.grace)),
            Timer::Displaced => {
                let faults = self.faults.iter();
                faults
                    .filter_map(|fault| self.escalation_at(fault, cx))
                    .min()
            }
            Timer::PliesMissing => self.plies_missing_due(cx),
        }
    }

    fn fire(&mut self, timer: Timer, now: Millis, cx: &Context<'_>) {
        match timer {
            Timer::Look => {
                self.look_due = false;
                self.look(now, cx);
            }
            Timer::Sign => {
                self.sign_told = true;
                if let Some(sign) = self.sign {
                    let set_out = self.kings_set_out(cx).filter(|_| !sign.may_be_play);
                    self.observations.push_back(Observation::ResultSign {
                        result: sign.result,
                        may_be_play: sign.may_be_play,
                        set_out,
                    });
                }
            }
            Timer::Settle => {
                self.searched = true;
                if cx.following {
                    if !self.read_put_right(now, cx) {
                        self.search(now, None, cx);
                    }
                    self.reconsider(cx);
                    self.retraced = self.retraced(cx).is_some();
                    self.tell_sync();
                }
                self.observations.push_back(Observation::Stable);
            }
            Timer::Hold => self.flush(cx),
            Timer::Press => self.judge_press_if_due(now, cx),
            Timer::Lost => self.look_for_missed(now, cx),
            Timer::Reread => {
                self.check_at = None;
                if !self.has_changed_frozen() && self.waiting.is_none() {
                    self.check_stretch(now, cx);
                    // What was never told of it stands on the board.
                    if cx.can_dump && !self.dump_seen && !self.silent {
                        self.observations.push_back(Observation::AskDump);
                    }
                }
            }
            Timer::Retraced => {
                self.retraced = false;
                self.take_back_retraced(cx);
            }
            Timer::ReplyLift => {
                let lift = self.lift_over_fault.take();
                if lift.is_some_and(|(_, square)| !self.is_put_back(square, cx)) {
                    self.tell_irregular_move(now, cx);
                }
            }
            Timer::Dump => {
                self.dump_asked = true;
                if self.is_poor() {
                    self.search_at_rest(now, cx);
                }
                if self.is_unexplained(cx) && cx.can_dump {
                    self.observations.push_back(Observation::AskDump);
                }
            }
            Timer::Gone => {
                self.gone_told = true;
                self.tell_long_gone(now, cx);
            }
            Timer::Grace => {
                self.grace_passed = true;
                if !self.read_over_dead(now, cx) {
                    self.note_all_faults(cx);
                }
            }
            Timer::Displaced => self.escalate_by_time(now, cx),
            Timer::PliesMissing => self.tell_plies_missing(now, cx),
        }
    }

    fn let_go_of(&mut self, timer: Timer) {
        match timer {
            Timer::Look => self.look_due = false,
            Timer::Sign => self.sign_told = true,
            Timer::Settle => self.searched = true,
            Timer::Hold => self.tentative = None,
            Timer::Press => self.presses.clear(),
            Timer::Lost => self.lost = None,
            Timer::Reread => self.check_at = None,
            Timer::Retraced => self.retraced = false,
            Timer::ReplyLift => self.lift_over_fault = None,
            Timer::Dump => self.dump_asked = true,
            Timer::Gone => self.gone_told = true,
            Timer::Grace => self.grace_passed = true,
            Timer::PliesMissing => self.tally.note_looked_into(),
            Timer::Displaced => {
                for fault in &mut self.faults {
                    fault.level = fault.level.max(Level::Told);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Sense;

    /// Both kings in the centre over a game that has just begun: most of what can wait does.
    #[test]
    fn whatever_waits_is_let_go_of() {
        let line = Line::new(Position::initial());
        let cx = Context {
            line: &line,
            following: true,
            setting_up: false,
            has_clock: true,
            unstarted: false,
            can_dump: true,
            time_trouble: false,
        };
        let mut sensing = Sensing::new(Timing::default());
        sensing.restart(Picture::of(line.tip().board(), Sense::Piece), 0);
        let (white, black) = (Color::White.king(), Color::Black.king());
        let changes = [
            (Square::E1, Contents::Empty),
            (Square::E8, Contents::Empty),
            (Square::E4, Contents::Piece(white)),
            (Square::E5, Contents::Piece(black)),
        ];
        sensing.handle_squares(1_000, &changes, Look::Update, &cx);
        sensing.handle_press(1_100, Color::White, &cx);
        let fault = Fault::new(FaultKind::Displaced, Bitboard::from(Square::A2), 1_000);
        sensing.raise(fault);
        let waiting = Timer::ALL.map(|timer| sensing.due(timer, &cx).is_some());
        assert!(waiting.iter().filter(|waits| **waits).count() >= 6);
        let mut one_by_one = sensing.clone();
        for timer in Timer::ALL {
            let due = Timer::ALL.map(|timer| Some((one_by_one.due(timer, &cx)?, timer)));
            let first = due.into_iter().flatten().min_by_key(|(at, _)| *at);
            assert_eq!(one_by_one.first_due(0, &cx), first);
            one_by_one.let_go_of(timer);
        }
        sensing.disarm();
        assert_eq!(sensing.poll_timeout(&cx), None);
    }

    /// A man whose last square was never told of stands there all the same.
    #[test]
    fn a_board_is_asked_what_it_shows_after_fast_play() {
        let line = Line::new(Position::initial());
        for can_dump in [true, false] {
            let cx = Context {
                line: &line,
                following: true,
                setting_up: false,
                has_clock: true,
                unstarted: false,
                can_dump,
                time_trouble: true,
            };
            let mut sensing = Sensing::new(Timing::default());
            sensing.restart(Picture::of(line.tip().board(), Sense::Piece), 0);
            sensing.check_at = Some(100);
            assert_eq!(sensing.handle_timeout(100, &cx), "reread");
            let asked = sensing.poll_observation() == Some(Observation::AskDump);
            assert_eq!(asked, can_dump);
        }
    }
}

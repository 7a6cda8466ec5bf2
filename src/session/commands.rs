//! What people ask, and what becomes of it.

use super::Table;
use super::alerts::Source;
use super::resolve::Resolved;
use crate::board::{OrientationSetting, Picture};
use crate::command::{Command, Press, Reply, Verb};
use crate::game::{
    Armed, Change, CorrectionReason, Game, Pairing, Reason, ResultBy, Seen, Verdict,
};
use crate::laws::Side;
use crate::laws::position::Position;
use crate::laws::result::{GameResult, UnknownResult};
use crate::publish::{Ack, CloseReason, EventKind};
use crate::text::one_line;
use shakmaty::{Board, ByColor, Color, Role, Square};

/// How many commands are remembered, so that one that comes twice is carried out once.
const REMEMBERED: usize = 256;

/// 99:59:59 and its tenths.
const MOST_CLOCK_MS: u64 = 359_999_999;

/// A command that was carried out: its id, and what tells a repeat from another command under the same id.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Done {
    id: String,
    by: Option<String>,
    verb: Verb,
}

/// A refusal in words: what is wrong, and where it helps, what to do.
type Outcome = Result<(), String>;

/// What a command comes to at this table just now: all that could be refused has been looked at.
#[derive(Debug)]
enum Action {
    Arm(Box<Pairing>),
    Press(Press),
    Change(Change),
    /// The game goes on from this position; it may be the one on the board.
    GoOn {
        position: Position,
        from_board: bool,
    },
    /// What the board shows is what the record says.
    Agree,
    /// A game begins with what the board shows, and this side to move.
    Join(Board, Color),
    AcceptIllegal {
        fault: Option<u32>,
        moves: Vec<Seen>,
    },
    Resolve(Resolved),
    Result(Verdict),
    Resend,
    Orientation(OrientationSetting),
    Ack(Source),
    Dismiss(Source),
}

impl Table {
    pub(super) fn apply_command(&mut self, command: &Command) {
        self.stage_command(command);
        let outcome = self.carry_out(command);
        let reply = Reply {
            id: command.id.clone(),
            ok: outcome.is_ok(),
            // It may quote what was sent.
            error: outcome.err().map(|error| one_line(&error, 200)),
            note: self.note.take(),
        };
        self.replies.push_back((command.reply_to.clone(), reply));
    }

    fn stage_command(&mut self, command: &Command) {
        let now = self.now;
        self.stage(|| {
            let verb = serde_json::to_string(&command.verb).unwrap_or_default();
            format!("{} command {verb}", super::output::seconds(now))
        });
    }

    fn carry_out(&mut self, command: &Command) -> Outcome {
        // What was refused changed nothing, so its id may be tried again.
        let done = self.commands_done.iter().find(|done| done.id == command.id);
        if let Some(done) = done.filter(|done| !done.id.is_empty()) {
            if done.by == command.by && done.verb == command.verb {
                // Carried out already; the same answer again.
                return Ok(());
            }
            return Err(format!(
                "id {} was used for {} by now; give each command an id of its own, or none",
                command.id,
                done.verb.name()
            ));
        }
        if let Some(table) = command
            .table
            .as_deref()
            .filter(|table| *table != self.settings.table)
        {
            return Err(format!(
                "this is table {}, not {table}",
                self.settings.table
            ));
        }
        self.check_expiry(command)?;
        if let Some(expected) = command.expect_rev {
            let rev = self.game.as_ref().map_or(0, |game| game.rev);
            if rev != expected {
                return Err(format!(
                    "stale: the game is at rev {rev}, not {expected}; look at it again"
                ));
            }
        }
        let action = self.check(&command.verb)?;
        // The cause goes before its effects.
        if !matches!(command.verb, Verb::Press(_) | Verb::Resend(_)) {
            self.event(EventKind::Command {
                command: command.id.clone(),
                by: command.by.clone(),
                verb: command.verb.name().to_owned(),
            });
        }
        self.act(action, command.by.as_deref());
        if !command.id.is_empty() {
            self.commands_done.push_back(Done {
                id: command.id.clone(),
                by: command.by.clone(),
                verb: command.verb.clone(),
            });
            if self.commands_done.len() > REMEMBERED {
                self.commands_done.pop_front();
            }
        }
        Ok(())
    }

    /// A late command is refused, as long as the wall clock can be trusted to say so.
    fn check_expiry(&self, command: &Command) -> Outcome {
        let Some(text) = &command.expires else {
            return Ok(());
        };
        let expires: jiff::Timestamp = text
            .parse()
            .map_err(|_| format!("expires {text:?} is not a time like 2027-04-02T13:04:12Z"))?;
        if self.wall.time_ok && expires.as_millisecond() < self.wall.unix_ms(self.now) {
            return Err("late: the command has expired".into());
        }
        Ok(())
    }

    /// What this comes to, or why it is refused. It changes nothing: what is refused leaves no trace.
    fn check(&self, verb: &Verb) -> Result<Action, String> {
        match verb {
            Verb::Arm(arm) => {
                let pairing = Pairing::try_from(&**arm).map_err(|error| error.to_string())?;
                self.openings
                    .refuse_forgotten(&pairing)
                    .map_err(|error| error.to_string())?;
                Ok(Action::Arm(Box::new(pairing)))
            }
            Verb::Press(press) => self.check_press(press),
            Verb::Takeback(takeback) => self.check_takeback(takeback.keep_plies),
            Verb::Play(play) => self.check_play(&play.mv, play.ply),
            Verb::SetPosition(set) => {
                let chess960 = self.playing()?.line.start.castling_mode().is_chess960();
                let position =
                    Position::from_fen(&set.fen, chess960).map_err(|error| error.to_string())?;
                Ok(Action::GoOn {
                    position,
                    from_board: false,
                })
            }
            Verb::AcceptPosition(accept) => self.check_accept_position(accept.turn),
            Verb::AcceptIllegal(accept) => self.check_accept_illegal(accept.uci.as_deref()),
            Verb::Resolve(resolve) => self.check_resolve(resolve).map(Action::Resolve),
            Verb::Result(result) => {
                let sign: GameResult = result
                    .result
                    .parse()
                    .map_err(|error: UnknownResult| error.to_string())?;
                self.check_result(sign, result.termination.is_some())?;
                Ok(Action::Result(Verdict {
                    termination: result.termination.clone(),
                    reason: result.reason.clone().map(Reason::Told),
                    ..Verdict::set(sign, Some(ResultBy::Arbiter))
                }))
            }
            Verb::Resend(_) => Ok(Action::Resend),
            Verb::Orientation(args) => Ok(Action::Orientation(args.orientation)),
            Verb::Ack(ack) => Ok(Action::Ack(self.open_alert(&ack.alert)?)),
            Verb::Dismiss(dismiss) => Ok(Action::Dismiss(self.open_alert(&dismiss.alert)?)),
        }
    }

    /// Does what was checked.
    fn act(&mut self, action: Action, by: Option<&str>) {
        match action {
            Action::Arm(pairing) => self.arm(*pairing),
            Action::Press(press) => self.press_by_command(press),
            Action::Change(change) => {
                self.change_record(change);
                // A mate that was entered has ended it.
                if self.open_game().is_some() {
                    self.follow_record(true);
                }
            }
            Action::GoOn {
                position,
                from_board,
            } => self.go_on_from(position, from_board),
            Action::Agree => self.follow_record(false),
            Action::Join(shown, turn) => self.join_game(shown, turn),
            Action::AcceptIllegal { fault, moves } => self.accept_illegal(fault, moves),
            Action::Resolve(resolved) => self.resolve(resolved),
            Action::Result(verdict) => self.set_result(verdict),
            Action::Resend => {
                let all = self.snapshot();
                self.publications.extend(all);
            }
            Action::Orientation(setting) => {
                self.orientation_setting = setting;
                let midway = self.open_game().is_some_and(|game| !game.line.is_empty());
                // Within a game it is kept, and found at the next one.
                if setting != OrientationSetting::Auto || !midway {
                    self.find_orientation();
                }
            }
            Action::Ack(source) => {
                let at = self.wall_time(self.now);
                let by = by.map(str::to_owned);
                if let Some(body) = self.alerts.ack(source, Ack { by, at }) {
                    self.event(EventKind::AlertChanged {
                        alert: body.clone(),
                    });
                    self.publish_alert(&body);
                }
            }
            Action::Dismiss(source) => self.close_alert(source, CloseReason::Dismissed),
        }
    }

    fn playing(&self) -> Result<&Game, String> {
        match &self.game {
            None => Err(
                "no game is open at this table; arm opens one, and accept_position joins one that runs"
                    .into(),
            ),
            Some(game) if game.is_over() => {
                Err("the game is over; a result of * reopens it".into())
            }
            Some(game) => Ok(game),
        }
    }

    fn open_alert(&self, id: &str) -> Result<Source, String> {
        let source = self.alerts.source_of(id);
        source.ok_or_else(|| format!("no alert {id:?} is open"))
    }

    /// The record is what it is now; the board may differ for a while.
    pub(super) fn follow_record(&mut self, wait: bool) {
        let now = self.now;
        if let Some(game) = &mut self.game {
            game.ready = true;
        }
        let (sensing, cx) = self.sensing();
        sensing.follow(now, wait, &cx);
        if self.game.as_ref().is_some_and(|game| game.is_held()) {
            self.hold_game();
        }
        self.close_doubt();
        self.changed();
    }

    fn arm(&mut self, pairing: Pairing) {
        let is_left = self.looks_left();
        let armed = self.openings.arm(pairing, self.game.as_mut(), is_left);
        self.tell_game();
        match armed {
            Armed::Opens => self.begin_game(),
            Armed::Open => {}
            Armed::Finished(id) => {
                self.publish_record();
                self.publish_finished(&id);
                self.publish_archive(&id);
                self.note = Some(format!(
                    "game {id} is over and does not begin again; its names and numbers are as told now"
                ));
            }
            Armed::Waits => {
                self.note =
                    Some("a game is under way; the pairing is kept for the next game".into());
            }
        }
    }

    fn check_press(&self, press: &Press) -> Result<Action, String> {
        if self.settings.clock == crate::clock::ClockKind::None {
            return Err("this table is played without a clock".into());
        }
        if let Some(ms) = press.white_ms.max(press.black_ms)
            && ms > MOST_CLOCK_MS
        {
            return Err(format!(
                "a clock that shows {ms} ms is none: white_ms and black_ms are at most {MOST_CLOCK_MS}, which is 99:59:59"
            ));
        }
        // After a game has ended a press may tell that it goes on.
        if !self.is_watched_on()
            && !self.playing()?.ready
            && self.wrong_to_begin_with(!Color::from(press.side)).is_none()
        {
            return Err("the start position is not on the board".into());
        }
        Ok(Action::Press(*press))
    }

    fn press_by_command(&mut self, press: Press) {
        self.begin_from_wrong_array(!Color::from(press.side));
        let told = ByColor {
            white: press.white_ms,
            black: press.black_ms,
        };
        if let Some(game) = self.game.as_mut().filter(|game| !game.is_over()) {
            let before = game.clocks.shown;
            let shown = ByColor {
                white: told.white.or(before.white),
                black: told.black.or(before.black),
            };
            // Also where nobody read the clocks: from here on the other one counts.
            game.show_times(self.now, shown);
        }
        let side = Color::from(press.side);
        self.pressed(side, *told.get(side));
        self.publish_clock();
    }

    fn check_takeback(&self, keep_plies: Option<u32>) -> Result<Action, String> {
        let len = self.playing()?.line.len();
        let keep = keep_plies.map_or(len.saturating_sub(1), |keep| keep as usize);
        if len == 0 {
            return Err("there is no move to take back".into());
        }
        if keep >= len {
            return Err(format!(
                "keep_plies must be below {len}, the number of plies played"
            ));
        }
        Ok(Action::Change(Change {
            keep,
            moves: Vec::new(),
            why: CorrectionReason::Command,
            readings: None,
        }))
    }

    fn check_play(&self, text: &str, ply: Option<u32>) -> Result<Action, String> {
        let game = self.playing()?;
        let len = game.line.len();
        let keep = match ply {
            None => len,
            Some(ply) if ply >= 1 && ply as usize <= len + 1 => ply as usize - 1,
            Some(_) => return Err(format!("ply must be 1 to {}", len + 1)),
        };
        let position = game.line.position(keep);
        let mv = position
            .parse_move(text, false)
            .map_err(|error| error.to_string())?;
        // Where the position is not legal, moves go by geometry alone.
        if mv.capture() == Some(Role::King) {
            return Err(format!(
                "{text} takes the king; put the position right with set_position or takeback"
            ));
        }
        Ok(Action::Change(Change {
            keep,
            moves: vec![Seen::new(position, mv, self.now)],
            why: CorrectionReason::Command,
            readings: None,
        }))
    }

    /// What comes before the first move may be meant for the game before: the array stands again soon after its end. A game that is
    /// not to be played is named as such.
    fn check_result(&self, sign: GameResult, is_named: bool) -> Outcome {
        let Some(game) = &self.game else {
            return Err("no game is open at this table".into());
        };
        // A first move may have been made that is not told yet.
        let stands = || self.sensing.picture().agrees_with(game.line.start.board());
        let is_begun =
            game.is_over() || game.was_played() || game.clocks.used || (game.ready && !stands());
        // What somebody had proposed can be taken back.
        if is_begun || is_named || game.verdict.state.is_some() {
            return Ok(());
        }
        let before = self.openings.last_finished().map(|before| {
            let (id, result) = (&before.id, before.verdict.result);
            format!("; {id} before it ended {result}: put that right in its PGN")
        });
        let or_else = match sign {
            GameResult::Unknown => "",
            _ => "; if it is not to be, add a termination, as \"forfeit\" or \"unplayed\"",
        };
        Err(format!(
            "nothing was played in {}{or_else}{}",
            game.id,
            before.unwrap_or_default()
        ))
    }

    /// The board is right: the game goes on from what it shows. Where none is open, one is joined there.
    fn check_accept_position(&self, turn: Option<Side>) -> Result<Action, String> {
        // What was not read yet agrees with everything.
        if !self.raw.is_complete() {
            return Err("the board has not been read yet; look at its cable and power".into());
        }
        if self.game.is_none() {
            let Some(turn) = turn else {
                return Err(
                    "no game is open, so say who moves next: \"args\":{\"turn\":\"white\"} or black"
                        .into(),
                );
            };
            self.check_at_rest()?;
            let picture = self.raw.oriented(self.stands());
            check_named(&picture, false)?;
            let shown = shown(&picture, &Board::empty());
            check_kings(&shown)?;
            return Ok(Action::Join(shown, turn.into()));
        }
        let game = self.playing()?;
        let (picture, tip) = (self.sensing.picture(), game.line.tip());
        let turn = turn.map_or(tip.turn(), Color::from);
        if picture.agrees_with(tip.board()) && turn == tip.turn() {
            return Ok(Action::Agree);
        }
        self.check_at_rest()?;
        if !picture.agrees_with(tip.board()) {
            check_named(picture, true)?;
        }
        let shown = shown(picture, tip.board());
        check_kings(&shown)?;
        let mode = game.line.start.castling_mode();
        Ok(Action::GoOn {
            position: Position::from_board(shown, turn, mode),
            from_board: true,
        })
    }

    /// A man in a hand would be missing from a position that is accepted now.
    fn check_at_rest(&self) -> Outcome {
        let rests_at = self.changed_at.map(|at| at + self.settings.games.accepted);
        if rests_at.is_some_and(|at| at > self.now) {
            return Err(
                "the board is not at rest; put the men down and send it again a second later"
                    .into(),
            );
        }
        Ok(())
    }

    /// A running game without a record begins with what the board shows; somebody who asks for that arms it.
    fn join_game(&mut self, shown: Board, turn: Color) {
        self.openings.arm_next();
        self.begin_game();
        let start = &self.line().start;
        if *start.board() == shown && start.turn() == turn {
            self.follow_record(false);
        } else {
            let mode = start.castling_mode();
            self.go_on_from(Position::from_board(shown, turn, mode), true);
        }
    }

    /// The game goes on from another position: what was played before it is closed as it stands, and the rest is a game from there.
    fn go_on_from(&mut self, position: Position, from_board: bool) {
        let played = self.game.as_ref().map(|game| self.record_of(game));
        if let Some(game) = &mut self.game {
            game.go_on_from(self.now, position, played);
        }
        self.tell_game();
        self.follow_record(!from_board);
    }

    fn check_accept_illegal(&self, uci: Option<&str>) -> Result<Action, String> {
        let tip = self.playing()?.line.tip();
        let named = |uci: &str| {
            let mv = tip.parse_move(uci, true);
            let mv = mv.map_err(|error| error.to_string())?;
            Ok::<_, String>(vec![Seen::new(tip, mv, self.now)])
        };
        let fault = self.sensing.faults().iter().find_map(|fault| {
            let irregular = fault.uci.as_deref()?;
            uci.is_none_or(|uci| uci == irregular)
                .then_some((fault, irregular))
        });
        let (fault, moves) = match (fault, uci) {
            (Some((fault, _)), _) if !fault.shadow.is_empty() => {
                (Some(fault.id), fault.shadow.clone())
            }
            (Some((fault, irregular)), _) => (Some(fault.id), named(irregular)?),
            (None, Some(uci)) => (None, named(uci)?),
            (None, None) => {
                return Err("no irregular move stands on the board; name it as uci".into());
            }
        };
        Ok(Action::AcceptIllegal { fault, moves })
    }

    /// The irregular move on the board stands: it and what was played over it enter the record.
    fn accept_illegal(&mut self, fault: Option<u32>, moves: Vec<Seen>) {
        if let Some(id) = fault {
            self.sensing.settle_fault(id);
            self.close_alert(Source::Fault(id), CloseReason::Stands);
        }
        if let Some(game) = &mut self.game {
            game.accept_illegal(moves);
        }
        self.tell_game();
        self.follow_record(true);
        self.end_by_the_board();
    }

    fn set_result(&mut self, verdict: Verdict) {
        if verdict.result != GameResult::Unknown {
            if self.is_pressed_after_the_end() {
                // The result before this one was wrong, and play went on over it: it is taken back first.
                self.set_result(Verdict::set(GameResult::Unknown, verdict.by));
            } else if self.is_told_after_the_end() {
                let says = "what was shown since the end is not in the record; if it was play, send * and the result again";
                self.note = Some(says.into());
            }
            self.tell_last_capture();
        }
        let Some(game) = &mut self.game else { return };
        let (over, held) = (game.is_over(), game.is_held());
        if verdict.result == GameResult::Unknown {
            let ended_with = game.line.tip().clone();
            game.reopen(verdict.reason);
            self.tell_game();
            if over || held {
                let plays_on = self.take_played_on();
                self.follow_record(!plays_on);
                self.catch_up_flags();
            }
            self.close_alert(Source::ResultMismatch, CloseReason::Superseded);
            // A mate whose result is taken back is none; one that was played since is.
            if *self.line().tip() != ended_with {
                self.end_by_the_board();
            }
            return;
        }
        let known = over.then(|| game.verdict.termination.clone());
        let usual = known.unwrap_or_else(|| Some("normal".into()));
        let verdict = Verdict {
            termination: verdict.termination.or(usual),
            ..verdict
        };
        self.close_alert(Source::ResultMismatch, CloseReason::Superseded);
        if !over && !held {
            self.watch_on(false);
        }
        self.watch_on_from_here();
        if !over {
            self.end_game(verdict);
            return;
        }
        if let Some(game) = &mut self.game {
            game.set_result(verdict);
        }
        self.tell_ended();
    }
}

/// The men on the board. Where it sees that there is one but not which, it is the one that is known to stand there.
fn shown(picture: &Picture, known: &Board) -> Board {
    let mut shown = Board::empty();
    for square in Square::ALL {
        let known = known.piece_at(square);
        let man = match picture.at(square) {
            Some(contents) if contents.is_empty() => None,
            Some(contents) => contents
                .piece()
                .or_else(|| known.filter(|man| contents.agrees(Some(*man)))),
            None => known,
        };
        if let Some(man) = man {
            shown.set_piece_at(square, man);
        }
    }
    shown
}

/// What cannot be told from the board is not guessed: a man may have been taken by any that has gone.
fn check_named(picture: &Picture, is_open: bool) -> Outcome {
    if picture.is_exact() {
        return Ok(());
    }
    let when = if is_open {
        ""
    } else {
        ", once a game is armed"
    };
    Err(format!(
        "this board cannot tell which men stand on it; say so with set_position{when}"
    ))
}

fn check_kings(board: &Board) -> Outcome {
    for color in Color::ALL {
        if board.king_of(color).is_none() {
            return Err(format!("the board shows no single {color} king"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::command::{Command, Reply};
    use crate::publish::{Body, Game, Payload, Phase};
    use crate::session::{Session, Settings};
    use crate::wire::dgt::{PieceCode, VirtualBoard};

    struct Hall {
        session: Session,
        games: Vec<Game>,
        now: u64,
    }

    impl Hall {
        fn new() -> Hall {
            let mut session = Session::new(Settings::new("1"), 0);
            session.handle_opened(0);
            Hall {
                session,
                games: Vec::new(),
                now: 0,
            }
        }

        /// Answers what the board is asked, a while later.
        fn read(&mut self, board: &mut VirtualBoard) {
            while let Some(asked) = self.session.poll_write() {
                self.now += 100;
                let told = board.handle_host(&asked);
                self.session.handle_bytes(self.now, &told);
            }
        }

        fn say(&mut self, text: &str) -> Reply {
            self.now += 100;
            let command = Command::parse(text, None).expect("a command");
            self.session.handle_command(self.now, command);
            while let Some(publication) = self.session.poll_publication() {
                if let Body::Payload(Payload::Game(game)) = publication.body {
                    self.games.push(*game);
                }
            }
            self.session.poll_reply().expect("an answer").1
        }
    }

    #[test]
    fn a_running_game_is_joined_where_none_is_open() {
        let mut hall = Hall::new();
        let accept = r#"{"verb":"accept_position","args":{"turn":"black"}}"#;
        let unread = hall.say(accept).error.expect("nothing was read");
        assert!(unread.contains("not been read"), "{unread}");

        let mut board = VirtualBoard::default();
        let raw = |name: &str| crate::board::dgt::raw_square(name.parse().expect("a square"));
        let man = board.squares()[usize::from(raw("e2").index())];
        board.set_square(raw("e2"), PieceCode::Empty);
        board.set_square(raw("e4"), man);
        hall.read(&mut board);
        let turnless = hall.say(r#"{"verb":"accept_position"}"#);
        assert!(turnless.error.is_some_and(|why| why.contains("turn")));
        assert!(hall.games.is_empty());
        assert_eq!(hall.say(accept).error, None);
        let game = hall.games.last().expect("a game was told");
        assert!(
            game.start_fen
                .starts_with("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b")
        );
        assert_eq!(game.phase, Phase::Playing);
    }

    #[test]
    fn no_position_is_accepted_while_a_man_is_in_a_hand() {
        let accept = r#"{"verb":"accept_position","args":{"turn":"white"}}"#;
        let raw = |name: &str| crate::board::dgt::raw_square(name.parse().expect("a square"));
        for armed in [false, true] {
            let mut hall = Hall::new();
            let mut board = VirtualBoard::default();
            for square in ["a7", "b7", "c7"] {
                board.set_square(raw(square), PieceCode::Empty);
            }
            hall.read(&mut board);
            if armed {
                assert!(hall.say(r#"{"verb":"arm"}"#).ok);
            }
            hall.now += 5_000;
            let pawn = board.squares()[usize::from(raw("e2").index())];
            for (square, man) in [("e2", PieceCode::Empty), ("e4", pawn)] {
                let told = board.set_square(raw(square), man);
                hall.session.handle_bytes(hall.now, &told);
                let refused = hall.say(accept).error.expect("the board moves");
                assert!(refused.contains("not at rest"), "{refused}");
            }
            hall.now += 1_000;
            assert_eq!(hall.say(accept).error, None);
            let game = hall.games.last().expect("a game was told");
            assert!(
                game.start_fen
                    .starts_with("rnbqkbnr/3ppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR w"),
                "{}",
                game.start_fen
            );
        }
    }

    #[test]
    fn an_id_stands_for_one_command() {
        let mut hall = Hall::new();
        hall.read(&mut VirtualBoard::default());
        assert!(hall.say(r#"{"id":"1","verb":"arm"}"#).ok);
        assert!(
            hall.say(r#"{"id":"2","verb":"play","args":{"move":"e4"}}"#)
                .ok
        );
        let takeback = r#"{"id":"3","verb":"takeback","args":{"keep_plies":0}}"#;
        assert!(hall.say(takeback).ok);
        let told = hall.games.len();
        assert!(hall.say(takeback).ok);
        assert_eq!(hall.games.len(), told, "carried out once");
        for other in [
            r#"{"id":"3","verb":"takeback"}"#,
            r#"{"id":"3","verb":"play","args":{"move":"d4"}}"#,
            r#"{"id":"3","by":"arbiter:berta","verb":"takeback","args":{"keep_plies":0}}"#,
        ] {
            let refused = hall.say(other).error.expect("the id is taken");
            assert!(refused.contains("id 3 was used for takeback"), "{refused}");
        }
        // What was refused changed nothing, and may be tried again.
        let take = r#"{"id":"4","verb":"takeback"}"#;
        assert!(!hall.say(take).ok);
        assert!(hall.say(r#"{"verb":"play","args":{"move":"d4"}}"#).ok);
        assert!(hall.say(take).ok);
    }

    #[test]
    fn a_game_that_is_over_is_never_armed_again() {
        let mut hall = Hall::new();
        hall.read(&mut VirtualBoard::default());
        let arm =
            |game: &str| format!(r#"{{"verb":"arm","args":{{"game":"{game}","white":"Anna"}}}}"#);
        for game in ["g1", "g2", "g3", "g4", "g5", "g6"] {
            assert_eq!(hall.say(&arm(game)).error, None, "{game}");
            assert!(hall.say(r#"{"verb":"play","args":{"move":"e4"}}"#).ok);
            assert!(hall.say(r#"{"verb":"result","args":{"result":"1-0"}}"#).ok);
        }
        // Of those whose record is here, who played it is put right; the others are refused.
        let refused = hall.say(&arm("g1")).error.expect("it is over");
        assert!(refused.contains("g1 was played to its end"), "{refused}");
        for game in ["g2", "g3", "g5", "g6"] {
            let told = hall.games.len();
            let reply = hall.say(&arm(game));
            assert!(reply.ok, "{reply:?}");
            let note = reply.note.expect("it is said");
            assert!(note.contains(&format!("{game} is over")), "{note}");
            let game_told = &hall.games[told..];
            assert!(game_told.iter().all(|told| told.record.game == "g6"));
        }
        assert_eq!(hall.say(&arm("g7")).note, None);
        let last = hall.games.last().map(|told| told.record.game.as_str());
        assert_eq!(last, Some("g7"));
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let commands = [
            r#"{"verb":"arm","args":{"game":"Not One"}}"#,
            r#"{"verb":"arm","args":{"white":"Anna","time_control":"soon"}}"#,
            r#"{"verb":"arm","args":{"white":"Anna","fen":"8/8"}}"#,
            r#"{"verb":"press","args":{"side":"white","white_ms":400000000}}"#,
            r#"{"verb":"takeback","args":{"keep_plies":9}}"#,
            r#"{"verb":"play","args":{"move":"Ke5"}}"#,
            r#"{"verb":"set_position","args":{"fen":"8/8"}}"#,
            r#"{"verb":"accept_position","args":{"turn":"white"}}"#,
            r#"{"verb":"accept_illegal"}"#,
            r#"{"verb":"accept_illegal","args":{"uci":"e4"}}"#,
            r#"{"verb":"resolve","args":{"ply":1,"line":"e2e4"}}"#,
            r#"{"verb":"resolve","args":{"ply":0,"promotion":"queen"}}"#,
            r#"{"verb":"result","args":{"result":"2-0"}}"#,
            r#"{"verb":"ack","args":{"alert":"a9"}}"#,
            r#"{"verb":"dismiss","args":{"alert":"a9"}}"#,
        ];
        // Where no game is open, before the board was read and after it; in a game; and after its end.
        for stage in 0..4 {
            let mut hall = Hall::new();
            let mut board = VirtualBoard::default();
            let raw = |name: &str| crate::board::dgt::raw_square(name.parse().expect("a square"));
            board.set_square(raw("e8"), PieceCode::Empty);
            if stage > 0 {
                hall.read(&mut board);
            }
            if stage > 1 {
                assert!(hall.say(r#"{"verb":"arm"}"#).ok);
                assert!(hall.say(r#"{"verb":"play","args":{"move":"e4"}}"#).ok);
            }
            if stage > 2 {
                assert!(hall.say(r#"{"verb":"result","args":{"result":"1-0"}}"#).ok);
            }
            hall.now += 60_000;
            hall.session.handle_timeout(hall.now);
            for text in commands {
                hall.say("{\"verb\":\"resend\"}");
                let before = format!("{:?}", hall.session.table);
                hall.now -= 100;
                assert!(!hall.say(text).ok, "{stage} {text}");
                assert_eq!(
                    before,
                    format!("{:?}", hall.session.table),
                    "{stage} {text}"
                );
            }
        }
    }

    #[test]
    fn no_king_is_taken_by_a_move_that_is_entered() {
        let mut hall = Hall::new();
        hall.read(&mut VirtualBoard::default());
        assert!(hall.say(r#"{"verb":"arm"}"#).ok);
        for (fen, mv) in [
            ("4k3/4Q3/8/4P3/8/8/8/4K3 w - - 0 1", "e7e8"),
            ("4k3/8/8/8/8/8/3p4/4K3 b - - 0 1", "d2e1q"),
        ] {
            let set = format!(r#"{{"verb":"set_position","args":{{"fen":"{fen}"}}}}"#);
            assert_eq!(hall.say(&set).error, None);
            let takes = format!(r#"{{"verb":"play","args":{{"move":"{mv}"}}}}"#);
            let refused = hall.say(&takes).error.expect("a king stands there");
            assert!(refused.contains("takes the king"), "{refused}");
        }
    }

    #[test]
    fn a_game_that_is_not_played_is_ended_by_name() {
        let mut hall = Hall::new();
        hall.read(&mut VirtualBoard::default());
        assert!(hall.say(r#"{"verb":"arm"}"#).ok);
        for result in ["1-0", "*"] {
            let text = format!(r#"{{"verb":"result","args":{{"result":"{result}"}}}}"#);
            let refused = hall.say(&text).error.expect("nothing was played");
            assert!(refused.contains("nothing was played"), "{refused}");
            assert_eq!(refused.contains("forfeit"), result == "1-0", "{refused}");
        }
        let forfeit = r#"{"verb":"result","args":{"result":"1-0","termination":"forfeit"}}"#;
        assert_eq!(hall.say(forfeit).error, None);
        let game = hall.games.last().expect("a game was told");
        assert_eq!(
            (game.phase, game.termination.as_deref()),
            (Phase::Ended, Some("forfeit"))
        );
        // Now that it has ended, it is this one that is put right.
        let anew = r#"{"verb":"result","args":{"result":"0-1"}}"#;
        assert_eq!(hall.say(anew).error, None);
    }

    #[test]
    fn a_clock_that_is_told_of_counts_on_from_its_press() {
        let mut hall = Hall::new();
        hall.read(&mut VirtualBoard::default());
        hall.now = 600_000;
        assert!(hall.say(r#"{"verb":"arm"}"#).ok);
        for text in [
            r#"{"verb":"play","args":{"move":"f3"}}"#,
            r#"{"verb":"press","args":{"side":"white","white_ms":60000}}"#,
            r#"{"verb":"play","args":{"move":"e5"}}"#,
            r#"{"verb":"press","args":{"side":"black","black_ms":50000}}"#,
            r#"{"verb":"play","args":{"move":"g4"}}"#,
            r#"{"verb":"press","args":{"side":"white","white_ms":58000}}"#,
        ] {
            assert_eq!(hall.say(text).error, None, "{text}");
        }
        hall.now += 5_000;
        assert!(hall.say(r#"{"verb":"play","args":{"move":"Qh4"}}"#).ok);
        let mate = hall.games.last().and_then(|game| game.moves.last());
        assert_eq!(mate.and_then(|mate| mate.clk_ms), Some(45_000));
    }
}

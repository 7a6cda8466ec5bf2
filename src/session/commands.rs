//! What people ask, and what becomes of it.

use super::Table;
use super::alerts::Source;
use crate::board::OrientationSetting;
use crate::command::{Command, Reply, Verb};
use crate::game::{Armed, Change, CorrectionReason, Game, ResultBy, Seen, Verdict};
use crate::laws::Side;
use crate::laws::position::Position;
use crate::laws::result::{GameResult, UnknownResult};
use crate::publish::{Ack, CloseReason, EventKind};
use crate::text::one_line;
use shakmaty::{ByColor, Color};

/// How many commands are remembered, so that one that comes twice is carried out once.
const REMEMBERED: usize = 256;

/// A command that was carried out: its id, and what tells a repeat from another command under the same id.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Done {
    id: String,
    by: Option<String>,
    verb: Verb,
}
/// 99:59:59 and its tenths.
const MOST_CLOCK_MS: u64 = 359_999_999;

/// A refusal in words: what is wrong, and where it helps, what to do.
type Outcome = Result<(), String>;

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
        // The cause goes before its effects; a refusal has none, so what was announced is taken back.
        let before = (self.publications.len(), self.seq);
        if !matches!(command.verb, Verb::Press(_) | Verb::Resend(_)) {
            self.event(EventKind::Command {
                command: command.id.clone(),
                by: command.by.clone(),
                verb: command.verb.name().to_owned(),
            });
        }
        if let Err(refusal) = self.perform(&command.verb, command.by.as_deref()) {
            self.publications.truncate(before.0);
            self.seq = before.1;
            return Err(refusal);
        }
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

    fn perform(&mut self, verb: &Verb, by: Option<&str>) -> Outcome {
        match verb {
            Verb::Arm(arm) => self.arm(arm),
            Verb::Press(press) => {
                let side = Color::from(press.side);
                let clk = match press.side {
                    Side::White => press.white_ms,
                    Side::Black => press.black_ms,
                };
                self.press_by_command(side, clk, press.white_ms, press.black_ms)
            }
            Verb::Takeback(takeback) => {
                let len = self.playing()?.line.len();
                let keep = takeback
                    .keep_plies
                    .map_or(len.saturating_sub(1), |keep| keep as usize);
                if len == 0 {
                    return Err("there is no move to take back".into());
                }
                if keep >= len {
                    return Err(format!(
                        "keep_plies must be below {len}, the number of plies played"
                    ));
                }
                self.change_record(Change {
                    keep,
                    moves: Vec::new(),
                    why: CorrectionReason::Command,
                    alternatives: Vec::new(),
                });
                self.follow_record(true);
                Ok(())
            }
            Verb::Play(play) => self.play(&play.mv, play.ply),
            Verb::SetPosition(set) => {
                let chess960 = self.playing()?.line.start.castling_mode().is_chess960();
                let position =
                    Position::from_fen(&set.fen, chess960).map_err(|error| error.to_string())?;
                self.go_on_from(position, false);
                Ok(())
            }
            Verb::AcceptPosition(accept) => self.accept_position(accept.turn),
            Verb::AcceptIllegal(accept) => self.accept_illegal(accept.uci.as_deref()),
            Verb::Result(result) => {
                let sign: GameResult = result
                    .result
                    .parse()
                    .map_err(|error: UnknownResult| error.to_string())?;
                if self.game.is_none() {
                    return Err("no game is open at this table".into());
                }
                self.set_result(Verdict {
                    termination: result.termination.clone(),
                    reason: result.reason.clone(),
                    ..Verdict::set(sign, Some(ResultBy::Arbiter))
                });
                Ok(())
            }
            Verb::Resend(_) => {
                let mut all = self.snapshot();
                self.publications.extend(all.drain(..));
                Ok(())
            }
            Verb::Orientation(args) => {
                self.orientation_setting = args.orientation;
                if args.orientation == OrientationSetting::Auto
                    && self.open_game().is_some_and(|game| !game.line.is_empty())
                {
                    // It is found at the next game; within one it is kept.
                    return Ok(());
                }
                self.find_orientation();
                Ok(())
            }
            Verb::Ack(ack) => {
                let at = self.wall_time(self.now);
                let by = by.map(str::to_owned);
                let Some(body) = self.alerts.ack(&ack.alert, Ack { by, at }) else {
                    return Err(format!("no alert {:?} is open", ack.alert));
                };
                self.event(EventKind::AlertChanged {
                    alert: body.clone(),
                });
                self.publish_alert(&body);
                Ok(())
            }
            Verb::Dismiss(dismiss) => {
                let Some(source) = self.alerts.source_of(&dismiss.alert) else {
                    return Err(format!("no alert {:?} is open", dismiss.alert));
                };
                self.close_alert(source, CloseReason::Dismissed);
                Ok(())
            }
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

    /// The record is what it is now; the board may differ for a while.
    fn follow_record(&mut self, wait: bool) {
        let now = self.now;
        if let Some(game) = &mut self.game {
            game.ready = true;
        }
        let (sensing, cx) = self.sensing();
        sensing.follow(now, wait, &cx);
        self.close_alert(Source::Doubt, CloseReason::Superseded);
        self.changed();
    }

    fn arm(&mut self, arm: &crate::command::Arm) -> Outcome {
        if let Some(fen) = &arm.fen {
            Position::from_fen(fen, arm.chess960.unwrap_or(false))
                .map_err(|error| error.to_string())?;
        }
        if let Some(id) = &arm.game
            && (id.is_empty()
                || id.len() > 32
                || !id
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
        {
            return Err(format!("game {id:?} must be 1 to 32 of a-z 0-9 -"));
        }
        if let Some(ruleset) = &arm.ruleset {
            ruleset
                .parse::<crate::laws::ruleset::Ruleset>()
                .map_err(|error| error.to_string())?;
        }
        if let Some(variant) = &arm.variant {
            variant
                .parse::<crate::laws::ruleset::Variant>()
                .map_err(|error| error.to_string())?;
        }
        if let Some(control) = &arm.time_control {
            control
                .parse::<crate::clock::control::TimeControl>()
                .map_err(|error| format!("time_control: {error}"))?;
        }
        let armed = self.openings.arm(arm, self.game.as_mut());
        self.tell_game();
        match armed {
            Armed::Opens => self.begin_game(),
            Armed::Open => {}
            Armed::Waits => {
                self.note =
                    Some("a game is under way; the pairing is kept for the next game".into());
            }
        }
        Ok(())
    }

    fn press_by_command(
        &mut self,
        side: Color,
        clk: Option<u64>,
        white: Option<u64>,
        black: Option<u64>,
    ) -> Outcome {
        if self.settings.clock == crate::clock::ClockKind::None {
            return Err("this table is played without a clock".into());
        }
        if let Some(ms) = [clk, white, black].into_iter().flatten().max()
            && ms > MOST_CLOCK_MS
        {
            return Err(format!(
                "a clock that shows {ms} ms is none: white_ms and black_ms are at most {MOST_CLOCK_MS}, which is 99:59:59"
            ));
        }
        self.playing()?;
        if self.game.as_ref().is_some_and(|game| !game.ready) {
            return Err("the start position is not on the board".into());
        }
        if let Some(game) = &mut self.game {
            let shown = game.clocks.shown;
            game.clocks.shown = ByColor {
                white: white.or(shown.white),
                black: black.or(shown.black),
            };
        }
        self.pressed(side, clk);
        self.publish_clock();
        Ok(())
    }

    fn play(&mut self, text: &str, ply: Option<u32>) -> Outcome {
        let game = self.playing()?;
        let len = game.line.len();
        let keep = match ply {
            None => len,
            Some(ply) if ply >= 1 && ply as usize <= len + 1 => ply as usize - 1,
            Some(_) => return Err(format!("ply must be 1 to {}", len + 1)),
        };
        let position = game.line.position(keep).clone();
        let mv = position
            .parse_move(text, false)
            .map_err(|error| error.to_string())?;

        let at = self.now;
        self.change_record(Change {
            keep,
            moves: vec![Seen::new(&position, mv, at)],
            why: CorrectionReason::Command,
            alternatives: Vec::new(),
        });
        if self.open_game().is_some() {
            self.follow_record(true);
        }
        Ok(())
    }

    /// The board is right: the game goes on from what it shows. Where none is open, one is joined there.
    fn accept_position(&mut self, turn: Option<Side>) -> Outcome {
        // What was not read yet agrees with everything.
        if !self.raw.is_complete() {
            return Err("the board has not been read yet; look at its cable and power".into());
        }
        if self.game.is_none() {
            return self.join_game(turn);
        }
        let game = self.playing()?;
        let picture = self.sensing.picture();
        let board = game.line.tip().board().clone();
        if picture.agrees_with(&board)
            && turn.is_none_or(|turn| Color::from(turn) == game.line.tip().turn())
        {
            self.follow_record(false);
            return Ok(());
        }
        let mut shown = shakmaty::Board::empty();
        for square in shakmaty::Square::ALL {
            let man = match picture.at(square) {
                Some(contents) if contents.is_empty() => None,
                Some(contents) => match contents.piece() {
                    Some(piece) => Some(piece),
                    None => board
                        .piece_at(square)
                        .filter(|man| contents.agrees(Some(*man))),
                },
                None => board.piece_at(square),
            };
            if let Some(man) = man {
                shown.set_piece_at(square, man);
            }
        }
        check_kings(&shown)?;
        let turn = turn.map_or(game.line.tip().turn(), Color::from);
        let mode = game.line.start.castling_mode();
        self.go_on_from(Position::from_board(shown, turn, mode), true);
        Ok(())
    }

    /// A running game without a record begins with what the board shows; somebody who asks for that arms it.
    fn join_game(&mut self, turn: Option<Side>) -> Outcome {
        if turn.is_none() {
            return Err(
                "no game is open, so say who moves next: \"args\":{\"turn\":\"white\"} or black"
                    .into(),
            );
        }
        let orientation = self.stands();
        let picture = self.raw.oriented(orientation);
        let mut shown = shakmaty::Board::empty();
        for square in shakmaty::Square::ALL {
            if let Some(man) = picture.piece(square) {
                shown.set_piece_at(square, man);
            }
        }
        check_kings(&shown)?;
        self.openings.arm_next();
        self.begin_game();
        self.accept_position(turn)
    }

    /// The game goes on from another position: what was played before it is closed as it stands, and the rest is a game from there.
    fn go_on_from(&mut self, position: Position, from_board: bool) {
        if let Some(game) = &mut self.game {
            game.go_on_from(self.now, position);
        }
        self.tell_game();
        self.follow_record(!from_board);
    }

    /// The irregular move on the board stands: it and what was played over it enter the record.
    fn accept_illegal(&mut self, uci: Option<&str>) -> Outcome {
        let now = self.now;
        self.playing()?;
        let tip = self.line().tip().clone();
        let fault = self
            .sensing
            .faults()
            .iter()
            .find(|fault| {
                fault.uci.is_some() && uci.is_none_or(|uci| fault.uci.as_deref() == Some(uci))
            })
            .map(|fault| {
                (
                    fault.id,
                    fault.shadow.clone(),
                    fault.uci.clone().unwrap_or_default(),
                )
            });
        let (id, moves) = match (fault, uci) {
            (Some((id, moves, _)), _) if !moves.is_empty() => (Some(id), moves),
            (Some((id, _, named)), _) => {
                let mv = tip
                    .parse_move(&named, true)
                    .map_err(|error| error.to_string())?;
                (Some(id), vec![Seen::new(&tip, mv, now)])
            }
            (None, Some(uci)) => {
                let mv = tip
                    .parse_move(uci, true)
                    .map_err(|error| error.to_string())?;

                (None, vec![Seen::new(&tip, mv, now)])
            }
            (None, None) => {
                return Err("no irregular move stands on the board; name it as uci".into());
            }
        };
        if let Some(id) = id {
            self.sensing.settle_fault(id);
            self.close_alert(Source::Fault(id), CloseReason::Stands);
        }
        if let Some(game) = &mut self.game {
            game.accept_illegal(moves);
        }
        self.tell_game();
        self.follow_record(true);
        Ok(())
    }

    fn set_result(&mut self, verdict: Verdict) {
        let Some(game) = &mut self.game else { return };
        let over = game.is_over();
        if verdict.result == GameResult::Unknown {
            game.reopen(verdict.reason);
            self.tell_game();
            if over {
                self.follow_record(true);
            }
            self.close_alert(Source::Result, CloseReason::Superseded);
            return;
        }
        let known = over.then(|| game.verdict.termination.clone());
        let usual = known.unwrap_or_else(|| Some("normal".into()));
        let verdict = Verdict {
            termination: verdict.termination.or(usual),
            ..verdict
        };
        self.close_alert(Source::Result, CloseReason::Superseded);
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

fn check_kings(board: &shakmaty::Board) -> Outcome {
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
}

//! What the hands did: square events, presses and time become observations.
//!
//! The placement is looked up among the positions that can be reached from the record. A hit explains the board, whatever the hands
//! did on the way: slides, second thoughts, victims dragged along cost nothing. What is seen is told once it has stood still for as
//! long as the move may be unfinished; what nothing explains becomes a fault with its squares. The calling contract:
//!
//! * time never runs backwards; [`Sensing::handle_timeout`] is called for every deadline before anything later is handed in;
//! * after each call the observations are taken with [`Sensing::poll_observation`] and the record is changed as they say;
//! * whoever else changes the record says so with [`Sensing::follow`], or with [`Sensing::recall`] where he has only cut off plies
//!   that were no play;
//! * whoever begins a game from an array that the board does not show whole says so with [`Sensing::leave_unread`], before that.
//!
//! # Which file answers which question
//!
//! | question | file |
//! |---|---|
//! | What do the squares show, and when did each change last? | [`Picture`] of `board`, `trail` |
//! | What happened to them, one change after the other? | `film` |
//! | What does the record say, with what was seen and not told yet? | `view` |
//! | Which moves, or lines of a few, lead from a position to a placement? What is on its way, what may be in the hands? | [`explain`] |
//! | The board has changed: is it the same again, a move, the last one otherwise, or taken back? How long is that held? | `look` |
//! | The same while hands of both players are over the board | `fast` |
//! | The same where one scan told of several plies | `scan` |
//! | Does an older position stand on the board, at once or a move further? How far back can a takeback go? | `takeback` |
//! | It is quiet: where else may the placement be found, and in which order is that asked? | `search` |
//! | In which order were several plies played, and when was each seen? | `order` |
//! | Do plies that went missing explain what was told already? | `heal` |
//! | Was a move answered before it was finished, or though it is none? | `answered` |
//! | Castling, king and rook one after the other: is it on its way, what is left of it, who replied meanwhile? | `castling` |
//! | Steps back, man by man: a takeback, or men that go home? | `retrace` |
//! | Who was captured, where a board knows no men and shows only that one is gone? | `unseen` |
//! | Was it a captured man who stood there for a moment, and what if not? | `supposed` |
//! | What speaks against a line, where the placement does not tell? | `weigh` |
//! | What else may the record be, and when does that take its place? | `rivals` |
//! | Does all that was seen of the last plies say what the record says? When is that asked? | `stretch` |
//! | And how is it read, change by change? | `reread` |
//! | How many plies were pressed for, and does the record have as many? | `tally` |
//! | Somebody pressed: which move does that complete, and what does it make loud? | `press` |
//! | And was that answered before it could be judged: what stood then? | `before_answer` |
//! | What was displaced when somebody pressed stands again where it belongs: which move was that press for? | `put_right` |
//! | Was a man only pushed to where he stands, on a board that does not know him? | `pushed` |
//! | What differs from the record and may: set aside, in a hand, gone for good? | `aside` |
//! | Where is the man that was captured last, on his way off the board? | `victim` |
//! | What does no legal play explain: whose deed is it? | `deed` |
//! | What is played over an irregular move, or before its turn? | `played_over` |
//! | Which faults stand, how loud, and when are they over? | `faults` |
//! | Which sensors are not to be believed? | `dead` |
//! | Do the kings show the result? | `kings` |
//! | What waits for a time, and what is done then? | `timer` |
//!
//! The way of a change through them: `handle_squares` notes it in picture, trail and film, and looks. What is found becomes the
//! tentative reading, which is told once it has stood for its hold, by a timer, a press, the opponent's lift or what is played
//! next. All that is told goes through `tell_change`, which carries the rivals on and hands out [`Observation::Moved`]. Whoever has
//! to bring the record up to date first sets `look_due` and leaves the rest to the timer of that name.
//!
//! A board that knows its men and one that does not go the same way. [`Picture::is_exact`] asks whether every square tells exactly
//! what stands on it, `is_poor` whether men have to be told apart by what else was seen of them.

use crate::Millis;
use crate::board::{Contents, Picture};
use crate::game::{Change, CompletedBy, CorrectionReason, Doubt, Line, Ply};
use crate::laws::illegal::{Attempt, IllegalReason};
use crate::laws::position::{Castling, Position};
use crate::laws::result::{CENTRE, GameResult};
use shakmaty::{Bitboard, Color, Move, Piece, Role, Square, attacks};
use std::collections::VecDeque;

mod answered;
mod aside;
mod before_answer;
mod castling;
mod dead;
mod deed;
pub mod explain;
mod fast;
mod faults;
mod film;
mod heal;
mod kings;
mod look;
mod order;
mod played_over;
mod press;
mod pushed;
mod put_right;
mod reread;
mod retrace;
mod rivals;
mod scan;
mod search;
mod stranger;
mod stretch;
mod supposed;
mod takeback;
mod tally;
mod timer;
mod trail;
mod unseen;
mod victim;
mod view;
mod weigh;

pub use crate::game::Seen;
pub use faults::{Fault, FaultEnd, FaultKind, Level};

pub(crate) use faults::{ACCIDENT, CLEARED};
use film::{Film, Pressed, Scene};
use rivals::Rivals;
use tally::Tally;
use trail::{Journey, LOOK_MS, Order, Trail};
use view::{Standpoint, View};

/// How long things must last (defaults; milliseconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Quiet for so long, a placement is taken for what it is.
    pub settle: Millis,
    /// A slider, king step or pawn step that can go on is held for so long.
    pub hold: Millis,
    /// A man that left his square, on a board that does not show whom he took, may be in the hand for so long.
    pub hand: Millis,
    /// And for so long nobody holds one: he has captured.
    pub gone: Millis,
    /// Settle and hold while the mover is short of time.
    pub settle_short: Millis,
    pub hold_short: Millis,
    /// A rook beside its king is held for so long: castling may follow.
    pub hold_rook: Millis,
    /// An older position must stand for so long to count as a takeback.
    pub takeback: Millis,
    /// Men that stand where nothing explains them, while hands go on, tell of something that was missed.
    pub lost: Millis,
    /// And so long after the board was asked for what it shows they are looked at again.
    pub lost_again: Millis,
    /// A press is judged at most so long after it.
    pub press: Millis,
    /// A dump that was asked for must come within this time of the press.
    pub dump: Millis,
    /// What nothing explains is told to the operator after this time.
    pub grace: Millis,
    /// And to the arbiter after this one.
    pub displaced: Millis,
    /// The same where men are only missing.
    pub missing: Millis,
    /// An opponent who lifts a man over an irregular move has this time to show that he is only the mover's other hand.
    pub reply_lift: Millis,
    /// Without a clock a move counts as completed after this time.
    pub quiet: Millis,
    /// The kings stand in the centre for so long.
    pub sign: Millis,
    /// A king that goes on sooner is on his way to the centre.
    pub walk: Millis,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            settle: 250,
            hold: 350,
            hand: 2_000,
            gone: 20_000,
            settle_short: 100,
            hold_short: 200,
            hold_rook: 3_000,
            takeback: 1_000,
            lost: 60,
            lost_again: 200,
            press: 500,
            dump: 1_500,
            grace: 3_500,
            displaced: 10_000,
            missing: 12_000,
            reply_lift: 1_000,
            quiet: 10_000,
            sign: 5_000,
            walk: 3_000,
        }
    }
}

/// How the board came to show something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It told of the change when it saw it.
    Update,
    /// It was asked what stands on all squares; nothing tells when they changed.
    Dump,
}

impl Look {
    pub fn from_dump(dump: bool) -> Look {
        if dump { Look::Dump } else { Look::Update }
    }
}

/// What sensing has to know of the rest, at each call.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub line: &'a Line,
    /// Whether moves are followed: a game stands ready or is being played.
    pub following: bool,
    /// Whether men are being set up for the next game: nothing that they show is wrong.
    pub setting_up: bool,
    /// Whether a clock has run, or was pressed, in this game.
    pub has_clock: bool,
    /// Whether a clock is attached that has not run yet: the first moves may fall away again.
    pub unstarted: bool,
    /// Whether the board can be asked for a dump.
    pub can_dump: bool,
    /// Whether the player who has the move is short of time.
    pub time_trouble: bool,
}

/// What happened on the board.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// The record reads otherwise.
    Moved(Change),
    /// The last move of this side is completed.
    Completed {
        side: Color,
        by: CompletedBy,
    },
    /// This side pressed, and no move of his was there to complete.
    PressWithoutMove {
        side: Color,
    },
    /// The exchange of this ply, which the board had not shown, is the one recorded.
    PromotionSeen {
        ply: usize,
    },
    /// This side's clock was pressed over a move of the other side: the clock may stand the wrong way round.
    WrongSidePressed {
        side: Color,
    },
    /// Something that no legal play explains has begun, or become louder.
    Fault(Fault),
    FaultClosed {
        id: u32,
        why: FaultEnd,
    },
    /// Whether the board agrees with the record by now, and where not.
    Sync {
        in_sync: bool,
    },
    /// The placement has stood still.
    Stable,
    /// The board should be read anew.
    AskDump,
    /// Both kings have stood on two of d4 e4 d5 e5. What was seen of them since they set out for there was no play.
    ResultSign {
        result: GameResult,
        /// The same would be seen if men were only in the hand.
        may_be_play: bool,
        set_out: Option<Millis>,
    },
}

/// The machine; see the module's page.
#[derive(Debug, Clone)]
pub struct Sensing {
    timing: Timing,
    picture: Picture,
    trail: Trail,
    film: Film,
    last_change: Millis,
    /// The search that waits for quiet has been made for this placement.
    searched: bool,
    dump_asked: bool,
    /// A dump has agreed with what is seen, since that last changed.
    dump_seen: bool,
    grace_passed: bool,
    /// Whoever is gone from a board that knows no men was told to have captured, if he can have.
    gone_told: bool,
    tentative: Option<Tentative>,
    /// The record was read for promotions that nobody saw, and has none; what would bring one in is told from here.
    promotions_seen: bool,
    /// What was told of the record in this call and not taken yet: so many of its plies, and what follows them.
    ahead: Option<(usize, Vec<Seen>)>,
    rivals: Rivals,
    /// The ply at this index as it was read before its man was supposed to have captured instead.
    superseded: Option<(usize, Seen)>,
    faults: Vec<Fault>,
    next_fault: u32,
    /// Squares whose sensor is not believed.
    unread: Vec<dead::Unread>,
    /// Presses that are not judged yet, the oldest first.
    presses: VecDeque<Press>,
    /// What stood as the other side began to answer what nothing explains.
    before_answer: Option<Box<before_answer::BeforeAnswer>>,
    /// A press that was judged while this side's move was not on the board yet; it completes the move when it comes.
    unspent: Option<Press>,
    tally: Tally,
    /// Without a clock: a position of the game so far that stands on the board again, from further back than a takeback goes.
    away: Option<usize>,
    /// The last plies may have been a takeback; it is judged once the board has rested.
    retraced: bool,
    lost: Option<fast::Lost>,
    /// The board could not be heard for a while, and nothing it has shown since agrees with the record.
    unheard: bool,
    /// Nothing can be heard of the board: it shows what it showed last, and that says nothing.
    silent: bool,
    /// Since when it is heard again.
    heard_since: Millis,
    /// When what was read in fast play is read once more.
    check_at: Option<Millis>,
    /// How often that was told since the board last changed, or somebody pressed, and when that was.
    looked_back: (u32, Millis),
    /// What was read of the last plies.
    readers: reread::Readers,
    /// The placement was not looked up since it changed: the record had to be brought up to date first.
    look_due: bool,
    /// After a command: the placement that stood when the record was changed over it.
    waiting: Option<Picture>,
    /// The number of the first change after that command.
    waiting_since: u64,
    frozen_since: Option<Millis>,
    /// From when to when it stood last: who set men up then has played nothing.
    stood: std::ops::Range<Millis>,
    /// The clock has begun to run again, and the placement was not matched since.
    resumed: bool,
    sign: Option<kings::Sign>,
    sign_told: bool,
    lift_over_fault: Option<(Millis, Square)>,
    in_sync: bool,
    observations: VecDeque<Observation>,
}

/// A reading of the board that has not stood long enough to be told.
#[derive(Debug, Clone)]
struct Tentative {
    keep: usize,
    moves: Vec<Seen>,
    /// From this ply on it is play that was seen; what is before, and not kept, is only read otherwise.
    stem: usize,
    /// Since when the board shows it.
    since: Millis,
    hold: Millis,
    /// Whether the board shows it just now.
    shown: bool,
    /// It shows no more of its last move than that the man is gone.
    supposed: bool,
    why: CorrectionReason,
}

impl Tentative {
    /// Whether it was read from where the record does not stand.
    fn is_from_rival(&self) -> bool {
        self.stem > self.keep && self.why == CorrectionReason::Reread
    }

    /// What the board shows since then, to be told once it has stood for so long.
    fn new(
        keep: usize,
        moves: Vec<Seen>,
        since: Millis,
        hold: Millis,
        why: CorrectionReason,
    ) -> Tentative {
        Tentative {
            keep,
            moves,
            stem: keep,
            since,
            hold,
            shown: true,
            supposed: false,
            why,
        }
    }
}

/// A press that is not judged yet, or not for good.
#[derive(Debug, Clone, Copy)]
struct Press {
    side: Color,
    at: Millis,
    /// It has completed his move already; what is left to judge is the rest of the board.
    spent: bool,
    /// The other side has pressed since.
    overtaken: bool,
    /// It is judged by what stood before the answer: no dump can agree with that.
    answered: bool,
    waits_for: Wait,
    /// When the board last changed as a man was found in the hand, or pushed, who may be put down yet.
    held: Option<Millis>,
    /// What stands was read with all that this press says of it.
    read: bool,
}

/// What the judgement of a press waits for. Each comes after the one before, and none is waited for twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    /// That the board is quiet.
    Quiet,
    /// Nothing on the board explained it then; a slow scan may still bring the move.
    Scan,
    /// A man is missing, and a slow board that cannot be asked has the time of one more look to show where he went.
    NextScan,
    /// The placement was not explained, and a dump was asked for; or a man in the hand has as long to come down.
    Dump,
    /// Nothing more: the dump has come.
    Nothing,
}

impl Press {
    /// Whether it was not judged yet, and there is time for what the board may still show.
    fn may_wait(&self) -> bool {
        self.waits_for == Wait::Quiet && !self.overtaken
    }

    /// The same, to be judged once that has come, if it has not yet.
    fn waiting_for(self, what: Wait) -> Press {
        let waits_for = self.waits_for.max(what);
        Press { waits_for, ..self }
    }

    fn pressed(&self) -> Pressed {
        let Press { side, at, .. } = *self;
        Pressed { side, at }
    }
}

impl Sensing {
    pub fn new(timing: Timing) -> Sensing {
        Sensing {
            timing,
            picture: Picture::default(),
            trail: Trail::default(),
            film: Film::default(),
            last_change: 0,
            searched: true,
            dump_asked: false,
            dump_seen: false,
            grace_passed: false,
            gone_told: true,
            tentative: None,
            promotions_seen: false,
            ahead: None,
            rivals: Rivals::default(),
            superseded: None,
            faults: Vec::new(),
            next_fault: 1,
            unread: Vec::new(),
            presses: VecDeque::new(),
            before_answer: None,
            unspent: None,
            tally: Tally::default(),
            away: None,
            retraced: false,
            lost: None,
            unheard: false,
            silent: false,
            heard_since: 0,
            check_at: None,
            looked_back: (0, 0),
            readers: reread::Readers::default(),
            look_due: false,
            waiting: None,
            waiting_since: 0,
            frozen_since: None,
            stood: 0..0,
            resumed: false,
            sign: None,
            sign_told: false,
            lift_over_fault: None,
            in_sync: true,
            observations: VecDeque::new(),
        }
    }

    /// Squares that now read differently, all found in one look at the board.
    pub fn handle_squares(
        &mut self,
        now: Millis,
        changes: &[(Square, Contents)],
        look: Look,
        cx: &Context<'_>,
    ) {
        if cx.following {
            self.note_answer(now, changes, cx);
        }
        let in_dump = look == Look::Dump;
        let together = in_dump || changes.len() > 1;
        let mut lifted = Bitboard::EMPTY;
        let mut changed = Bitboard::EMPTY;
        let shown_before = self
            .tentative
            .as_ref()
            .is_some_and(|tentative| tentative.shown);
        for (square, contents) in changes {
            let Some(before) = self.picture.set(*square, *contents) else {
                continue;
            };
            self.film.note(
                now,
                Scene::Square {
                    square: *square,
                    before,
                    contents: *contents,
                    in_dump,
                },
            );
            self.read_again(*square);
            changed.add(*square);
            if contents.is_empty() {
                lifted.add(*square);
            }
            self.trail.note(now, *square, *contents, together, in_dump);
        }
        if changed.is_empty() {
            return;
        }
        self.trail.end_look();
        self.note_put_right(changed, cx);
        self.last_change = now;
        self.searched = false;
        self.dump_asked = false;
        self.dump_seen = false;
        self.grace_passed = false;
        self.gone_told = false;
        self.retraced = false;
        if self.is_poor() || changed.into_iter().any(|square| CENTRE.contains(&square)) {
            self.watch_kings(now, Some(cx.line));
        }
        if !cx.following {
            return;
        }
        self.note_lift_over_fault(now, lifted, cx);
        if shown_before && self.end_waiting_at_opponents_lift(lifted, cx) {
            self.look_due = true;
        } else {
            self.look(now, cx);
            if let Some(lost) = &mut self.lost {
                lost.dump_seen |= look == Look::Dump;
                if lost.dump_seen {
                    self.look_for_missed(now, cx);
                }
            }
        }
    }

    /// The board tells of a change that leaves a square as it was read before: something was there, or gone, and nobody heard of it.
    pub fn handle_repeated(&mut self, now: Millis, square: Square) {
        self.trail.touch(now, square);
        if self.read_as_shown(square) {
            self.last_change = now;
            self.searched = false;
            self.look_due = true;
        }
        if let Some(contents) = self.picture.at(square) {
            self.film.note(
                now,
                Scene::Square {
                    square,
                    before: Some(contents),
                    contents,
                    in_dump: false,
                },
            );
        }
    }

    /// A dump came that was waited for; its changes, if any, were handed in before.
    pub fn handle_dump(&mut self, now: Millis, cx: &Context<'_>) {
        self.dump_seen = true;
        if let Some(lost) = &mut self.lost {
            lost.dump_seen = true;
        }
        if let Some(press) = self.presses.front_mut()
            && press.waits_for >= Wait::Dump
        {
            press.waits_for = Wait::Nothing;
            self.judge_press_if_due(now, cx);
        }
    }

    /// Whether a dump would settle something, even one that changes nothing.
    pub fn awaits_dump(&self, cx: &Context<'_>) -> bool {
        let press = self.presses.front();
        press.is_some_and(|press| press.waits_for == Wait::Dump)
            || (!self.dump_seen && cx.following && self.is_unexplained(cx))
    }

    /// The clock stopped: what happens on the board from now on is no play.
    pub fn handle_clock_stopped(&mut self, now: Millis) {
        self.frozen_since.get_or_insert(now);
    }

    /// The board is gone, or says nothing any more. What was pressed over what it showed last may not have been shown.
    pub fn handle_silence(&mut self) {
        self.silent = true;
        for press in &mut self.presses {
            press.overtaken = true;
        }
    }

    /// The board is heard again, and was not for a while.
    pub fn handle_heard(&mut self, now: Millis) {
        self.unheard = true;
        self.silent = false;
        self.heard_since = now;
        self.film.note(now, Scene::Heard);
    }

    /// The clock runs: the placement is matched once.
    pub fn handle_clock_running(&mut self, now: Millis, cx: &Context<'_>) {
        if let Some(since) = self.frozen_since.take()
            && cx.following
        {
            self.stood = since..now;
            self.film.cut(now);
            self.searched = false;
            self.look_due = true;
            self.resumed = true;
        }
    }

    /// The record was changed by a command or a new game: sensing stands on it from here on. With `wait` the board may differ from
    /// the record, and is left alone until it agrees or a move is made by hand.
    pub fn follow(&mut self, now: Millis, wait: bool, cx: &Context<'_>) {
        self.forget_play(FaultEnd::Superseded);
        self.tally = Tally::after(cx.line.len());
        if !cx.line.is_empty() {
            self.film.cut(now);
        }
        self.waiting = (wait && !self.picture.agrees_with(cx.line.tip().board()))
            .then(|| self.picture.clone());
        self.waiting_since = self.trail.looks();
        if cx.line.is_empty() && self.picture.agrees_with(cx.line.tip().board()) {
            self.trail.begin();
        }
        self.searched = false;
        self.grace_passed = false;
        if cx.following && !wait {
            self.last_change = self.last_change.max(now.saturating_sub(self.timing.settle));
            self.look(now, cx);
        }
        self.tell_sync();
    }

    /// A new game begins on this board: nothing of the last one counts.
    pub fn restart(&mut self, picture: Picture, now: Millis) {
        self.forget_play(FaultEnd::Ended);
        self.unread.clear();
        self.picture = picture;
        self.frozen_since = None;
        self.sign_told = false;
        // It has stood still once it has stood still in this game.
        self.last_change = now;
        self.searched = false;
        self.grace_passed = true;
        self.sign = None;
        self.watch_kings(now, None);
        self.tell_sync();
    }

    /// The game is about to end by something else than a move. What was played fast is read once more; where a board does not show
    /// whom a man took, the one who is gone will not come back: he has captured.
    pub fn handle_end(&mut self, now: Millis, cx: &Context<'_>) {
        if !cx.following || self.waiting.is_some() {
            return;
        }
        if self.check_at.take().is_some() && !self.has_changed_frozen() {
            self.check_stretch(now, cx);
        }
        if !self.is_poor() || !self.observations.is_empty() {
            return;
        }
        if let Some(tentative) = self.tentative.take()
            && tentative.shown
        {
            self.tell_tentative(tentative, cx);
            return;
        }
        if !self.tell_gone(now, cx) {
            self.tell_gone_or_rival(now, cx);
        }
    }

    /// The game has ended: only the result sign is looked for.
    pub fn finish(&mut self) {
        self.forget_play(FaultEnd::Ended);
        self.read_all_again();
        self.tell_sync();
    }

    /// Nobody has listened for a while: what stands of what was told then is told once more.
    pub fn tell_again(&mut self) {
        for fault in &self.faults {
            faults::tell(&mut self.observations, fault);
        }
        if !self.in_sync {
            self.observations
                .push_back(Observation::Sync { in_sync: false });
        }
    }

    /// What was seen of a record that is another one now, and was not told, counts no more. What is known of the board stays.
    fn forget_play(&mut self, why: FaultEnd) {
        self.close_faults(why);
        *self = Sensing {
            picture: std::mem::take(&mut self.picture),
            trail: std::mem::take(&mut self.trail),
            last_change: self.last_change,
            searched: self.searched,
            dump_asked: self.dump_asked,
            dump_seen: self.dump_seen,
            grace_passed: self.grace_passed,
            gone_told: self.gone_told,
            next_fault: self.next_fault,
            unread: std::mem::take(&mut self.unread),
            waiting_since: self.waiting_since,
            frozen_since: self.frozen_since,
            sign: self.sign,
            sign_told: self.sign_told,
            silent: self.silent,
            heard_since: self.heard_since,
            in_sync: self.in_sync,
            observations: std::mem::take(&mut self.observations),
            ..Sensing::new(self.timing)
        };
    }

    pub fn poll_observation(&mut self) -> Option<Observation> {
        self.ahead = None;
        self.observations.pop_front()
    }

    pub fn picture(&self) -> &Picture {
        &self.picture
    }

    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    pub fn is_in_sync(&self) -> bool {
        self.in_sync
    }

    pub fn last_change(&self) -> Millis {
        self.last_change
    }

    /// After a command: whether the board agrees by now, or a move was made by hand.
    fn end_of_waiting(&mut self, cx: &Context<'_>) -> bool {
        let tip = cx.line.tip();
        let differing = self.picture.differing(tip.board());
        let stands = self.waiting.as_ref() == Some(&self.picture);
        // A move that is taken back still stands until it is put back: only one whose man came since is made by hand.
        let made_by_hand = |m: &Move| {
            tip.effects(*m)
                .iter()
                .all(|(square, man)| man.is_none() || self.trail.look(square) >= self.waiting_since)
        };
        let over = differing.is_empty()
            || (!stands
                && matches!(explain::moves_to(tip, &self.picture, differing, Bitboard::EMPTY).as_slice(), [m] if made_by_hand(m)));
        if over {
            self.waiting = None;
        }
        over
    }

    fn tell_sync(&mut self) {
        let in_sync = self.faults.is_empty() && self.waiting.is_none() && self.away.is_none();
        if in_sync != self.in_sync {
            self.in_sync = in_sync;
            self.observations.push_back(Observation::Sync { in_sync });
        }
    }

    /// Whether the board has changed since the clock stopped. What it shows since before then is play.
    fn has_changed_frozen(&self) -> bool {
        self.frozen_since
            .is_some_and(|since| self.last_change > since)
    }

    /// Whether the kings show the result, or men are being set up for the next game: what else the board shows is nobody's deed.
    fn is_no_play(&self, cx: &Context<'_>) -> bool {
        self.sign.is_some() || cx.setting_up
    }

    fn quiet_at(&self) -> Millis {
        self.last_change + self.timing.settle
    }
}

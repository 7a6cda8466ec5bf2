//! The reported cases once more, played by careless and hostile hands: other colours and files, the board turned round, other
//! stops and pauses, presses by command, by the clock or not at all, dumps and restarts in between, bytes cut anywhere, updates
//! that get lost. What must be read stays the same.
//!
//! `JADOUBE_VARIANTS=N` tries N of each case instead of the usual few.

#[path = "support/case.rs"]
#[allow(dead_code)]
mod case;

use std::fmt::Write as _;

use case::{Case, Event};
use fastrand::Rng;
use jadoube::publish::Severity;
use jadoube::replay::{self, Summary};
use jadoube::session::Settings;
use jadoube::trace::{Seconds, Trace};
use jadoube::wire::dgt::{Message, PieceCode, RawSquare};
use shakmaty::{
    Bitboard, Board, CastlingMode, CastlingSide, Chess, Color, Move, Piece, Position as _, Rank,
    Role, Square, attacks,
};

#[test]
fn variations_of_the_reported_cases() {
    let count = seeds(12);
    let mut failures = Vec::new();
    let mut all = 0;
    for line in CASES
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
    {
        let reported = Case::parse(line);
        if !counts(&reported.id) {
            continue;
        }
        for seed in 0..count {
            let mut chance = Rng::with_seed(seed);
            let (how, case) = How::pick(&reported, &mut chance);
            let text = how.trace(&case, &mut chance);
            all += 1;
            if let Err(why) = case.judge(&text) {
                failures.push(format!("{} seed {seed} {how:?}: {why}", case.id));
                if std::env::var_os("JADOUBE_SHOW").is_some() {
                    failures.push(text);
                }
            }
        }
    }
    println!(
        "{} of {all} variations are read rightly",
        all - failures.len()
    );
    none_failed(&failures);
}

const CASES: &str = include_str!("cases.txt");

/// Lines of `cases.txt` that count, by group or whole name.
const GROUPS: &[&str] = &["A", "C", "D", "E", "F", "G", "H", "I", "K", "M1", "R"];

fn counts(id: &str) -> bool {
    let name = id.split('.').next().unwrap_or(id);
    GROUPS.iter().any(|group| match group.len() {
        1 => name.starts_with(group),
        _ => name == *group,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Press {
    Command,
    Clock,
    None,
}

/// How a case is varied.
#[derive(Debug, Clone, Copy)]
struct How {
    mirrored: bool,
    flipped: bool,
    rotated: bool,
    press: Press,
    /// A press after the last move where the case has none.
    pressed_at_the_end: bool,
    /// The pause after an event that the case does not time, in milliseconds: at least, at most.
    pause: (u64, u64),
    /// Stops that the case times, in percent of that.
    stops: u64,
    /// Of a hundred moments, how many see a dump, and how many a restart.
    dumps: u8,
    restarts: u8,
    /// And how many see a man adjusted, or a square misread for a moment.
    adjusted: u8,
    misread: u8,
    /// How long the clock's message takes.
    lag: u64,
    /// Bytes come in chunks that end anywhere.
    cut: bool,
    /// This update is lost, and a dump mends it at the end.
    lost: Option<usize>,
}

impl How {
    fn pick(case: &Case, chance: &mut Rng) -> (How, Case) {
        let mut how = How {
            mirrored: chance.bool(),
            flipped: chance.bool() && can_be_flipped(case),
            rotated: chance.u8(..3) == 0,
            press: [Press::Command, Press::Clock, Press::None][chance.usize(..3)],
            pressed_at_the_end: false,
            pause: [
                (20, 60),
                (20, 1_000),
                (120, 120),
                (400, 1_000),
                (1_000, 2_500),
            ][chance.usize(..5)],
            stops: [100, 100, 50, 150][chance.usize(..4)],
            dumps: if chance.u8(..4) == 0 { 30 } else { 0 },
            restarts: if chance.u8(..3) == 0 { 25 } else { 0 },
            adjusted: if chance.u8(..4) == 0 { 25 } else { 0 },
            misread: if chance.u8(..4) == 0 { 25 } else { 0 },
            lag: [0, 0, 300, 900][chance.usize(..4)],
            cut: chance.bool(),
            lost: None,
        };
        let has_press = case.events.contains(&Event::Press);
        if has_press && case.marks.iter().any(|mark| mark.starts_with("!illegal")) {
            // With the clock on the cable nothing but the press or the reply makes it loud.
            how.press = [Press::Command, Press::Clock][chance.usize(..2)];
        }
        how.pressed_at_the_end =
            !has_press && !case.open && !case.moves.is_empty() && chance.bool();
        if can_lose(case) && chance.u8(..4) == 0 {
            let squares = case
                .events
                .iter()
                .filter(|event| matches!(event, Event::Square(..)));
            how.lost = Some(chance.usize(..squares.count()));
        }
        let mut varied = if how.mirrored {
            case.mirrored()
        } else {
            case.clone()
        };
        if how.flipped {
            varied = flipped(&varied);
        }
        (how, varied)
    }

    fn trace(&self, case: &Case, chance: &mut Rng) -> String {
        let start: shakmaty::fen::Fen = case.fen.parse().expect("fen");
        let mut tape = Tape {
            text: format!("# jadoube-trace: 1\n# board: dgt\n# fen: {}\n", case.fen),
            board: start.as_setup().board.clone(),
            now: 0,
            rotated: self.rotated,
            pending: Vec::new(),
            cut: self.cut,
        };
        let mut turn = start.as_setup().turn;
        tape.dump(chance);
        let presses = case.events.contains(&Event::Press) || self.pressed_at_the_end;
        if self.press == Press::Clock && presses {
            tape.clock(turn, false, chance);
            tape.now += 1_000;
            tape.clock(turn, true, chance);
        }
        tape.now += 1_000 + chance.u64(..2_000);
        let mut scanning = false;
        let mut number = 0;
        for (index, event) in case.events.iter().enumerate() {
            match *event {
                Event::Square(square, man) => {
                    let is_lost = self.lost == Some(number);
                    number += 1;
                    tape.update(square, man, is_lost, chance);
                    let timed = matches!(case.events.get(index + 1), Some(Event::Wait(_)));
                    if !scanning && !timed {
                        tape.now += chance.u64(self.pause.0..=self.pause.1);
                    }
                    if !scanning {
                        self.disturb(&mut tape, chance);
                    }
                }
                Event::ScanBegin => scanning = true,
                Event::ScanEnd => {
                    scanning = false;
                    tape.now += 120;
                }
                Event::Wait(ms) => tape.now += ms * self.stops / 100,
                Event::Press => {
                    self.press(&mut tape, turn, chance);
                    turn = !turn;
                }
            }
        }
        if self.lost.is_some() {
            tape.now += 600;
            tape.dump(chance);
        }
        if self.pressed_at_the_end {
            let mover = if case.moves.len() % 2 == 1 {
                turn
            } else {
                !turn
            };
            tape.now += 200;
            self.press(&mut tape, mover, chance);
        }
        tape.end()
    }

    fn press(&self, tape: &mut Tape, side: Color, chance: &mut Rng) {
        if self.lost.is_some() {
            // A live board is read anew before a press is judged; a trace that says nothing has to hold that dump.
            tape.now += 300;
            tape.dump(chance);
        }
        match self.press {
            Press::Clock => {
                tape.now += self.lag;
                tape.clock(!side, true, chance);
            }
            Press::Command => {
                let side = side.fold_wb("white", "black");
                tape.line(&format!(
                    "! {{\"verb\":\"press\",\"args\":{{\"side\":\"{side}\"}}}}"
                ));
            }
            Press::None => {}
        }
        tape.now += chance.u64(self.pause.0..=self.pause.1).max(120);
    }

    fn disturb(&self, tape: &mut Tape, chance: &mut Rng) {
        if chance.u8(..100) < self.restarts {
            tape.line("r");
        }
        if self.lost.is_none() && chance.u8(..100) < self.adjusted {
            tape.adjust(chance);
        }
        if chance.u8(..100) < self.misread {
            tape.misread(chance);
        }
        // A board that lost an update would show it in a dump.
        if self.lost.is_none() && chance.u8(..100) < self.dumps {
            tape.dump(chance);
        }
    }
}

/// What goes over the cable.
struct Tape {
    text: String,
    board: Board,
    now: u64,
    rotated: bool,
    pending: Vec<u8>,
    cut: bool,
}

impl Tape {
    fn line(&mut self, what: &str) {
        let _ = writeln!(self.text, "{} {what}", Seconds(self.now));
    }

    fn bytes(&mut self, bytes: Vec<u8>, chance: &mut Rng) {
        self.pending.extend(bytes);
        while !self.pending.is_empty() {
            let length = match self.cut {
                true => chance.usize(1..=self.pending.len()),
                false => self.pending.len(),
            };
            let chunk: Vec<String> = self
                .pending
                .drain(..length)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            self.line(&format!("< {}", chunk.join(" ")));
        }
    }

    fn raw(&self, square: Square) -> RawSquare {
        let index = square.to_u32() as u8 ^ 56;
        RawSquare::new(if self.rotated { 63 - index } else { index }).expect("a square")
    }

    fn dump(&mut self, chance: &mut Rng) {
        let mut codes = [PieceCode::Empty; 64];
        for (square, man) in self.board.iter() {
            codes[usize::from(self.raw(square).index())] = code(Some(man.char()));
        }
        self.bytes(Message::BoardDump(Box::new(codes)).encode(), chance);
    }

    fn update(&mut self, square: Square, man: Option<char>, is_lost: bool, chance: &mut Rng) {
        match man.and_then(Piece::from_char) {
            Some(man) => self.board.set_piece_at(square, man),
            None => {
                self.board.discard_piece_at(square);
            }
        }
        if !is_lost {
            let message = Message::FieldUpdate {
                square: self.raw(square),
                piece: code(man),
            };
            self.bytes(message.encode(), chance);
        }
    }

    /// Somebody lifts a man and puts it back straighter.
    fn adjust(&mut self, chance: &mut Rng) {
        let men: Vec<Square> = self.board.occupied().into_iter().collect();
        let Some(square) = chance.choice(men) else {
            return;
        };
        let man = self.board.piece_at(square).map(Piece::char);
        self.now += 30;
        self.update(square, None, false, chance);
        self.now += chance.u64(50..400);
        self.update(square, man, false, chance);
        self.now += 300;
    }

    /// A square reads another man for less than the settle time.
    fn misread(&mut self, chance: &mut Rng) {
        let square = Square::new(chance.u32(..64));
        let man = self.board.piece_at(square).map(Piece::char);
        let wrong = ['P', 'n', 'Q', 'r'][chance.usize(..4)];
        self.now += 10;
        self.update(square, Some(wrong), false, chance);
        self.now += chance.u64(10..120);
        self.update(square, man, false, chance);
    }

    /// An hour each. White's wing is the left one on a board that stands right (protocol sheet 3.5).
    fn clock(&mut self, turn: Color, running: bool, chance: &mut Rng) {
        let right_up = (turn == Color::Black) != self.rotated;
        let status = if right_up { 0x12 } else { 0x08 } | u8::from(running);
        let bytes = vec![0x8d, 0x00, 0x0a, 0x01, 0x00, 0x00, 0x01, 0x00, 0x00, status];
        self.bytes(bytes, chance);
    }

    fn end(self) -> String {
        self.text
    }
}

fn code(letter: Option<char>) -> PieceCode {
    letter.map_or(PieceCode::Empty, |letter| {
        PieceCode::from_letter(letter).expect("a man")
    })
}

/// Whether the case stays what it is with the a-file for the h-file.
fn can_be_flipped(case: &Case) -> bool {
    let rights = case.fen.split(' ').nth(2) == Some("-");
    rights && !case.moves.iter().any(|san| san.starts_with('O'))
        // Castling that is none has no other wing.
        && case.id != "C7.1"
}

fn flipped(case: &Case) -> Case {
    let fields: Vec<&str> = case.fen.split(' ').collect();
    let placement: Vec<String> = fields[0]
        .split('/')
        .map(|rank| rank.chars().rev().collect())
        .collect();
    let file = |c: char| match c {
        'a'..='h' => (b'a' + b'h' - c as u8) as char,
        other => other,
    };
    let text = |text: &String| text.chars().map(file).collect::<String>();
    let ep: String = fields[3].chars().map(file).collect();
    Case {
        fen: format!(
            "{} {} - {ep} {} {}",
            placement.join("/"),
            fields[1],
            fields[4],
            fields[5]
        ),
        events: case
            .events
            .iter()
            .map(|event| match *event {
                Event::Square(square, man) => Event::Square(square.flip_horizontal(), man),
                other => other,
            })
            .collect(),
        moves: case.moves.iter().map(text).collect(),
        marks: case
            .marks
            .iter()
            .map(|mark| match mark.split_once('(') {
                Some((kind, squares)) if !squares.starts_with("wrong") => {
                    format!("{kind}({}", text(&squares.to_owned()))
                }
                _ => mark.clone(),
            })
            .collect(),
        ..case.clone()
    }
}

/// Whether a lost update leaves the case what it is: nothing is retracted in it, and no order of squares decides.
fn can_lose(case: &Case) -> bool {
    let name = case.id.split('.').next().unwrap_or_default();
    case.marks.is_empty()
        && !case.moves.is_empty()
        && !case.events.contains(&Event::ScanBegin)
        && ["A", "C", "D", "E", "F", "I", "R"]
            .iter()
            .any(|group| name.starts_with(group))
}

/// Somewhere in a game a man goes where it cannot and the clock is pressed. That is told at once and loudly, nothing enters the
/// record, and when the man is back and a legal move is played the game goes on.
#[test]
fn irregular_moves_anywhere() {
    let count = seeds(100);
    let mut failures = Vec::new();
    let mut tried = 0;
    for seed in 0..count {
        let mut chance = Rng::with_seed(1_000 + seed);
        let press = [Press::Command, Press::Clock][chance.usize(..2)];
        let mut played = Played::new(&mut chance, press);
        let plies = 2 + chance.usize(..40);
        if !played.some_plies(plies, &mut chance) {
            continue;
        }
        let Some((from, to, kind)) = irregular(&played.position, &mut chance) else {
            continue;
        };
        let man = played.position.board().piece_at(from).expect("a man");
        let victim = played.position.board().piece_at(to);
        played.tape.now += chance.u64(800..3_000);
        if victim.is_some() && chance.bool() {
            played.tape.update(to, None, false, &mut chance);
            played.tape.now += chance.u64(50..800);
        }
        played.tape.update(from, None, false, &mut chance);
        played.tape.now += chance.u64(50..800);
        played.tape.update(to, Some(man.char()), false, &mut chance);
        played.tape.now += chance.u64(100..2_500);
        let pressed = played.tape.now;
        played.press(&mut chance);
        played.tape.now += chance.u64(2_500..20_000);
        // He takes it back: with the clock stopped and set by hand, or at once.
        played.unpress(&mut chance);
        played
            .tape
            .update(to, victim.map(Piece::char), false, &mut chance);
        played.tape.now += chance.u64(100..900);
        played
            .tape
            .update(from, Some(man.char()), false, &mut chance);
        let restored = played.tape.now;
        played.tape.now += 3_000;
        played.resume(&mut chance);
        if !played.some_plies(1, &mut chance) {
            continue;
        }
        played.tape.now += 1_500;
        tried += 1;
        let label = format!("seed {seed} {press:?} {man:?} {from}{to} {kind}");
        if let Err(why) = played.judge(Some((kind, pressed, restored))) {
            failures.push(format!("{label}: {why}\n  {}", played.position_text()));
            if std::env::var_os("JADOUBE_SHOW").is_some() {
                failures.push(played.tape.text.clone());
            }
        }
    }
    println!("{tried} irregular moves");
    assert!(tried > count / 2, "only {tried} of {count} came to a try");
    none_failed(&failures);
}

/// A man too many stands somewhere, or one has been knocked off, while play goes on on other squares: every ply is read as it is
/// played, that square is told and no other, and once it is put right nothing is left.
#[test]
fn play_beside_a_standing_fault() {
    let count = seeds(80);
    let mut failures = Vec::new();
    let mut tried = 0;
    for seed in 0..count {
        let mut chance = Rng::with_seed(7_000 + seed);
        let press = [Press::Command, Press::Clock][chance.usize(..2)];
        let mut played = Played::new(&mut chance, press);
        if !played.some_plies(2 + chance.usize(..20), &mut chance) {
            continue;
        }
        let board = played.position.board().clone();
        let square = Square::new(chance.u32(..64));
        let man = board.piece_at(square);
        let put = match man {
            Some(man) if man.role == Role::King => continue,
            Some(_) => None,
            None => {
                let roles = [
                    Role::Pawn,
                    Role::Knight,
                    Role::Bishop,
                    Role::Rook,
                    Role::Queen,
                ];
                Some(roles[chance.usize(..5)].of(Color::from_white(chance.bool())))
            }
        };
        // A man that another of his kind could have become is told apart by time alone.
        let reached = |man: Piece| match man.role {
            Role::Pawn => Bitboard::from(square.file()),
            _ => attacks::attacks(square, man, board.occupied()),
        };
        if put.is_some_and(|man| (reached(man) & board.by_piece(man)).any()) {
            continue;
        }
        // It happens between two moves, or while one is made.
        if chance.bool() {
            played.tape.now += chance.u64(50..2_000);
            played
                .tape
                .update(square, put.map(Piece::char), false, &mut chance);
            played.tape.now += chance.u64(50..2_000);
        } else {
            played.accident = Some((square, put));
        }
        let plies = 1 + chance.usize(..6);
        if !played.some_plies_elsewhere(plies, Some(square), &mut chance) {
            continue;
        }
        let at_once = played.tape.now;
        played
            .tape
            .update(square, man.map(Piece::char), false, &mut chance);
        played.tape.now += chance.u64(1_200..3_000);
        if !played.some_plies(2, &mut chance) {
            continue;
        }
        played.tape.now += 1_500;
        tried += 1;
        if let Err(why) = played.judge_beside(square, at_once) {
            failures.push(format!(
                "seed {seed} {press:?} {man:?} {put:?} {square} over {plies}: {why}\n  {}",
                played.position_text()
            ));
            if std::env::var_os("JADOUBE_SHOW").is_some() {
                failures.push(played.tape.text.clone());
            }
        }
    }
    println!("{tried} standing faults");
    assert!(tried > count / 2, "only {tried} of {count} came to a try");
    none_failed(&failures);
}

fn none_failed(failures: &[String]) {
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Plies are taken back, man by man in any order, while the clock stands or runs, and the game goes on from there: the record has what
/// was played, and nobody is told of men on their way back.
#[test]
fn plies_taken_back_in_any_order() {
    let count = seeds(80);
    let mut failures = Vec::new();
    let mut tried = 0;
    for seed in 0..count {
        let mut chance = Rng::with_seed(5_000 + seed);
        let press = [Press::Command, Press::Clock, Press::None][chance.usize(..3)];
        let mut played = Played::new(&mut chance, press);
        // Where nobody presses, men that go back one after the other make moves.
        let depth = match press {
            Press::None => 1,
            _ => 1 + chance.usize(..4),
        };
        // The array, from further than two plies, is the next game's.
        let plies = usize::from(depth > 2) + chance.usize(..16);
        if !played.some_plies(plies, &mut chance) {
            continue;
        }
        let target = played.position.clone();
        let mut later = Vec::new();
        while later.len() < depth && played.some_plies(1, &mut chance) {
            later.push(played.position.clone());
        }
        // Another move from a later position may look the same, and is likelier.
        let leads_there = |from: &Chess| {
            let moves = from.legal_moves();
            let to = |m: &Move| from.clone().play(*m).expect("legal");
            moves.iter().any(|m| to(m).board() == target.board())
        };
        if later.len() < depth || later.iter().any(leads_there) {
            continue;
        }
        let stopped = press == Press::Clock && chance.bool();
        if stopped {
            let turn = played.position.turn();
            played.tape.clock(turn, false, &mut chance);
            played.tape.now += 1_500;
        }
        played.put_back(target.board(), &mut chance);
        played.tape.now += 2_500;
        if press == Press::Clock {
            played.tape.clock(target.turn(), true, &mut chance);
            played.tape.now += 1_500;
        }
        played.uci.truncate(plies);
        played.position = target;
        if !played.some_plies(2, &mut chance) {
            continue;
        }
        played.tape.now += 1_500;
        tried += 1;
        if let Err(why) = played.judge(None) {
            let clock = if stopped { "stands" } else { "runs" };
            failures.push(format!(
                "seed {seed} {press:?} {depth} of {}, the clock {clock}: {why}\n  {}",
                plies + depth,
                played.position_text()
            ));
            if std::env::var_os("JADOUBE_SHOW").is_some() {
                failures.push(played.tape.text.clone());
            }
        }
    }
    println!("{tried} takebacks");
    assert!(tried > count / 2, "only {tried} of {count} came to a try");
    none_failed(&failures);
}

/// Whole games by random moves and random hands, without anything irregular: every ply, and no alert.
#[test]
fn random_games_by_random_hands() {
    let count = seeds(15);
    let mut failures = Vec::new();
    for seed in 0..count {
        let mut chance = Rng::with_seed(9_000 + seed);
        let press = [Press::Command, Press::Clock, Press::None][chance.usize(..3)];
        let mut played = Played::new(&mut chance, press);
        played.some_plies(80, &mut chance);
        played.tape.now += 1_500;
        if let Err(why) = played.judge(None) {
            failures.push(format!(
                "seed {seed} {press:?} rotated {}: {why}",
                played.tape.rotated
            ));
            if std::env::var_os("JADOUBE_SHOW").is_some() {
                failures.push(played.tape.text.clone());
            }
        }
    }
    none_failed(&failures);
}

fn seeds(usual: u64) -> u64 {
    std::env::var("JADOUBE_VARIANTS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

/// A game on the way.
struct Played {
    tape: Tape,
    position: Chess,
    uci: Vec<String>,
    press: Press,
    /// The longest pause between two squares of a move.
    pause: u64,
    /// What happens to a square in the middle of the next move.
    accident: Option<(Square, Option<Piece>)>,
}

impl Played {
    fn new(chance: &mut Rng, press: Press) -> Played {
        let position = Chess::default();
        let mut tape = Tape {
            text: "# jadoube-trace: 1\n# board: dgt\n".into(),
            board: position.board().clone(),
            now: 0,
            rotated: chance.u8(..3) == 0,
            pending: Vec::new(),
            cut: false,
        };
        tape.dump(chance);
        if press == Press::Clock {
            tape.clock(Color::White, false, chance);
            tape.now += 1_500;
            tape.clock(Color::White, true, chance);
        }
        tape.now += 3_000;
        Played {
            tape,
            position,
            uci: Vec::new(),
            press,
            pause: [60, 200, 600][chance.usize(..3)],
            accident: None,
        }
    }

    /// Plays on; false if the game ended before.
    fn some_plies(&mut self, plies: usize, chance: &mut Rng) -> bool {
        self.some_plies_elsewhere(plies, None, chance)
    }

    /// The same by moves that have nothing to do with a square.
    fn some_plies_elsewhere(
        &mut self,
        plies: usize,
        square: Option<Square>,
        chance: &mut Rng,
    ) -> bool {
        for _ in 0..plies {
            let concerns = |m: &Move| {
                let path = m.from().map(|from| attacks::between(from, m.to()));
                square.is_some_and(|square| {
                    m.from() == Some(square)
                        || m.to() == square
                        || m.is_castle()
                        || m.is_en_passant()
                        || path.is_some_and(|path| path.contains(square))
                })
            };
            let moves = self.position.legal_moves();
            let moves: Vec<Move> = moves.into_iter().filter(|m| !concerns(m)).collect();
            let Some(m) = chance.choice(moves) else {
                return false;
            };
            let after = self.position.clone().play(m).expect("legal");
            // A game that ends here would end what is tried.
            if after.legal_moves().is_empty() {
                return false;
            }
            self.make(m, &after, chance);
            self.uci.push(m.to_uci(CastlingMode::Standard).to_string());
            self.tape.now += chance.u64(100..900);
            self.press(chance);
            self.position = after;
            self.tape.now += chance.u64(600..4_000);
        }
        true
    }

    /// Two hands put the men back to where they stood, in any order.
    fn put_back(&mut self, target: &Board, chance: &mut Rng) {
        let mut in_hand = 0;
        loop {
            let board = &self.tape.board;
            let lacks = |man: Piece| board.by_piece(man).count() < target.by_piece(man).count();
            let (mut lifts, mut places) = (Vec::new(), Vec::new());
            for square in Square::ALL {
                match (board.piece_at(square), target.piece_at(square)) {
                    (now, then) if now == then => {}
                    (Some(_), _) => lifts.push((square, None)),
                    (None, man) => {
                        places.extend(man.filter(|man| lacks(*man)).map(|man| (square, Some(man))))
                    }
                }
            }
            let may_lift = places.is_empty() || in_hand < 2;
            let steps = if may_lift {
                [lifts, places].concat()
            } else {
                places
            };
            let Some((square, man)) = chance.choice(steps) else {
                return;
            };
            in_hand = if man.is_none() {
                in_hand + 1
            } else {
                0.max(in_hand - 1)
            };
            self.tape
                .update(square, man.map(Piece::char), false, chance);
            self.tape.now += chance.u64(150..900);
        }
    }

    /// Makes a move as a hand might.
    fn make(&mut self, m: Move, after: &Chess, chance: &mut Rng) {
        let before = self.position.board().clone();
        let (from, to) = (m.from().expect("no drop"), m.to());
        let mut steps: Vec<(Square, Option<Piece>)> = Vec::new();
        match m {
            Move::Castle { king, rook } => {
                let side = CastlingSide::from_king_side(king < rook);
                let us = self.position.turn();
                let kings = [(king, None), (side.king_to(us), Some(Role::King.of(us)))];
                let rooks = [(rook, None), (side.rook_to(us), Some(Role::Rook.of(us)))];
                let both = [(king, None), (rook, None), kings[1], rooks[1]];
                match chance.u8(..4) {
                    0 => steps.extend(both),
                    1 => steps.extend([kings[0], rooks[0], rooks[1], kings[1]]),
                    _ => steps.extend(kings.into_iter().chain(rooks)),
                }
            }
            Move::EnPassant { .. } => {
                let victim = Square::from_coords(to.file(), from.rank());
                let man = before.piece_at(from);
                match chance.u8(..3) {
                    0 => steps.extend([(victim, None), (from, None), (to, man)]),
                    1 => steps.extend([(from, None), (victim, None), (to, man)]),
                    _ => steps.extend([(from, None), (to, man), (victim, None)]),
                }
            }
            _ => {
                let man = before.piece_at(from);
                let placed = after.board().piece_at(to);
                let mut path: Vec<(Square, Option<Piece>)> = Vec::new();
                let between: Vec<Square> = attacks::between(from, to).into_iter().collect();
                if !between.is_empty() && chance.u8(..4) == 0 {
                    let over = between[chance.usize(..between.len())];
                    path.extend([(over, man), (over, None)]);
                }
                let captures = before.piece_at(to).is_some();
                if captures && chance.bool() {
                    match chance.bool() {
                        true => {
                            steps.push((to, None));
                            steps.push((from, None));
                        }
                        false => {
                            steps.push((from, None));
                            steps.push((to, None));
                        }
                    }
                } else {
                    steps.push((from, None));
                }
                steps.extend(path);
                if placed != man && chance.bool() {
                    // The pawn goes first, and then the piece comes.
                    steps.extend([(to, man), (to, None)]);
                }
                steps.push((to, placed));
            }
        }
        for (square, man) in steps {
            self.tape
                .update(square, man.map(Piece::char), false, chance);
            self.tape.now += chance.u64(20..=self.pause);
            if let Some((square, man)) = self.accident.take() {
                self.tape
                    .update(square, man.map(Piece::char), false, chance);
                self.tape.now += chance.u64(20..=self.pause);
            }
        }
    }

    fn press(&mut self, chance: &mut Rng) {
        let side = self.position.turn();
        match self.press {
            Press::Clock => self.tape.clock(!side, true, chance),
            Press::Command => {
                let side = side.fold_wb("white", "black");
                self.tape.line(&format!(
                    "! {{\"verb\":\"press\",\"args\":{{\"side\":\"{side}\"}}}}"
                ));
            }
            Press::None => {}
        }
    }

    /// The arbiter stops the clock, and gives the move back.
    fn unpress(&mut self, chance: &mut Rng) {
        if self.press == Press::Clock {
            let side = self.position.turn();
            self.tape.clock(!side, false, chance);
            self.tape.now += 2_000;
            self.tape.clock(side, false, chance);
            self.tape.now += 2_000;
        }
    }

    fn resume(&mut self, chance: &mut Rng) {
        if self.press == Press::Clock {
            self.tape.clock(self.position.turn(), true, chance);
            self.tape.now += 2_000;
        }
    }

    fn position_text(&self) -> String {
        self.uci.join(" ")
    }

    /// The record, and nothing told but what differs on this square, until it is put right.
    fn judge_beside(&self, square: Square, restored: u64) -> Result<(), String> {
        let summary = self.summary()?;
        self.judge_record(&summary)?;
        for alert in &summary.alerts {
            let kind = word(&alert.alert.kind);
            let told = alert.alert.squares == [square.to_string()];
            if kind != "displaced" || !told || alert.closed_ms != Some(restored) {
                return Err(format!(
                    "{kind} until {:?}: {}",
                    alert.closed_ms, alert.alert.text
                ));
            }
        }
        Ok(())
    }

    fn summary(&self) -> Result<Summary, String> {
        let trace = Trace::parse(&self.tape.text).map_err(|error| error.to_string())?;
        let settings =
            replay::settings(&trace, Settings::new("1")).map_err(|error| error.to_string())?;
        Ok(replay::summarise(
            "played",
            &replay::replay(&trace, settings),
        ))
    }

    fn judge(&self, told: Option<(&str, u64, u64)>) -> Result<(), String> {
        let summary = self.summary()?;
        self.judge_record(&summary)?;
        let mut right = false;
        for alert in &summary.alerts {
            let kind = word(&alert.alert.kind);
            let loud = alert.alert.severity != Severity::Info;
            if let Some((expected, pressed, restored)) = told
                && kind == expected
                && alert.alert.severity == Severity::Urgent
            {
                if alert.raised_ms > pressed + 2_000 || alert.closed_ms != Some(restored) {
                    return Err(format!(
                        "{kind} from {} to {:?}, not {pressed} to {restored}",
                        alert.raised_ms, alert.closed_ms
                    ));
                }
                right = true;
            } else if loud {
                return Err(format!("alert {kind}: {}", alert.alert.text));
            }
        }
        match told {
            Some((kind, ..)) if !right => Err(format!("no {kind} was told")),
            _ => Ok(()),
        }
    }

    fn judge_record(&self, summary: &Summary) -> Result<(), String> {
        let game = summary.games.last().ok_or("no game")?;
        if summary.games.len() != 1 {
            return Err(format!("{} games", summary.games.len()));
        }
        let read: Vec<&str> = game.moves.iter().map(|ply| ply.uci.as_str()).collect();
        if read != self.uci {
            let same = read
                .iter()
                .zip(&self.uci)
                .take_while(|(a, b)| a == b)
                .count();
            return Err(format!(
                "from ply {} {:?}, not {:?}",
                same + 1,
                &read[same..read.len().min(same + 3)],
                &self.uci[same..self.uci.len().min(same + 3)]
            ));
        }
        if let Some(doubt) = game.moves.iter().find_map(|ply| ply.doubt) {
            return Err(format!("doubt {doubt:?}"));
        }
        if !game.in_sync {
            return Err("out of sync at the end".into());
        }
        Ok(())
    }
}

/// A man of the side to move, and a square that it cannot go to.
fn irregular(position: &Chess, chance: &mut Rng) -> Option<(Square, Square, &'static str)> {
    let us = position.turn();
    let board = position.board();
    let legal = position.legal_moves();
    let mut found = Vec::new();
    for from in board.by_color(us) {
        let man = board.piece_at(from)?;
        for to in !board.by_color(us) & !board.kings() {
            let plays = legal.iter().any(|m| m.from() == Some(from) && m.to() == to);
            // Half a castling and a pawn that waits for its queen are their own kinds.
            let castles = man.role == Role::King && from.distance(to) > 1;
            let last_rank =
                man.role == Role::Pawn && (to.rank() == Rank::First || to.rank() == Rank::Eighth);
            if !plays && !castles && !last_rank {
                found.push((from, to));
            }
        }
    }
    chance
        .choice(found)
        .map(|(from, to)| (from, to, "illegal_move"))
}

fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

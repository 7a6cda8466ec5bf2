//! The PGN that we write is read without a complaint, and back to the same moves, clocks and tags, by python-chess (whose parser
//! many servers and pollers use) and by pgn-extract (whose lineage is the stricter reading of the standard).
//!
//! A tool that is not there is said to be skipped; `tests/run` installs both, and insists.

#[path = "support/skip.rs"]
mod skip;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;
use jadoube::command::Player;
use jadoube::game::pgn::{self, PgnTags, Scope};
use jadoube::game::snapshot::{Move, Snapshot};
use jadoube::game::{CompletedBy, Doubt, MoveState, Phase, ResultState};
use jadoube::laws::Side;
use jadoube::sim;
use pgn_reader::{RawComment, RawTag, Reader, SanPlus, Skip, Visitor};
use serde_json::{Value, json};
use shakmaty::fen::Fen;
use shakmaty::uci::UciMove;
use shakmaty::{
    Bitboard, Board, CastlingMode, Chess, Color, EnPassantMode, FromSetup, KnownOutcome, Outcome,
    Position, Rank, Role, Setup,
};

#[test]
fn random_games() {
    let mut rng = Rng::with_seed(1);
    let mut samples = Vec::new();
    for round in 0..150 {
        let plies = rng.usize(0..240);
        let mut line = Line::new(Chess::new(), CastlingMode::Standard);
        line.play_on(&mut rng, plies);
        let mut sample = Sample::new(&[line], scope(round));
        sample.end(&mut rng);
        sample.run_clocks(&mut rng);
        samples.push(sample);
    }
    let written = check("random games", &samples);
    for rare in [
        "=Q", "=N", "=R", "=B", "O-O ", "O-O-O", "#", "1/2-1/2", "*\n",
    ] {
        assert!(written.contains(rare), "no {rare} in the random games");
    }
}

#[test]
fn games_of_chess960() {
    let mut rng = Rng::with_seed(2);
    let mut samples = Vec::new();
    for number in (0..960).step_by(11) {
        let setup = Setup {
            board: Board::chess960(number),
            ..Setup::initial()
        };
        let rooks = setup.board.rooks();
        let setup = Setup {
            castling_rights: rooks & (Bitboard::from(Rank::First) | Rank::Eighth),
            ..setup
        };
        let start =
            Chess::from_setup(setup, CastlingMode::Chess960).expect("a start array is legal");
        let mut line = Line::new(start, CastlingMode::Chess960);
        line.play_on(&mut rng, 80);
        let mut sample = Sample::new(&[line], scope(number as usize));
        sample.end(&mut rng);
        sample.run_clocks(&mut rng);
        samples.push(sample);
    }
    let written = check("games of Chess960", &samples);
    assert!(written.contains("O-O ") && written.contains("O-O-O"));
}

#[test]
fn games_from_a_position() {
    let mut rng = Rng::with_seed(3);
    let mut samples = Vec::new();
    for round in 0..60 {
        // The position in which another game stopped, White and Black to move in turn.
        let mut before = Line::new(Chess::new(), CastlingMode::Standard);
        before.play_on(&mut rng, 20 + round);
        let mut line = Line::new(before.position, CastlingMode::Standard);
        line.play_on(&mut rng, 30);
        let mut sample = Sample::new(&[line], scope(round));
        sample.run_clocks(&mut rng);
        samples.push(sample);
    }
    check("games from a position", &samples);
}

#[test]
fn games_divided_by_an_illegal_move_that_stands() {
    let mut rng = Rng::with_seed(4);
    let mut samples = Vec::new();
    while samples.len() < 40 {
        let mut first = Line::new(Chess::new(), CastlingMode::Standard);
        let plies = rng.usize(1..40);
        first.play_on(&mut rng, plies);
        let Some((illegal, after)) = displace(&first.position, &mut rng) else {
            continue;
        };
        let mut second = Line::new(after, CastlingMode::Standard);
        second.illegal = Some(illegal);
        second.play_on(&mut rng, 12);
        let mut sample = Sample::new(&[first, second], scope(samples.len()));
        sample.end(&mut rng);
        sample.run_clocks(&mut rng);
        samples.push(sample);
    }
    check("games divided by an illegal move", &samples);
}

/// After the illegal move White stays in check, a position that only the record can go on from.
#[test]
fn a_king_left_in_check() {
    let fen = "r1bqk2r/pppp1ppp/2n2n2/4p3/1bB1P3/3P1N2/PPP2PPP/RNBQK2R w KQkq - 1 5";
    let first = Line::new(position(fen), CastlingMode::Standard);
    let mut sample = Sample::new(&[first], Scope::Archive);
    sample.game.moves = [
        ("f3d4", "?"),
        ("e8g8", "O-O"),
        ("c2c3", "c3"),
        ("b4e7", "Be7"),
    ]
    .iter()
    .zip(1..)
    .map(|((uci, san), ply)| final_move(ply, uci, san))
    .collect();
    sample.game.moves[0].doubt = Some(Doubt::IllegalAccepted);
    sample.parts = vec![Part {
        moves: vec!["e8g8".into(), "c2c3".into(), "b4e7".into()],
        fen: "r1bq1rk1/ppppbppp/2n2n2/4p3/2BNP3/2PP4/PP3PPP/RNBQK2R w KQ - 1 7".into(),
        first: 1,
    }];
    check("a king left in check", &[sample]);
}

#[test]
fn values_that_need_care() {
    let mut samples = Vec::new();
    for (given, read) in [
        ("Čapek, Věra", "Čapek, Věra"),
        ("O\"Neill \\ Co", "O'Neill / Co"),
        ("Two\r\nLines\u{7f}", "Two Lines"),
        ("[Result \"1-0\"]", "[Result '1-0']"),
        ("{ not a comment", "{ not a comment"),
        ("% ; not either", "% ; not either"),
        ("李雷", "李雷"),
        ("\u{feff}Mark\u{202e}", "Mark"),
        ("", "NN Board 12"),
        ("?", "NN Board 12"),
        ("Unknown", "NN Board 12"),
        (&"x y".repeat(100), "x y".repeat(100)[..140].trim_end()),
    ] {
        let line = Line::new(Chess::new(), CastlingMode::Standard);
        let mut sample = Sample::new(&[line], Scope::Live);
        sample.game.white.name = Some(given.into());
        sample.tags.event = Some(given.into());
        sample.game.termination = Some(given.into());
        sample.game.phase = Phase::Ended;
        sample.expect("White", read);
        sample.expect("PlyCount", "0");
        samples.push(sample);
    }
    for (given, read, mode) in [
        ("40/5400+30:1800+30", "40/5400+30:1800+30", None),
        ("300+3", "300+3", None),
        ("5400", "5400", None),
        ("?", "?", None),
        ("-", "-", None),
        ("5400d5", "5400", Some("delay 5")),
        ("40/7200b10:3600", "40/7200:3600", Some("bronstein 10")),
        ("60 mins", "?", None),
    ] {
        let line = Line::new(Chess::new(), CastlingMode::Standard);
        let mut sample = Sample::new(&[line], Scope::Live);
        sample.game.time_control = Some(given.into());
        sample.game.white_clock_ms = Some(5_400_999);
        sample.expect("TimeControl", read);
        sample.expect("WhiteClock", "1:30:00");
        if let Some(mode) = mode {
            sample.expect("ClockMode", mode);
        }
        samples.push(sample);
    }
    check("values that need care", &samples);
}

#[test]
fn games_that_were_played() {
    let Some(files) = corpus() else { return };
    for path in files {
        let mut samples = Vec::new();
        let text = fs::read(&path).expect("a file of the corpus can be read");
        let mut reader = Reader::new(&text[..]);
        while let Some(played) = reader
            .read_game(&mut Recorder)
            .expect("a slice can be read")
        {
            // Reading all of the larger files takes a minute and finds nothing more.
            if samples.len() == 60 {
                break;
            }
            samples.push(played.sample(scope(samples.len())));
        }
        check(&path.display().to_string(), &samples);
    }
}

/// What virtual hands play is what another reader finds in the file.
#[test]
fn games_to_play_are_read_alike() {
    let Some(files) = corpus() else { return };
    for path in files {
        let text = fs::read(&path).expect("a file of the corpus can be read");
        let ours = sim::pgn::read(&text)
            .into_iter()
            .map(|game| game.map_or_else(|_| None, |game| Some(game.uci())))
            .filter(|moves| moves.as_ref().is_none_or(|moves| !moves.is_empty()));
        let mut reader = Reader::new(&text[..]);
        let theirs = std::iter::from_fn(|| {
            reader
                .read_game(&mut Recorder)
                .expect("a slice can be read")
        })
        .filter_map(|played| played.line)
        .map(|line| line.moves.into_iter().map(|(uci, _)| uci).collect())
        .filter(|moves: &Vec<String>| !moves.is_empty());
        let (ours, theirs): (Vec<_>, Vec<_>) = (ours.collect(), theirs.collect());
        assert_eq!(ours.len(), theirs.len(), "{}", path.display());
        for (ours, theirs) in ours.into_iter().zip(theirs) {
            assert_eq!(ours.unwrap_or(theirs.clone()), theirs, "{}", path.display());
        }
    }
}

/// The files of the corpus. It is not ours to install: without it nothing is tested here, also under `tests/run`.
fn corpus() -> Option<Vec<PathBuf>> {
    let corpus = std::env::var_os("JADOUBE_CORPUS")
        .map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
            PathBuf::from,
        )
        .join("games");
    let Ok(entries) = fs::read_dir(&corpus) else {
        eprintln!("skipped: no corpus at {}", corpus.display());
        return None;
    };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the corpus can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pgn"))
        .collect();
    files.sort();
    Some(files)
}

// --- what is written, and what must be read ---

/// A game to write, and the games that must be read from it.
struct Sample {
    game: Snapshot,
    tags: PgnTags,
    scope: Scope,
    parts: Vec<Part>,
    expected: Vec<(String, String)>,
}

/// A game of the text.
struct Part {
    moves: Vec<String>,
    /// The position at its end.
    fen: String,
    /// The index of its first move in the record.
    first: usize,
}

impl Sample {
    /// A running game of these lines; all but the first begin with an illegal move.
    fn new(lines: &[Line], scope: Scope) -> Sample {
        let chess960 = lines[0].castling == CastlingMode::Chess960;
        let mut moves: Vec<Move> = Vec::new();
        let mut parts = Vec::new();
        for line in lines {
            if let Some(illegal) = &line.illegal {
                let mut m = final_move(moves.len() as u32 + 1, illegal, "?");
                m.doubt = Some(Doubt::IllegalAccepted);
                moves.push(m);
            }
            parts.push(Part {
                moves: line.moves.iter().map(|(uci, _)| uci.clone()).collect(),
                fen: fen(&line.position, line.castling),
                first: moves.len(),
            });
            for (uci, san) in &line.moves {
                moves.push(final_move(moves.len() as u32 + 1, uci, san));
            }
        }
        let last = lines.last().expect("a sample has lines");
        let game = Snapshot {
            game: "r3-b12".into(),
            rev: 1,
            table: "12".into(),
            phase: Phase::Playing,
            ruleset: "fide-2023".into(),
            variant: "standard".into(),
            supervised: true,
            start_fen: fen(&lines[0].start, lines[0].castling),
            chess960,
            fen: fen(&last.position, last.castling),
            turn: match last.position.turn() {
                Color::White => Side::White,
                Color::Black => Side::Black,
            },
            moves,
            round: Some("3".into()),
            board: Some("12".into()),
            white: player("Alpha, Anna", 333_111),
            black: player("Beta, Bo", 444_222),
            time_control: Some("5400+30".into()),
            started_at: Some("2027-04-02T13:00:00Z".into()),
            last_move_at: None,
            ended_at: None,
            white_clock_ms: None,
            black_clock_ms: None,
            result: "*".into(),
            result_by: None,
            result_state: None,
            termination: None,
            reason: None,
            in_sync: true,
        };
        let mut sample = Sample {
            game,
            tags: PgnTags {
                event: Some("Spring Open".into()),
                site: Some("Brno CZE".into()),
                date: Some("2027.04.02".into()),
                now: Some("2027-04-02T13:04:12.318Z".into()),
            },
            scope,
            parts,
            expected: Vec::new(),
        };
        if let Outcome::Known(outcome) = last.position.outcome() {
            sample.end_with(match outcome {
                KnownOutcome::Draw => "1/2-1/2",
                KnownOutcome::Decisive { winner } => winner.fold_wb("1-0", "0-1"),
            });
        }
        sample
    }

    fn expect(&mut self, tag: &str, value: &str) {
        self.expected.push((tag.into(), value.into()));
    }

    /// Ends the game with any of the results, unless the board has ended it, or lets it run on.
    fn end(&mut self, rng: &mut Rng) {
        let result = ["1-0", "0-1", "1/2-1/2", "*"][rng.usize(0..4)];
        if self.game.result == "*" && result != "*" {
            self.end_with(result);
        }
    }

    fn end_with(&mut self, result: &str) {
        self.game.phase = Phase::Ended;
        self.game.result = result.into();
        self.game.result_state = Some(ResultState::Set);
        self.game.termination = Some("normal".into());
    }

    /// Clocks for all moves, for some, or for none.
    fn run_clocks(&mut self, rng: &mut Rng) {
        let share = [0, 50, 100][rng.usize(0..3)];
        for m in &mut self.game.moves {
            m.clk_ms = (rng.u32(0..100) < share).then(|| rng.u64(0..40_000_000));
            m.emt_ms = (rng.u32(0..100) < share).then(|| rng.u64(0..4_000_000));
        }
    }

    /// What a reader must find, one line a game.
    fn expectations(&self) -> Vec<Value> {
        let parts = self.parts.iter().map(|part| {
            let moves = &self.game.moves[part.first..part.first + part.moves.len()];
            let seconds = |ms: u64| (ms / 1000) as f64;
            let mut tags = serde_json::Map::new();
            for (name, value) in [
                ("Date", "2027.04.02"),
                ("Round", "3.12"),
                ("Board", "12"),
                ("Black", "Beta, Bo"),
                ("Result", self.game.result.as_str()),
            ]
            .into_iter()
            .chain(self.expected.iter().map(|(name, value)| (&name[..], &value[..])))
            {
                tags.insert(name.to_owned(), json!(value));
            }
            json!({
                "moves": part.moves,
                "clk": moves.iter().map(|m| m.clk_ms.filter(|&ms| ms >= 1000).map(seconds)).collect::<Vec<_>>(),
                "emt": moves
                    .iter()
                    .map(|m| m.emt_ms.filter(|_| self.scope == Scope::Archive).map(seconds))
                    .collect::<Vec<_>>(),
                "fen": part.fen,
                "chess960": self.game.chess960,
                "tags": tags,
            })
        });
        parts.collect()
    }
}

/// Writes the games, has both tools read them, and gives the text.
fn check(name: &str, samples: &[Sample]) -> String {
    let games: Vec<String> = samples
        .iter()
        .map(|sample| pgn::write(&sample.game, &sample.tags, sample.scope))
        .collect();
    let text = games.join("\n");
    for line in text.lines() {
        assert!(
            line.starts_with('[') || line.chars().count() < 80,
            "{name}: long line {line}"
        );
    }
    let expectations: Vec<Value> = samples.iter().flat_map(Sample::expectations).collect();

    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let pgn = folder.path().join("games.pgn");
    let jsonl = folder.path().join("expected.jsonl");
    let lines: String = expectations
        .iter()
        .map(|value| format!("{value}\n"))
        .collect();
    fs::write(&pgn, &text).expect("a temporary file can be written");
    fs::write(&jsonl, lines).expect("a temporary file can be written");

    match python() {
        Some(python) => {
            let output = Command::new(python)
                .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pgn/read.py"))
                .args([&pgn, &jsonl])
                .output()
                .expect("the Python that was just asked for its version starts");
            let said = String::from_utf8_lossy(&output.stdout);
            let complaints = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && complaints.is_empty(),
                "{name}, python-chess:\n{said}\n{complaints}"
            );
            println!("{name}: python-chess: {}", said.trim_end());
        }
        None => skip::skipped("no Python with the package chess (see tests/run)"),
    }

    match pgn_extract() {
        Some(program) => {
            // Its exit code is 0 whatever happens. Silent, it still complains; else it counts at the end.
            let stderr = |options: &[&str]| {
                let output = Command::new(&program)
                    .args(options)
                    .arg(&pgn)
                    .output()
                    .expect("the program that was just found starts");
                String::from_utf8_lossy(&output.stderr).into_owned()
            };
            let complaints = stderr(&["-s", "-r"]);
            assert!(complaints.is_empty(), "{name}, pgn-extract:\n{complaints}");
            let count = expectations.len();
            let said = stderr(&["-r"]);
            let last = said.lines().last().unwrap_or_default();
            assert!(
                last.starts_with(&format!("{count} game"))
                    && last.ends_with(&format!("matched out of {count}.")),
                "{name}, pgn-extract: {last}"
            );
            println!("{name}: pgn-extract: {last}");
        }
        None => skip::skipped("no pgn-extract (see tests/run)"),
    }
    text
}

/// `tests/run` names a Python that has the package; any other is taken if it has it too.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("JADOUBE_PYTHON").map_or("python3".into(), PathBuf::from);
    let has_chess = Command::new(&python)
        .args(["-c", "import chess.pgn"])
        .output()
        .is_ok_and(|output| output.status.success());
    has_chess.then_some(python)
}

/// Debian puts it among the games, which are not in everybody's path.
fn pgn_extract() -> Option<PathBuf> {
    ["pgn-extract", "/usr/games/pgn-extract"]
        .into_iter()
        .map(PathBuf::from)
        .find(|program| Command::new(program).arg("--version").output().is_ok())
}

// --- games ---

/// Legal moves from a position.
struct Line {
    castling: CastlingMode,
    start: Chess,
    position: Chess,
    /// UCI and SAN.
    moves: Vec<(String, String)>,
    /// The illegal move that led to the start.
    illegal: Option<String>,
}

impl Line {
    fn new(start: Chess, castling: CastlingMode) -> Line {
        Line {
            castling,
            position: start.clone(),
            start,
            moves: Vec::new(),
            illegal: None,
        }
    }

    /// Plays random moves, rare ones more often than chance would, until the game is over.
    fn play_on(&mut self, rng: &mut Rng, plies: usize) {
        for _ in 0..plies {
            if self.position.is_game_over() {
                return;
            }
            let legal = self.position.legal_moves();
            let rare: Vec<_> = legal
                .iter()
                .filter(|m| m.is_promotion() || m.is_castle() || m.is_en_passant())
                .collect();
            let pawn: Vec<_> = legal.iter().filter(|m| m.role() == Role::Pawn).collect();
            let m = match rng.u8(0..10) {
                0..5 if !rare.is_empty() => *rare[rng.usize(..rare.len())],
                0..4 if !pawn.is_empty() => *pawn[rng.usize(..pawn.len())],
                _ => legal[rng.usize(..legal.len())],
            };
            self.play(m);
        }
    }

    fn play(&mut self, m: shakmaty::Move) {
        let uci = m.to_uci(self.castling).to_string();
        let san = SanPlus::from_move_and_play_unchecked(&mut self.position, m);
        self.moves.push((uci, san.to_string()));
    }
}

/// Any man but a king onto any free square that it cannot go to, and the position after it.
fn displace(position: &Chess, rng: &mut Rng) -> Option<(String, Chess)> {
    let men = position.us() & !position.board().kings();
    let from = men.into_iter().nth(rng.usize(..men.count()))?;
    let free = !position.board().occupied();
    let to = free.into_iter().nth(rng.usize(..free.count()))?;
    let role = position.board().role_at(from)?;
    if role == Role::Pawn
        && matches!(
            to.rank(),
            Rank::First | Rank::Fourth | Rank::Fifth | Rank::Eighth
        )
    {
        return None;
    }
    let uci = UciMove::Normal {
        from,
        to,
        promotion: None,
    };
    if uci.to_move(position).is_ok() {
        return None;
    }
    let mut setup = position.to_setup(EnPassantMode::Legal);
    let man = setup.board.remove_piece_at(from)?;
    setup.board.set_piece_at(to, man);
    setup.castling_rights.discard(from);
    setup.halfmoves = 0;
    if setup.turn.is_black() {
        setup.fullmoves = setup.fullmoves.saturating_add(1);
    }
    setup.swap_turn();
    let after = Chess::from_setup(setup, CastlingMode::Standard).ok()?;
    Some((uci.to_string(), after))
}

/// A game of the corpus.
struct Played {
    line: Option<Line>,
    clk_ms: Vec<Option<u64>>,
}

impl Played {
    fn sample(self, scope: Scope) -> Sample {
        let line = self
            .line
            .unwrap_or(Line::new(Chess::new(), CastlingMode::Standard));
        let mut sample = Sample::new(&[line], scope);
        for (m, clk_ms) in sample.game.moves.iter_mut().zip(self.clk_ms) {
            m.clk_ms = clk_ms;
        }
        sample
    }
}

/// Records the main line of a game as far as it is legal.
struct Recorder;

impl Visitor for Recorder {
    type Tags = (Option<String>, CastlingMode);
    type Movetext = Played;
    type Output = Played;

    fn begin_tags(&mut self) -> ControlFlow<Played, Self::Tags> {
        ControlFlow::Continue((None, CastlingMode::Standard))
    }

    fn tag(
        &mut self,
        (fen, castling): &mut Self::Tags,
        name: &[u8],
        value: RawTag<'_>,
    ) -> ControlFlow<Played> {
        match name {
            b"FEN" => *fen = Some(value.decode_utf8_lossy().into_owned()),
            b"Variant" => *castling = CastlingMode::Chess960,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn begin_movetext(
        &mut self,
        (fen, castling): Self::Tags,
    ) -> ControlFlow<Played, Self::Movetext> {
        let start = match fen {
            Some(fen) => fen
                .parse()
                .ok()
                .and_then(|fen: Fen| fen.into_position(castling).ok()),
            None => Some(Chess::new()),
        };
        ControlFlow::Continue(Played {
            line: start.map(|start| Line::new(start, castling)),
            clk_ms: Vec::new(),
        })
    }

    fn san(&mut self, played: &mut Played, san: SanPlus) -> ControlFlow<Played> {
        let m = played
            .line
            .as_ref()
            .and_then(|line| san.san.to_move(&line.position).ok());
        match (&mut played.line, m) {
            (Some(line), Some(m)) => {
                line.play(m);
                played.clk_ms.push(None);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(Played {
                line: played.line.take(),
                clk_ms: std::mem::take(&mut played.clk_ms),
            }),
        }
    }

    fn comment(&mut self, played: &mut Played, comment: RawComment<'_>) -> ControlFlow<Played> {
        let text = String::from_utf8_lossy(comment.as_bytes());
        if let Some((_, rest)) = text.split_once("[%clk")
            && let Some((time, _)) = rest.split_once(']')
            && let Some(last) = played.clk_ms.last_mut()
        {
            *last = time
                .trim()
                .split(':')
                .try_fold(0.0, |sum, part| {
                    part.parse::<f64>().ok().map(|part| sum * 60.0 + part)
                })
                .map(|seconds| (seconds * 1000.0) as u64);
        }
        ControlFlow::Continue(())
    }

    fn begin_variation(&mut self, _: &mut Played) -> ControlFlow<Played, Skip> {
        ControlFlow::Continue(Skip(true))
    }

    fn end_game(&mut self, played: Played) -> Played {
        played
    }
}

fn final_move(ply: u32, uci: &str, san: &str) -> Move {
    Move {
        ply,
        uci: uci.into(),
        san: san.into(),
        state: MoveState::Final,
        by: Some(CompletedBy::Press),
        clk_ms: None,
        emt_ms: None,
        doubt: None,
        alternatives: Vec::new(),
    }
}

fn player(name: &str, fide_id: u64) -> Player {
    Player {
        name: Some(name.into()),
        fide_id: Some(fide_id),
        title: Some("IM".into()),
        elo: Some(2400),
        team: Some("Springers".into()),
    }
}

fn position(fen: &str) -> Chess {
    fen.parse::<Fen>()
        .expect("a FEN")
        .into_position(CastlingMode::Standard)
        .expect("a legal position")
}

/// As python-chess writes it: en passant only where it is legal, Shredder's castling rights in Chess960.
fn fen(position: &Chess, castling: CastlingMode) -> String {
    let fen = Fen::from_position(position, EnPassantMode::Legal).to_string();
    if castling == CastlingMode::Standard {
        return fen;
    }
    let mut fields: Vec<String> = fen.split(' ').map(str::to_owned).collect();
    let mut rights = String::new();
    for color in Color::ALL {
        let rooks = position.castles().castling_rights() & position.board().by_color(color);
        for rook in rooks.into_iter().rev() {
            let file = rook.file().char();
            rights.push(color.fold_wb(file.to_ascii_uppercase(), file));
        }
    }
    fields[2] = if rights.is_empty() {
        "-".into()
    } else {
        rights
    };
    fields.join(" ")
}

fn scope(index: usize) -> Scope {
    if index.is_multiple_of(2) {
        Scope::Live
    } else {
        Scope::Archive
    }
}

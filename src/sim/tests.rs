//! The whole of the virtual tables: games into scripts, scripts into bytes, bytes back into games.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use fastrand::Rng;
use shakmaty::fen::Fen;
use shakmaty::{Board, CastlingMode, Chess, Color, Outcome, Position, Role, Square};

use super::board;
use super::hands::{Hands, Level, Pace};
use super::pgn::{self, SimGame};
use super::player::{Player, TableOptions};
use super::scan::Sweep;
use super::scene::Scene;
use super::script::{Act, Action, Breach, Incident, IncidentKind, Manner, Script};
use super::{trace, trace_script};
use crate::Millis;
use crate::trace::{Event, Trace, Writer};
use crate::wire::Family;
use crate::wire::dgt::{
    ClockMessage, Decoder, Item, Message, Mode, PieceCode, RawSquare, START, VirtualBoard,
};
use crate::wire::psb1;

/// A game of random legal moves, leaning towards captures, castling and promotions.
fn random_game(seed: u64) -> SimGame {
    let mut rng = Rng::with_seed(seed);
    let chess960 = seed % 4 == 3;
    let start: Chess = if chess960 {
        let board = Board::chess960(rng.u32(..960));
        let placement = board.to_string();
        let fen: Fen = format!("{placement} w KQkq - 0 1").parse().unwrap();
        fen.into_position(CastlingMode::Chess960).unwrap()
    } else {
        Chess::default()
    };
    let mut position = start.clone();
    let mut moves = Vec::new();
    for _ in 0..rng.usize(1..160) {
        let legal = position.legal_moves();
        if legal.is_empty() {
            break;
        }
        let rare: Vec<_> = legal
            .iter()
            .copied()
            .filter(|m| m.is_castle() || m.is_promotion() || m.is_en_passant())
            .collect();
        let m = if !rare.is_empty() && rng.bool() {
            rare[rng.usize(..rare.len())]
        } else {
            legal[rng.usize(..legal.len())]
        };
        moves.push(m);
        position.play_unchecked(m);
    }
    SimGame::new(start, chess960, moves)
}

/// Game files of the corpus beside the project, if it is there.
fn corpus_files(folder: &str) -> Vec<PathBuf> {
    let corpus = std::env::var_os("JADOUBE_CORPUS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(corpus.join(folder)) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "pgn"))
        .collect();
    paths.sort();
    paths
}

fn corpus_games() -> Vec<SimGame> {
    corpus_files("games")
        .iter()
        .flat_map(|path| pgn::read(&std::fs::read(path).unwrap()))
        .filter_map(Result::ok)
        .collect()
}

/// The placements that a script shows, in order; two men in one hand's movement may share a time.
fn placements(script: &Script) -> Vec<Board> {
    let mut board = script.start.clone();
    let mut all = vec![board.clone()];
    for action in &script.actions {
        if let Act::Square { square, piece } = action.kind {
            match piece {
                Some(piece) => board.set_piece_at(square, piece),
                None => board.discard_piece_at(square),
            }
            all.push(board.clone());
        }
    }
    all
}

/// Every position of the game stands on the board, in order, and the last one stays.
fn assert_plays(script: &Script, game: &SimGame, name: &str) {
    let shown = placements(script);
    assert_eq!(
        shown.last(),
        Some(game.last_position().board()),
        "{name}: last placement"
    );
    assert_eq!(shown.last(), Some(&script.last), "{name}: script's own end");
    let mut position = game.start.clone();
    let mut from = 0;
    for (i, &m) in game.moves.iter().enumerate() {
        position.play_unchecked(m);
        let Some(found) = shown[from..]
            .iter()
            .position(|board| board == position.board())
        else {
            panic!("{name}: ply {} never stands on the board", i + 1);
        };
        from += found;
    }
    assert!(
        script.actions.is_sorted_by_key(|action| action.at_ms),
        "{name}: time runs backwards"
    );
    let truth = &script.games[0];
    assert_eq!(truth.uci(), game.uci(), "{name}: truth");
    for played in &truth.plies {
        assert!(played.touched_ms < played.placed_ms, "{name}: {played:?}");
        let early = played.manners.contains(&Manner::PressedEarly);
        assert!(
            played.pressed_ms.is_none_or(
                |pressed| pressed > played.touched_ms && (early || pressed > played.placed_ms)
            ),
            "{name}: {played:?}"
        );
    }
}

fn script(game: &SimGame, level: Level, seed: u64) -> Script {
    Hands::new(level, seed).script(game)
}

#[test]
fn random_games_are_played_to_the_end_through_every_position() {
    let mut manners: HashMap<Manner, usize> = HashMap::new();
    for seed in 0..400 {
        let game = random_game(seed);
        assert_plays(
            &script(&game, Level::Clean, seed),
            &game,
            &format!("clean {seed}"),
        );
        let human = script(&game, Level::Human, seed);
        assert_plays(&human, &game, &format!("human {seed}"));
        for played in &human.games[0].plies {
            for &manner in &played.manners {
                *manners.entry(manner).or_default() += 1;
            }
        }
    }
    // Nothing of the model is dead.
    for manner in [
        Manner::Overwritten,
        Manner::VictimFirst,
        Manner::OwnFirst,
        Manner::VictimDragged,
        Manner::Slid,
        Manner::Brushed,
        Manner::TargetFirst,
        Manner::PutBack,
        Manner::Adjusted,
        Manner::KingFirst,
        Manner::RookFirst,
        Manner::TwoHanded,
        Manner::Straightened,
        Manner::PawnFirst,
        Manner::PieceDirect,
        Manner::PressForgotten,
        Manner::PressedEarly,
    ] {
        assert!(
            manners.contains_key(&manner),
            "{manner:?} never happened: {manners:?}"
        );
    }
}

#[test]
fn games_of_the_corpus_are_played_to_the_end() {
    let games = corpus_games();
    if games.is_empty() {
        println!("skipped: no corpus");
        return;
    }
    for (seed, game) in games.iter().enumerate().step_by(5) {
        let name = format!("{} {:?}", seed, game.tag("White"));
        assert_plays(&script(game, Level::Human, seed as u64), game, &name);
    }
}

#[test]
fn files_that_are_hard_to_read_are_read_or_refused() {
    let files = corpus_files("games/odd");
    if files.is_empty() {
        println!("skipped: no corpus");
        return;
    }
    for path in files {
        for game in pgn::read(&std::fs::read(&path).unwrap()) {
            match game {
                Ok(game) => assert_plays(
                    &script(&game, Level::Human, 7),
                    &game,
                    &path.display().to_string(),
                ),
                Err(error) => assert!(error.to_string().starts_with("game ")),
            }
        }
    }
}

#[test]
fn captures_look_as_they_do_in_the_recordings() {
    let mut counts: HashMap<Manner, usize> = HashMap::new();
    let mut captures = 0;
    for seed in 0..200 {
        let game = random_game(seed * 4);
        let human = script(&game, Level::Human, seed);
        for (played, m) in human.games[0].plies.iter().zip(&game.moves) {
            if m.is_capture() && !m.is_promotion() && !m.is_en_passant() {
                captures += 1;
                for &manner in &played.manners {
                    *counts.entry(manner).or_default() += 1;
                }
            }
        }
    }
    let share = |manner| counts[&manner] * 100 / captures;
    assert!(
        (69..=75).contains(&share(Manner::Overwritten)),
        "{counts:?}"
    );
    assert!(
        (16..=24).contains(&share(Manner::VictimFirst)),
        "{counts:?}"
    );
    assert!((7..=13).contains(&share(Manner::OwnFirst)), "{counts:?}");
    assert!(
        (8..=16).contains(&share(Manner::VictimDragged)),
        "{counts:?}"
    );
}

#[test]
fn moves_and_presses_look_as_they_do_in_the_recordings() {
    let (mut moves, mut slid, mut early) = (0, 0, 0);
    for seed in 0..200 {
        let human = script(&random_game(seed), Level::Human, seed);
        for played in &human.games[0].plies {
            moves += 1;
            slid += usize::from(played.manners.contains(&Manner::Slid));
            early += usize::from(played.manners.contains(&Manner::PressedEarly));
        }
    }
    assert!(
        (40..=60).contains(&(slid * 1000 / moves)),
        "{slid} of {moves} slid"
    );
    assert!(
        (26..=40).contains(&(early * 1000 / moves)),
        "{early} of {moves} early"
    );
}

#[test]
fn a_seed_plays_the_same_again_and_another_one_differently() {
    let game = random_game(8);
    let first = script(&game, Level::Human, 5);
    assert_eq!(first.actions, script(&game, Level::Human, 5).actions);
    assert_ne!(first.actions, script(&game, Level::Human, 6).actions);
    assert_eq!(
        script(&game, Level::Clean, 1).actions,
        script(&game, Level::Clean, 2).actions
    );
    let hurried = script(&game, Level::Blitz, 5).actions;
    assert_eq!(hurried, script(&game, Level::Blitz, 5).actions);
    assert_ne!(hurried, script(&game, Level::Blitz, 6).actions);
    let faulty = script(&game, Level::Faulty, 5);
    assert_eq!(faulty.actions, script(&game, Level::Faulty, 5).actions);
    assert_eq!(
        faulty.games[0].incidents,
        script(&game, Level::Faulty, 5).games[0].incidents
    );
    assert_ne!(faulty.actions, script(&game, Level::Faulty, 6).actions);
}

#[test]
fn levels_are_written_as_they_are_read() {
    for name in ["clean", "human", "blitz", "faulty"] {
        let level: Level = name.parse().unwrap();
        assert_eq!(level.to_string(), name);
    }
    assert!("drunk".parse::<Level>().is_err());
}

/// In a hurry no position need ever stand still, but each move ends where it should, when it should.
#[test]
fn blitz_is_played_move_by_move_within_its_time() {
    let mut manners: HashMap<Manner, usize> = HashMap::new();
    let (mut plies, mut brisk) = (0, 0);
    for seed in 0..200 {
        let game = random_game(seed);
        let script = script(&game, Level::Blitz, seed);
        let name = format!("seed {seed}");
        assert!(script.actions.is_sorted_by_key(|action| action.at_ms));
        assert_eq!(placements(&script).last(), Some(&script.last), "{name}");
        assert_eq!(&script.last, game.last_position().board(), "{name}");
        let truth = &script.games[0];
        assert_eq!(truth.uci(), game.uci(), "{name}");
        let mut position = game.start.clone();
        let mut stood_ms = 0;
        for (played, &m) in truth.plies.iter().zip(&game.moves) {
            position.play_unchecked(m);
            assert!(played.placed_ms > stood_ms, "{name}: {played:?}");
            assert!(played.touched_ms < played.placed_ms, "{name}: {played:?}");
            // Each man that the move put somewhere stands there when it is over, though others may be in the air.
            let stands = placement_at(&script, played.placed_ms);
            let to = m
                .castling_side()
                .map_or(m.to(), |side| side.king_to(played.side));
            assert_eq!(
                stands.piece_at(to),
                position.board().piece_at(to),
                "{name}: {played:?}"
            );
            let missing = position.board().occupied() & !stands.occupied();
            assert!(missing.count() <= 1, "{name}: {played:?} {missing:?}");
            let ms = played.placed_ms - stood_ms;
            stood_ms = played.placed_ms;
            plies += 1;
            brisk += usize::from((150..=400).contains(&ms));
            assert!(ms < 1_000, "{name}: {played:?} took {ms} ms");
            for &manner in &played.manners {
                *manners.entry(manner).or_default() += 1;
            }
        }
    }
    assert!(brisk * 100 >= plies * 95, "{brisk} of {plies} in time");
    for manner in [
        Manner::Overlapped,
        Manner::PressForgotten,
        Manner::PressedEarly,
        Manner::Slid,
        Manner::Overwritten,
        Manner::VictimDragged,
        Manner::TwoHanded,
    ] {
        let seen = manners.get(&manner).copied().unwrap_or(0);
        assert!(seen > 20, "{manner:?} in {plies} plies: {manners:?}");
    }
    assert!(manners[&Manner::Overlapped] * 4 > plies, "{manners:?}");
}

/// What stands on the board at a time, what happens just then included.
fn placement_at(script: &Script, at_ms: u64) -> Board {
    let mut board = script.start.clone();
    for action in script
        .actions
        .iter()
        .take_while(|action| action.at_ms <= at_ms)
    {
        if let Act::Square { square, piece } = action.kind {
            match piece {
                Some(piece) => board.set_piece_at(square, piece),
                None => board.discard_piece_at(square),
            }
        }
    }
    board
}

#[test]
fn presses_alternate_and_each_comes_from_the_side_whose_lever_is_up() {
    for seed in 0..100 {
        let game = random_game(seed);
        for level in [Level::Human, Level::Blitz, Level::Faulty] {
            let mut up = game.start.turn();
            for action in script(&game, level, seed).actions {
                match action.kind {
                    Act::Press { side } => {
                        assert_eq!(side, up, "{level} seed {seed} at {}", action.at_ms);
                        up = side.other();
                    }
                    // The arbiter sets the lever.
                    Act::ClockStart { side } => up = side,
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn recorded_times_are_kept() {
    let games = pgn::read(
        b"1. e4 {[%clk 0:05:03]} e5 {[%clk 0:05:03]} 2. Nf3 {[%clk 0:04:56]} Nc6 {[%clk 0:03:06]} *",
    );
    let game = games[0].as_ref().unwrap();
    let pace = Pace::Recorded {
        increment_ms: 3000,
        otherwise: 1000,
    };
    let script = Hands::new(Level::Human, 3).with_pace(pace).script(game);
    let plies = &script.games[0].plies;
    let used =
        |i: usize| plies[i].pressed_ms.unwrap_or(plies[i].placed_ms) - plies[i - 1].placed_ms;
    assert!((9_000..14_000).contains(&used(2)), "{plies:?}");
    assert!((118_000..126_000).contains(&used(3)), "{plies:?}");
}

#[test]
fn chess960_castling_in_all_shapes_of_the_back_rank() {
    for number in 0..960 {
        let mut board = Board::chess960(number);
        for square in Square::ALL {
            let keep = board
                .role_at(square)
                .is_none_or(|role| matches!(role, Role::King | Role::Rook | Role::Pawn));
            if !keep {
                board.discard_piece_at(square);
            }
        }
        let fen: Fen = format!("{board} w KQkq - 0 1").parse().unwrap();
        let start: Chess = fen.into_position(CastlingMode::Chess960).unwrap();
        for m in start.legal_moves() {
            if m.is_castle() {
                let game = SimGame::new(start.clone(), true, vec![m]);
                for seed in 0..6 {
                    let name = format!("{number} {m:?} {seed}");
                    let shown = placements(&script(&game, Level::Human, seed));
                    assert_eq!(shown.last(), Some(game.last_position().board()), "{name}");
                    let shown = placements(&script(&game, Level::Clean, seed));
                    assert_eq!(shown.last(), Some(game.last_position().board()), "{name}");
                }
            }
        }
    }
}

const MINIATURE: &str = "[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Bxc6 dxc6 5. O-O f6 6. d4 exd4 7. Nxd4 c5 8. Nb3 Qxd1 9. Rxd1 1-0\n";

fn miniature() -> SimGame {
    pgn::read(MINIATURE.as_bytes()).remove(0).unwrap()
}

#[test]
fn incidents_leave_the_game_as_it_was() {
    let game = miniature();
    for seed in 0..60 {
        let scene = Scene::new()
            .illegal_then_corrected_before_press(3)
            .illegal_pressed_then_restored(8)
            .knocked_over_and_put_back(12)
            .illegal_pressed_then_restored(99);
        let script = Hands::new(Level::Human, seed).script_with(&game, &scene);
        assert_plays(&script, &game, &format!("seed {seed}"));
        let kinds: Vec<_> = script.games[0]
            .incidents
            .iter()
            .map(|incident| (incident.ply, incident.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                (3, IncidentKind::IllegalThenCorrected),
                (8, IncidentKind::IllegalPressedThenRestored),
                (12, IncidentKind::KnockedOver)
            ]
        );
    }
}

#[test]
fn stray_men_stand_where_no_legal_move_takes_them() {
    for seed in 0..200 {
        let game = random_game(seed);
        let ply = 1 + (seed as usize % game.moves.len());
        let scene = Scene::new().illegal_pressed_then_restored(ply);
        let script = Hands::new(Level::Human, seed).script_with(&game, &scene);
        assert_plays(&script, &game, &format!("seed {seed}"));
        let Some(incident) = script.games[0].incidents.first() else {
            continue;
        };
        let mut position = game.start.clone();
        for &m in &game.moves[..ply - 1] {
            position.play_unchecked(m);
        }
        let mut stray = position.board().clone();
        let man = stray.remove_piece_at(incident.squares[0]).unwrap();
        stray.set_piece_at(incident.squares[1], man);
        assert_ne!(&stray, position.board());
        for m in position.legal_moves() {
            let mut next = position.clone();
            next.play_unchecked(m);
            assert_ne!(next.board(), &stray, "seed {seed}: {m:?}");
        }
        let stops = script
            .actions
            .iter()
            .filter(|action| action.kind == Act::ClockStop)
            .count();
        assert_eq!(stops, 2, "seed {seed}");
    }
}

#[test]
fn the_kings_show_every_result() {
    let dark = |square: Square| square.is_dark();
    for seed in 0..100 {
        let game = random_game(seed);
        for (result, sign) in [("1-0", [false, false]), ("0-1", [true, true])] {
            let result: Outcome = result.parse().unwrap();
            let scene = Scene::new().result_kings(result);
            let script = Hands::new(Level::Human, seed).script_with(&game, &scene);
            let kings = Color::ALL.map(|side| script.last.king_of(side).unwrap());
            assert_eq!(kings.map(dark), sign);
            assert_eq!(placements(&script).last(), Some(&script.last));
        }
        let scene = Scene::new().result_kings("1/2-1/2".parse().unwrap());
        let script = Hands::new(Level::Human, seed).script_with(&game, &scene);
        let kings = Color::ALL.map(|side| script.last.king_of(side).unwrap());
        assert_ne!(dark(kings[0]), dark(kings[1]));
        let centre = [Square::D4, Square::E4, Square::D5, Square::E5];
        assert!(kings.iter().all(|king| centre.contains(king)));
    }
    assert!(
        Scene::new()
            .result_kings(Outcome::Unknown)
            .endings()
            .is_empty()
    );
}

#[test]
fn analysis_moves_no_king_and_ends_with_the_array_set_up_again() {
    for seed in 0..100 {
        let game = random_game(seed);
        let scene = Scene::new().handshake_and_analysis().reset_to_start();
        let script = Hands::new(Level::Human, seed).script_with(&game, &scene);
        assert_eq!(&script.last, game.start.board());
        assert_eq!(placements(&script).last(), Some(&script.last));
        let analysis = &script.games[0].incidents[0];
        assert_eq!(analysis.kind, IncidentKind::Analysis);
        let during = script
            .actions
            .iter()
            .filter(|action| (analysis.from_ms..=analysis.to_ms.unwrap()).contains(&action.at_ms));
        for action in during {
            match action.kind {
                Act::Square { piece, .. } => {
                    assert!(piece.is_none_or(|piece| piece.role != Role::King));
                }
                other => panic!("seed {seed}: {other:?} during the analysis"),
            }
        }
    }
}

#[test]
fn several_games_are_played_at_one_table() {
    let games: Vec<SimGame> = (0..6).map(random_game).collect();
    let script = Hands::new(Level::Human, 1)
        .series(&games, |_| Scene::new())
        .unwrap();
    assert_eq!(script.games.len(), games.len());
    assert_eq!(&script.last, games[5].last_position().board());
    let mut board = script.start.clone();
    let mut started = 0;
    for action in &script.actions {
        match action.kind {
            Act::Square {
                square,
                piece: Some(piece),
            } => board.set_piece_at(square, piece),
            Act::Square {
                square,
                piece: None,
            } => board.discard_piece_at(square),
            Act::ClockStart { .. } => {
                assert_eq!(&board, games[started].start.board(), "game {started}");
                started += 1;
            }
            _ => {}
        }
    }
    assert_eq!(started, games.len());
    assert!(
        Hands::new(Level::Human, 1)
            .series(&[], |_| Scene::new())
            .is_none()
    );
}

fn decode(bytes: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    Decoder::default().push(bytes, |item| match item {
        Item::Message(message) => messages.push(message),
        Item::Skipped(skipped) => panic!("{skipped:?}"),
    });
    messages
}

fn drain(player: &mut Player) -> Vec<Message> {
    std::iter::from_fn(|| player.poll_output())
        .flat_map(|bytes| decode(&bytes))
        .collect()
}

fn with_clock() -> TableOptions {
    TableOptions {
        control: Some("180+2".parse().unwrap()),
        ..TableOptions::default()
    }
}

#[test]
fn the_player_answers_its_host_before_during_and_after_the_game() {
    let script = script(&miniature(), Level::Human, 1);
    let length = script.actions.last().unwrap().at_ms;
    let mut player = Player::new(0, script, VirtualBoard::default(), &with_clock());
    player.handle_host(0, &[0x42, 0x41, 0x45, 0x46, 0x47, 0x4d]);
    let answers = drain(&mut player);
    assert_eq!(answers.len(), 6);
    assert_eq!(answers[0], Message::BoardDump(Box::new(START)));
    assert!(
        matches!(answers[1], Message::Clock(ClockMessage::Times(time)) if time.left.millis() == 182_000 && !time.running)
    );

    // Nobody watches: nothing begins, however long it takes.
    player.handle_timeout(60_000);
    assert!(drain(&mut player).is_empty());
    assert!(player.began_ms().is_none());

    // A host that turns away before the game begins puts it off.
    player.handle_host(60_000, &[0x4b]);
    player.handle_host(61_000, &[0x40]);
    player.handle_timeout(70_000);
    assert!(player.began_ms().is_none());
    player.handle_host(70_000, &[0x4b]);
    player.handle_timeout(73_000);
    assert_eq!(player.began_ms(), Some(73_000));

    player.handle_timeout(73_000 + length / 2);
    assert!(!player.is_finished());
    drain(&mut player);
    player.handle_host(73_000 + length / 2, &[0x42, 0x45]);
    let answers = drain(&mut player);
    assert!(matches!(answers[0], Message::BoardDump(_)), "{answers:?}");
    assert!(matches!(answers[1], Message::SerialNumber(_)));

    player.handle_timeout(73_000 + length + 1_000);
    assert!(player.is_finished());
    drain(&mut player);
    player.handle_host(80_000 + length, &[0x42]);
    assert!(matches!(drain(&mut player)[..], [Message::BoardDump(_)]));
    let board::VirtualBoard::Dgt(board) = player.board() else {
        panic!("a DGT board")
    };
    assert_eq!(board.mode(), Mode::UpdateNice);
}

#[test]
fn a_late_loop_hears_the_same_as_a_punctual_one() {
    let script = script(&random_game(12), Level::Human, 2);
    let length = script.actions.last().unwrap().at_ms + 10_000;
    let hear = |step: u64| {
        let mut player = Player::new(0, script.clone(), VirtualBoard::default(), &with_clock());
        player.handle_host(0, &[0x4b]);
        let mut heard = Vec::new();
        for now in (0..=length.next_multiple_of(step)).step_by(step as usize) {
            player.handle_timeout(now);
        }
        heard.extend(drain(&mut player));
        heard
    };
    let (punctual, late) = (hear(10), hear(5_000));
    let squares = |heard: &[Message]| -> Vec<Message> {
        heard
            .iter()
            .filter(|message| matches!(message, Message::FieldUpdate { .. }))
            .cloned()
            .collect()
    };
    assert_eq!(squares(&punctual), squares(&late));
    assert!(late.len().abs_diff(punctual.len()) <= 20);
}

/// The game as the bytes tell it: the picture after the last message, and the times.
fn last_picture(messages: &[Message]) -> ([PieceCode; 64], HashSet<(bool, bool)>) {
    let mut squares = [PieceCode::Empty; 64];
    let mut states = HashSet::new();
    for message in messages {
        match message {
            Message::BoardDump(dump) => squares = **dump,
            Message::FieldUpdate { square, piece } => squares[usize::from(square.index())] = *piece,
            Message::Clock(ClockMessage::Times(time)) => {
                states.insert((time.running, time.right_up));
            }
            other => panic!("{other:?}"),
        }
    }
    (squares, states)
}

fn picture(board: &Board, rotated: bool) -> [PieceCode; 64] {
    let mut squares = [PieceCode::Empty; 64];
    for (square, piece) in board {
        let raw = RawSquare::new(square.flip_vertical().to_u32() as u8).unwrap();
        let raw = if rotated { raw.turned() } else { raw };
        squares[usize::from(raw.index())] = PieceCode::from_letter(piece.char()).unwrap();
    }
    squares
}

#[test]
fn traces_begin_with_a_dump_and_end_with_the_last_position_either_way_round() {
    for seed in 0..60 {
        let game = random_game(seed);
        for rotated in [false, true] {
            for scan_ms in [0, 40, 220] {
                let options = TableOptions {
                    rotated,
                    scan_ms,
                    ..with_clock()
                };
                let traced = trace(&game, Level::Human, seed, &options);
                assert!(traced.messages.is_sorted_by_key(|(at_ms, _)| *at_ms));
                let bytes: Vec<u8> = traced
                    .messages
                    .iter()
                    .flat_map(|(_, bytes)| bytes.clone())
                    .collect();
                let messages = decode(&bytes);
                let first = Message::BoardDump(Box::new(picture(game.start.board(), rotated)));
                assert_eq!(messages[0], first);
                let (squares, states) = last_picture(&messages);
                assert_eq!(
                    squares,
                    picture(game.last_position().board(), rotated),
                    "seed {seed} {rotated} {scan_ms}"
                );
                assert!(
                    states.contains(&(false, rotated)),
                    "stopped, White's end up"
                );
                assert!(states.contains(&(true, rotated)), "White's time runs");
                assert_eq!(traced.games[0].uci(), game.uci());
            }
        }
    }
}

#[test]
fn a_board_that_notices_at_once_tells_every_placement() {
    for seed in 0..40 {
        let game = random_game(seed);
        let options = TableOptions {
            scan_ms: 0,
            ..TableOptions::default()
        };
        let human = script(&game, Level::Human, seed);
        let changes = placements(&human).len() - 1;
        let traced = trace_script(human, VirtualBoard::default(), &options);
        let updates = traced
            .messages
            .iter()
            .flat_map(|(_, bytes)| decode(bytes))
            .filter(|message| matches!(message, Message::FieldUpdate { .. }))
            .count();
        assert_eq!(updates, changes, "seed {seed}");
        // Without a clock the board says so, once.
        assert!(matches!(
            decode(&traced.messages[0].1)[..],
            [Message::BoardDump(_), Message::Clock(ClockMessage::Absent)]
        ));
    }
}

#[test]
fn what_is_never_told_stands_in_the_next_dump() {
    let game = random_game(4);
    let script = script(&game, Level::Blitz, 4);
    let length = script.actions.last().unwrap().at_ms;
    let told = |unsent_per_mille: u16| {
        let options = TableOptions {
            scan_ms: 0,
            unsent_per_mille,
            ..TableOptions::default()
        };
        let mut player = Player::new(0, script.clone(), VirtualBoard::default(), &options);
        player.handle_host(0, &[0x4b]);
        player.handle_timeout(length + 10_000);
        let updates = drain(&mut player).len();
        player.handle_host(length + 10_000, &[0x42]);
        let expected = Message::BoardDump(Box::new(picture(game.last_position().board(), false)));
        assert_eq!(drain(&mut player), [expected]);
        updates
    };
    let all = told(0);
    assert!(told(300) < all * 4 / 5 && told(300) > all * 3 / 5);
    assert_eq!(told(1000), 1, "the clock's absence");
}

#[test]
fn slow_scans_report_some_men_on_their_new_square_first() {
    let options = TableOptions {
        scan_ms: 700,
        ..TableOptions::default()
    };
    let mut doubled = 0;
    for seed in 0..40 {
        let game = random_game(seed);
        let traced = trace(&game, Level::Clean, seed, &options);
        let mut squares = picture(game.start.board(), false);
        for message in traced.messages.iter().flat_map(|(_, bytes)| decode(bytes)) {
            if let Message::FieldUpdate { square, piece } = message {
                squares[usize::from(square.index())] = piece;
                let kings = squares
                    .iter()
                    .filter(|&&piece| piece == PieceCode::WhiteKing);
                doubled += usize::from(kings.count() == 2);
            }
        }
    }
    assert!(doubled > 0);
}

#[test]
fn traces_are_written_and_read_alike() {
    for seed in 0..8 {
        let game = random_game(seed);
        for options in [TableOptions::default(), with_clock()] {
            let traced = trace(&game, Level::Human, seed, &options);
            let written = traced.to_trace();
            let mut writer = Writer::new(Vec::new(), &written.header).unwrap();
            for line in &written.lines {
                writer.event(line.at_ms, &line.event).unwrap();
            }
            let read = Trace::from_bytes(&writer.into_inner()).unwrap();
            assert_eq!(read.header, written.header);
            assert_eq!(read.header.chess960, game.chess960);
            assert_eq!(
                read.header.time_control.is_some(),
                options.control.is_some()
            );
            assert_eq!(read.lines.len(), written.lines.len());
            let presses = written
                .lines
                .iter()
                .filter(|line| matches!(line.event, Event::Command(_)))
                .count();
            let pressed = traced.games[0]
                .plies
                .iter()
                .filter(|played| played.pressed_ms.is_some());
            assert_eq!(
                presses,
                if options.control.is_some() {
                    0
                } else {
                    pressed.count()
                }
            );
        }
    }
}

/// What a presence board said, line by line, with the time of each.
fn presence_lines(traced: &super::Traced) -> Vec<(Millis, psb1::Message)> {
    let mut decoder = psb1::Decoder::default();
    let mut lines = Vec::new();
    for (at_ms, bytes) in &traced.messages {
        decoder.push(bytes, |item| match item {
            psb1::Item::Message(message) => lines.push((*at_ms, message)),
            psb1::Item::Skipped(skipped) => panic!("{skipped:?}"),
        });
    }
    lines
}

fn occupied(board: &Board, rotated: bool) -> u64 {
    let occupied = board.occupied();
    if rotated {
        occupied.rotate_180().into()
    } else {
        occupied.into()
    }
}

#[test]
fn a_presence_board_tells_where_men_stand_and_that_it_lives() {
    for seed in 0..30 {
        let game = random_game(seed);
        for (rotated, scan_ms, sweep) in [
            (false, 20, Sweep::Whole),
            (true, 40, Sweep::Whole),
            (false, 250, Sweep::Rolling),
            (true, 0, Sweep::Whole),
        ] {
            let options = TableOptions {
                rotated,
                scan_ms,
                sweep,
                // It is of no use there.
                control: with_clock().control,
                ..TableOptions::of(Family::Psb1)
            };
            let traced = trace(&game, Level::Human, seed, &options);
            assert!(traced.control.is_none());
            let lines = presence_lines(&traced);
            assert!(
                matches!(lines[0].1, psb1::Message::Hello(_)),
                "{:?}",
                lines[0]
            );
            let scans: Vec<(Millis, u8, u64)> = lines
                .iter()
                .filter_map(|(at_ms, message)| match message {
                    psb1::Message::Scan { seq, squares, .. } => {
                        Some((*at_ms, *seq, squares.occupied))
                    }
                    _ => None,
                })
                .collect();
            assert_eq!(scans[0].2, occupied(game.start.board(), rotated));
            let last = scans.last().unwrap();
            assert_eq!(
                last.2,
                occupied(game.last_position().board(), rotated),
                "seed {seed}"
            );
            for two in scans.windows(2) {
                assert_eq!(two[1].1, two[0].1.wrapping_add(1));
                assert!(two[1].0 - two[0].0 <= 1_010, "{two:?}");
            }
            assert_eq!(traced.to_trace().header.board, Family::Psb1);
            let presses = traced
                .to_trace()
                .lines
                .into_iter()
                .filter(|line| matches!(line.event, Event::Command(_)))
                .count();
            let pressed = traced.games[0]
                .plies
                .iter()
                .filter(|ply| ply.pressed_ms.is_some());
            assert_eq!(presses, pressed.count());
        }
    }
}

/// Two scans must agree: a move is told at most two of them after the hand, and what hands do between is seen as it was.
#[test]
fn a_presence_board_is_as_fast_as_its_scans() {
    let game = random_game(4);
    let script = script(&game, Level::Clean, 4);
    let options = TableOptions::of(Family::Psb1);
    let board = board::VirtualBoard::of(Family::Psb1).unwrap();
    let traced = trace_script(script.clone(), board, &options);
    let lines = presence_lines(&traced);
    for ply in &traced.games[0].plies {
        let placed_ms = traced.began_ms + ply.placed_ms;
        let told = lines
            .iter()
            .find(|(at_ms, message)| {
                *at_ms > placed_ms && matches!(message, psb1::Message::Scan { .. })
            })
            .unwrap();
        assert!(told.0 <= placed_ms + 50, "{ply:?} {told:?}");
    }
}

/// Faulty hands play the same moves, and what they do wrong stands in the truth: with the squares that differ from every legal position,
/// when it could be told, and when the board was right again.
#[test]
fn what_goes_wrong_is_written_into_the_truth() {
    let mut kinds: HashMap<IncidentKind, usize> = HashMap::new();
    let mut breaches: HashSet<Breach> = HashSet::new();
    let mut plies = 0;
    for seed in 0..300 {
        let game = random_game(seed);
        let script = script(&game, Level::Faulty, seed);
        let truth = &script.games[0];
        let name = format!("seed {seed}");
        assert!(script.actions.is_sorted_by_key(|action| action.at_ms));
        assert_eq!(placements(&script).last(), Some(&script.last), "{name}");
        let played = truth.uci();
        assert_eq!(played, game.uci()[..played.len()], "{name}");
        if truth.ends_irregularly() {
            assert_eq!(truth.result, Outcome::Unknown);
        } else {
            assert_eq!(truth.plies.len(), game.moves.len(), "{name}");
            assert_eq!(&script.last, game.last_position().board(), "{name}");
        }
        plies += truth.plies.len();
        for incident in &truth.incidents {
            let name = format!("{name}: {incident:?}");
            *kinds.entry(incident.kind).or_default() += 1;
            breaches.extend(incident.breach);
            assert!(
                incident.due_ms.is_none_or(|due| due >= incident.from_ms),
                "{name}"
            );
            assert!(
                incident.to_ms.is_none_or(|to| to > incident.from_ms),
                "{name}"
            );
            assert_eq!(
                incident.to_ms.is_none(),
                incident.kind == IncidentKind::IllegalStands,
                "{name}"
            );
            let mut position = game.start.clone();
            for &m in &game.moves[..incident.ply - 1] {
                position.play_unchecked(m);
            }
            assert_irregular(&script, &position, incident, &name);
        }
    }
    for kind in [
        IncidentKind::IllegalThenCorrected,
        IncidentKind::IllegalPressedThenRestored,
        IncidentKind::IllegalStands,
        IncidentKind::OutOfTurn,
        IncidentKind::Displaced,
        IncidentKind::BesideSquare,
        IncidentKind::HalfCastled,
        IncidentKind::PawnLeftOnLastRank,
        IncidentKind::VictimForgotten,
        IncidentKind::WrongColour,
        IncidentKind::PressedWithoutMove,
        IncidentKind::KnockedOver,
        IncidentKind::Retracted,
        IncidentKind::TakenBack,
        IncidentKind::Flicker,
        IncidentKind::Misread,
        IncidentKind::DeadSquare,
    ] {
        assert!(kinds.contains_key(&kind), "{kind}: {kinds:?}");
    }
    // Castling is seldom to be had illegally while king and rook are at home.
    let missing: Vec<Breach> = Breach::ALL
        .into_iter()
        .filter(|breach| *breach != Breach::Castling && !breaches.contains(breach))
        .collect();
    assert!(missing.is_empty(), "{missing:?} never happened");
    let all: usize = kinds.values().sum();
    assert!(
        (15..60).contains(&(plies / all)),
        "{all} in {plies} plies: {kinds:?}"
    );
}

/// What stands there when somebody should be told is no position of the game's, nor one legal move from it; when it has been put right,
/// it is.
fn assert_irregular(script: &Script, position: &Chess, incident: &Incident, name: &str) {
    let legal: Vec<Board> = position
        .legal_moves()
        .into_iter()
        .map(|m| {
            let mut next = position.clone();
            next.play_unchecked(m);
            next.board().clone()
        })
        .chain([position.board().clone()])
        .collect();
    if let Some(due_ms) = incident.due_ms
        && !matches!(
            incident.kind,
            IncidentKind::PressedWithoutMove | IncidentKind::DeadSquare
        )
    {
        let stands = placement_at(script, due_ms);
        assert!(!legal.contains(&stands), "{name}: {stands}");
        let outline = legal
            .iter()
            .any(|legal| legal.occupied() == stands.occupied());
        assert!(!(incident.in_outline && outline), "{name}: {stands}");
        let differing = Square::ALL
            .into_iter()
            .filter(|&square| stands.piece_at(square) != position.board().piece_at(square));
        for square in differing {
            assert!(incident.squares.contains(&square), "{name}: {square}");
        }
    }
    if let Some(to_ms) = incident.to_ms
        && incident.kind != IncidentKind::DeadSquare
    {
        let stands = placement_at(script, to_ms);
        assert!(legal.contains(&stands), "{name}: {stands} afterwards");
    }
}

#[test]
fn a_board_that_is_plugged_in_again_looks_as_often_as_before() {
    let script = script(&miniature(), Level::Clean, 1);
    let moves = |action: &&Action| matches!(action.kind, Act::Square { .. });
    let first_ms = script.actions.iter().find(moves).expect("a move").at_ms;
    let plugged = [Act::Unplugged, Act::Plugged { rotated: false }];
    let plugged = plugged.map(|kind| Action { at_ms: 0, kind });
    let script = Script {
        actions: plugged.into_iter().chain(script.actions).collect(),
        ..script
    };
    let options = TableOptions {
        scan_ms: 0,
        control: None,
        ..TableOptions::default()
    };
    let mut player = Player::new(0, script, VirtualBoard::default(), &options);
    player.handle_host(0, &[0x4b]);
    player.handle_timeout(options.lead_in_ms);
    drain(&mut player);
    player.handle_host(options.lead_in_ms, &[0x4b]);
    player.handle_timeout(options.lead_in_ms + first_ms);
    let told = drain(&mut player);
    let is_update = |message: &Message| matches!(message, Message::FieldUpdate { .. });
    assert!(told.iter().any(is_update), "{told:?}");
}

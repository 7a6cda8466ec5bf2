//! What is played on the virtual boards: the games, and what happens beside them.

use shakmaty::{Position, Square};

use crate::Millis;
use crate::sim::afternoon;
use crate::sim::clock::ClockControl;
use crate::sim::hands::{Hands, Level, Pace};
use crate::sim::pgn::{self, PgnError, SimGame};
use crate::sim::scene::Scene;
use crate::sim::script::{GameTruth, IncidentKind, Script};
use crate::wire::Family;

/// The control of all games. Its increment is long enough that nobody gets into time trouble (8.4).
pub const CONTROL: &str = "5400+30";

/// What one table plays.
#[derive(Debug)]
pub struct TableProgramme {
    /// The table's name in topics.
    pub name: String,
    /// What its board speaks.
    pub family: Family,
    /// The boards that stand on it one after the other, by the places of the tables at which they begin, and what they speak.
    pub boards: Vec<(usize, Family)>,
    /// Whether the first board stands the other way round.
    pub rotated: bool,
    /// Whether it is told who plays, and begins no game without that.
    pub paired: bool,
    pub script: Script,
    /// What will happen beside the moves, for people: a line each.
    pub announced: Vec<String>,
}

/// Which games are played.
#[derive(Debug, Clone)]
pub enum Choice {
    /// Ours, with their incidents, each table its own so many times.
    BuiltIn { rounds: usize },
    /// Others, dealt to the tables in turn, without incidents.
    Games(Vec<SimGame>),
}

/// Games that the demo cannot show.
#[derive(Debug, thiserror::Error)]
pub enum ProgrammeError {
    #[error(transparent)]
    Pgn(#[from] PgnError),
    #[error("game {0} starts from a position of its own")]
    Start(usize),
    #[error("there is no game for a table")]
    Empty,
}

/// Deals the games to at most so many tables, each with a board of this family; unless one is given, our own games show both.
/// `speed` shortens what the players think, nothing else: how long men must stand to mean something is measured by the watcher's
/// clock.
pub fn programme(
    choice: &Choice,
    boards: usize,
    family: Option<Family>,
    speed: f64,
) -> Result<Vec<TableProgramme>, ProgrammeError> {
    let boards = match choice {
        Choice::BuiltIn { .. } => boards,
        Choice::Games(games) => boards.min(games.len()),
    };
    (0..boards)
        .map(|index| table(choice, index, boards, family, speed))
        .collect()
}

/// The afternoon at the first tables of a hall, at most so many.
pub fn afternoon(boards: usize, seed: u64, speed: f64) -> Vec<TableProgramme> {
    let pace = Pace::Mean((AFTERNOON_THINK_MS as f64 / speed) as Millis);
    (0..boards)
        .map_while(|place| Some((place, afternoon::table(place, seed, pace)?)))
        .map(|(place, table)| TableProgramme {
            name: (place + 1).to_string(),
            family: afternoon::BOARDS[place],
            boards: table.boards,
            rotated: table.rotated,
            paired: table.paired,
            announced: announce_afternoon(&table.script),
            script: table.script,
        })
        .collect()
}

/// What comes at a table of the hall, a part a game.
fn announce_afternoon(script: &Script) -> Vec<String> {
    let in_words = |game: &GameTruth| {
        let mut words = vec![counted(game.plies.len(), "ply")];
        words.extend(
            game.incidents
                .iter()
                .map(|incident| incident.kind.to_string()),
        );
        words.join(", ")
    };
    script.games.iter().map(in_words).collect()
}

/// Only games that the tables can open by themselves: from the array of the men.
pub fn from_the_array(games: Vec<SimGame>) -> Result<Vec<SimGame>, ProgrammeError> {
    let own = games
        .iter()
        .find(|game| game.start != shakmaty::Chess::default());
    match own {
        Some(game) => Err(ProgrammeError::Start(game.number)),
        None => Ok(games),
    }
}

/// A game of our own.
fn built_in(text: &str) -> Result<SimGame, ProgrammeError> {
    Ok(pgn::read(text.as_bytes()).remove(0)?)
}

/// The control of all games, as the clocks take it.
pub fn control() -> ClockControl {
    CONTROL.parse().expect("our own control is one")
}

fn table(
    choice: &Choice,
    index: usize,
    boards: usize,
    family: Option<Family>,
    speed: f64,
) -> Result<TableProgramme, ProgrammeError> {
    let name = (index + 1).to_string();
    let kinds = match (choice, family) {
        (Choice::BuiltIn { .. }, None) => &BUILT_IN[..],
        (Choice::BuiltIn { .. }, Some(Family::Psb1)) => &BUILT_IN[2..],
        _ => &BUILT_IN[..2],
    };
    let kind = &kinds[index % kinds.len()];
    let seed = kind.seeds[index / kinds.len() % kind.seeds.len()];
    let family = match choice {
        Choice::BuiltIn { .. } => kind.family,
        Choice::Games(_) => family.unwrap_or_default(),
    };
    let mut hands = Hands::new(Level::Human, seed)
        .with_pace(Pace::Mean((THINK_MS as f64 / speed) as Millis))
        .with_rest(REST_MS);
    let (games, scene) = match choice {
        Choice::BuiltIn { rounds } => (vec![built_in(kind.game)?; *rounds], kind.scene),
        Choice::Games(games) => {
            let own = games.iter().skip(index).step_by(boards).cloned();
            (own.collect(), plain_scene as fn(&SimGame) -> Scene)
        }
    };
    let script = hands.series(&games, scene).ok_or(ProgrammeError::Empty)?;
    let announced = match choice {
        Choice::BuiltIn { .. } => announce(&script, family),
        Choice::Games(_) => vec![format!("{} of the file", counted(games.len(), "game"))],
    };
    Ok(TableProgramme {
        name,
        family,
        boards: vec![(index, family)],
        rotated: false,
        paired: false,
        script,
        announced,
    })
}

/// What happens in the first game, in words.
fn announce(script: &Script, family: Family) -> Vec<String> {
    let Some(game) = script.games.first() else {
        return Vec::new();
    };
    let mut lines = vec![counted(game.plies.len(), "ply")];
    if family == Family::Psb1 {
        lines.push("the board sees only which squares are occupied, and no clock".into());
    }
    for incident in &game.incidents {
        let squares: Vec<String> = incident.squares.iter().map(Square::to_string).collect();
        let squares = squares.join("-");
        let at = format!(
            "{}{}",
            incident.ply.div_ceil(2),
            if incident.ply % 2 == 1 { "." } else { "..." }
        );
        lines.push(match incident.kind {
            IncidentKind::IllegalThenCorrected => {
                format!("{at} a pinned knight is moved ({squares}) and put back before the press")
            }
            IncidentKind::IllegalPressedThenRestored => {
                format!("{at} a pinned knight is moved ({squares}) and the clock pressed; then all is put right")
            }
            IncidentKind::KnockedOver => {
                format!("{at} a man is knocked over ({squares}) and put back")
            }
            IncidentKind::Analysis => "after a handshake, with stopped clocks, analysis".into(),
            IncidentKind::ResultKings => "the kings in the centre show the result".into(),
            IncidentKind::SetUp => "the men are set up again".into(),
            // Only faulty hands do more, and the demo's are not.
            kind => format!("{at} {kind} ({squares})"),
        });
    }
    lines
}

fn counted(n: usize, what: &str) -> String {
    match (n, what) {
        (1, _) => format!("1 {what}"),
        (_, "ply") => format!("{n} plies"),
        _ => format!("{n} {what}s"),
    }
}

/// In the Steinitz Defence the black knight on c6 is pinned from 3...d6 on.
fn pinned_scene(game: &SimGame) -> Scene {
    Scene::new()
        .stray_then_corrected_before_press(CORRECTED.0, CORRECTED.1, CORRECTED.2)
        .stray_pressed_then_restored(PRESSED.0, PRESSED.1, PRESSED.2)
        .result_kings(game.result)
}

fn handshake_scene(_: &SimGame) -> Scene {
    Scene::new()
        .one_knocked_over_and_put_back(KNOCKED.0, KNOCKED.1, KNOCKED.2)
        .handshake_and_analysis()
        .reset_to_start()
}

/// What a board without names and without a clock can show: that men stand astray, and a game that ends on the board.
fn presence_scene(_: &SimGame) -> Scene {
    Scene::new().one_knocked_over_and_put_back(KNOCKED.0, KNOCKED.1, KNOCKED.2)
}

/// Games that do not end on the board end with the kings in the centre, as far as the result is known.
fn plain_scene(game: &SimGame) -> Scene {
    match game.last_position().is_game_over() {
        true => Scene::new(),
        false => Scene::new().result_kings(game.result),
    }
}

const PINNED: &str = "[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 d6 4. d4 exd4 5. Nxd4 Bd7 6. Nc3 Nf6 7. O-O Be7 8. Re1 O-O \
    9. Bxc6 bxc6 10. Qd3 Re8 11. Bf4 h6 12. Rad1 Bf8 1-0\n";

/// With an en passant capture and a castling on each side.
const HANDSHAKE: &str = "1. e4 e6 2. e5 d5 3. exd6 cxd6 4. d4 Nf6 5. Nf3 Be7 6. Bd3 O-O 7. O-O Nc6 8. c3 b6 9. Re1 Bb7 *\n";

/// With an en passant capture and both castlings. It ends in mate, as no clock tells of a handshake; and by a move that takes nothing,
/// as nobody tells any more which man it would have been.
const PRESENCE: &str = "[Result \"1-0\"]\n\n1. e4 e6 2. e5 d5 3. exd6 Bxd6 4. d4 Nf6 5. Nf3 O-O 6. Bd3 Nc6 7. O-O b6 8. Bg5 Be7 \
    9. Bxf6 Bxf6 10. Qe2 h5 11. Qe4 Bd7 12. Qh7# 1-0\n";

/// A game of ours, and how it is played.
struct BuiltIn {
    family: Family,
    game: &'static str,
    scene: fn(&SimGame) -> Scene,
    /// Players who are done in time: chance makes a game up to half a minute longer.
    seeds: [u64; 5],
}

const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        family: Family::Dgt,
        game: PINNED,
        scene: pinned_scene,
        seeds: [20, 43, 58, 14, 44],
    },
    BuiltIn {
        family: Family::Dgt,
        game: HANDSHAKE,
        scene: handshake_scene,
        seeds: [18, 23, 2, 9, 13],
    },
    BuiltIn {
        family: Family::Psb1,
        game: PRESENCE,
        scene: presence_scene,
        seeds: [1, 2, 3, 4, 5],
    },
];

/// Ply, from, to.
const CORRECTED: (usize, Square, Square) = (8, Square::C6, Square::B4);
const PRESSED: (usize, Square, Square) = (10, Square::C6, Square::E5);
const KNOCKED: (usize, Square, Square) = (11, Square::A7, Square::B6);

/// What a move takes on average besides the handling of the men.
const THINK_MS: Millis = 700;

/// The same in the hall, where the rounds follow a timetable.
const AFTERNOON_THINK_MS: Millis = 550;

/// So long a built-in game takes at most at the usual speed, that all is over within two minutes.
#[cfg(test)]
pub const MOST_MS: Millis = 85_000;

/// Longer than the kings must stand (5 s), and than the array must before a first move (2 s).
const REST_MS: Millis = 6_500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::illegal::Attempt;
    use crate::laws::position;
    use crate::publish::IllegalReason;
    use shakmaty::Color;

    fn position_before(game: &SimGame, ply: usize) -> position::Position {
        let mut position = position::Position::initial();
        for &m in &game.moves[..ply - 1] {
            position = position.play(m);
        }
        position
    }

    #[test]
    fn the_knight_that_strays_is_pinned() {
        let game = built_in(PINNED).unwrap();
        assert!((20..=30).contains(&game.moves.len()));
        for (ply, from, to) in [CORRECTED, PRESSED] {
            let position = position_before(&game, ply);
            assert_eq!(position.turn(), Color::Black);
            assert_eq!(position.board().piece_at(to), None);
            let knight = Color::Black.knight();
            assert_eq!(position.board().piece_at(from), Some(knight));
            let attempt = Attempt::One {
                from,
                to,
                man: knight,
                placed: knight,
            };
            assert_eq!(attempt.reason(&position), IllegalReason::OwnKingInCheck);
        }
    }

    #[test]
    fn the_man_that_falls_makes_no_move() {
        let game = built_in(HANDSHAKE).unwrap();
        let (ply, from, to) = KNOCKED;
        let position = position_before(&game, ply);
        let fallen = position.board().piece_at(from).unwrap();
        assert_eq!(fallen.color, position.turn().other());
        assert_eq!(position.board().piece_at(to), None);
    }

    /// After the hands have learnt something new, this tells which players are.
    #[test]
    fn the_built_in_players_are_done_in_time() {
        for kind in &BUILT_IN {
            let game = built_in(kind.game).unwrap();
            let is_quick = |seed: &u64| {
                let mut hands = Hands::new(Level::Human, *seed)
                    .with_pace(Pace::Mean(THINK_MS))
                    .with_rest(REST_MS);
                let script = hands.series(std::slice::from_ref(&game), kind.scene);
                script.unwrap().actions.last().unwrap().at_ms < MOST_MS
            };
            let slow: Vec<u64> = kind
                .seeds
                .into_iter()
                .filter(|seed| !is_quick(seed))
                .collect();
            assert!(
                slow.is_empty(),
                "{slow:?} are slow; quick are {:?}",
                (1..120).filter(is_quick).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn games_that_no_table_opens_are_refused() {
        let later = built_in("[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]\n\n1. e4 *\n");
        let usual = built_in("1. e4 *\n").unwrap();
        assert_eq!(from_the_array(vec![usual.clone()]).unwrap().len(), 1);
        let refused = from_the_array(vec![usual, later.unwrap()]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "game 1 starts from a position of its own"
        );
    }

    #[test]
    fn the_games_of_a_file_are_dealt_in_turn() {
        let text = "1. e4 *\n\n1. d4 *\n\n1. c4 *\n";
        let choice = Choice::Games(
            pgn::read(text.as_bytes())
                .into_iter()
                .map(Result::unwrap)
                .collect(),
        );
        let first = |table: &TableProgramme| -> Vec<String> {
            let games = table.script.games.iter();
            games.map(|game| game.plies[0].uci.clone()).collect()
        };
        let tables = programme(&choice, 2, None, 1.0).unwrap();
        let dealt: Vec<_> = tables.iter().map(first).collect();
        assert_eq!(dealt, [vec!["e2e4", "c2c4"], vec!["d2d4"]]);
        assert_eq!(programme(&choice, 9, None, 1.0).unwrap().len(), 3);
    }

    #[test]
    fn speed_shortens_only_the_thinking() {
        let last = |speed: f64| {
            let tables = programme(&Choice::BuiltIn { rounds: 1 }, 1, None, speed).unwrap();
            tables[0].script.actions.last().unwrap().at_ms
        };
        let (usual, fast, slow) = (last(1.0), last(1000.0), last(0.5));
        assert!(fast < usual && usual < slow);
        assert!(fast > 40_000, "{fast}");
    }
}

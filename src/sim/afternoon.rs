//! An afternoon in a hall: eight tables, three rounds, and all that happens between the games.
//!
//! What users of other programs reported of such afternoons (cases J and K) happens at one table or another: men that come from the
//! box one by one, a wrong set-up that is put right, a guest's first moves, a player who begins before the clock runs, a queen that
//! has to be fetched, kings left standing, games that nobody ended, analysis, moves for fun from the array, boards that change tables.

use shakmaty::{Board, Chess, Position, Square};

use super::hands::{Hands, Level, Pace};
use super::pgn::{self, SimGame};
use super::scene::Scene;
use super::script::{Act, GameTruth, Incident, IncidentKind, Script, Table};
use crate::Millis;
use crate::wire::Family;

/// One table's afternoon.
#[derive(Debug, Clone)]
pub struct TableAfternoon {
    /// The boards that stand on it one after the other: the place of the table at which each begins, and what it speaks.
    pub boards: Vec<(usize, Family)>,
    /// Whether the first board stands the other way round.
    pub rotated: bool,
    /// Whether the hall's computer is told who plays; else its games begin by the array alone.
    pub paired: bool,
    pub script: Script,
}

/// How many tables there are.
pub const TABLES: usize = BOARDS.len();

/// How many games are played at each.
pub const ROUNDS: usize = 3;

/// What the boards speak, each at its own table at first.
pub const BOARDS: [Family; 8] = [
    Family::Dgt,
    Family::Dgt,
    Family::Dgt,
    Family::Dgt,
    Family::Dgt,
    Family::Dgt,
    Family::Psb1,
    Family::Psb1,
];

/// The afternoon at the table of this place, 0 to 7; the same seed and pace give the same.
pub fn table(place: usize, seed: u64, pace: Pace) -> Option<TableAfternoon> {
    let plan = plan(place)?;
    let mut hands = Hands::new(Level::Human, seed.wrapping_mul(31) + place as u64)
        .with_pace(pace)
        .with_rest(REST_MS);
    let mut boards = vec![place];
    boards.extend(plan.swapped_with);
    Some(TableAfternoon {
        boards: (boards.into_iter())
            .map(|board| (board, BOARDS[board]))
            .collect(),
        rotated: plan.rotated,
        paired: plan.paired,
        script: hands.afternoon(&plan),
    })
}

/// What happens at a table.
#[derive(Debug)]
struct Plan {
    rotated: bool,
    paired: bool,
    swapped_with: Option<usize>,
    rounds: Vec<Round>,
}

/// A game, and what comes before it.
#[derive(Debug)]
struct Round {
    before: Vec<Before>,
    game: SimGame,
    scene: Scene,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The men are in the box, and come out in any order; some are put down twice.
    FromTheBox,
    /// Another board is put on the table, this way round, while the men are in the box.
    Swap { rotated: bool },
    /// The pairing is told.
    Paired,
    /// The men are set up as they belong.
    SetUp,
    /// The men are set up, two of them on each other's squares, until somebody says so.
    Wrong(Square, Square),
    /// Some men are straightened.
    Adjusted,
    /// A guest makes White's first two moves, and they are taken back (case J5).
    Honorary,
}

fn plan(place: usize) -> Option<Plan> {
    use Before::*;
    let (rotated, paired, swapped_with, rounds) = match place {
        0 => (
            false,
            true,
            None,
            vec![
                Round::of(SPANISH, [FromTheBox], |scene, game| {
                    scene.result_kings(game.result)
                }),
                Round::of(
                    QUEENS_GAMBIT,
                    [Paired, Wrong(Square::B1, Square::C1)],
                    |scene, game| scene.result_kings(game.result).handshake_and_analysis(),
                ),
                Round::of(LEGAL, [Paired, SetUp], |scene, _| {
                    scene.handshake_and_analysis().reset_to_start()
                }),
            ],
        ),
        1 => (
            true,
            true,
            None,
            vec![
                Round::of(QUEEN_FETCHED, [Adjusted], |scene, game| {
                    scene
                        .man_fetched(9)
                        .result_kings(game.result)
                        .reset_to_start()
                }),
                Round::of(ENGLISH, [Paired, SetUp, Honorary], |scene, game| {
                    scene.result_kings(game.result)
                }),
                Round::of(RETI, [SetUp, Paired], |scene, _| {
                    scene.starts_early().handshake_and_analysis()
                }),
            ],
        ),
        2 => (
            false,
            true,
            Some(3),
            vec![
                Round::of(EN_PASSANT, [Adjusted], |scene, _| {
                    scene.handshake_and_analysis()
                }),
                Round::of(
                    SPANISH,
                    [Swap { rotated: true }, Paired, FromTheBox],
                    |scene, game| scene.starts_early().result_kings(game.result),
                ),
                Round::of(LASKER, [Paired, SetUp], |scene, game| {
                    scene.man_fetched(14).result_kings(game.result)
                }),
            ],
        ),
        3 => (
            false,
            true,
            Some(2),
            vec![
                Round::of(RETI, [FromTheBox], |scene, _| {
                    scene.handshake_and_analysis()
                }),
                Round::of(
                    QUEEN_FETCHED,
                    [
                        Paired,
                        Swap { rotated: false },
                        Wrong(Square::D8, Square::E8),
                    ],
                    |scene, game| scene.man_fetched(9).result_kings(game.result),
                ),
                Round::of(QUEENS_GAMBIT, [Paired, SetUp], |scene, _| {
                    scene
                        .men_adjusted(5)
                        .handshake_and_analysis()
                        .reset_to_start()
                }),
            ],
        ),
        4 => (
            false,
            true,
            None,
            vec![
                Round::of(ENGLISH, [], |scene, game| {
                    scene
                        .result_kings(game.result)
                        .handshake_and_analysis()
                        .played_for_fun()
                }),
                Round::of(EN_PASSANT, [Paired], |scene, game| {
                    scene
                        .dispute(7)
                        .result_entered(game.result)
                        .handshake_and_analysis()
                }),
                Round::of(SPANISH, [Paired, SetUp, Honorary], |scene, game| {
                    scene.result_kings(game.result)
                }),
            ],
        ),
        5 => (
            false,
            false,
            None,
            vec![
                Round::of(QUEEN_FETCHED, [], |scene, _| {
                    scene
                        .man_fetched(9)
                        .handshake_and_analysis()
                        .reset_to_start()
                }),
                Round::of(LASKER, [SetUp], |scene, game| {
                    scene
                        .starts_early()
                        .man_fetched(14)
                        .result_kings(game.result)
                }),
                Round::of(QUEENS_GAMBIT, [SetUp], |scene, _| {
                    scene.dispute(6).handshake_and_analysis().reset_to_start()
                }),
            ],
        ),
        6 => (
            false,
            true,
            Some(7),
            vec![
                Round::of(STONEWALL, [FromTheBox], |scene, _| {
                    scene.handshake_and_analysis().reset_to_start()
                }),
                Round::of(KINGS_INDIAN, [Paired, SetUp], |scene, game| {
                    scene.result_entered(game.result).handshake_and_analysis()
                }),
                Round::of(
                    FOOLS_MATE,
                    [Swap { rotated: false }, Paired, FromTheBox],
                    |scene, _| scene.handshake_and_analysis(),
                ),
            ],
        ),
        7 => (
            false,
            false,
            Some(6),
            vec![
                Round::of(FOOLS_MATE, [Adjusted], |scene, _| {
                    scene.handshake_and_analysis().reset_to_start()
                }),
                Round::of(GROBS_MATE, [SetUp], |scene, _| {
                    scene.handshake_and_analysis()
                }),
                Round::of(
                    STONEWALL,
                    [Swap { rotated: false }, FromTheBox],
                    |scene, _| scene.reset_to_start(),
                ),
            ],
        ),
        _ => return None,
    };
    Some(Plan {
        rotated,
        paired,
        swapped_with,
        rounds,
    })
}

impl Round {
    fn of<const N: usize>(
        game: &str,
        before: [Before; N],
        scene: fn(Scene, &SimGame) -> Scene,
    ) -> Round {
        let game = pgn::read(game.as_bytes())
            .remove(0)
            .expect("our own game can be played");
        Round {
            before: before.to_vec(),
            scene: scene(Scene::new(), &game),
            game,
        }
    }
}

impl Hands {
    fn afternoon(&mut self, plan: &Plan) -> Script {
        let first = plan.rounds.first();
        let boxed = first.is_some_and(|round| round.before.contains(&Before::FromTheBox));
        let mut table = Table::new(match boxed {
            true => Board::empty(),
            false => Board::new(),
        });
        let mut games = Vec::new();
        for (index, round) in plan.rounds.iter().enumerate() {
            let begins_ms = ROUND_MS * index as u64;
            if index > 0 {
                table.now = table.now.max(begins_ms);
            }
            let mut incidents = Vec::new();
            for &before in &round.before {
                let from_ms = table.now;
                let told = self.before(&mut table, before, index, begins_ms);
                incidents.extend(told.map(|(kind, squares)| Incident {
                    kind,
                    ply: 1,
                    side: None,
                    squares,
                    breach: None,
                    from_ms,
                    due_ms: None,
                    to_ms: Some(table.now),
                    in_outline: true,
                }));
            }
            table.act(Act::ClockReset);
            table.wait(ARRAY_MS);
            let mut truth: GameTruth = self.play_game(&mut table, &round.game, &round.scene);
            truth.number = index + 1;
            incidents.append(&mut truth.incidents);
            truth.incidents = incidents;
            games.push(truth);
        }
        table.finish(games)
    }

    /// Does what comes before a game; tells what of it somebody could have seen.
    fn before(
        &mut self,
        table: &mut Table,
        before: Before,
        index: usize,
        begins_ms: Millis,
    ) -> Option<(IncidentKind, Vec<Square>)> {
        match before {
            Before::FromTheBox => {
                self.take_from_the_box(table);
                None
            }
            Before::Swap { rotated } => {
                table.now = table.now.max(begins_ms + self.between(0, 800));
                table.act(Act::Unplugged);
                for square in table.board.occupied() {
                    table.lift(square);
                }
                let back_ms = begins_ms + SWAP_MS + self.between(0, 800);
                table.now = back_ms.max(table.now + LEAST_SWAP_MS);
                table.act(Act::Plugged { rotated });
                table.wait(1_500);
                Some((IncidentKind::BoardSwapped, Vec::new()))
            }
            Before::Paired => {
                table.act(Act::Paired {
                    round: (index + 1) as u8,
                });
                table.wait(self.between(500, 1_500));
                None
            }
            Before::SetUp => {
                self.set_up(table, &Board::new());
                None
            }
            Before::Wrong(one, other) => {
                let mut wrong = Board::new();
                let men = [wrong.remove_piece_at(one), wrong.remove_piece_at(other)];
                for (square, man) in [one, other].into_iter().zip(men.into_iter().rev()) {
                    if let Some(man) = man {
                        wrong.set_piece_at(square, man);
                    }
                }
                self.set_up(table, &wrong);
                table.wait(WRONG_MS);
                self.set_up(table, &Board::new());
                Some((IncidentKind::SetUpWrong, vec![one, other]))
            }
            Before::Adjusted => {
                table.wait(ARRAY_MS);
                let men = table.board.occupied();
                Some((IncidentKind::Adjusted, self.adjust(table, men)))
            }
            Before::Honorary => {
                table.wait(ARRAY_MS);
                let start = Chess::default();
                let moves = [(Square::E2, Square::E4), (Square::D2, Square::D4)];
                for (from, to) in moves {
                    if let Some(man) = table.lift(from) {
                        table.wait(self.hand_ms());
                        table.place(to, man);
                        table.wait(self.between(2_500, 4_500));
                    }
                }
                self.set_up(table, start.board());
                let squares = moves.into_iter().flat_map(|(from, to)| [from, to]);
                Some((IncidentKind::Honorary, squares.collect()))
            }
        }
    }

    /// All men from the box, in any order; some are put down beside their squares first (case J6).
    fn take_from_the_box(&mut self, table: &mut Table) {
        for square in table.board.occupied() {
            table.lift(square);
            table.wait(self.hand_ms() / 4);
        }
        let array = Board::new();
        let mut squares: Vec<Square> = array.occupied().into_iter().collect();
        self.shuffle(&mut squares);
        for square in squares {
            let Some(man) = array.piece_at(square) else {
                continue;
            };
            if self.chance(TWICE) {
                let free = !(array.occupied() | table.board.occupied());
                if let Some(beside) = self.pick(free) {
                    table.place(beside, man);
                    table.wait(self.hand_ms());
                    table.lift(beside);
                    table.wait(self.hand_ms() / 2);
                }
            }
            table.place(square, man);
            table.wait(self.hand_ms() / 2);
        }
    }
}

const SPANISH: &str =
    "[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 1-0\n";

const QUEENS_GAMBIT: &str = "[Result \"1/2-1/2\"]\n\n1. d4 d5 2. c4 dxc4 3. e4 e5 4. Nf3 exd4 5. Bxc4 Bb4+ 6. Nbd2 Nc6 1/2-1/2\n";

const ENGLISH: &str =
    "[Result \"0-1\"]\n\n1. c4 e5 2. Nc3 Nf6 3. g3 d5 4. cxd5 Nxd5 5. Bg2 Nb6 6. Nf3 Nc6 0-1\n";

const RETI: &str = "[Result \"1/2-1/2\"]\n\n1. Nf3 d5 2. g3 c5 3. Bg2 Nc6 4. d4 e6 5. O-O Nf6 6. c4 dxc4 1/2-1/2\n";

/// With an en passant capture and a castling.
const EN_PASSANT: &str = "[Result \"1/2-1/2\"]\n\n1. e4 e6 2. e5 d5 3. exd6 cxd6 4. d4 Nf6 5. Nf3 Be7 6. Bd3 O-O 1/2-1/2\n";

/// White's second queen comes at the ninth ply, by a capture.
const QUEEN_FETCHED: &str =
    "[Result \"1-0\"]\n\n1. e4 d5 2. exd5 c6 3. dxc6 Qb6 4. cxb7 Nf6 5. bxa8=Q Qc7 6. Nf3 e6 1-0\n";

/// Lasker's trap in the Albin Countergambit: Black takes a knight at the fourteenth ply.
const LASKER: &str = "[Result \"0-1\"]\n\n1. d4 d5 2. c4 e5 3. dxe5 d4 4. e3 Bb4+ 5. Bd2 dxe3 6. Bxb4 exf2+ 7. Ke2 fxg1=N+ 8. Ke1 Qh4+ 0-1\n";

/// Légal's mate.
const LEGAL: &str = "[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 d6 3. Bc4 Bg4 4. Nc3 g6 5. Nxe5 Bxd1 6. Bxf7+ Ke7 7. Nd5# 1-0\n";

const FOOLS_MATE: &str = "[Result \"0-1\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n";

const GROBS_MATE: &str = "[Result \"1-0\"]\n\n1. e4 g5 2. Nc3 f5 3. Qh5# 1-0\n";

/// A trap of the Dutch Defence.
const STONEWALL: &str = "[Result \"1-0\"]\n\n1. d4 f5 2. Bg5 h6 3. Bh4 g5 4. e4 gxh4 5. Qh5# 1-0\n";

const KINGS_INDIAN: &str =
    "[Result \"1/2-1/2\"]\n\n1. Nf3 Nf6 2. g3 g6 3. Bg2 Bg7 4. O-O O-O 5. d3 d6 1/2-1/2\n";

/// So long a round takes at most, with what comes before it.
const ROUND_MS: Millis = 70_000;

/// Boards that change tables are plugged in so long after the round's beginning.
const SWAP_MS: Millis = 4_000;

/// Nobody does it faster.
const LEAST_SWAP_MS: Millis = 2_500;

/// So long a wrong set-up stands.
const WRONG_MS: Millis = 8_000;

/// The array has to stand for two seconds before a first move.
const ARRAY_MS: Millis = 2_600;

/// Longer than the kings must stand (5 s).
const REST_MS: Millis = 5_800;

/// Of 1000 men from the box so many are put down twice.
const TWICE: u64 = 150;

#[cfg(test)]
mod tests {
    use super::*;

    /// When the last man is touched in a game and what comes after it.
    fn ended_ms(game: &GameTruth) -> Millis {
        let ended = game.incidents.iter().filter_map(|incident| incident.to_ms);
        ended.max().unwrap_or(0).max(game.to_ms)
    }

    #[test]
    fn games_follow_each_other() {
        for seed in 1..20 {
            for place in 0..TABLES {
                let script = table(place, seed, Pace::Mean(550)).unwrap().script;
                assert_eq!(script.games.len(), ROUNDS);
                for pair in script.games.windows(2) {
                    assert!(ended_ms(&pair[0]) < pair[1].plies[0].touched_ms);
                }
            }
        }
        assert!(table(TABLES, 1, Pace::Mean(550)).is_none());
    }

    /// What an afternoon has to have in it, whatever is changed.
    #[test]
    fn everything_happens() {
        let tables = (0..TABLES).map_while(|place| table(place, 1, Pace::Mean(550)));
        let scripts: Vec<Script> = tables.map(|table| table.script).collect();
        let games = || scripts.iter().flat_map(|script| &script.games);
        for kind in [
            IncidentKind::SetUpWrong,
            IncidentKind::Adjusted,
            IncidentKind::Honorary,
            IncidentKind::EarlyStart,
            IncidentKind::Fetched,
            IncidentKind::Dispute,
            IncidentKind::ForFun,
            IncidentKind::ResultEntered,
            IncidentKind::ResultKings,
            IncidentKind::BoardSwapped,
            IncidentKind::Analysis,
            IncidentKind::SetUp,
        ] {
            let happens = |game: &GameTruth| game.incidents.iter().any(|one| one.kind == kind);
            assert!(games().any(happens), "{kind}");
        }
        assert!(scripts.iter().any(|script| script.start == Board::empty()));
    }
}

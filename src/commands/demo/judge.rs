//! Compares what came over MQTT with what the hands really did.

use std::collections::BTreeMap;

use shakmaty::{Color, Outcome, Position, Square};

use super::news::News;
use crate::Millis;
use crate::publish::{
    AlertBody, AlertKind, CloseReason, Event, EventKind, Game, IllegalReason, MoveState, Phase,
    ResultBy, ResultState, Severity,
};
use crate::sim::pgn;
use crate::sim::script::{Act, GameTruth, Incident, IncidentKind, Played, Script};

/// Collects what is published, and gives its verdict at the end. Times are those of whoever feeds it, on one clock.
#[derive(Debug, Default)]
pub struct Judge {
    tables: BTreeMap<String, Heard>,
    /// The final PGN of closed games, by their ids.
    archives: BTreeMap<String, String>,
}

/// What was really played at a table.
#[derive(Debug)]
pub struct Truth<'a> {
    pub table: &'a str,
    pub games: &'a [GameTruth],
    /// When who pressed, on the judge's clock.
    pub presses: Vec<(Millis, Color)>,
    /// When the script's time 0 was, on the judge's clock.
    pub began_ms: Millis,
}

/// What a comparison came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub games: usize,
    /// Of them so many have a record that equals the game played.
    pub equal: usize,
    /// All that differs, for people.
    pub differences: Vec<String>,
}

/// What was heard of one table.
#[derive(Debug, Default)]
struct Heard {
    /// The last record of each game, in order of appearance.
    games: Vec<Game>,
    /// The id of the current game.
    current: Option<String>,
    /// Each text that stood under `pgn`.
    pgns: Vec<String>,
    alerts: Vec<HeardAlert>,
    /// The moves told, with when.
    told: Vec<ToldMove>,
}

#[derive(Debug)]
struct ToldMove {
    at_ms: Millis,
    ply: u32,
    uci: String,
}

#[derive(Debug)]
struct HeardAlert {
    /// As it was loudest.
    body: AlertBody,
    raised_ms: Millis,
    /// When it first was as loud as that.
    loud_ms: Millis,
    closed: Option<CloseReason>,
}

impl<'a> Truth<'a> {
    /// The truth of a script that began at `began_ms`.
    pub fn new(table: &'a str, script: &'a Script, began_ms: Millis) -> Truth<'a> {
        let presses = script
            .actions
            .iter()
            .filter_map(|action| match action.kind {
                Act::Press { side } => Some((began_ms + action.at_ms, side)),
                _ => None,
            })
            .collect();
        Truth {
            table,
            games: &script.games,
            presses,
            began_ms,
        }
    }
}

impl Judge {
    /// Takes note of what came at `now`.
    pub fn hear(&mut self, now: Millis, news: &News) {
        if let News::Archive { game, text } = news {
            self.archives.insert(game.clone(), text.clone());
        }
        let Some(table) = news.table() else { return };
        let heard = self.tables.entry(table.to_owned()).or_default();
        match news {
            News::Event(event) => heard.event(now, event),
            News::Game(game) => heard.game(game),
            News::Pgn { text, .. } => heard.pgns.push(text.clone()),
            News::Clock(_) | News::Status(_) | News::Archive { .. } => {}
        }
    }

    /// Whether nothing more is to come: every game has its result, every alert is closed, and games without a result are closed
    /// where the men were set up again.
    pub fn is_complete(&self, truths: &[Truth]) -> bool {
        truths.iter().all(|truth| {
            let Some(heard) = self.tables.get(truth.table) else {
                return false;
            };
            let records = heard.records();
            let awaited = |(game, record): (&GameTruth, &&Game)| {
                let reset = game
                    .incidents
                    .iter()
                    .any(|incident| incident.kind == IncidentKind::SetUp);
                let ended = match expected_result(game) {
                    (result, Some(_)) => record.result == result,
                    _ => {
                        !reset
                            || record.phase == Phase::Ended
                            || heard.current.as_ref() != Some(&record.game)
                    }
                };
                ended && record.moves.len() == game.plies.len()
            };
            records.len() == truth.games.len()
                && truth.games.iter().zip(&records).all(awaited)
                && heard
                    .alerts
                    .iter()
                    .all(|alert| alert.closed.is_some() || alert.body.severity == Severity::Info)
        })
    }

    /// Compares all that was heard with all that was played.
    pub fn verdict(&self, truths: &[Truth]) -> Verdict {
        let mut verdict = Verdict::default();
        let nothing = Heard::default();
        for truth in truths {
            let heard = self.tables.get(truth.table).unwrap_or(&nothing);
            heard.compare(truth, &self.archives, &mut verdict);
        }
        verdict
    }
}

impl Heard {
    fn event(&mut self, now: Millis, event: &Event) {
        match &event.kind {
            EventKind::Move(ply) => {
                self.told.push(ToldMove {
                    at_ms: now,
                    ply: ply.ply,
                    uci: ply.uci.clone(),
                });
            }
            EventKind::AlertRaised { alert } => self.alerts.push(HeardAlert {
                body: alert.clone(),
                raised_ms: now,
                loud_ms: now,
                closed: None,
            }),
            EventKind::AlertChanged { alert } => {
                if let Some(known) = self.alerts.iter_mut().find(|a| a.body.id == alert.id) {
                    if alert.severity > known.body.severity {
                        known.loud_ms = now;
                    }
                    if alert.severity >= known.body.severity {
                        known.body = alert.clone();
                    }
                }
            }
            EventKind::AlertClosed { alert, why, .. } => {
                if let Some(known) = self.alerts.iter_mut().find(|a| a.body.id == *alert) {
                    known.closed = Some(*why);
                }
            }
            _ => {}
        }
    }

    fn game(&mut self, game: &Game) {
        self.current = Some(game.game.clone());
        match self.games.iter_mut().find(|known| known.game == game.game) {
            Some(known) => *known = game.clone(),
            None => self.games.push(game.clone()),
        }
    }

    /// The games that have moves: an array that only stood there is none yet.
    fn records(&self) -> Vec<&Game> {
        self.games
            .iter()
            .filter(|game| !game.moves.is_empty())
            .collect()
    }

    fn compare(&self, truth: &Truth, archives: &BTreeMap<String, String>, verdict: &mut Verdict) {
        let table = truth.table;
        let records = self.records();
        verdict.games += truth.games.len();
        for (index, game) in truth.games.iter().enumerate() {
            let name = format!("table {table}, game {}", index + 1);
            let Some(record) = records.get(index) else {
                verdict.differences.push(format!("{name} has no record"));
                continue;
            };
            let before = verdict.differences.len();
            compare_record(&name, game, record, &mut verdict.differences);
            if let Some(archive) = archives.get(&record.game)
                && moves_of(archive).is_none_or(|moves| moves != game.uci())
            {
                let what = format!("{name}: its archived pgn holds other moves");
                verdict.differences.push(what);
            }
            if verdict.differences.len() == before {
                verdict.equal += 1;
            }
        }
        for extra in records.iter().skip(truth.games.len()) {
            let moves: Vec<&str> = extra.moves.iter().map(|m| m.uci.as_str()).collect();
            verdict.differences.push(format!(
                "table {table} has a record of a game that nobody played: {}",
                moves.join(" ")
            ));
        }
        self.compare_pgn(truth, verdict);
        self.compare_quiet(truth, verdict);
        self.compare_alerts(truth, verdict);
    }

    /// While nobody plays, no move is told, whatever is done with the men.
    fn compare_quiet(&self, truth: &Truth, verdict: &mut Verdict) {
        let began = truth.began_ms;
        let mut quiet: Vec<(Millis, Millis, Option<&Played>)> = Vec::new();
        let mut from_ms = 0;
        let mut last = None;
        for game in truth.games {
            let first = game.plies.first();
            let until_ms = first.map_or(game.from_ms, |played| played.touched_ms);
            quiet.push((from_ms, began + until_ms, last));
            let frozen = |incident: &&Incident| incident.kind == IncidentKind::Dispute;
            quiet.extend(game.incidents.iter().filter(frozen).map(|incident| {
                let to_ms = incident.to_ms.unwrap_or(game.to_ms);
                let before = incident.ply.checked_sub(2);
                let before = before.and_then(|index| game.plies.get(index));
                (began + incident.from_ms, began + to_ms, before)
            }));
            from_ms = began + game.to_ms;
            last = game.plies.last();
        }
        quiet.push((from_ms, Millis::MAX, last));
        // A guest's moves look like a game that begins, until they are taken back.
        let honorary: Vec<(Millis, Millis)> = incidents_of(truth)
            .filter(|incident| incident.kind == IncidentKind::Honorary)
            .map(|incident| {
                let to_ms = incident.to_ms.unwrap_or(incident.from_ms);
                (began + incident.from_ms, began + to_ms)
            })
            .collect();
        for told in &self.told {
            let within = |(from, to): (Millis, Millis)| (from..to).contains(&told.at_ms);
            // The last move is told when it stands, which may be just after the clock was stopped.
            let is_last = |last: Option<&Played>| {
                last.is_some_and(|last| last.ply as u32 == told.ply && last.uci == told.uci)
            };
            if quiet
                .iter()
                .any(|&(from, to, last)| within((from, to)) && !is_last(last))
                && !honorary.iter().any(|&times| within(times))
            {
                verdict.differences.push(format!(
                    "table {}: {} was told as ply {} while nobody played, {:.1} s after the beginning",
                    truth.table,
                    told.uci,
                    told.ply,
                    told.at_ms.saturating_sub(began) as f64 / 1000.0
                ));
            }
        }
    }

    /// What stood under `pgn` was at any time the beginning of a game that was played.
    fn compare_pgn(&self, truth: &Truth, verdict: &mut Verdict) {
        for text in &self.pgns {
            for game in pgn::read(text.as_bytes()) {
                let fits = match &game {
                    Ok(game) => {
                        let moves = game.uci();
                        truth.games.iter().any(|played| {
                            let played = played.uci();
                            moves.len() <= played.len()
                                && moves.iter().zip(&played).all(|(a, b)| a == b)
                        })
                    }
                    Err(_) => false,
                };
                if !fits {
                    let moves = text.lines().last().unwrap_or_default();
                    verdict.differences.push(format!(
                        "table {}: the pgn once held moves that nobody played: {moves}",
                        truth.table
                    ));
                    return;
                }
            }
        }
    }

    fn compare_alerts(&self, truth: &Truth, verdict: &mut Verdict) {
        let table = truth.table;
        let mut explained = vec![false; self.alerts.len()];
        let records = self.records();
        let incidents = truth.games.iter().enumerate().flat_map(|(index, game)| {
            let record = records.get(index).map(|record| &record.game);
            game.incidents
                .iter()
                .map(move |incident| (record, incident))
        });
        for (record, incident) in incidents {
            let of_it = |alert: &HeardAlert| {
                alert.body.game.as_ref() == record
                    && u32::try_from(incident.ply).is_ok_and(|ply| ply == alert.body.ply)
                    && shares_a_square(&alert.body, &incident.squares)
            };
            let alerts = self.alerts.iter().enumerate().filter(|(_, a)| of_it(a));
            match incident.kind {
                IncidentKind::IllegalPressedThenRestored => {
                    let what = format!("table {table}: the irregular move at ply {}", incident.ply);
                    let Some((index, alert)) = alerts.max_by_key(|(_, alert)| alert.body.severity)
                    else {
                        verdict.differences.push(format!("{what} got no alert"));
                        continue;
                    };
                    explained[index] = true;
                    verdict.differences.extend(
                        wrong_with(truth, incident, alert)
                            .into_iter()
                            .map(|why| format!("{what}: {why}")),
                    );
                }
                IncidentKind::KnockedOver => {
                    let what = format!(
                        "table {table}: the men knocked over at ply {}",
                        incident.ply
                    );
                    let mut noted = false;
                    for (index, alert) in alerts {
                        noted = true;
                        explained[index] = true;
                        if alert.closed != Some(CloseReason::Restored) {
                            verdict
                                .differences
                                .push(format!("{what}: the alert did not close as restored"));
                        }
                    }
                    if !noted {
                        verdict.differences.push(format!("{what} were not noted"));
                    }
                }
                IncidentKind::SetUpWrong => {
                    let what = format!("table {table}: the wrong set-up");
                    let names_all = |alert: &HeardAlert| {
                        let named =
                            |square: &Square| alert.body.squares.contains(&square.to_string());
                        incident.squares.iter().all(named)
                    };
                    let told = self.alerts.iter().find(|alert| {
                        alert.body.kind == AlertKind::SetupWrong
                            && is_during(truth, incident, alert.raised_ms)
                    });
                    match told {
                        None => verdict.differences.push(format!("{what} was not told")),
                        Some(alert) if !names_all(alert) => verdict.differences.push(format!(
                            "{what}: the alert names the squares {}",
                            alert.body.squares.join(" ")
                        )),
                        Some(alert) if alert.closed != Some(CloseReason::Restored) => {
                            verdict
                                .differences
                                .push(format!("{what}: the alert did not close as restored"));
                        }
                        Some(_) => {}
                    }
                }
                IncidentKind::BoardSwapped => {
                    let told = self.alerts.iter().any(|alert| {
                        alert.body.kind == AlertKind::BoardSwapped
                            && is_during(truth, incident, alert.raised_ms)
                    });
                    if !told {
                        verdict
                            .differences
                            .push(format!("table {table}: the other board was not told"));
                    }
                }
                // Nobody need be told of what is left; other things than these only faulty hands do, and the demo's are not.
                _ => {}
            }
        }
        for (alert, _) in self
            .alerts
            .iter()
            .zip(&explained)
            .filter(|(alert, explained)| !**explained && alert.body.severity > Severity::Info)
            .filter(|(alert, _)| !is_due(truth, alert))
        {
            verdict
                .differences
                .push(format!("an alert without a cause: {}", alert.body.text));
        }
    }
}

fn compare_record(name: &str, game: &GameTruth, record: &Game, differences: &mut Vec<String>) {
    let played = game.uci();
    let recorded: Vec<&str> = record.moves.iter().map(|m| m.uci.as_str()).collect();
    if played != recorded {
        let common = played
            .iter()
            .zip(&recorded)
            .take_while(|(a, b)| a == b)
            .count();
        differences.push(format!(
            "{name} differs from ply {}: played {}, recorded {}",
            common + 1,
            played.get(common).unwrap_or(&"nothing"),
            recorded.get(common).unwrap_or(&"nothing")
        ));
        return;
    }
    let (result, by) = expected_result(game);
    if record.result != result {
        differences.push(format!(
            "{name} ended {result}, its record says {}",
            record.result
        ));
    } else if by.is_some()
        && (record.result_by != by || record.result_state != Some(ResultState::Set))
    {
        differences.push(format!(
            "{name}: the result is {:?} by {:?}",
            record.result_state, record.result_by
        ));
    }
    if by.is_some() && record.moves.iter().any(|m| m.state != MoveState::Final) {
        differences.push(format!("{name} is over, but not all its moves are final"));
    }
    if let Some(doubtful) = record.moves.iter().find(|m| m.doubt.is_some()) {
        differences.push(format!("{name}: ply {} is in doubt", doubtful.ply));
    }
}

/// The moves of a PGN text with one game.
fn moves_of(text: &str) -> Option<Vec<String>> {
    let mut games = pgn::read(text.as_bytes());
    match (games.pop(), games.is_empty()) {
        (Some(Ok(game)), true) => Some(game.uci()),
        _ => None,
    }
}

/// What the record must say of the result, and how it came to it; nothing where nobody showed one.
fn expected_result(game: &GameTruth) -> (String, Option<ResultBy>) {
    let happened = |kind| game.incidents.iter().any(|incident| incident.kind == kind);
    if happened(IncidentKind::ResultKings) {
        return (game.result.to_string(), Some(ResultBy::Kings));
    }
    if happened(IncidentKind::ResultEntered) {
        return (game.result.to_string(), Some(ResultBy::Arbiter));
    }
    match outcome_on_board(game) {
        Some(outcome) => (outcome.to_string(), Some(ResultBy::Board)),
        None => (Outcome::Unknown.to_string(), None),
    }
}

/// How the game ended by the position itself. Demo games start from the array of the men.
fn outcome_on_board(game: &GameTruth) -> Option<Outcome> {
    let mut position = shakmaty::Chess::default();
    for uci in game.uci() {
        let uci: shakmaty::uci::UciMove = uci.parse().ok()?;
        let m = uci.to_move(&position).ok()?;
        position.play_unchecked(m);
    }
    let outcome = position.outcome();
    outcome.is_known().then_some(outcome)
}

fn incidents_of<'a>(truth: &Truth<'a>) -> impl Iterator<Item = &'a Incident> {
    truth.games.iter().flat_map(|game| &game.incidents)
}

/// Whether it was raised while this went on, or just after.
fn is_during(truth: &Truth, incident: &Incident, raised_ms: Millis) -> bool {
    let to_ms = incident.to_ms.unwrap_or(incident.from_ms) + TOLD_WITHIN_MS;
    (truth.began_ms + incident.from_ms..=truth.began_ms + to_ms).contains(&raised_ms)
}

/// Whether an alert louder than `info` has a cause that is on the list.
fn is_due(truth: &Truth, alert: &HeardAlert) -> bool {
    incidents_of(truth).any(|incident| {
        DUE.iter().any(|due| {
            due.of == incident.kind
                && due.kind == alert.body.kind
                && alert.body.severity <= due.at_most
        }) && is_during(truth, incident, alert.raised_ms)
    })
}

/// An alert that has to come where this happens.
struct Due {
    of: IncidentKind,
    kind: AlertKind,
    at_most: Severity,
}

/// Every alert louder than `info` that may come beside those for irregular moves and fallen men, each with its reason.
const DUE: &[Due] = &[
    // A game must not begin from a wrong array (Article 7.2): the arbiter has it put right before the clock is started.
    Due {
        of: IncidentKind::SetUpWrong,
        kind: AlertKind::SetupWrong,
        at_most: Severity::Warn,
    },
    // A board that is pulled off while its game has no result may be one that is played on.
    Due {
        of: IncidentKind::BoardSwapped,
        kind: AlertKind::BoardMissing,
        at_most: Severity::Warn,
    },
];

/// What is missing of the alert for a pressed irregular move (design: within 2 s of the press, with squares, the way back and both
/// clocks, closed once the board is put right).
fn wrong_with(truth: &Truth, incident: &Incident, alert: &HeardAlert) -> Vec<String> {
    let AlertBody {
        kind,
        severity,
        detail,
        ..
    } = &alert.body;
    let mut wrong = Vec::new();
    if *kind != AlertKind::IllegalMove || detail.reason != Some(IllegalReason::OwnKingInCheck) {
        wrong.push(format!("the alert says {kind:?}, {:?}", detail.reason));
    }
    if *severity != Severity::Urgent {
        wrong.push(format!("the alert is only {severity:?}"));
    }
    let to_ms = incident.to_ms.unwrap_or(incident.from_ms);
    let during = truth.began_ms + incident.from_ms..=truth.began_ms + to_ms;
    let press = truth.presses.iter().find(|(at, _)| during.contains(at));
    match press {
        Some((press, _)) => {
            let after = alert.loud_ms.saturating_sub(*press);
            if after > ALERT_WITHIN_MS {
                wrong.push(format!("the alert came {after} ms after the press"));
            }
        }
        None => wrong.push("nobody pressed".into()),
    }
    if !incident
        .squares
        .iter()
        .all(|square| alert.body.squares.contains(&square.to_string()))
    {
        wrong.push(format!(
            "the alert names the squares {}",
            alert.body.squares.join(" ")
        ));
    }
    if detail.way_back.is_empty() {
        wrong.push("the alert names no way back".into());
    }
    if detail.white_ms.is_none() || detail.black_ms.is_none() {
        wrong.push("the alert lacks the clocks".into());
    }
    if alert.closed != Some(CloseReason::Restored) {
        wrong.push("the alert did not close as restored".into());
    }
    wrong
}

fn shares_a_square(alert: &AlertBody, squares: &[Square]) -> bool {
    squares
        .iter()
        .any(|square| alert.squares.contains(&square.to_string()))
}

/// Whatever is to be told of something is told within this time after it.
const TOLD_WITHIN_MS: Millis = 5_000;

/// How soon the arbiter hears of a pressed irregular move.
const ALERT_WITHIN_MS: Millis = 2_000;

#[cfg(test)]
mod tests {
    use super::super::programme::{Choice, MOST_MS, programme};
    use super::*;
    use crate::publish::Publication;
    use crate::replay;
    use crate::session::Settings;
    use crate::sim::board::VirtualBoard;
    use crate::sim::player::TableOptions;
    use crate::sim::{self, Traced};
    use crate::trace;

    /// A table's programme through the pipeline, in virtual time.
    fn played(index: usize, rounds: usize) -> (Script, Traced, Vec<(Millis, Publication)>) {
        let table = programme(&Choice::BuiltIn { rounds }, 15, None, 1.0)
            .unwrap()
            .remove(index);
        let options = TableOptions {
            control: Some(super::super::programme::control()),
            ..TableOptions::of(table.family)
        };
        let board = VirtualBoard::of(table.family).unwrap();
        let traced = sim::trace_script(table.script.clone(), board, &options);
        let mut trace = traced.to_trace();
        // What is no board's to tell, no board tells.
        trace
            .lines
            .retain(|line| !matches!(line.event, trace::Event::Command(_)));
        let settings = replay::settings(&trace, Settings::new(table.name)).unwrap();
        let replayed = replay::replay(&trace, settings);
        (table.script, traced, replayed.publications)
    }

    fn judged(publications: &[(Millis, Publication)]) -> Judge {
        let mut judge = Judge::default();
        for (at, publication) in publications {
            let topic = publication.topic.path("demo");
            if let Some(news) = News::read(&topic, publication.body.to_text().as_bytes()) {
                judge.hear(*at, &news);
            }
        }
        judge
    }

    #[test]
    fn the_built_in_games_pass() {
        for index in 0..15 {
            let (script, traced, publications) = played(index, 1);
            let name = (index + 1).to_string();
            let truth = [Truth::new(&name, &script, traced.began_ms)];
            let judge = judged(&publications);
            let verdict = judge.verdict(&truth);
            assert_eq!(verdict.differences, Vec::<String>::new(), "table {name}");
            assert_eq!((verdict.games, verdict.equal), (1, 1));
            assert!(judge.is_complete(&truth), "table {name}");
            let last = script.actions.last().unwrap().at_ms;
            assert!(last < MOST_MS, "table {name} takes {last} ms");
        }
    }

    #[test]
    fn several_rounds_pass() {
        for index in 0..3 {
            let (script, traced, publications) = played(index, 3);
            let name = (index + 1).to_string();
            let truth = [Truth::new(&name, &script, traced.began_ms)];
            let judge = judged(&publications);
            let verdict = judge.verdict(&truth);
            assert_eq!(verdict.differences, Vec::<String>::new(), "table {name}");
            assert_eq!((verdict.games, verdict.equal), (3, 3));
            assert!(!judge.archives.is_empty());
        }
    }

    #[test]
    fn what_is_missing_is_told() {
        let (script, traced, publications) = played(0, 1);
        let truth = [Truth::new("1", &script, traced.began_ms)];

        let nothing = Judge::default().verdict(&truth);
        assert_eq!(nothing.equal, 0);
        assert!(nothing.differences[0].contains("no record"));
        assert!(nothing.differences.iter().any(|d| d.contains("no alert")));

        // Without the urgent alert.
        let silenced: Vec<_> = publications
            .iter()
            .filter(|(_, publication)| !publication.body.to_text().contains("\"urgent\""))
            .cloned()
            .collect();
        let verdict = judged(&silenced).verdict(&truth);
        assert_eq!(verdict.equal, 1);
        assert!(!verdict.differences.is_empty());

        // Another game than the one played.
        let mut other = script.clone();
        other.games[0].plies[4].uci = "a2a3".into();
        let verdict = judged(&publications).verdict(&[Truth::new("1", &other, traced.began_ms)]);
        assert_eq!(verdict.equal, 0);
        assert!(verdict.differences[0].contains("differs from ply 5: played a2a3, recorded f1b5"));
        assert!(verdict.differences.iter().any(|d| d.contains("pgn")));
    }
}

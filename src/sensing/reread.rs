//! Reads a stretch of play anew from all that was seen of it: which plies, one after the other, explain every change of every square.
//!
//! The stretch is gone through once. At each change every reading so far goes on without a ply, and with each ply that the squares speak
//! for by then; the likeliest are carried on. So no ply is read before what follows it is known. What a reading cannot explain speaks
//! against it: changes that were never told, men that stand where nobody put them, squares that changed for nothing.

use super::film::Scene;
use super::trail::LOOK_MS;
use super::weigh::{EXCHANGED_UNSEEN, OVERWRITTEN, PASSED_BESIDE, TAKEN_AWAY, Weight, implausible};
use crate::Millis;
use crate::board::{Contents, Picture};
use crate::laws::position::Position;
use shakmaty::{Bitboard, Board, ByColor, Color, Move, Piece, Role, Square, attacks};
use std::collections::{HashMap, HashSet, VecDeque};

/// A change that the board never told: one of a hundred.
const UNTOLD: Weight = 46;
/// The same while the board could not be heard.
const UNHEARD: Weight = 5;
/// A change that was told after the ply was made.
const TOLD_LATE: Weight = 3;
/// So long after it.
const LATE_MS: Millis = 1_000;
/// A square on the way of a sliding man.
const PASSED: Weight = 5;
/// A captured man on his way off the board, who has not left the square yet.
const STILL_PASSING: Weight = 15;
/// A square that changed, and changed back, for nothing.
const TOUCHED: Weight = 30;
/// After so long it was for nothing.
const TOUCH_MS: Millis = 2_000;
/// Who stands for so long is not passing.
const STAYED_MS: Millis = 400;
/// A square of a ply that changed and changed back before.
const AGAIN: Weight = 25;
/// A man who is not seen for a moment where he stands: he was not put on the middle of his square.
const FLICKER: Weight = 5;
const FLICKER_MS: Millis = 300;
/// A man who was not seen to arrive, for another one came to stand there.
const RETAKEN: Weight = 15;
/// So soon after he had been lifted.
const RETAKEN_MS: Millis = 1_000;
/// The pawn waits for its exchange.
const WAITS: Weight = 20;
/// A man that none of the plies put there.
const UNEXPLAINED: Weight = 60;
/// The same while the plies that did may still be seen.
const UNEXPLAINED_YET: Weight = 8;
const YET_MS: Millis = 500;
/// A second man of one side in the hand.
const SECOND_HAND: Weight = 25;
/// A man that has been in the hand for so long when the stretch is read: who plays fast holds none.
const HELD: Weight = 15;
const HELD_MS: Millis = 1_000;
/// A ply while another man of its side is in the hand.
const LEFT_IN_HAND: Weight = 20;
/// Pressed before any move was seen.
const PRESSED_EARLY: Weight = 12;
/// Pressed while the man that was moved last is in the hand.
const PRESSED_HOLDING: Weight = 25;
/// A side moves again and has not pressed between.
const NOT_PRESSED: Weight = 5;
/// A man goes on in his direction from where he has just stopped, as another ply.
const GONE_ON: Weight = 20;
const STOP_MS: Millis = 250;
/// Squares are told so much out of order, and what speaks against that.
const DISORDER: [(Millis, Weight); 4] = [(20, 0), (60, 4), (300, 12), (1_000, 40)];

/// So many readings are carried on.
const WIDTH: usize = 64;
/// None is that is so much less likely than the likeliest.
const KEPT: Weight = 90;
/// Of a reading that leads to the same position in another way so many are remembered.
const OTHERS: usize = 8;
/// More plies than these are not tried: whoever needs more cannot be followed, and the board's other messages wait.
const MOST: usize = 20_000;
/// No more plies are made at once.
const AT_ONCE: usize = 4;

/// What may have been played.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) plies: Vec<(Move, Millis)>,
    pub(super) weight: Weight,
    /// Men stand where none of the plies put them.
    pub(super) is_unexplained: bool,
}

impl Reading {
    pub(super) fn moves(&self) -> Vec<Move> {
        self.plies.iter().map(|(m, _)| *m).collect()
    }
}

/// A stretch of play: what it begins with, and what was seen of it.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub(super) from: Position,
    /// The ply before it.
    pub(super) last: Option<Move>,
    /// What the board showed at its beginning.
    pub(super) picture: Picture,
    pub(super) since: Millis,
    pub(super) scenes: Vec<(Millis, Scene)>,
}

impl Stretch {
    /// Whether this is the other one, gone on.
    fn goes_on_from(&self, other: &Stretch) -> bool {
        self.since == other.since
            && self.last == other.last
            && self.scenes.starts_with(&other.scenes)
            && self.has_presses() == other.has_presses()
            && self.picture == other.picture
            && self.from == other.from
    }

    /// Presses are told here.
    fn has_presses(&self) -> bool {
        let is_press = |(_, scene): &(Millis, Scene)| matches!(scene, Scene::Press(_));
        self.scenes.iter().any(is_press)
    }
}

/// The stretches that were read last. Hands that never rest have the same one read again at each change: it is read on from where that
/// ended, or it would take the longer each time the longer it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Readers(VecDeque<(Stretch, Reader)>);

/// The last plies of a game, and more of them, are read in turn.
const READERS: usize = super::stretch::STRETCHES.len();

impl Readers {
    /// All readings of this stretch that are worth a thought, the likeliest first.
    pub(super) fn readings(&mut self, stretch: Stretch, until: Millis) -> Vec<Reading> {
        let known = (self.0.iter()).position(|(known, _)| stretch.goes_on_from(known));
        let (read, mut reader) = match known.and_then(|index| self.0.remove(index)) {
            Some((known, reader)) => (known.scenes.len(), reader),
            None => (0, Reader::new(&stretch)),
        };
        for (at, scene) in &stretch.scenes[read..] {
            // Who has tried too many does so again, whatever follows.
            if reader.has_tried_too_many() {
                break;
            }
            reader.now = *at;
            reader.go_on(*scene);
        }
        let readings = match reader.has_tried_too_many() {
            true => {
                reader.paths.clear();
                Vec::new()
            }
            false => reader.readings(until),
        };
        reader.forget_dropped_nodes();
        if self.0.len() == READERS {
            self.0.pop_front();
        }
        self.0.push_back((stretch, reader));
        readings
    }
}

impl Reader {
    fn new(stretch: &Stretch) -> Reader {
        let Stretch {
            from,
            picture,
            since,
            ..
        } = stretch;
        let (since, picture) = (*since, picture.clone());
        let open = picture.differing(from.board());
        let first = Path {
            node: None,
            plies: 0,
            position: from.clone(),
            last: stretch.last,
            open: open
                .into_iter()
                .map(|square| Open {
                    square,
                    since,
                    at: since,
                    man: picture.at(square).filter(|shown| !shown.is_empty()),
                    lifted: picture.is_empty(square),
                    filled: !picture.is_empty(square),
                    in_dump: false,
                    unheard: false,
                    changes: 1,
                    stood: 0,
                    left: None,
                })
                .collect(),
            owed: Vec::new(),
            weight: 0,
            last_at: since,
            moved: ByColor::default(),
            pressed: ByColor {
                white: true,
                black: true,
            },
            taken: None,
            others: Vec::new(),
        };
        let mut reader = Reader {
            is_poor: picture.sense() != crate::board::Sense::Piece,
            has_presses: stretch.has_presses(),
            picture,
            nodes: Vec::new(),
            tried: 0,
            paths: vec![first],
            now: since,
            until: since,
            heard: Heard::Always,
            limit: KEPT,
        };
        reader.begin();
        reader
    }

    /// What was played, if this is all.
    fn readings(&self, until: Millis) -> Vec<Reading> {
        let mut all = self.clone();
        all.until = until;
        all.end();
        all.finish()
    }

    /// Plies that no path leads back to any more.
    fn forget_dropped_nodes(&mut self) {
        let mut is_dropped = vec![true; self.nodes.len()];
        let ends = |path: &Path| {
            let others = path.others.iter().filter_map(|(node, _, _)| *node);
            others.chain(path.node).collect::<Vec<usize>>()
        };
        for node in self.paths.iter().flat_map(ends) {
            is_dropped[node] = false;
        }
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if let Some(before) = node.before.filter(|_| !is_dropped[index]) {
                is_dropped[before] = false;
            }
        }
        let mut places = Vec::with_capacity(self.nodes.len());
        let mut kept = 0;
        for is_dropped in &is_dropped {
            places.push(kept);
            kept += usize::from(!is_dropped);
        }
        let mut is_dropped = is_dropped.into_iter();
        self.nodes.retain(|_| is_dropped.next() == Some(false));
        let place = |node: &mut Option<usize>| *node = node.map(|node| places[node]);
        self.nodes
            .iter_mut()
            .for_each(|node| place(&mut node.before));
        for path in &mut self.paths {
            place(&mut path.node);
            path.others.iter_mut().for_each(|(node, _, _)| place(node));
        }
    }
}

#[derive(Debug, Clone)]
struct Reader {
    is_poor: bool,
    /// Presses are told here.
    has_presses: bool,
    picture: Picture,
    nodes: Vec<Node>,
    /// So many plies were made.
    tried: usize,
    paths: Vec<Path>,
    now: Millis,
    /// When it is read; nothing more has happened by then.
    until: Millis,
    heard: Heard,
    /// What is less likely than this is no reading.
    limit: Weight,
}

/// Whether a board that could not be heard has told what it shows since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Always,
    /// Not yet.
    Again,
    /// At this moment.
    At(Millis),
}

/// A ply, and the one before it.
#[derive(Debug, Clone, Copy)]
struct Node {
    before: Option<usize>,
    ply: Move,
    at: Millis,
}

/// A reading so far.
#[derive(Debug, Clone)]
struct Path {
    node: Option<usize>,
    plies: usize,
    position: Position,
    last: Option<Move>,
    /// Squares that changed, and no ply explains why.
    open: Vec<Open>,
    /// Squares that a ply has changed, and that were not told yet.
    owed: Vec<Owed>,
    weight: Weight,
    /// When its last ply was seen.
    last_at: Millis,
    /// The last ply of each side, with when it was seen, and whether it was pressed.
    moved: ByColor<Option<(Move, Millis)>>,
    pressed: ByColor<bool>,
    /// The man that was taken last, and where.
    taken: Option<(Square, Piece)>,
    /// Other ways to where it leads: their last node, the plies that it replaces, and how much less likely they are.
    others: Vec<(Option<usize>, usize, Weight)>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    square: Square,
    /// When it first changed, and last.
    since: Millis,
    at: Millis,
    /// What stood there last.
    man: Option<Contents>,
    lifted: bool,
    filled: bool,
    in_dump: bool,
    /// It changed while the board could not be heard.
    unheard: bool,
    /// How often it changed.
    changes: Weight,
    /// For so long on the whole something stood there that left again; what stays longer each time says no more.
    stood: Millis,
    /// Who left it last, and when.
    left: Option<Left>,
}

/// A man is gone from his square, and what was known of it before.
#[derive(Debug, Clone, Copy)]
struct Left {
    man: Contents,
    at: Millis,
    before: Before,
}

/// What is so again once he is back.
#[derive(Debug, Clone, Copy)]
struct Before {
    at: Millis,
    lifted: bool,
    stood: Millis,
}

impl Open {
    /// The longer a man stood, the less he was only passing.
    fn weight_of(&self, weight: Weight) -> Weight {
        weight + (self.stood / 15) as Weight
    }

    /// What stood there before it was left the last time was part of nothing.
    fn passed(&self) -> Weight {
        match self.changes {
            0..=2 => 0,
            changes => self.weight_of(TOUCHED * (changes - 1).div_ceil(2)),
        }
    }

    /// It changed, and changed back, perhaps more than once, for nothing.
    fn touches(&self) -> Weight {
        self.weight_of(TOUCHED * self.changes.div_ceil(2))
    }

    /// The same where a ply may explain the last time yet.
    fn touches_so_far(&self) -> Weight {
        let before = self.changes.div_ceil(2).saturating_sub(1);
        self.weight_of(TOUCHED * before + TOUCHED / 3)
    }

    /// The same where a ply explains the last time.
    fn touches_before(&self) -> Weight {
        match self.changes {
            0..=2 => 0,
            changes => self.weight_of(TOUCHED * (changes.div_ceil(2) - 1)),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Owed {
    square: Square,
    at: Millis,
    weight: Weight,
}

/// What a ply needs to have been made.
struct Evidence {
    weight: Weight,
    at: Millis,
    owed: Vec<Square>,
    owed_weight: Weight,
    /// Its man was seen to arrive.
    has_arrived: bool,
    /// What was seen of this square is none of it.
    left: Option<Square>,
}

impl Path {
    /// The squares on which a man was put that no ply explains.
    fn arrived(&self) -> Bitboard {
        let filled = self.open.iter().filter(|open| open.filled);
        filled.map(|open| open.square).collect()
    }

    fn open_at(&self, square: Square) -> Option<&Open> {
        self.open.iter().find(|open| open.square == square)
    }

    /// The same where who comes to show on this square has never been gone from it.
    fn with_flicker(
        &self,
        at: Millis,
        square: Square,
        contents: Contents,
        in_dump: bool,
    ) -> Option<Path> {
        let index = self.open.iter().position(|open| open.square == square)?;
        let is_back = |left: &Left| left.man == contents && at <= left.at + FLICKER_MS && !in_dump;
        let left = self.open[index].left.filter(is_back)?;
        let mut path = self.clone();
        path.weight += FLICKER;
        let open = &mut path.open[index];
        (open.at, open.lifted, open.stood) =
            (left.before.at, left.before.lifted, left.before.stood);
        open.left = None;
        open.changes -= 1;
        if open.changes == 0 {
            path.open.swap_remove(index);
        }
        Some(path)
    }

    fn note(
        &mut self,
        at: Millis,
        square: Square,
        (before, contents): (Option<Contents>, Contents),
        in_dump: bool,
        unheard: bool,
    ) {
        // A man who is gone from where he belongs did not stand there for nothing.
        let belonged = before.is_some_and(|man| {
            let expected = self.position.board().piece_at(square);
            matches!(man, Contents::Piece(_)) && man.agrees(expected)
        });
        let index = match self.open.iter().position(|open| open.square == square) {
            Some(index) => index,
            None => {
                self.open.push(Open {
                    square,
                    since: at,
                    at,
                    man: None,
                    lifted: false,
                    filled: false,
                    in_dump,
                    unheard,
                    changes: 0,
                    stood: 0,
                    left: None,
                });
                self.open.len() - 1
            }
        };
        let open = &mut self.open[index];
        open.left = None;
        if contents.is_empty() && !in_dump {
            open.left = before
                .filter(|man| matches!(man, Contents::Piece(_)))
                .map(|man| Left {
                    man,
                    at,
                    before: Before {
                        at: open.at,
                        lifted: open.lifted,
                        stood: open.stood,
                    },
                });
        }
        // When that was which only a dump shows, nobody knows.
        if contents.is_empty() && open.filled && !in_dump && !belonged {
            open.stood += at.saturating_sub(open.at).min(STAYED_MS);
        }
        open.changes += 1;
        open.at = at;
        open.in_dump = in_dump;
        open.unheard |= unheard;
        if contents.is_empty() {
            open.lifted = true;
        } else {
            open.filled = true;
            open.man = Some(contents);
        }
    }
}

impl Reader {
    /// What stands on the board from the first may be the next ply already.
    fn begin(&mut self) {
        let mut next = self.paths.clone();
        for path in std::mem::take(&mut self.paths) {
            let arrived = path.arrived() & !self.picture.vacant();
            self.extend(&path, arrived, 0, &mut next);
        }
        self.paths = self.likeliest(next);
    }

    fn go_on(&mut self, scene: Scene) {
        let mut next: Vec<Path> = Vec::with_capacity(self.paths.len() * 2);
        let paths = std::mem::take(&mut self.paths);
        match scene {
            Scene::Square {
                square,
                before,
                contents,
                in_dump,
            } => {
                self.picture.set(square, contents);
                if self.heard == Heard::Again {
                    self.heard = Heard::At(self.now);
                }
                let in_dump = in_dump || self.heard == Heard::At(self.now);
                for path in paths {
                    self.show(path, square, (before, contents), in_dump, &mut next);
                }
            }
            Scene::Press(side) => {
                for path in paths {
                    self.press(path, side, &mut next);
                }
            }
            Scene::Heard => {
                self.heard = Heard::Again;
                next = paths;
            }
        }
        self.paths = self.likeliest(next);
    }

    /// Whoever is gone when nothing more is seen may have captured, and have been taken where he did. A press would have told.
    fn end(&mut self) {
        if self.is_poor && !self.has_presses {
            let mut next = self.paths.clone();
            for path in std::mem::take(&mut self.paths) {
                self.take_unseen(&path, 0, &mut next);
            }
            self.paths = self.likeliest(next);
        }
    }

    fn take_unseen(&mut self, path: &Path, depth: usize, next: &mut Vec<Path>) {
        if depth == AT_ONCE || self.has_tried_too_many() {
            return;
        }
        for (m, evidence) in self.unseen(path) {
            if m.is_capture() && path.weight + evidence.weight <= self.limit {
                let played = self.play(path, m, evidence);
                self.take_unseen(&played, depth + 1, next);
                next.push(played);
            }
        }
    }

    fn has_tried_too_many(&self) -> bool {
        self.tried > MOST
    }

    /// A square has changed.
    fn show(
        &mut self,
        mut path: Path,
        square: Square,
        (before, contents): (Option<Contents>, Contents),
        in_dump: bool,
        next: &mut Vec<Path>,
    ) {
        let expected = path.position.board().piece_at(square);
        if contents.agrees(expected)
            && let Some(index) = path.owed.iter().position(|owed| owed.square == square)
        {
            let owed = path.owed.swap_remove(index);
            if in_dump || self.now <= owed.at + LATE_MS {
                path.weight = path.weight.saturating_sub(owed.weight) + TOLD_LATE;
            }
            next.push(path);
            return;
        }
        let unheard = self.heard == Heard::At(self.now);
        // Perhaps he was there all the time; or whoever took him was taken in his turn by one who looks the same.
        if let Some(rested) = path.with_flicker(self.now, square, contents, in_dump) {
            let is_all = rested.open_at(square).is_none();
            next.push(rested);
            if !is_all {
                return;
            }
        }
        path.note(self.now, square, (before, contents), in_dump, unheard);
        self.forget_touches(&mut path);
        next.push(path.clone());
        self.extend(&path, Bitboard::from(square), 0, next);
    }

    /// A side has pressed: it has moved.
    fn press(&mut self, mut path: Path, side: Color, next: &mut Vec<Path>) {
        if path.position.turn() == side {
            for (m, evidence) in self.unseen(&path) {
                if path.open_at(m.from().unwrap_or(m.to())).is_some() {
                    let mut played = self.play(&path, m, evidence);
                    *played.pressed.get_mut(side) = true;
                    next.push(played);
                }
            }
            path.weight += PRESSED_EARLY;
        } else if let Some((last, _)) = *path.moved.get(side)
            && path.open_at(last.to()).is_some()
            && self.picture.is_empty(last.to())
        {
            path.weight += PRESSED_HOLDING;
        }
        *path.pressed.get_mut(side) = true;
        next.push(path);
    }

    /// Whether the square shows what stands there on this board.
    fn shows(&self, square: Square, board: &Board) -> bool {
        let shown = self.picture.at(square);
        shown.is_some_and(|shown| shown.agrees(board.piece_at(square)))
    }

    /// What changed back long ago, and was part of nothing.
    fn forget_touches(&self, path: &mut Path) {
        let board = path.position.board();
        let mut weight = 0;
        path.open.retain(|open| {
            let agrees = self.shows(open.square, board);
            let is_over = agrees && open.at + TOUCH_MS < self.now;
            weight += if is_over { open.touches() } else { 0 };
            !is_over
        });
        path.weight += weight;
    }

    /// The plies that the squares speak for by now, one of these among them.
    fn extend(&mut self, path: &Path, changed: Bitboard, depth: usize, next: &mut Vec<Path>) {
        if depth == AT_ONCE || self.has_tried_too_many() {
            return;
        }
        for m in path.position.moves() {
            let squares = path.position.squares(m);
            if (squares & changed).is_empty() {
                continue;
            }
            let Some(evidence) = self
                .evidence(path, m, None)
                .filter(|found| found.has_arrived)
            else {
                continue;
            };
            if path.weight + evidence.weight > self.limit {
                continue;
            }
            let played = self.play(path, m, evidence);
            let arrived = played.arrived() & !self.picture.vacant();
            if arrived.any() {
                self.extend(&played, arrived, depth + 1, next);
            }
            next.push(played);
        }
        // A ply that nobody saw finished may have come before, where what changed is of the other side: its man was put down, or is told
        // to have left only now.
        let us = path.position.turn();
        let is_theirs = |square: Square| {
            let man = self.picture.piece(square);
            man.is_none_or(|man| man.color != us)
        };
        let put_down = |squares: Bitboard| {
            let mut put_down = (squares & !self.picture.vacant()).into_iter();
            put_down.any(is_theirs)
        };
        let left = changed & self.picture.vacant() & path.position.board().by_color(!us);
        let is_due = put_down(changed) || (left.any() && put_down(path.arrived()));
        // Or two of them, where men took each other until he stood there.
        let exchanged = changed & !self.picture.vacant();
        if depth + 1 < AT_ONCE && (is_due || exchanged.any()) {
            for (m, evidence) in self.unseen(path) {
                let is_exchange = m.is_capture() && exchanged.contains(m.to());
                if !(is_due || is_exchange) {
                    continue;
                }
                if path.weight + evidence.weight > self.limit {
                    continue;
                }
                let played = self.play(path, m, evidence);
                if played.weight <= self.limit {
                    self.extend(&played, changed, depth + 1, next);
                }
            }
        }
    }

    /// Plies whose man was not seen to arrive.
    fn unseen(&self, path: &Path) -> Vec<(Move, Evidence)> {
        let board = path.position.board();
        let own = board.by_color(path.position.turn());
        let lifted: Bitboard = path
            .open
            .iter()
            .filter(|open| open.lifted && own.contains(open.square))
            .map(|open| open.square)
            .collect();
        // The other side may stand there by now.
        let theirs = |square: &Square| self.is_filled_by(*square, !path.position.turn());
        let filled: Bitboard = lifted.into_iter().filter(theirs).collect();
        let lifted = (lifted & self.picture.vacant()) | filled;
        let mut found = Vec::new();
        for m in path.position.moves() {
            let is_lifted = m.from().is_some_and(|from| lifted.contains(from));
            if !is_lifted || m.is_castle() {
                continue;
            }
            let Some(evidence) = self.evidence(path, m, None) else {
                continue;
            };
            if !evidence.has_arrived {
                found.push((m, evidence));
            } else if self.is_poor && !self.has_presses && m.is_capture() && !m.is_en_passant() {
                // What was seen there may be the next one, who took him.
                let left = m.from().and_then(|from| path.open_at(from));
                let came = path.open_at(m.to());
                if left.zip(came).is_some_and(|(left, came)| left.at < came.at) {
                    let overwritten = self.evidence(path, m, Some(m.to()));
                    found.extend(overwritten.map(|evidence| (m, evidence)));
                }
            }
        }
        found
    }

    /// What speaks for this ply, and against it; nothing if it cannot have been made yet. What was seen of a square that is `left` to
    /// the next ply says nothing of this one.
    fn evidence(&self, path: &Path, m: Move, left: Option<Square>) -> Option<Evidence> {
        let position = &path.position;
        let board = position.board();
        let effects = position.effects(m);
        let mut evidence = Evidence {
            weight: 0,
            at: 0,
            owed: Vec::new(),
            owed_weight: 0,
            has_arrived: false,
            left,
        };
        let mut in_dump = false;
        let is_any = |is_so: fn(&Open) -> bool| {
            let mut squares = effects.squares().into_iter();
            squares.any(|square| path.open_at(square).is_some_and(is_so))
        };
        let unheard = is_any(|open| open.unheard);
        let untold = if unheard { UNHEARD } else { UNTOLD };
        let is_watched = !unheard && !is_any(|open| open.in_dump);
        for (square, man) in effects.iter() {
            let shown = self
                .picture
                .at(square)
                .is_none_or(|contents| contents.agrees(man));
            let open = path.open_at(square).filter(|_| left != Some(square));
            let is_owed = path.owed.iter().any(|owed| owed.square == square);
            match (shown, open) {
                (true, Some(open)) => {
                    // It changes once, or twice where a man is taken away first.
                    evidence.weight += match open.changes.saturating_sub(1) / 2 {
                        0 => 0,
                        again => open.weight_of(AGAIN * again),
                    };
                    if man.is_some() {
                        evidence.has_arrived = true;
                        evidence.at = evidence.at.max(open.at);
                        in_dump |= open.in_dump;
                        if m.is_capture() && board.piece_at(square).is_some() {
                            evidence.weight += if open.lifted { TAKEN_AWAY } else { OVERWRITTEN };
                        }
                    }
                }
                // A square that was left, and filled again, with no look that showed it empty, was never left.
                (true, None)
                    if is_owed
                        && self.is_poor
                        && is_watched
                        && man.is_some()
                        && board.piece_at(square).is_none() =>
                {
                    return None;
                }
                (true, None) if is_owed => {}
                (true, None) if man.is_some() => match m {
                    Move::Castle { .. } => evidence.weight += EXCHANGED_UNSEEN,
                    _ => evidence.weight += OVERWRITTEN,
                },
                (true, None) => return None,
                // It was seen to be left, and what came there is the next ply's.
                (false, Some(open))
                    if m.from() == Some(square)
                        && open.lifted
                        && self.is_filled_by(square, !position.turn()) =>
                {
                    evidence.left = Some(square);
                }
                (false, _) => {
                    evidence.owed.push(square);
                    // Who stood there before this man left is another one, or he himself for nothing.
                    if let Some(came) = open.filter(|open| open.filled && man.is_some()) {
                        let left = m.from().and_then(|from| path.open_at(from));
                        evidence.weight += match left {
                            Some(left) if came.at < left.at => came.touches(),
                            _ => came.touches_before(),
                        };
                    }
                    let pawn = Role::Pawn.of(position.turn());
                    let waits = m.promotion().is_some()
                        && self
                            .picture
                            .at(square)
                            .is_some_and(|contents| contents.agrees(Some(pawn)));
                    if waits && open.is_some() {
                        evidence.has_arrived = true;
                        evidence.at = evidence.at.max(open.map_or(0, |open| open.at));
                        evidence.owed_weight += WAITS;
                    } else if man.is_some() && self.is_retaken(path, m, square) {
                        evidence.owed_weight += RETAKEN.min(untold);
                    } else {
                        evidence.owed_weight += untold;
                    }
                }
            }
        }
        if evidence.owed.len() > 1 {
            return None;
        }
        let left = m.from().and_then(|from| path.open_at(from));
        if in_dump && let Some(left) = left.filter(|left| !left.in_dump) {
            // When he arrived only a dump tells, and that was at any time since he left.
            evidence.at = evidence.at.min(left.at);
        }
        if !evidence.has_arrived {
            evidence.at = left.map_or(self.now, |open| open.at);
            in_dump |= left.is_some_and(|open| open.in_dump);
        }
        evidence.weight += evidence.owed_weight;
        // Who stood there before this man left is another one, unless he was taken.
        if self.is_poor
            && !in_dump
            && !(m.is_capture() || m.is_castle())
            && let Some((left, came)) = left.zip(path.open_at(m.to()))
        {
            let early = left.at.saturating_sub(came.at);
            let disorder = DISORDER.iter().find(|(slack, _)| early <= *slack)?;
            evidence.weight += disorder.1;
        }
        if !in_dump {
            let late = path.last_at.saturating_sub(evidence.at);
            let disorder = DISORDER.iter().find(|(slack, _)| late <= *slack)?;
            evidence.weight += disorder.1;
        }
        if self.is_poor || !evidence.has_arrived {
            evidence.weight += implausible(position, m, path.last);
        }
        Some(evidence)
    }

    /// Whether a man of this side is seen on this square.
    fn is_filled_by(&self, square: Square, side: Color) -> bool {
        let man = self.picture.piece(square);
        man.is_some_and(|man| man.color == side)
    }

    /// Whether another man came to this square soon after the one left who went there: he was taken before anybody saw him.
    fn is_retaken(&self, path: &Path, m: Move, square: Square) -> bool {
        let left = m.from().and_then(|from| path.open_at(from));
        let came = path
            .open_at(square)
            .filter(|open| open.filled && self.picture.piece(square).is_some());
        left.zip(came)
            .is_some_and(|(left, came)| left.at <= came.at && came.at <= left.at + RETAKEN_MS)
    }

    fn play(&mut self, path: &Path, m: Move, evidence: Evidence) -> Path {
        let position = &path.position;
        let squares = position.squares(m);
        let mut next = path.clone();
        next.position = position.play_playable(m);
        next.last = Some(m);
        next.weight += evidence.weight;
        let at = evidence.at.max(path.last_at);
        next.last_at = at;
        let us = position.turn();
        if self.has_presses && !*path.pressed.get(us) {
            next.weight += NOT_PRESSED;
        }
        *next.pressed.get_mut(us) = false;
        if let Some((stop, stopped_at)) = *path.moved.get(us)
            && let (Some(from), Some(left)) = (
                stop.from().filter(|_| m.from() == Some(stop.to())),
                path.open_at(stop.to()),
            )
            && left.at < stopped_at + STOP_MS
            && attacks::between(from, m.to()).contains(stop.to())
        {
            let stood = left.at.saturating_sub(stopped_at);
            next.weight += GONE_ON + (STOP_MS - stood.min(STOP_MS)) as Weight / 10;
        }
        *next.moved.get_mut(us) = Some((m, evidence.at));
        if let Some(role) = m.capture() {
            next.taken = Some((m.to(), role.of(!us)));
        }
        self.tried += 1;
        self.nodes.push(Node {
            before: path.node,
            ply: m,
            at,
        });
        next.node = Some(self.nodes.len() - 1);
        next.plies += 1;
        // Whom the other side has put there already has taken this ply's man.
        let of_later = |open: &Open| {
            let man = self.picture.piece(open.square);
            evidence.left == Some(open.square)
                || (evidence.owed.contains(&open.square)
                    && open.filled
                    && man.is_some_and(|man| {
                        man.color != us || (m.is_capture() && !evidence.has_arrived)
                    }))
        };
        next.open
            .retain(|open| !squares.contains(open.square) || of_later(open));
        next.owed.retain(|owed| !squares.contains(owed.square));
        let share = evidence
            .owed_weight
            .checked_div(evidence.owed.len() as Weight)
            .unwrap_or(0);
        next.owed.extend(evidence.owed.iter().map(|square| Owed {
            square: *square,
            at,
            weight: share,
        }));
        // Squares on the way, and those beside a capture.
        let way = m
            .from()
            .map_or(Bitboard::EMPTY, |from| attacks::between(from, m.to()));
        let beside = if m.is_capture() {
            attacks::king_attacks(m.to())
        } else {
            Bitboard::EMPTY
        };
        let board = next.position.board();
        let mover = Some(m.role().of(us));
        let victim = m.capture().map(|role| role.of(!us));
        let left = m
            .from()
            .and_then(|from| path.open_at(from))
            .map_or(0, |open| open.since.saturating_sub(LOOK_MS));
        let mut weight = 0;
        next.open.retain(|open| {
            let agrees = self.shows(open.square, board);
            let was = |man: Option<Piece>| open.man.is_some_and(|shown| shown.agrees(man));
            let once = agrees && open.changes <= 2;
            if once && way.contains(open.square) && open.since >= left && was(mover) {
                weight += open.weight_of(PASSED);
                return false;
            }
            if once
                && beside.contains(open.square)
                && board.piece_at(open.square).is_none()
                && was(victim)
            {
                weight += open.weight_of(PASSED_BESIDE);
                return false;
            }
            if !agrees && board.color_at(open.square) == Some(us) && open.at < at {
                weight += LEFT_IN_HAND;
            }
            true
        });
        next.weight += weight;
        next
    }

    /// What speaks against a reading that ended here.
    fn pending(&self, path: &Path, is_end: bool) -> (Weight, bool) {
        let board = path.position.board();
        let mut weight = 0;
        let mut unexplained = false;
        let mut hands = [0, 0];
        for open in &path.open {
            let man = board.piece_at(open.square);
            let shown = self.picture.at(open.square);
            if shown.is_none_or(|shown| shown.agrees(man)) {
                weight += match man {
                    _ if open.at + YET_MS < self.now => open.touches(),
                    // Who belongs there may not have been seen for a while.
                    Some(_) => open.touches() / 3,
                    // Who came there and left did so for nothing, but for the last time, which the next ply may explain.
                    None => open.touches_so_far(),
                };
                continue;
            }
            match (man, self.picture.is_empty(open.square)) {
                (Some(man), true) => {
                    // What stood there meanwhile came and went for nothing.
                    weight += open.passed();
                    let hand = &mut hands[man.color.fold_wb(0, 1)];
                    *hand += 1;
                    weight += if *hand > 1 { SECOND_HAND } else { 0 };
                    let is_held = is_end && open.at + HELD_MS < self.until;
                    weight += if is_held { HELD } else { 0 };
                }
                (None, false) if self.is_victim_passing(path, open) => weight += STILL_PASSING,
                _ if is_end => {
                    weight += UNEXPLAINED;
                    unexplained = true;
                }
                _ if open.at + YET_MS < self.now => weight += UNEXPLAINED,
                _ => weight += UNEXPLAINED_YET,
            }
        }
        // Who was never seen to arrive, and has not been taken since, is in the hand.
        let is_held = |owed: &&Owed| {
            owed.at + HELD_MS < self.until
                && self.picture.is_empty(owed.square)
                && path.open_at(owed.square).is_none()
                && board.piece_at(owed.square).is_some()
        };
        // A board that tells all its squares time and again shows what he has left.
        let still_stands = |owed: &&Owed| {
            self.is_poor
                && !self.picture.is_empty(owed.square)
                && board.piece_at(owed.square).is_none()
        };
        if is_end {
            weight += HELD * path.owed.iter().filter(is_held).count() as Weight;
            unexplained |= path.owed.iter().any(|owed| still_stands(&owed));
        }
        (weight, unexplained)
    }

    /// Whether a captured man on his way off the board may be what is seen here.
    fn is_victim_passing(&self, path: &Path, open: &Open) -> bool {
        path.taken.is_some_and(|(square, man)| {
            open.at + TOUCH_MS > self.now
                && attacks::king_attacks(square).contains(open.square)
                && open.man.is_some_and(|shown| shown.agrees(Some(man)))
        })
    }

    /// The readings to carry on.
    fn likeliest(&mut self, paths: Vec<Path>) -> Vec<Path> {
        let mut ranked: Vec<(Weight, Path)> = paths
            .into_iter()
            .map(|path| (path.weight + self.pending(&path, false).0, path))
            .collect();
        ranked.sort_by_key(|(weight, _)| *weight);
        let best = ranked.first().map_or(0, |(weight, _)| *weight);
        self.limit = best + KEPT;
        let mut kept: Vec<Path> = Vec::with_capacity(WIDTH);
        let mut known: HashMap<(Board, usize, u64, u64), usize> = HashMap::new();
        for (weight, path) in ranked {
            if weight > best + KEPT {
                break;
            }
            let squares = |all: &mut dyn Iterator<Item = Square>| -> u64 {
                all.fold(Bitboard::EMPTY, |all, square| all.with(square))
                    .into()
            };
            let key = (
                path.position.board().clone(),
                path.plies,
                squares(&mut path.open.iter().map(|open| open.square)),
                squares(&mut path.owed.iter().map(|owed| owed.square)),
            );
            match known.get(&key) {
                Some(index) => {
                    let same = &mut kept[*index];
                    if same.node != path.node && same.others.len() < OTHERS {
                        let behind = path.weight.saturating_sub(same.weight);
                        same.others.push((path.node, path.plies, behind));
                    }
                }
                None if kept.len() < WIDTH => {
                    known.insert(key, kept.len());
                    kept.push(path);
                }
                None => {}
            }
        }
        kept
    }

    fn line(&self, node: Option<usize>) -> Vec<(Move, Millis)> {
        let mut plies = Vec::new();
        let mut next = node;
        while let Some(node) = next.and_then(|index| self.nodes.get(index)) {
            plies.push((node.ply, node.at));
            next = node.before;
        }
        plies.reverse();
        plies
    }

    fn finish(self) -> Vec<Reading> {
        let mut readings: Vec<Reading> = Vec::new();
        for path in &self.paths {
            let (pending, is_unexplained) = self.pending(path, true);
            let plies = self.line(path.node);
            let weight = path.weight + pending;
            for (node, replaced, behind) in &path.others {
                let mut other = self.line(*node);
                other.extend(plies.iter().skip(*replaced));
                readings.push(Reading {
                    plies: other,
                    weight: weight + behind,
                    is_unexplained,
                });
            }
            readings.push(Reading {
                plies,
                weight,
                is_unexplained,
            });
        }
        readings.sort_by_key(|reading| reading.weight);
        let mut known: HashSet<Vec<Move>> = HashSet::new();
        readings.retain(|reading| known.insert(reading.moves()));
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Sense;

    /// Reads it at once, and once more scene by scene: that comes to the same.
    fn read_all(
        from: &Position,
        picture: Picture,
        scenes: &[(Millis, Scene)],
        until: Millis,
    ) -> Vec<Reading> {
        let stretch = |scenes: &[(Millis, Scene)]| Stretch {
            from: from.clone(),
            last: None,
            picture: picture.clone(),
            since: 0,
            scenes: scenes.to_vec(),
        };
        let all = Readers::default().readings(stretch(scenes), until);
        let mut kept = Readers::default();
        let mut again = Vec::new();
        for seen in 0..=scenes.len() {
            again = kept.readings(stretch(&scenes[..seen]), until);
        }
        let told = |readings: &[Reading]| format!("{readings:?}");
        assert_eq!(told(&all), told(&again));
        // It was read on each time, but for the first press: there it is known that presses are told.
        assert!(kept.0.len() <= 2, "{}", kept.0.len());
        all
    }

    /// Reads changes that follow each other in steps of 100 ms, as `e2- e4P` or `e4x` on a board that knows no men; `w` and `b` are
    /// presses, and a `D` at the end marks what only a dump told. Gives the likeliest lines, with what speaks against them.
    fn read(fen: &str, sense: Sense, changes: &str) -> Vec<(String, Weight)> {
        let from = Position::from_fen(fen, false).expect("test fen");
        let mut picture = Picture::of(from.board(), sense);
        let start = picture.clone();
        let mut at = 0;
        let mut scenes = Vec::new();
        for word in changes.split(' ') {
            at += 100;
            let scene = match word {
                "w" => Scene::Press(Color::White),
                "b" => Scene::Press(Color::Black),
                word => {
                    let square: Square = word[..2].parse().expect("a square");
                    let contents = match word[2..].trim_end_matches('D') {
                        "-" => Contents::Empty,
                        "x" => Contents::Occupied,
                        man => Contents::Piece(
                            Piece::from_char(man.chars().next().expect("a man")).expect("a man"),
                        ),
                    };
                    Scene::Square {
                        square,
                        before: picture.set(square, contents).unwrap_or(None),
                        contents,
                        in_dump: word.ends_with('D'),
                    }
                }
            };
            scenes.push((at, scene));
        }
        let lines = read_all(&from, start, &scenes, at + 2_000);
        lines
            .iter()
            .map(|reading| {
                let mut position = from.clone();
                let uci = reading.plies.iter().map(|(m, _)| {
                    let uci = position.uci(*m);
                    position = position.play(*m);
                    uci
                });
                (uci.collect::<Vec<_>>().join(" "), reading.weight)
            })
            .collect()
    }

    const INITIAL: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    const OPEN: &str = "rnbqkbnr/ppp1pppp/8/3p4/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2";

    #[test]
    fn plies_are_told_by_all_that_was_seen() {
        let table = [
            (
                "overlapping hands",
                INITIAL,
                Sense::Piece,
                "e2- e7- e4P g1- e5p f3N",
                "e2e4 e7e5 g1f3",
            ),
            (
                "a bishop that stops on his way",
                "4k3/8/8/8/8/8/8/2B1K3 w - - 0 1",
                Sense::Piece,
                "c1- d2B d2- e8- e3B e7k",
                "c1e3 e8e7",
            ),
            (
                "an arrival that a dump tells",
                INITIAL,
                Sense::Piece,
                "e2- e7- e5p g1- f3N e4PD",
                "e2e4 e7e5 g1f3",
            ),
            (
                "an arrival that a dump tells after the answer",
                "6k1/5p1p/1q4B1/8/5B2/7Q/8/7K b - - 0 1",
                Sense::Piece,
                "h7- h3- d3Q g6pD b6- b4q f4- d2B",
                "h7g6 h3d3 b6b4 f4d2",
            ),
            (
                "a capture that is pressed, retaken, and never shown",
                "4k2r/8/8/8/8/8/8/K2R3R b - - 0 1",
                Sense::Piece,
                "h8- h7r h7- b d1- h1R w e8- e7k",
                "h8h1 d1h1 e8e7",
            ),
            (
                "a man that is never seen to leave",
                INITIAL,
                Sense::Piece,
                "e4P e7- e5p g1- f3N",
                "e2e4 e7e5 g1f3",
            ),
            (
                "captures that no square shows",
                OPEN,
                Sense::Presence,
                "e4- w d8- b b1- c3x w d5- a5x b",
                "e4d5 d8d5 b1c3 d5a5",
            ),
            (
                "castling while the opponent lifts",
                "r3k3/8/8/8/8/8/8/4K2R w Kq - 0 1",
                Sense::Presence,
                "e1- h1- g1x a8- f1x w d8x b",
                "e1g1 a8d8",
            ),
        ];
        for (name, fen, sense, changes, expected) in table {
            let lines = read(fen, sense, changes);
            assert_eq!(lines[0].0, expected, "{name}: {lines:?}");
        }
    }

    /// A knight came to d4 from f3 or from e2, and was seen on neither.
    #[test]
    fn what_nothing_tells_apart_is_as_likely() {
        let fen = "rnbqkbnr/pp2pppp/3p4/8/3pP3/8/PPP2PPP/RNBQKBNR w KQkq - 0 4";
        let lines = read(fen, Sense::Piece, "g1- g8- f6n d4N b8- c6n");
        let likely: Vec<&str> = lines
            .iter()
            .filter(|line| line.1 == lines[0].1)
            .map(|line| line.0.as_str())
            .collect();
        assert!(likely.contains(&"g1f3 g8f6 f3d4 b8c6"), "{lines:?}");
        assert!(likely.contains(&"g1e2 g8f6 e2d4 b8c6"), "{lines:?}");
    }

    /// Whatever squares do, readings are legal lines, or there are none.
    #[test]
    fn readings_of_nonsense_are_legal_lines() {
        let mut rng = fastrand::Rng::with_seed(3);
        let from = Position::initial();
        for _ in 0..40 {
            let mut picture = Picture::of(from.board(), Sense::Piece);
            let start = picture.clone();
            let scenes: Vec<(Millis, Scene)> = (0..30)
                .map(|step| {
                    let square = Square::new(rng.u32(0..64));
                    let contents = match rng.u32(0..3) {
                        0 => Contents::Empty,
                        _ => Contents::Piece(
                            Role::ALL[rng.usize(0..6)].of(Color::ALL[rng.usize(0..2)]),
                        ),
                    };
                    let before = picture.at(square);
                    picture.set(square, contents);
                    let scene = Scene::Square {
                        square,
                        before,
                        contents,
                        in_dump: rng.bool(),
                    };
                    (step * 90, scene)
                })
                .collect();
            for reading in read_all(&from, start, &scenes, 0) {
                let mut position = from.clone();
                for (m, _) in reading.plies {
                    assert!(position.is_playable(m));
                    position = position.play(m);
                }
            }
        }
    }
}

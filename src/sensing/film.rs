//! What the squares showed, one change after the other, and the presses between: all that is known of a stretch of play.

use crate::Millis;
use crate::board::{Contents, Picture};
use shakmaty::{Color, Square};
use std::collections::VecDeque;

/// No more is kept; some hundred plies of fast play.
const LONGEST: usize = 512;

/// What happened at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scene {
    /// A square came to show this, or was told to show it still.
    Square {
        square: Square,
        before: Option<Contents>,
        contents: Contents,
        /// Nobody knows when since it last told.
        in_dump: bool,
    },
    Press(Color),
}

/// The last stretch of play, as it was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Film {
    scenes: VecDeque<(Millis, Scene)>,
    /// Something older was dropped.
    is_cut: bool,
}

impl Film {
    pub(super) fn note(&mut self, at: Millis, scene: Scene) {
        if self.scenes.len() == LONGEST {
            self.scenes.pop_front();
            self.is_cut = true;
        }
        self.scenes.push_back((at, scene));
    }

    /// How many men were put down after this time.
    pub(super) fn put_down_since(&self, since: Millis) -> usize {
        let late = self.scenes.iter().rev().take_while(|(at, _)| *at > since);
        let is_one = |(_, scene): &&(Millis, Scene)| matches!(scene, Scene::Square { contents, in_dump: false, .. } if !contents.is_empty());
        late.filter(is_one).count()
    }

    /// Whose press was the last one, and when that was.
    pub(super) fn last_press(&self) -> Option<(Color, Millis)> {
        self.scenes
            .iter()
            .rev()
            .find_map(|(at, scene)| match scene {
                Scene::Press(side) => Some((*side, *at)),
                Scene::Square { .. } => None,
            })
    }

    /// Forgets what was seen: of what was before, nothing is known.
    pub(super) fn cut(&mut self) {
        self.scenes.clear();
        self.is_cut = true;
    }

    /// What happened after `since`, and what the board showed then, if `now` is what it shows at the end. Nothing where that is
    /// longer ago than anybody remembers.
    pub(super) fn since(
        &self,
        since: Millis,
        now: &Picture,
    ) -> Option<(Picture, Vec<(Millis, Scene)>)> {
        let first = self.scenes.partition_point(|(at, _)| *at <= since);
        if first == 0 && self.is_cut {
            return None;
        }
        let mut picture = now.clone();
        for (_, scene) in self.scenes.iter().skip(first).rev() {
            if let Scene::Square { square, before, .. } = scene {
                match before {
                    Some(before) => drop(picture.set(*square, *before)),
                    // It was not believed, or not read yet.
                    None => picture.forget(*square),
                }
            }
        }
        Some((picture, self.scenes.iter().skip(first).copied().collect()))
    }
}

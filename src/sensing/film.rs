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
    /// The board is heard again: what it shows next may have come about at any time since the scene before.
    Heard,
}

impl Scene {
    /// The square that came to show something.
    pub(super) fn square(&self) -> Option<Square> {
        match self {
            Scene::Square { square, .. } => Some(*square),
            Scene::Press(_) | Scene::Heard => None,
        }
    }
}

/// Whose a press was, and when the clock told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pressed {
    pub(super) side: Color,
    pub(super) at: Millis,
}

/// The last stretch of play, as it was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Film {
    scenes: VecDeque<(Millis, Scene)>,
    /// Of what was seen until then, at least part is not there.
    whole_since: Millis,
}

impl Film {
    pub(super) fn note(&mut self, at: Millis, scene: Scene) {
        if self.scenes.len() == LONGEST
            && let Some((dropped, _)) = self.scenes.pop_front()
        {
            self.whole_since = dropped;
        }
        self.scenes.push_back((at, scene));
    }

    /// How many men were put down after this time.
    pub(super) fn put_down_since(&self, since: Millis) -> usize {
        let late = self.scenes.iter().rev().take_while(|(at, _)| *at > since);
        let is_one = |(_, scene): &&(Millis, Scene)| matches!(scene, Scene::Square { contents, in_dump: false, .. } if !contents.is_empty());
        late.filter(is_one).count()
    }

    /// Whether the square came to show this after `since`, and before `until`.
    pub(super) fn has_shown(
        &self,
        square: Square,
        shown: Contents,
        since: Millis,
        until: Millis,
    ) -> bool {
        let shows = |scene: &Scene| matches!(scene, Scene::Square { square: at, contents, .. } if *at == square && *contents == shown);
        let late = self.scenes.iter().rev().take_while(|(at, _)| *at > since);
        late.skip_while(|(at, _)| *at >= until)
            .any(|(_, scene)| shows(scene))
    }

    /// Whether the square was seen to be vacant at this time, or came to be until `until`; or nobody knows.
    pub(super) fn may_be_vacant(&self, square: Square, at: Millis, until: Millis) -> bool {
        let shown = |(when, scene): &(Millis, Scene)| match scene {
            Scene::Square {
                square: of,
                contents,
                ..
            } if *of == square => Some((*when, contents.is_empty())),
            _ => None,
        };
        let earlier = self
            .scenes
            .iter()
            .rev()
            .skip_while(|(when, _)| *when > until);
        for (when, is_vacant) in earlier.filter_map(shown) {
            if is_vacant || when <= at {
                return is_vacant;
            }
        }
        self.whole_since > at
    }

    /// The last press of all.
    pub(super) fn last_press(&self) -> Option<Pressed> {
        self.scenes
            .iter()
            .rev()
            .find_map(|(at, scene)| match *scene {
                Scene::Press(side) => Some(Pressed { side, at: *at }),
                _ => None,
            })
    }

    /// Whether this side has pressed after this time.
    pub(super) fn has_pressed_since(&self, side: Color, since: Millis) -> bool {
        self.has_pressed_between(side, since, Millis::MAX)
    }

    /// The same, but not after `until`.
    pub(super) fn has_pressed_between(&self, side: Color, since: Millis, until: Millis) -> bool {
        let late = self.scenes.iter().rev().take_while(|(at, _)| *at > since);
        late.skip_while(|(at, _)| *at > until)
            .any(|(_, scene)| *scene == Scene::Press(side))
    }

    /// Leaves out what squares came to show from this time on; presses stay.
    pub(super) fn rewind(&mut self, at: Millis) {
        let is_later =
            |(when, scene): &(Millis, Scene)| *when >= at && matches!(scene, Scene::Square { .. });
        self.scenes.retain(|scene| !is_later(scene));
    }

    /// Leaves out what this square came to show from this time on.
    pub(super) fn forget(&mut self, of: Square, since: Millis) {
        self.scenes
            .retain(|(at, scene)| *at < since || scene.square() != Some(of));
    }

    /// Forgets what squares showed until this moment, which was no play; presses stay.
    pub(super) fn leave_out_until(&mut self, at: Millis) {
        self.scenes
            .retain(|(when, scene)| *when > at || matches!(scene, Scene::Press(_)));
        self.whole_since = self.whole_since.max(at);
    }

    /// Forgets what was seen: of what was before this moment nothing is known, or it was no play.
    pub(super) fn cut(&mut self, now: Millis) {
        self.scenes.clear();
        self.whole_since = now.saturating_sub(1);
    }

    /// From when on nothing is missing.
    pub(super) fn whole_since(&self) -> Millis {
        self.whole_since
    }

    /// What happened after `since`, and what the board showed then, if `now` is what it shows at the end. Whoever asks for more than
    /// is whole gets what there is.
    pub(super) fn since(&self, since: Millis, now: &Picture) -> (Picture, Vec<(Millis, Scene)>) {
        let first = self.scenes.partition_point(|(at, _)| *at <= since);
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
        (picture, self.scenes.iter().skip(first).copied().collect())
    }
}

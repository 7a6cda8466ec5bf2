//! Plies that came within one scan of the board. Its messages follow each other in the order in which it looks at its squares, which
//! says nothing of the order in which the plies were played (cases H2, H3).

use super::search::MISSED;
use super::trail::SCAN_MS;
use super::*;

impl Sensing {
    /// The last plies of this reading, if one scan told them all and other orders of them lead to the same board: those plies again,
    /// with every line that fits, the one that was read first.
    pub(super) fn in_any_order(
        &self,
        tentative: &Tentative,
        now: Millis,
        cx: &Context<'_>,
    ) -> Option<(usize, Vec<Seen>, Vec<Vec<Move>>)> {
        // Where the men are not known, rivals are kept of all that is read.
        if self.is_poor() {
            return None;
        }
        let view = View::new(cx.line, tentative.keep, &tentative.moves);
        let n = view.len();
        // Of two plies the side that had the move made the first.
        let of_one_scan = (n.saturating_sub(MISSED)..n)
            .rev()
            .take_while(|index| self.is_of_this_scan(&view, *index, now))
            .count();
        if of_one_scan < 3 {
            return None;
        }
        let mask = self.mask(&view);
        (3..=of_one_scan).rev().find_map(|plies| {
            let keep = n - plies;
            let read: Vec<Move> = (keep..n).filter_map(|index| view.mv(index)).collect();
            let from = view.position(keep);
            let fits = |line: &[Move]| self.order(from, line) != Order::Against;
            let mut lines = explain::lines_to(from, &self.picture, mask, plies, fits).found;
            lines.retain(|line| *line != read);
            if lines.is_empty() {
                return None;
            }
            lines.insert(0, read);
            let seen = |index| {
                let at = view.seen_at(index + 1);
                Some(Seen::new(view.position(index), view.mv(index)?, at))
            };
            Some((keep, (keep..n).filter_map(seen).collect(), lines))
        })
    }

    /// Whether the man of the ply at this index left and came within the scan that ends now.
    fn is_of_this_scan(&self, view: &View<'_>, index: usize, now: Millis) -> bool {
        let left = view.mv(index).and_then(|m| m.from());
        view.seen_at(index + 1) + SCAN_MS >= now
            && left.is_some_and(|square| self.trail.at(square) + SCAN_MS >= now)
    }
}

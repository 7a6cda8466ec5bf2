//! What a PSB1 board is asked, and what its lines say.

use shakmaty::{Color, Square};

use super::Contents;
use super::driver::{Dialect, Reading};
use crate::Millis;
use crate::clock::ClockSource;
use crate::wire::psb1::{
    Change, Command, Decoder, Hello, Item, Message, SILENT_MS, Skipped, Squares,
};

/// The decoder of what a PSB1 board sends, with the questions to it.
///
/// A scan that follows the one before is a fresh look: what differs has changed since that one, which was a second ago at most.
/// After lines that were lost, or after the board has started anew, nothing tells when something changed.
#[derive(Debug, Default)]
pub struct Psb1 {
    decoder: Decoder,
    /// What it said of itself since the port was opened.
    hello: Option<Hello>,
    last: Option<Told>,
}

/// What a board told last of its squares.
#[derive(Debug, Clone, Copy)]
struct Told {
    seq: u8,
    ms: u32,
    squares: Squares,
}

impl Told {
    /// Whether nothing was told between this and what has these two.
    fn is_followed_by(&self, seq: u8, ms: u32) -> bool {
        // A board that has started anew counts its time anew too. Its time ends at 32 bits, and begins again.
        let forward = ms.wrapping_sub(self.ms) < u32::MAX / 2;
        seq == self.seq.wrapping_add(1) && forward
    }
}

impl Dialect for Psb1 {
    /// Two bytes, neither of which means anything to a DGT board.
    fn identify(&self) -> Vec<Vec<u8>> {
        vec![Command::Ask.encode()]
    }

    /// The line end before the question ends whatever was sent to the port before.
    fn opening(&self) -> Vec<Vec<u8>> {
        vec![[b"\n".to_vec(), Command::Ask.encode()].concat()]
    }

    fn unanswered(&self) -> Option<Vec<u8>> {
        self.hello.is_none().then(|| Command::Ask.encode())
    }

    fn ask_squares(&self) -> Option<Vec<u8>> {
        Some(Command::Ask.encode())
    }

    fn clock_source(&self) -> ClockSource {
        ClockSource::default()
    }

    fn ask_life(&self) -> Vec<u8> {
        Command::Ask.encode()
    }

    fn silent_after(&self) -> Option<Millis> {
        Some(SILENT_MS)
    }

    fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Reading)) {
        let Psb1 {
            decoder,
            hello: known,
            last,
        } = self;
        decoder.push(bytes, |item| match item {
            Item::Message(Message::Hello(hello)) => {
                sink(Reading::Serial {
                    number: hello.id.to_string(),
                    long: true,
                });
                sink(Reading::Firmware(hello.firmware.to_string()));
                *known = Some(hello);
            }
            Item::Message(Message::Scan { seq, ms, squares }) => {
                let gapless = last.is_some_and(|last| last.is_followed_by(seq, ms));
                *last = Some(Told { seq, ms, squares });
                sink(scan(squares, gapless));
            }
            Item::Message(Message::Delta { seq, ms, changes }) => {
                match last.and_then(|last| changed(last, seq, ms, &changes)) {
                    Some(steps) => {
                        for squares in steps {
                            *last = Some(Told { seq, ms, squares });
                            sink(scan(squares, true));
                        }
                    }
                    None => sink(Reading::Missed),
                }
            }
            Item::Message(Message::Battery { percent, .. }) => sink(Reading::Battery(percent)),
            Item::Message(Message::Fault(text)) => sink(Reading::Fault(text.to_string())),
            Item::Message(Message::Unknown(body)) => sink(Reading::Other(body.to_string())),
            Item::Skipped(skipped) => sink(unread(skipped)),
        });
    }

    fn abandon(&mut self) -> Option<Reading> {
        self.decoder.abandon().map(unread)
    }

    fn buffered(&self) -> &[u8] {
        self.decoder.buffered()
    }

    /// Whether the next scan is fresh depends on the last one.
    fn memory(&self) -> Vec<u8> {
        let hello = self.hello.clone().map(Message::Hello);
        let last = self
            .last
            .map(|Told { seq, ms, squares }| Message::Scan { seq, ms, squares });
        let mut bytes: Vec<u8> = hello
            .iter()
            .chain(&last)
            .flat_map(Message::encode)
            .collect();
        bytes.extend(self.decoder.buffered());
        bytes
    }
}

/// What a board shows after each of these changes, in the order in which it saw them: that a square was empty for a moment tells a
/// capture. None where some were lost before them, or where they do not say whose man was put down.
fn changed(last: Told, seq: u8, ms: u32, changes: &[Change]) -> Option<Vec<Squares>> {
    let puts_down = changes.iter().any(|change| change.occupied);
    if !last.is_followed_by(seq, ms) || (puts_down && last.squares.white.is_some()) {
        return None;
    }
    let mut squares = last.squares;
    let mut steps = vec![squares];
    for change in changes {
        squares.set_occupied(change.square, change.occupied);
        steps.push(squares);
    }
    // A step that changes nothing is no look of its own, unless there is no other.
    steps.dedup();
    if steps.len() > 1 {
        steps.remove(0);
    }
    Some(steps)
}

fn scan(squares: Squares, gapless: bool) -> Reading {
    let contents = |square: Square| {
        let number = square.to_u32() as u8;
        match (squares.is_occupied(number), squares.is_white(number)) {
            (false, _) => Contents::Empty,
            (true, None) => Contents::Occupied,
            (true, Some(white)) => Contents::Side(Color::from_white(white)),
        }
    };
    Reading::Scan {
        squares: Box::new(Square::ALL.map(|square| (square, contents(square)))),
        gapless,
    }
}

/// Boot text and damaged lines lose nothing by themselves: if a scan was among them, the number of the next one tells.
fn unread(skipped: Skipped) -> Reading {
    Reading::Skipped {
        bytes: skipped.bytes,
        reason: skipped.reason.to_string(),
        loss: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Driver, Picture, Watch};
    use crate::wire::Family;
    use crate::wire::psb1::{Identity, VirtualBoard};

    const START: &str = "xxxxxxxx/xxxxxxxx/8/8/8/8/xxxxxxxx/xxxxxxxx";

    fn heard(dialect: &mut Psb1, lines: &[Vec<u8>]) -> Vec<Reading> {
        let mut readings = Vec::new();
        dialect.push(&lines.concat(), &mut |reading| readings.push(reading));
        readings
    }

    /// Placement and whether anything was lost before.
    fn shown(readings: &[Reading]) -> Option<(String, bool)> {
        readings.iter().rev().find_map(|reading| match reading {
            Reading::Scan { squares, gapless } => {
                let mut picture = Picture::default();
                for (square, contents) in squares.iter() {
                    picture.set(*square, *contents);
                }
                Some((picture.placement(), *gapless))
            }
            _ => None,
        })
    }

    fn array(colours: bool, deltas: bool) -> VirtualBoard {
        let mut board = VirtualBoard::new(Identity {
            colours,
            deltas,
            ..Identity::default()
        });
        let men: Vec<_> = (0..16).chain(48..64).map(|n| (n, Some(n < 16))).collect();
        board.set_squares(0, &men);
        board
    }

    #[test]
    fn a_scan_that_follows_is_fresh_and_others_are_not() {
        let mut dialect = Psb1::default();
        let mut board = array(false, false);
        let told = heard(&mut dialect, &board.handle_host(10, b"?\n"));
        let number = board.identity().id.to_string();
        assert!(told.contains(&Reading::Serial { number, long: true }));
        assert_eq!(shown(&told), Some((START.into(), false)));
        let told = heard(&mut dialect, &board.handle_timeout(1010));
        assert_eq!(shown(&told), Some((START.into(), true)));
        let e4 = board.set_squares(1500, &[(12, None), (28, Some(true))]);
        let after = "xxxxxxxx/xxxxxxxx/8/8/4x3/8/xxxx1xxx/xxxxxxxx";
        assert_eq!(shown(&heard(&mut dialect, &e4)), Some((after.into(), true)));
        // An answer to a question follows as any scan does.
        let told = heard(&mut dialect, &board.handle_host(1600, b"?\n"));
        assert_eq!(shown(&told), Some((after.into(), true)));

        board.set_squares(1700, &[(52, None)]);
        let e5 = board.set_squares(1800, &[(36, Some(false))]);
        let answered = "xxxxxxxx/xxxx1xxx/8/4x3/4x3/8/xxxx1xxx/xxxxxxxx";
        let told = heard(&mut dialect, &e5);
        assert_eq!(shown(&told), Some((answered.into(), false)));

        board.power_cycle(2000);
        let told = heard(&mut dialect, &board.handle_timeout(2000));
        assert_eq!(shown(&told), Some((answered.into(), false)));
    }

    /// It may start anew just when its numbers come round.
    #[test]
    fn a_board_that_starts_anew_is_known_by_its_time() {
        let told = Told {
            seq: 255,
            ms: 300_000,
            squares: Squares::default(),
        };
        assert!(!told.is_followed_by(0, 0));
        assert!(told.is_followed_by(0, 300_020));
        let late = Told {
            ms: u32::MAX,
            ..told
        };
        assert!(late.is_followed_by(0, 5));
    }

    #[test]
    fn changes_count_only_in_their_turn() {
        let mut dialect = Psb1::default();
        let mut board = array(false, true);
        let lift = board.set_squares(5, &[(12, None)]);
        assert_eq!(heard(&mut dialect, &lift), [Reading::Missed]);
        heard(&mut dialect, &board.handle_host(10, b"?\n"));
        let put = board.set_squares(15, &[(28, Some(true))]);
        let after = "xxxxxxxx/xxxxxxxx/8/8/4x3/8/xxxx1xxx/xxxxxxxx";
        let told = heard(&mut dialect, &put);
        assert_eq!(shown(&told), Some((after.into(), true)));
        board.set_squares(20, &[(52, None)]);
        let put = board.set_squares(25, &[(36, Some(false))]);
        assert_eq!(heard(&mut dialect, &put), [Reading::Missed]);
        let told = heard(&mut dialect, &board.handle_host(30, b"?\n"));
        assert!(shown(&told).is_some_and(|(_, gapless)| !gapless));
    }

    /// The square that was empty for a moment tells a capture, though the line ends where it began.
    #[test]
    fn changes_of_one_line_are_seen_one_after_the_other() {
        let mut dialect = Psb1::default();
        let mut board = array(false, true);
        heard(&mut dialect, &board.handle_host(10, b"?\n"));
        let line = |seq, steps: &[(u8, bool)]| {
            let change = |&(square, occupied)| Change { square, occupied };
            let changes = steps.iter().map(change).collect();
            Message::Delta {
                seq,
                ms: 20,
                changes,
            }
            .encode()
        };
        let placements = |readings: Vec<Reading>| -> Vec<Option<(String, bool)>> {
            let each = readings.chunks(1);
            each.map(shown).collect()
        };
        let seq = |dialect: &Psb1| dialect.last.map_or(0, |told| told.seq.wrapping_add(1));

        let taken = line(seq(&dialect), &[(52, false), (12, false), (52, true)]);
        let both = "xxxxxxxx/xxxx1xxx/8/8/8/8/xxxx1xxx/xxxxxxxx";
        let after = "xxxxxxxx/xxxxxxxx/8/8/8/8/xxxx1xxx/xxxxxxxx";
        assert_eq!(
            placements(heard(&mut dialect, &[taken])),
            [
                Some(("xxxxxxxx/xxxx1xxx/8/8/8/8/xxxxxxxx/xxxxxxxx".into(), true)),
                Some((both.into(), true)),
                Some((after.into(), true)),
            ]
        );
        let back = line(seq(&dialect), &[(52, false), (52, true)]);
        assert_eq!(
            placements(heard(&mut dialect, &[back])),
            [Some((both.into(), true)), Some((after.into(), true))]
        );
        // What is told again is one look, which finds all as it was.
        let again = line(seq(&dialect), &[(12, false), (52, true)]);
        let again = placements(heard(&mut dialect, &[again]));
        assert_eq!(again, [Some((after.into(), true))]);
    }

    #[test]
    fn colours_are_known_by_the_second_mask() {
        let mut dialect = Psb1::default();
        let mut board = array(true, false);
        let told = heard(&mut dialect, &board.handle_host(10, b"?\n"));
        let Some(Reading::Scan { squares, .. }) = told.last() else {
            panic!("{told:?}")
        };
        assert_eq!(squares[0].1, Contents::Side(Color::White));
        assert_eq!(squares[20].1, Contents::Empty);
        assert_eq!(squares[63].1, Contents::Side(Color::Black));
        let delta = |seq, square, occupied| Message::Delta {
            seq,
            ms: 20,
            changes: vec![Change { square, occupied }],
        };
        let told = heard(&mut dialect, &[delta(2, 12, false).encode()]);
        assert!(shown(&told).is_some_and(|(_, gapless)| gapless), "{told:?}");
        let put = [delta(3, 28, true).encode()];
        assert_eq!(heard(&mut dialect, &put), [Reading::Missed]);
    }

    /// Asks as a daemon does, until a time; tells when what was written.
    fn written(driver: &mut Driver, until: Millis) -> Vec<(Millis, Vec<u8>)> {
        let mut out = Vec::new();
        let mut now = 0;
        loop {
            out.extend(std::iter::from_fn(|| driver.poll_write()).map(|bytes| (now, bytes)));
            match driver.poll_timeout().filter(|at| *at <= until) {
                Some(at) => now = now.max(at),
                None => return out,
            }
            driver.handle_timeout(now);
        }
    }

    #[test]
    fn a_board_is_asked_every_second_until_it_says_hello() {
        let mut driver = Driver::new(Family::Psb1, Watch::Judge);
        driver.handle_opened(0);
        let asked = written(&mut driver, 4_500);
        assert_eq!(asked[0], (0, b"\n?\n".to_vec()));
        for second in 1..=4 {
            assert!(asked.contains(&(second * 1000, b"?\n".to_vec())));
        }
        let mut board = array(false, false);
        for line in board.handle_host(4_500, b"?\n") {
            driver.handle_bytes(4_500, &line, |_| {});
        }
        for now in (5_500..20_000).step_by(1000) {
            let life = board.handle_timeout(now).concat();
            driver.handle_timeout(now);
            driver.handle_bytes(now, &life, |_| {});
            assert_eq!(driver.poll_write(), None, "{now}");
        }
    }

    #[test]
    fn silence_begins_three_seconds_after_the_last_line_whatever_else_comes() {
        let mut driver = Driver::new(Family::Psb1, Watch::Judge);
        driver.handle_opened(0);
        for line in array(false, false).handle_host(500, b"?\n") {
            driver.handle_bytes(500, &line, |_| {});
        }
        for now in (600..3_500).step_by(100) {
            driver.handle_timeout(now);
            driver.handle_bytes(now, b".", |_| {});
            assert!(!driver.is_silent(), "{now}");
        }
        driver.handle_timeout(3_500);
        assert!(driver.is_silent());
        driver.handle_bytes(3_600, b"booting\n", |_| {});
        assert!(driver.is_silent());
        driver.handle_bytes(3_700, b"$B,87,3920*45\n", |_| {});
        assert!(!driver.is_silent());
    }

    /// Opening a port starts many microcontrollers anew.
    #[test]
    fn a_board_has_time_to_start() {
        let mut driver = Driver::new(Family::Psb1, Watch::Judge);
        driver.handle_opened(0);
        written(&mut driver, 7_900);
        assert!(!driver.is_silent());
        written(&mut driver, 8_100);
        assert!(driver.is_silent());
    }

    #[test]
    fn chatter_asks_for_nothing_and_a_lost_change_for_all() {
        let mut driver = Driver::new(Family::Psb1, Watch::Judge);
        driver.handle_opened(0);
        let mut board = array(false, true);
        for line in board.handle_host(0, b"?\n") {
            driver.handle_bytes(0, &line, |_| {});
        }
        while driver.poll_write().is_some() {}
        driver.handle_bytes(10, b"free heap 123456\r\n", |_| {});
        assert_eq!(driver.poll_write(), None);
        assert_eq!(driver.skipped_bytes(), 18);
        board.set_squares(20, &[(12, None)]);
        let put = board.set_squares(25, &[(28, Some(true))]).concat();
        driver.handle_bytes(30, &put, |_| {});
        assert_eq!(driver.poll_write(), Some(b"?\n".to_vec()));
    }
}

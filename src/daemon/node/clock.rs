//! Both clocks of a node: the one that only goes forward, and the one on the wall.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Millis;
use crate::publish;
use crate::session::Wall;

/// Both clocks: the one that only goes forward, and the one on the wall.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    /// Unix time in milliseconds when the other clock began.
    wall_ms: i64,
    pub(super) time_ok: bool,
    is_ok: fn() -> bool,
}

impl Clock {
    pub(super) fn new(is_ok: fn() -> bool) -> Clock {
        let mut clock = Clock {
            start: Instant::now(),
            wall_ms: 0,
            time_ok: false,
            is_ok,
        };
        clock.look();
        clock
    }

    pub(super) fn now(&self) -> Millis {
        self.millis(Instant::now())
    }

    pub(super) fn millis(&self, at: Instant) -> Millis {
        at.saturating_duration_since(self.start).as_millis() as Millis
    }

    pub(super) fn instant(&self, at: Millis) -> Instant {
        self.start + Duration::from_millis(at)
    }

    /// Looks at the wall clock; says whether it was set since the last time.
    pub(super) fn look(&mut self) -> bool {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix = since_1970.map_or(0, |since| since.as_millis() as i64);
        let wall_ms = unix - self.now() as i64;
        let time_ok = (self.is_ok)();
        let is_set = self.time_ok != time_ok || self.wall_ms.abs_diff(wall_ms) > WALL_SET_MS;
        if is_set {
            self.wall_ms = wall_ms;
            self.time_ok = time_ok;
        }
        is_set
    }

    /// What a session is told of it.
    pub(super) fn setting(&self) -> Wall {
        Wall {
            offset_ms: self.wall_ms,
            time_ok: self.time_ok,
        }
    }

    /// Now, RFC 3339.
    pub(super) fn wall(&self) -> String {
        let unix = self.wall_ms + self.now() as i64;
        publish::rfc3339(unix)
    }
}

/// Whether the wall clock can be trusted.
///
/// Asking the kernel itself (`adjtimex`) needs unsafe code. Where systemd-timesyncd runs, it leaves a file once it has heard a
/// time server. Without it, any other service may have set the clock; then a year in which this program exists has to do, which
/// at least finds out a machine without a clock of its own that woke up in 1970.
pub(super) fn is_time_set() -> bool {
    let timesyncd = Path::new("/run/systemd/timesync");
    if timesyncd.is_dir() {
        return timesyncd.join("synchronized").exists();
    }
    const YEAR_2025: Duration = Duration::from_secs(1_735_689_600);
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .is_ok_and(|since| since >= YEAR_2025)
}

/// A wall clock that has moved by less has not been set, only slewed.
const WALL_SET_MS: u64 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_is_set_only_when_it_jumps() {
        let mut clock = Clock::new(|| true);
        assert!(clock.time_ok);
        assert!(!clock.look());
        clock.wall_ms -= 10_000;
        assert!(clock.look());
        clock.is_ok = || false;
        assert!(clock.look());
        assert!(clock.wall().ends_with('Z'));
    }
}

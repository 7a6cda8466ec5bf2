//! A board that nobody touches is no board that has fallen silent (case A16).

use jadoube::game::Pairing;
use jadoube::publish::Topic;
use jadoube::session::{Session, Settings, Watch};
use jadoube::wire::dgt::{BwTime, SideTime, VirtualBoard};

/// Ten minutes with a board that answers, and says nothing else: none of it is told to anybody.
#[test]
fn ten_minutes_without_a_hand_are_no_fault() {
    let stopped = BwTime {
        left: SideTime::new(1, 30, 0),
        right: SideTime::new(1, 30, 0),
        ..BwTime::default()
    };
    for clock in [None, Some(stopped)] {
        let mut board = VirtualBoard::default();
        let settings = Settings {
            armed: Some(Pairing::default()),
            watch: Watch::Judge,
            ..Settings::new("12")
        };
        let mut session = Session::new(settings, 0);
        session.handle_opened(0);
        board.set_clock(clock);
        let (mut now, mut asked, mut alerts) = (0, 0, Vec::new());
        while now < 600_000 {
            while let Some(bytes) = session.poll_write() {
                asked += 1;
                let answer = board.handle_host(&bytes);
                session.handle_bytes(now, &answer);
            }
            while let Some(publication) = session.poll_publication() {
                if matches!(publication.topic, Topic::Alert { .. }) {
                    alerts.push((now, publication));
                }
            }
            assert!(!session.is_silent(), "at {now}");
            now = session.poll_timeout().unwrap_or(600_000).max(now + 1);
            session.handle_timeout(now);
        }
        assert!(alerts.is_empty(), "{clock:?}: {alerts:?}");
        assert!(asked > 100, "a silent board would be found in seconds");
    }
}

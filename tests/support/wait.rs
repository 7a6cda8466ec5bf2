//! Waits for what another program brings about and does not tell of. Its condition is asked again and again, here and nowhere else.

use std::time::{Duration, Instant};

/// Between two looks.
const PACE: Duration = Duration::from_millis(10);

/// Looks until something is there, or fails after `most`; what else the test does goes on meanwhile.
#[allow(dead_code)]
pub async fn until<T>(
    what: &str,
    most: Duration,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let deadline = Instant::now() + most;
    let mut pace = tokio::time::interval(PACE);
    loop {
        pace.tick().await;
        match look().await {
            Ok(found) => return found,
            Err(seen) => assert!(Instant::now() < deadline, "never: {what}; {seen}"),
        }
    }
}

/// The same for a test that does nothing else meanwhile.
#[allow(dead_code)]
pub fn until_blocking<T>(what: &str, most: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + most;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::park_timeout(PACE);
    }
}

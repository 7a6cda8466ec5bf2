//! How long to wait before the next try.

use std::time::Duration;

/// Doubles from try to try up to a limit, and is randomised, so that a hall full of nodes does not come back all at once.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    tries: u32,
}

impl Backoff {
    pub fn new(first: Duration, most: Duration) -> Self {
        Backoff {
            first,
            most,
            tries: 0,
        }
    }

    /// The next wait: between one half and the whole of what it has grown to.
    pub fn step(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.tries.min(16));
        self.tries = self.tries.saturating_add(1);
        doubled.min(self.most).mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// It worked.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_its_limit_and_starts_again() {
        let (first, most) = (Duration::from_millis(500), Duration::from_secs(30));
        let mut backoff = Backoff::new(first, most);
        for power in 0..40 {
            let whole = first.saturating_mul(1 << power.min(10)).min(most);
            let wait = backoff.step();
            assert!(wait >= whole / 2 && wait <= whole, "{wait:?} of {whole:?}");
        }
        backoff.reset();
        assert!(backoff.step() <= first);
    }
}

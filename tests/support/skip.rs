//! What a test does where a program that it needs is not installed.

use std::io::Write;

/// Says that a test is skipped, past the capture of output, which hides what a passing test prints. Under `tests/run`, which installs
/// what is needed and says so here, the test fails instead: green would prove nothing.
pub fn skipped(why: &str) {
    assert!(
        std::env::var_os("JADOUBE_REQUIRE").is_none(),
        "{why}: tests/run needs it"
    );
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

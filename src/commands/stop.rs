//! When a command that goes on until it is stopped is to stop.

use std::fs;
use std::future::pending;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// From its making on these signals no longer end the process, but [`Stop::wanted`].
#[derive(Debug)]
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed, or the connection to it lost. None where that shall not matter.
    hangup: Option<Signal>,
}

impl Stop {
    /// Needs a running Tokio runtime.
    pub fn new() -> io::Result<Stop> {
        Ok(Stop {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: match is_hangup_ignored() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
        })
    }

    /// Completes at Ctrl-C, when the service manager wants an end, or with the terminal. It may be dropped and asked again.
    pub async fn wanted(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Whether we were started by `nohup`, which asks to go on without a terminal.
fn is_hangup_ignored() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores_hangup(&status))
}

/// `SigIgn` of proc_pid_status(5) is a mask in hex, the lowest bit for signal 1, which is the hangup.
fn ignores_hangup(status: &str) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_seen() {
        assert!(ignores_hangup("Name:\tx\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("SigIgn:\t0000000000001000\nSigCgt:\t1\n"));
        assert!(!ignores_hangup(""));
    }
}

//! Looks on while a search runs: a line on a terminal, Ctrl-C, and the clock.

use std::io::IsTerminal;
use std::io::Write;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::search::Observer;

/// Set by Ctrl-C, for every watch of this process: a handler can be installed once.
static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Milliseconds between two lines: as often as an eye can follow.
const PAUSE: u64 = 100;

/// Looks on while a search runs.
pub struct Watch {
    start: Instant,
    deadline: Option<Instant>,
    /// Whether somebody sees the line: files and pipes get none.
    seen: bool,
    /// Milliseconds after the start when the last line was drawn.
    drawn: AtomicU64,
    evaluated: AtomicU64,
    timed_out: AtomicBool,
    interrupted: Arc<AtomicBool>,
}

impl Watch {
    /// A watch that ends the search after `time_limit` seconds, where there is such a limit.
    pub fn new(time_limit: Option<u64>) -> Self {
        let start = Instant::now();
        Self {
            start,
            deadline: time_limit
                .and_then(|seconds| start.checked_add(Duration::from_secs(seconds))),
            seen: std::io::stderr().is_terminal(),
            drawn: AtomicU64::new(0),
            evaluated: AtomicU64::new(0),
            timed_out: AtomicBool::new(false),
            interrupted: listen(),
        }
    }

    /// Whether the user wants to stop.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Whether the time limit ended the search.
    pub fn timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Relaxed)
    }

    /// Takes the line off the terminal.
    pub fn finish(&self) {
        self.draw("");
    }

    fn draw(&self, line: &str) {
        if self.seen {
            // A terminal that went away is no reason to stop.
            let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        }
    }
}

impl Observer for Watch {
    fn begins(&self, what: &str) {
        self.draw(&format!("{what}: bounding every design"));
    }

    fn evaluated(&self, what: &str, left: usize) {
        let count = self.evaluated.fetch_add(1, Ordering::Relaxed) + 1;
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let before = self.drawn.load(Ordering::Relaxed);
        let due = now >= before.saturating_add(PAUSE);
        // Of threads that are due at once, one draws.
        if due
            && self
                .drawn
                .compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            let seconds = now / 1000;
            self.draw(&format!("{what}: {count} evaluated, at most {left} left, {seconds} s"));
        }
    }

    fn stops(&self) -> bool {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if late {
            self.timed_out.store(true, Ordering::Relaxed);
        }
        late || self.interrupted()
    }
}

/// The flag that Ctrl-C sets; a second Ctrl-C ends the process at once.
fn listen() -> Arc<AtomicBool> {
    let flag = INTERRUPTED.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&flag);
        // Where no handler can be installed, Ctrl-C ends the process; the journal is safe anyway.
        let _ = ctrlc::set_handler(move || {
            if heard.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        flag
    });
    Arc::clone(flag)
}

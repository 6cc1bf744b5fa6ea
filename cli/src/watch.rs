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

use phaze::ask::search::Watcher;
use phaze::input::source::printable;
use phaze::search::Observer;

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
    interrupted: Arc<AtomicBool>,
}

impl Watch {
    /// A watch that ends the search after `time_limit`, where there is such a limit.
    pub fn new(time_limit: Option<Duration>) -> Self {
        let start = Instant::now();
        Self {
            start,
            // Longer than any clock counts is no limit.
            deadline: time_limit.and_then(|limit| start.checked_add(limit)),
            seen: std::io::stderr().is_terminal(),
            drawn: AtomicU64::new(0),
            evaluated: AtomicU64::new(0),
            interrupted: listen(),
        }
    }

    fn draw(&self, line: &str) {
        if self.seen {
            // A terminal that went away is no reason to stop.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", printable(line));
        }
    }

    /// Draws a line, given the seconds that passed, unless one was drawn just now.
    fn draw_when_due(&self, line: impl Fn(u64) -> String) {
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
            self.draw(&line(now / 1000));
        }
    }
}

impl Observer for Watch {
    fn begins(&self, what: &str) {
        self.draw(&format!("{what}: bounding every design"));
    }

    fn evaluated(&self, what: &str, left: usize) {
        let count = self.evaluated.fetch_add(1, Ordering::Relaxed) + 1;
        self.draw_when_due(|seconds| {
            format!("{what}: {count} evaluated, at most {left} left, {seconds} s")
        });
    }

    fn bounded(&self, what: &str, done: usize, of: usize) {
        self.draw_when_due(|seconds| {
            format!("{what}: {done} of {of} designs bounded, {seconds} s")
        });
    }

    fn stops(&self) -> bool {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        late || self.interrupted()
    }
}

impl Watcher for Watch {
    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Takes the line off the terminal.
    fn finish(&self) {
        self.draw("");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_a_second_ends_a_search() {
        let watch = Watch::new(Some(Duration::from_millis(1)));
        std::thread::sleep(Duration::from_millis(2));
        assert!(watch.stops());
        assert!(!Watch::new(Some(Duration::MAX)).stops());
    }

    #[test]
    fn lines_are_drawn_no_faster_than_an_eye_can_follow() {
        let watch = Watch::new(None);
        watch.drawn.store(0, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(PAUSE + 1));
        let drawn = AtomicU64::new(0);
        for _ in 0..3 {
            watch.draw_when_due(|_| {
                drawn.fetch_add(1, Ordering::Relaxed);
                String::new()
            });
        }
        assert_eq!(drawn.load(Ordering::Relaxed), 1);
        watch.bounded("gpt2-xl with 32 GiB", 1, 2);
    }
}

//! A line on the terminal that says how far a long job is; silent where nobody watches.

use std::io::IsTerminal;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Runs `job` and shows on standard error, if that is a terminal, how many of `total` it has
/// counted.
pub fn shown<R>(what: &str, total: usize, job: impl FnOnce(&AtomicUsize) -> R) -> R {
    let done = AtomicUsize::new(0);
    if !std::io::stderr().is_terminal() {
        return job(&done);
    }
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A job that ends at once shows nothing.
            for tick in 0_u64.. {
                std::thread::sleep(Duration::from_millis(50));
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                if tick >= 4 {
                    show(what, done.load(Ordering::Relaxed), total);
                }
            }
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        });
        let answer = job(&done);
        ended.store(true, Ordering::Relaxed);
        answer
    })
}

/// Runs `job` and shows on standard error, if that is a terminal, for how long it has been at it, from
/// the first second on.
pub fn timed<R>(what: &str, job: impl FnOnce() -> R) -> R {
    if !std::io::stderr().is_terminal() {
        return job();
    }
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for tick in 1_u64.. {
                std::thread::sleep(Duration::from_millis(50));
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                if tick >= 20 && tick % 4 == 0 {
                    let tenths = tick / 2;
                    let _ =
                        write!(std::io::stderr(), "\r{what}: {}.{} s", tenths / 10, tenths % 10);
                }
            }
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        });
        let answer = job();
        ended.store(true, Ordering::Relaxed);
        answer
    })
}

fn show(what: &str, done: usize, total: usize) {
    let places = done * 30 / total.max(1);
    let bar = "█".repeat(places) + &"░".repeat(30 - places.min(30));
    // A terminal that went away is no reason to stop.
    let _ = write!(std::io::stderr(), "\r{what} {bar} {done}/{total}");
}

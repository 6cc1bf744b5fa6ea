//! Work on a thread of its own, while the caller's thread listens to Ctrl-C and tells progress.
//!
//! Signals reach Python's main thread only, and only when it looks: the caller looks every few
//! milliseconds and otherwise lets other threads run. Work that is interrupted is told to stop and left
//! to end by itself; a later search into a directory waits for it, because it may still hold the lock.

use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use pyo3::exceptions::PyRuntimeError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use phaze::ask::search::Watcher;
use phaze::search::Observer;

/// How often the caller looks for signals.
const TICK: Duration = Duration::from_millis(20);

/// How often progress is told at the most: as often as an eye can follow.
const PAUSE: Duration = Duration::from_millis(100);

/// How far a search is.
#[derive(Clone, Debug, Default)]
struct Progress {
    what: String,
    bounded: usize,
    of: usize,
    evaluated: usize,
    left: Option<usize>,
}

/// Looks on while work runs, and can end it.
#[derive(Debug, Default)]
pub struct Overseer {
    asked: AtomicBool,
    limit: Option<Duration>,
    deadline: Mutex<Option<Instant>>,
    /// Which of several searches it is, where there are several.
    which: Mutex<String>,
    progress: Mutex<Progress>,
}

impl Overseer {
    /// One that ends the work after so many seconds, where there is such a limit.
    pub fn new(time_limit: Option<f64>) -> PyResult<Arc<Self>> {
        let limit = match time_limit {
            Some(seconds) if seconds.is_nan() || seconds < 0.0 => {
                let message =
                    format!("time_limit = {seconds}: give a number of seconds, 0 or more");
                return Err(PyValueError::new_err(message));
            }
            // Longer than any clock counts is no limit.
            Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
            None => None,
        };
        let overseer = Self { limit, ..Self::default() };
        overseer.next("");
        Ok(Arc::new(overseer))
    }

    /// The next of several searches begins: its time is counted from now on.
    pub fn next(&self, which: &str) {
        which.clone_into(&mut unpoisoned(&self.which));
        *unpoisoned(&self.deadline) =
            self.limit.and_then(|limit| Instant::now().checked_add(limit));
    }

    /// Whether the work must end.
    pub fn is_over(&self) -> bool {
        let late = unpoisoned(&self.deadline).is_some_and(|deadline| Instant::now() >= deadline);
        late || self.asked.load(Ordering::Relaxed)
    }
}

impl Observer for Overseer {
    fn begins(&self, what: &str) {
        let what = format!("{}{what}", unpoisoned(&self.which));
        *unpoisoned(&self.progress) = Progress { what, ..Progress::default() };
    }

    fn bounded(&self, _what: &str, done: usize, of: usize) {
        let mut progress = unpoisoned(&self.progress);
        (progress.bounded, progress.of) = (done, of);
    }

    fn evaluated(&self, _what: &str, left: usize) {
        let mut progress = unpoisoned(&self.progress);
        progress.evaluated += 1;
        progress.left = Some(left);
    }

    fn stops(&self) -> bool {
        self.is_over()
    }
}

impl Watcher for Overseer {
    fn interrupted(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Where the answer of a thread is laid down.
type Tray<T> = Arc<(Mutex<Option<std::thread::Result<T>>>, Condvar)>;

/// Runs `work` elsewhere until it answers, Ctrl-C is pressed, or `tell` raises an exception; then the
/// overseer is told, and the exception is raised at once.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    overseer: &Overseer,
    tell: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let tray: Tray<T> = Arc::default();
    let theirs = Arc::clone(&tray);
    let thread = std::thread::Builder::new().name("phaze".into()).spawn(move || {
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        *unpoisoned(&theirs.0) = Some(answer);
        theirs.1.notify_all();
    });
    let thread = thread.map_err(|reason| PyRuntimeError::new_err(reason.to_string()))?;
    let mut told = Instant::now();
    loop {
        let answer = py.detach(|| {
            let waiting = unpoisoned(&tray.0);
            let waited = tray.1.wait_timeout_while(waiting, TICK, |answer| answer.is_none());
            waited.unwrap_or_else(PoisonError::into_inner).0.take()
        });
        match answer {
            Some(Ok(answer)) => return Ok(answer),
            // A panic means that we are wrong: it is shown as one.
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => {}
        }
        let mut heard = py.check_signals();
        if let (Ok(()), Some(tell), true) = (&heard, tell, told.elapsed() >= PAUSE) {
            told = Instant::now();
            let Progress { what, bounded, of, evaluated, left } =
                unpoisoned(&overseer.progress).clone();
            heard = tell.call1((what, bounded, of, evaluated, left)).map(drop);
        }
        if let Err(exception) = heard {
            overseer.asked.store(true, Ordering::Relaxed);
            unpoisoned(&LEFT_ALONE).push((std::process::id(), thread));
            return Err(exception);
        }
    }
}

/// Threads that were told to stop, with the process that they belong to: a process that was forked has
/// none of its parent's.
static LEFT_ALONE: Mutex<Vec<(u32, JoinHandle<()>)>> = Mutex::new(Vec::new());

/// Waits until work that was interrupted has ended, and so let go of its directory.
pub fn wait_for_those_left_alone(py: Python<'_>) -> PyResult<()> {
    loop {
        let mut left = unpoisoned(&LEFT_ALONE);
        left.retain(|(process, thread)| *process == std::process::id() && !thread.is_finished());
        if left.is_empty() {
            return Ok(());
        }
        drop(left);
        py.detach(|| std::thread::sleep(TICK));
        py.check_signals()?;
    }
}

/// Runs `work` on so many threads; a pool of its own, so that a forked process has one too.
pub fn in_threads<T: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, String> {
    if threads.is_some_and(|threads| !(1..=1024).contains(&threads)) {
        return Err("threads: allowed are 1 to 1024".to_owned());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    let pool = pool.map_err(|reason| format!("threads: {reason}"))?;
    Ok(pool.install(work))
}

/// A lock that a panicking thread left behind is as good as any: what it guards is never half done.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

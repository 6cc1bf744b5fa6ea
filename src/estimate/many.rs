//! Many estimates at once, on several threads, answered in the order of the questions.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

/// Answers each of `items` on up to `n_threads` threads; `done` counts those answered, for whoever
/// watches.
///
/// Threads take the next item from a shared counter, so that slow ones do not hold up the others.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    n_threads: usize,
    done: &AtomicUsize,
    answer: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { return found };
            found.push((i, answer(item)));
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut answers: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..n_threads.clamp(1, items.len().max(1))).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.flat_map(|found| found.expect("a thread that answers does not panic")).collect()
    });
    answers.sort_unstable_by_key(|(i, _)| *i);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_questions() {
        let items: Vec<u64> = (0..1000).collect();
        for n_threads in [1, 2, 7] {
            let done = AtomicUsize::new(0);
            let found = each(&items, n_threads, &done, |item| item * item);
            assert!(found.iter().zip(&items).all(|(found, item)| *found == item * item));
            assert_eq!(done.into_inner(), 1000);
        }
        assert!(each(&[], 4, &AtomicUsize::new(0), |item: &u64| *item).is_empty());
    }
}

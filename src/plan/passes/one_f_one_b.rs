//! One forward, one backward: each rank holds one stage and keeps as few micro-batches in flight
//! as let the last rank work without pause.

/// Forward passes before the first backward pass's turn, on a rank with `after` ranks after it.
pub(super) fn first_forwards(after: usize) -> u64 {
    after as u64
}

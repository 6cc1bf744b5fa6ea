//! Interleaved 1F1B in Megatron's order: forward passes go through groups of micro-batches, chunk
//! by chunk; backward passes likewise with the chunks reversed.

use super::IllegalOrder;

/// Every rank must find its next micro-batch ready before it has to wait for its own results:
/// groups no smaller than the ranks, the last one included. One chunk alone is plain enough that
/// any number of ranks will do, but the same groups are asked for.
pub(super) fn check(
    ranks: usize,
    chunks: usize,
    group: u64,
    micro_batches: u64,
) -> Result<(), IllegalOrder> {
    if ranks == 1 {
        return Err(IllegalOrder::OneRank { chunks });
    }
    let least = ranks as u64;
    if group < least || group > micro_batches {
        return Err(IllegalOrder::Group { group, least, most: micro_batches });
    }
    let left = micro_batches % group;
    if left != 0 && left < least {
        return Err(IllegalOrder::LastGroup { left, group, least });
    }
    Ok(())
}

/// Forward passes before the first backward pass's turn, on a rank with `after` ranks after it.
pub(super) fn first_forwards(after: usize, chunks: usize, group: u64) -> u64 {
    2 * after as u64 + (chunks as u64 - 1) * group
}

/// Chunk and micro-batch of the forward pass with this number, on any rank.
pub(super) fn nth(number: u64, chunks: u64, group: u64, micro_batches: u64) -> (usize, u64) {
    let before = number / (group * chunks) * group;
    let within = number % (group * chunks);
    // The last group may be smaller.
    let size = group.min(micro_batches - before);
    let chunk = usize::try_from(within / size).expect("a chunk is an index");
    (chunk, before + within % size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_go_through_chunk_by_chunk_and_the_last_may_be_smaller() {
        let order: Vec<(usize, u64)> = (0..10).map(|number| nth(number, 2, 3, 5)).collect();
        let expected =
            [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (0, 4), (1, 3), (1, 4)];
        assert_eq!(order, expected);
    }
}

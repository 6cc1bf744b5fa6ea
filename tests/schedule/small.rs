//! Graphs small enough for brute force.

use phaze::schedule::Problem;

use super::instances::Dice;
use super::instances::problem;
use super::instances::rule;
use super::instances::task;

/// All edges between `n` tasks in order, one bit each.
pub fn edges(n: usize, bits: u64) -> Vec<(usize, usize)> {
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    pairs.enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, edge)| edge).collect()
}

/// A random graph of up to `most` tasks.
pub fn random(dice: &mut Dice, most: u64) -> Problem {
    let n = usize::try_from(dice.between(1, most)).unwrap();
    let density = dice.between(1, 9);
    let mut edges = Vec::new();
    for i in 0..n {
        for j in i + 1..n {
            if dice.below(12) < density {
                edges.push((i, j));
            }
        }
    }
    let tasks = (0..n).map(|_| task(dice, 9)).collect();
    let cores = [dice.between(1, 4), dice.between(1, 3)].map(|n| u32::try_from(n).unwrap());
    let rule = rule(dice);
    problem(tasks, &edges, (cores[0], cores[1]), rule)
}

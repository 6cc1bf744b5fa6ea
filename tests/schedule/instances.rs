//! Instances to schedule: every small graph, random ones, and layered ones.

use std::ops::Range;

use phaze::graph::Dag;
use phaze::model::op::CoreKind;
use phaze::schedule::Cores;
use phaze::schedule::Problem;
use phaze::schedule::Rule;
use phaze::schedule::Task;

/// A small generator of random numbers, the same on every machine (xorshift64*).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }
}

/// A task of random kind with times up to `longest`; spreading may scale well, badly or not at all.
pub fn task(dice: &mut Dice, longest: u64) -> Task {
    let core = match dice.below(12) {
        0..5 => CoreKind::Tensor,
        5..8 => CoreKind::Vector,
        8..10 => CoreKind::Both,
        10 => CoreKind::Network,
        _ => CoreKind::None,
    };
    if core == CoreKind::None {
        return Task { core, alone: 0, spread: 0 };
    }
    let alone = dice.between(1, longest);
    let spread = match dice.below(8) {
        0 => alone + dice.below(3),
        1 => dice.below(alone + 1),
        2 => alone,
        _ => dice.between(alone.div_ceil(4), alone),
    };
    Task { core, alone, spread }
}

pub fn rule(dice: &mut Dice) -> Rule {
    if dice.below(2) == 0 { Rule::Alone } else { Rule::OwnKind }
}

pub fn problem(
    tasks: Vec<Task>,
    edges: &[(usize, usize)],
    cores: (u32, u32),
    rule: Rule,
) -> Problem {
    let (tasks, _) = Dag::from_edges(tasks, edges).unwrap();
    Problem { tasks, cores: Cores { tensor: cores.0, vector: cores.1 }, rule }
}

/// A layered graph: rows of up to `width` tasks, each reading one to three of the row before, and
/// each but the last row's read by one at least, `leaves` of a hundred apart.
pub fn layered(dice: &mut Dice, n: usize, width: u64, leaves: u64) -> Problem {
    let mut edges = Vec::new();
    let (mut row_before, mut first) = (0..0, 0);
    let one_of = |dice: &mut Dice, row: &Range<usize>| {
        row.start + usize::try_from(dice.below(row.len() as u64)).unwrap()
    };
    while first < n {
        let row = first..n.min(first + usize::try_from(dice.between(1, width)).unwrap());
        for task in row.clone().filter(|_| !row_before.is_empty()) {
            for _ in 0..dice.between(1, 3) {
                edges.push((one_of(dice, &row_before), task));
            }
        }
        for task in row_before {
            let is_read = edges.iter().any(|(read, _)| *read == task);
            if !is_read && dice.below(100) >= leaves {
                edges.push((task, one_of(dice, &row)));
            }
        }
        first = row.end;
        row_before = row;
    }
    let tasks = (0..n).map(|_| task(dice, 1_000_000)).collect();
    let cores = [(); 2].map(|()| [1, 2, 4, 8][usize::try_from(dice.below(4)).unwrap()]);
    let rule = rule(dice);
    problem(tasks, &edges, (cores[0], cores[1]), rule)
}

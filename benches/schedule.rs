//! How fast layers are scheduled, and by which means they are proved.

#[path = "../tests/schedule/instances.rs"]
mod instances;

use std::time::Duration;
use std::time::Instant;

use instances::Dice;
use phaze::schedule::Limits;
use phaze::schedule::ProofKind;
use phaze::schedule::solve;

fn main() {
    layered();
}

/// Random layered graphs of 60 operators, at most 6 wide.
fn layered() {
    let mut dice = Dice::new(60);
    let mut took: Vec<(Duration, f64)> = Vec::new();
    let n: usize = std::env::var("N").map_or(60, |n| n.parse().unwrap());
    let nodes: u64 = std::env::var("NODES").map_or(2_000_000, |n| n.parse().unwrap());
    let leaves: u64 = std::env::var("LEAVES").map_or(0, |n| n.parse().unwrap());
    for i in 0..n {
        let problem = instances::layered(&mut dice, 60, 6, leaves);
        let clock = Instant::now();
        let solved = solve(&problem, &Limits { nodes, stop: None });
        let t = clock.elapsed();
        println!(
            "{i} {:?} {}tc {}vc {:?} nodes {} gap {:.5} {:?} part {}",
            problem.rule,
            problem.cores.tensor,
            problem.cores.vector,
            solved.proof.kind,
            solved.n_nodes,
            solved.proof.gap(solved.makespan),
            t,
            phaze::schedule::Prepared::new(&problem.tasks.map(|t| t.core), |_| false)
                .largest_block()
        );
        took.push((t, solved.proof.gap(solved.makespan)));
    }
    let within = took.iter().filter(|(t, gap)| *gap == 0.0 && *t <= Duration::from_secs(1)).count();
    println!("layered 60: {within} of {n} proved within 1 s");
}

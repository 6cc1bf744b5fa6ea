//! The scheduler against brute force, golden optima, and the laws.

#[path = "schedule/instances.rs"]
mod instances;
#[path = "schedule/reference.rs"]
mod reference;

use instances::Dice;
use phaze::plan::check;
use phaze::schedule::Limits;
use phaze::schedule::Problem;
use phaze::schedule::ProofKind;
use phaze::schedule::Rule;
use phaze::schedule::solve;

/// The makespan that the exact solver proves; the schedule is checked once more.
fn proved(problem: &Problem) -> u64 {
    let solved = solve(problem, &Limits::DEFAULT);
    assert_eq!(check::schedule::check(problem, &solved.schedule), Ok(solved.makespan));
    assert_ne!(solved.proof.kind, ProofKind::None, "{problem:?}");
    assert_eq!(solved.proof.lower_bound, solved.makespan);
    solved.makespan
}

#[test]
fn every_graph_of_up_to_five_tasks_agrees_with_every_order() {
    let mut dice = Dice::new(1);
    for n in 1..=5 {
        for bits in 0..1 << (n * (n - 1) / 2) {
            let edges = instances::edges(n, bits);
            for cores in (1..=3).flat_map(|tensor| (1..=3).map(move |vector| (tensor, vector))) {
                for rule in [Rule::Alone, Rule::OwnKind] {
                    let tasks = (0..n).map(|_| instances::task(&mut dice, 6)).collect();
                    let problem = instances::problem(tasks, &edges, cores, rule);
                    assert_eq!(
                        proved(&problem),
                        reference::by_every_order(&problem),
                        "{problem:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn thousands_of_random_graphs_of_up_to_nine_tasks_agree_with_the_shortest_path() {
    let mut dice = Dice::new(2);
    for case in 0..4000 {
        let problem = instances::random(&mut dice, 9);
        assert_eq!(
            proved(&problem),
            reference::by_shortest_path(&problem),
            "case {case} {problem:?}"
        );
    }
}

#[test]
fn the_two_references_agree_with_each_other() {
    let mut dice = Dice::new(3);
    for _ in 0..500 {
        let problem = instances::random(&mut dice, 5);
        assert_eq!(reference::by_every_order(&problem), reference::by_shortest_path(&problem));
    }
}

#[test]
fn layered_graphs_of_sixty_tasks() {
    let mut dice = Dice::new(4);
    let mut unproved = 0;
    for case in 0..100 {
        let problem = instances::layered(&mut dice, 60, 6, 1_000_000);
        let t = std::time::Instant::now();
        let solved = solve(&problem, &Limits::DEFAULT);
        let el = t.elapsed();
        if solved.proof.kind == ProofKind::None {
            unproved += 1;
        }
        println!(
            "{case} {:?} {:?} {} {:?} {:?} gap {}",
            problem.rule,
            problem.cores,
            solved.makespan,
            solved.proof.kind,
            el,
            solved.proof.gap(solved.makespan)
        );
    }
    println!("unproved {unproved}");
}

//! The scheduler against brute force, golden optima, and the laws.

#[path = "schedule/instances.rs"]
mod instances;
#[path = "schedule/reference.rs"]
mod reference;
#[path = "schedule/small.rs"]
mod small;

use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use instances::Dice;
use phaze::graph::Dag;
use phaze::graph::NodeId;
use phaze::input::graph::UserGraph;
use phaze::input::graph::graphs;
use phaze::model::op::CoreKind;
use phaze::plan::check;
use phaze::schedule::Limits;
use phaze::schedule::Prepared;
use phaze::schedule::Problem;
use phaze::schedule::ProofKind;
use phaze::schedule::Rule;
use phaze::schedule::Solver;
use phaze::schedule::Task;
use phaze::schedule::solve;
use phaze::schedule::solve_with;

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
            let edges = small::edges(n, bits);
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
    for case in 0..3000 {
        let problem = small::random(&mut dice, 9);
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
        let problem = small::random(&mut dice, 5);
        assert_eq!(reference::by_every_order(&problem), reference::by_shortest_path(&problem));
    }
}

#[test]
fn golden_layers_have_their_proved_optima() {
    let mut n_graphs = 0;
    for file in ["layers", "backward_split"] {
        for (graph, line) in golden(file) {
            let expected = line["optimal_makespan"].as_f64().unwrap();
            let found = graph.scale.unscaled(proved(&graph.problem));
            assert_eq!(found.to_bits(), expected.to_bits(), "{:?}", graph.name);
            n_graphs += 1;
        }
    }
    assert_eq!(n_graphs, 44);
}

#[test]
fn the_integer_program_agrees_on_random_graphs_and_golden_layers() {
    let mut dice = Dice::new(9);
    let random = (0..300).map(|_| small::random(&mut dice, 6)).collect::<Vec<Problem>>();
    let layers = golden("layers").into_iter().map(|(graph, _)| graph.problem);
    for problem in random.into_iter().chain(layers) {
        let program = solve_with(&problem, Solver::Ilp { seconds: 60.0 }, &Limits::DEFAULT);
        assert_ne!(program.proof.kind, ProofKind::None, "{problem:?}");
        assert_eq!(program.makespan, proved(&problem), "{problem:?}");
    }
}

#[test]
fn list_schedules_lie_between_their_bound_and_the_horizon() {
    let mut dice = Dice::new(10);
    for _ in 0..500 {
        let problem = small::random(&mut dice, 9);
        let list = solve_with(&problem, Solver::List, &Limits::DEFAULT);
        let fastest = proved(&problem);
        assert!(list.proof.lower_bound <= fastest && fastest <= list.makespan);
        assert_eq!(list.proof.kind == ProofKind::None, list.proof.lower_bound < list.makespan);
    }
}

#[test]
fn sharing_with_other_kinds_is_never_slower_than_running_alone() {
    for (graph, _) in golden("layers") {
        let shared = Problem { rule: Rule::OwnKind, ..graph.problem.clone() };
        assert!(proved(&shared) <= proved(&graph.problem), "{:?}", graph.name);
    }
}

#[test]
fn limits_yield_a_checked_schedule_and_an_honest_gap() {
    let mut dice = Dice::new(5);
    let mut n_unproved = 0;
    for _ in 0..50 {
        let problem = instances::layered(&mut dice, 40, 6, 30);
        let exact = solve(&problem, &Limits { nodes: 200_000, stop: None });
        for limits in [Limits { nodes: 0, stop: None }, Limits { nodes: 9, stop: Some(&|| true) }] {
            let found = solve(&problem, &limits);
            assert!(found.makespan >= exact.proof.lower_bound);
            assert!(found.proof.lower_bound <= exact.makespan);
            assert!(found.proof.lower_bound <= found.makespan);
            if found.proof.kind == ProofKind::None {
                assert!(found.proof.gap(found.makespan) > 0.0);
                n_unproved += 1;
            }
        }
    }
    assert!(n_unproved > 20, "only {n_unproved} were hard enough");
}

#[test]
fn more_cores_and_fewer_reads_are_never_slower() {
    let mut dice = Dice::new(6);
    for _ in 0..300 {
        let problem = small::random(&mut dice, 9);
        let makespan = proved(&problem);
        // Spread times hold for a number of cores, so only what runs alone can gain from more.
        let alone = problem.tasks.map(|task| Task { spread: task.alone, ..*task });
        let few = Problem { tasks: alone, ..problem.clone() };
        let mut many = few.clone();
        many.cores.tensor += 1;
        many.cores.vector += 1;
        assert!(proved(&many) <= proved(&few));
        assert!(makespan <= proved(&few), "spreading is a choice");
        let edges: Vec<(usize, usize)> =
            problem.tasks.edges().map(|(from, to)| (from.index(), to.index())).collect();
        if let Some((_, fewer)) = edges.split_first() {
            let (tasks, _) = Dag::from_edges(problem.tasks.nodes().to_vec(), fewer).unwrap();
            assert!(proved(&Problem { tasks, ..problem }) <= makespan);
        }
    }
}

#[test]
fn the_order_in_which_tasks_are_given_changes_nothing() {
    let mut dice = Dice::new(7);
    for _ in 0..300 {
        let problem = small::random(&mut dice, 9);
        let n = problem.tasks.len();
        // Tasks in reverse, with the edges that they had.
        let tasks = problem.tasks.nodes().iter().rev().copied().collect();
        let flip = |id: NodeId| n - 1 - id.index();
        let edges: Vec<(usize, usize)> =
            problem.tasks.edges().map(|(from, to)| (flip(from), flip(to))).collect();
        let (tasks, _) = Dag::from_edges(tasks, &edges).unwrap();
        assert_eq!(proved(&Problem { tasks, ..problem.clone() }), proved(&problem));
    }
}

#[test]
fn a_prepared_graph_answers_like_a_fresh_one() {
    let mut dice = Dice::new(8);
    for (graph, _) in golden("backward_split") {
        let problem = graph.problem;
        let prepared = Prepared::new(problem.tasks.map(|task| task.core));
        for _ in 0..3 {
            let other = problem.tasks.map(|task| match task.core {
                CoreKind::None => *task,
                _ => Task {
                    alone: task.alone + dice.below(1000),
                    spread: task.spread + dice.below(100) + 1,
                    ..*task
                },
            });
            let limits = Limits::DEFAULT;
            let timed = prepared.time(other.nodes(), problem.cores, problem.rule, &limits);
            let solved = solve(&Problem { tasks: other, ..problem }, &limits);
            assert_eq!((timed.makespan, timed.proof), (solved.makespan, solved.proof));
        }
    }
}

/// The graphs of a golden file, each with its whole line.
fn golden(file: &str) -> Vec<(UserGraph, serde_json::Value)> {
    let path = format!("tests/golden/schedule/{file}.jsonl.gz");
    let mut text = String::new();
    GzDecoder::new(fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
    let graphs = graphs(&text, &path, true).unwrap();
    graphs.into_iter().zip(text.lines().map(|line| serde_json::from_str(line).unwrap())).collect()
}

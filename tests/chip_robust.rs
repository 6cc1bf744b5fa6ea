//! The winner beside chips drawn at random and under other assumptions, against every chip of a small
//! space; lies about it are found.

mod chip_space;

use chip_space::points;
use chip_space::searched;
use chip_space::verdict;
use phaze::ask::chips::SearchedChips;
use phaze::input::request::RequestFile;
use phaze::input::request::ready_chips;
use phaze::input::source::no_files;
use phaze::search::Judge;
use phaze::search::boxes::BoxProblem;
use phaze::search::boxes::Evaluation;
use phaze::search::chips::Assumption;
use phaze::search::chips::ByObjective;
use phaze::search::chips::ChipEvaluator;
use phaze::search::chips::ChipOutcome;
use phaze::search::chips::ChipSetup;
use phaze::search::chips::judge;

/// A hundred chips.
const KNOBS: &str = "tensor_cores = [6, 16, 24, 40]\nwidth = 128\ndepth = 128\n\
    vector_cores = [8, 64]\nvector_width = 128\nglb_mib = 16\nglb_bytes_per_cycle = [2048, 8192]\n\
    clock = [1.0, 1.6]\nstacks = [1, 3]\nlinks = [50, 400]\n";

fn setup(search: &str) -> ChipSetup {
    let text = format!(
        "[[model]]\nname = \"bert-large\"\n[job]\ndevices = 8\nglobal_batch = 64\nmicro_batches = [2]\n\
         [chip]\ntdp_w = 350\n[space]\n{KNOBS}[search]\n{search}\n"
    );
    let file = RequestFile::read(&text, "test").unwrap();
    ready_chips(&file, "test", &no_files).unwrap()
}

/// The best value of all chips, each in a setup of its own.
fn best(setup: &ChipSetup) -> Option<f64> {
    let evaluator = ChipEvaluator::new(setup, &()).unwrap_or_else(|(_, why)| panic!("{why}"));
    let judge: Judge = judge(setup);
    let problem = ByObjective { evaluator: &evaluator, models: vec![0], judge: &judge };
    let all = points(setup);
    let fitting = all.iter().filter(|point| problem.fits(point));
    let values = fitting.filter_map(|point| match problem.evaluate(point, None) {
        Evaluation::Found(value, _) => Some(value.first),
        _ => None,
    });
    values.min().map(|value| judge.figure(value))
}

#[test]
fn winners_under_other_assumptions_are_the_best_of_all_chips() {
    for objective in ["throughput", "cost-per-token"] {
        let setup = setup(&format!("robust = true\nspotlight = 400\nobjective = \"{objective}\""));
        let SearchedChips { outcome, boxes, .. } = searched(&setup);
        let told = outcome.robust.as_ref().unwrap();
        let turned = Assumption::turned(&setup);
        assert_eq!(told.len(), turned.len());
        assert!(told.iter().any(|under| under.constant == "power.activity_arrays"));
        let costs = told.iter().any(|under| under.constant.starts_with("cost."));
        assert_eq!(costs, objective == "cost-per-token");
        for (told, turned) in told.iter().zip(&turned).step_by(5) {
            let found = best(&turned.setup);
            let same = told.value.zip(found).is_some_and(|(a, b)| (a - b).abs() <= b * 1e-12);
            assert!(same, "{} {}: {:?} {found:?}", told.constant, told.percent, told.value);
        }
        // Of 128 chips 400 draws leave few out.
        let ratio = outcome.spotlight.as_ref().unwrap().winner_is.unwrap();
        assert!((1.0..1.2).contains(&ratio), "{ratio}");
        verdict(&outcome, &boxes, false).unwrap();
        verdict(&outcome, &boxes, true).unwrap();
    }
}

/// What a lie does to an answer.
type Lie = fn(&mut ChipOutcome);

#[test]
fn lies_about_samples_and_assumptions_are_found() {
    let setup = setup("robust = true\nspotlight = 3");
    let SearchedChips { outcome, boxes, .. } = searched(&setup);
    verdict(&outcome, &boxes, false).unwrap();
    let lies: [(&str, Lie); 8] = [
        ("nothing was drawn", |o| o.spotlight = None),
        ("more were drawn", |o| o.spotlight.as_mut().unwrap().samples += 1),
        ("the winner is better", |o| o.spotlight.as_mut().unwrap().winner_is = Some(9.0)),
        ("no assumption matters", |o| o.robust = None),
        ("one is left out", |o| drop(o.robust.as_mut().unwrap().pop())),
        ("another value", |o| o.robust.as_mut().unwrap()[0].to += 1.0),
        ("a chip that is none", |o| {
            let under = &mut o.robust.as_mut().unwrap()[0];
            under.knobs.as_mut().unwrap().insert("stacks".into(), 2);
        }),
        ("another chip is the same", |o| {
            let under = &mut o.robust.as_mut().unwrap()[0];
            under.same = !under.same;
        }),
    ];
    for (what, lie) in lies {
        let mut told = outcome.clone();
        lie(&mut told);
        assert!(verdict(&told, &boxes, false).is_err(), "{what} is believed");
    }
    // What is best under an assumption, only a solver knows.
    let mut told = outcome.clone();
    let under = told.robust.as_mut().unwrap().iter_mut().find(|under| under.same).unwrap();
    under.value = under.value.map(|value| value * 2.0);
    assert!(verdict(&told, &boxes, true).is_err());
}

//! The winner beside chips drawn at random and under other assumptions, against every chip of a small
//! space; lies about it are found.

mod chip_space;

use std::collections::BTreeMap;
use std::sync::Mutex;

use chip_space::points;
use chip_space::searched;
use chip_space::verdict;
use phaze::ask::chips::SearchedChips;
use phaze::input::request::RequestFile;
use phaze::input::request::ready_chips;
use phaze::input::source::no_files;
use phaze::search::Judge;
use phaze::search::Memory;
use phaze::search::boxes::BoxProblem;
use phaze::search::boxes::Evaluation;
use phaze::search::chips::Assumption;
use phaze::search::chips::ByObjective;
use phaze::search::chips::ChipEvaluator;
use phaze::search::chips::ChipOutcome;
use phaze::search::chips::ChipSetup;
use phaze::search::chips::UnderAssumption;
use phaze::search::chips::judge;

/// A hundred chips.
const KNOBS: &str = "tensor_cores = [6, 16, 24, 40]\nwidth = 128\ndepth = 128\n\
    vector_cores = [8, 64]\nvector_width = 128\nglb_mib = 16\nglb_bytes_per_cycle = [2048, 8192]\n\
    clock = [1.0, 1.6]\nstacks = [1, 3]\nlinks = [50, 400]\n";

fn setup(search: &str) -> ChipSetup {
    of_process(5, search)
}

fn of_process(nm: u64, search: &str) -> ChipSetup {
    let text = format!(
        "[[model]]\nname = \"bert-large\"\n[job]\ndevices = 8\nglobal_batch = 64\nmicro_batches = [2]\n\
         [chip]\ntdp_w = 350\nprocess_nm = {nm}\n[space]\n{KNOBS}[search]\n{search}\n"
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

/// What was known before, and what is found now.
#[derive(Default)]
struct Notes {
    known: BTreeMap<String, String>,
    found: Mutex<BTreeMap<String, String>>,
}

impl Memory for Notes {
    fn recall(&self, key: &str) -> Option<&str> {
        self.known.get(key).map(String::as_str)
    }
    fn remember(&self, key: &str, fact: &str) {
        self.found.lock().unwrap().insert(key.to_owned(), fact.to_owned());
    }
    fn fails(&self) -> bool {
        false
    }
}

#[test]
fn what_is_known_of_samples_and_assumptions_is_not_found_again_and_not_just_believed() {
    // The nominal clock of 3 nm is assumed, and changes energies: such chips are found by themselves.
    let setup = of_process(3, "robust = true\nspotlight = 20");
    let answer = |notes: &Notes| {
        let kept = (notes as &dyn Memory, true, "journal");
        let found = phaze::ask::chips::answer(&setup, kept, &());
        found.map(|found| (found.outcome.robust, found.outcome.spotlight))
    };
    let first = Notes::default();
    let told = answer(&first).unwrap();
    let known = first.found.into_inner().unwrap();
    let of_assumption = |key: &&String| key.contains(" %/");
    assert!(
        known.keys().any(|key| !of_assumption(&key)) && known.keys().any(|key| of_assumption(&key))
    );
    let again = Notes { known: known.clone(), ..Notes::default() };
    assert_eq!(answer(&again).unwrap(), told);
    assert!(again.found.into_inner().unwrap().is_empty(), "everything was known");
    // A chip that trains in no time under an assumption.
    let mut lying = known;
    let fact = lying.iter_mut().find(|(key, fact)| of_assumption(key) && fact.contains("time"));
    let (_, fact) = fact.unwrap();
    let at = fact.find("\"time\":").unwrap() + 7;
    let end = at + fact[at..].find([',', '}']).unwrap();
    fact.replace_range(at..end, "7");
    let lying = Notes { known: lying, ..Notes::default() };
    let refused = answer(&lying).unwrap_err().to_string();
    assert!(refused.contains("is not what is found"), "{refused}");
}

/// What a lie does to an answer.
type Lie = fn(&mut ChipOutcome);

#[test]
fn lies_about_samples_and_assumptions_are_found() {
    let setup = setup("robust = true\nspotlight = 3");
    let SearchedChips { outcome, boxes, .. } = searched(&setup);
    verdict(&outcome, &boxes, false).unwrap();
    let lies: [(&str, Lie); 15] = [
        ("another chip was drawn", |o| {
            o.spotlight.as_mut().unwrap().entry.clone_from(&o.winner);
        }),
        ("no chip was drawn", |o| o.spotlight.as_mut().unwrap().entry = None),
        ("it was turned further", |o| o.robust.as_mut().unwrap()[0].percent *= 2),
        ("it was another before", |o| o.robust.as_mut().unwrap()[0].from *= 2.0),
        ("it has another unit", |o| o.robust.as_mut().unwrap()[0].unit.push('s')),
        ("another constant", |o| o.robust.as_mut().unwrap()[0].constant.push('s')),
        ("it is far better then", |o| o.robust.as_mut().unwrap()[0].ratio = Some(3.0)),
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
    // What the winner is worth under an assumption follows from its own plans.
    let mut told = outcome.clone();
    let under = told.robust.as_mut().unwrap().iter_mut().find(|under| under.same).unwrap();
    under.value = under.value.map(|value| value * 2.0);
    assert!(verdict(&told, &boxes, false).is_err());
    // What is best under an assumption, only a solver knows.
    let mut told = outcome.clone();
    let better = |under: &&mut UnderAssumption| !under.same && under.ratio.is_some();
    if let Some(under) = told.robust.as_mut().unwrap().iter_mut().find(better) {
        under.value = under.value.map(|value| value * 1.5);
        under.ratio = under.ratio.map(|ratio| ratio * 1.5);
        assert!(verdict(&told, &boxes, true).is_err());
    }
}

//! What the best chip is compared with: operators alone by boxes against every chip, plans of experts,
//! real parts; lies about any of it are found.

mod chip_space;

use chip_space::points;
use chip_space::searched;
use chip_space::verdict;
use phaze::ask::chips::SearchedChips;
use phaze::compare::chips::Given;
use phaze::compare::chips::OperatorsAlone;
use phaze::compare::chips::given;
use phaze::input::request::RequestFile;
use phaze::input::request::ready_chips;
use phaze::input::source::no_files;
use phaze::search::boxes::BoxProblem;
use phaze::search::boxes::Evaluation;
use phaze::search::boxes::Value;
use phaze::search::chips::ChipEvaluator;
use phaze::search::chips::ChipOutcome;
use phaze::search::chips::ChipPoint;
use phaze::search::chips::ChipSetup;
use phaze::search::chips::judge;

/// A few hundred chips.
const KNOBS: &str = "tensor_cores = [6, 16, 40]\nwidth = [64, 128]\ndepth = 128\n\
    vector_cores = [8, 64]\nvector_width = 128\nglb_mib = [16, 64]\nglb_bytes_per_cycle = [2048, 8192]\n\
    clock = [1.0, 1.6]\nstacks = [1, 3, 6]\nlinks = [50, 400]\n";

fn setup(models: &[&str], chip: &str, search: &str) -> ChipSetup {
    let models = models.iter().map(|name| format!("[[model]]\nname = \"{name}\"\n"));
    let text = format!(
        "{}[job]\ndevices = 8\nglobal_batch = 64\nmicro_batches = [2]\n[space]\n\
         {KNOBS}{chip}\n[search]\n{search}\n",
        models.collect::<String>()
    );
    let file = RequestFile::read(&text, "test").unwrap();
    ready_chips(&file, "test", &no_files).unwrap()
}

#[test]
fn operators_alone_choose_the_best_of_all_chips_by_every_objective() {
    let cases = [
        ("", ""),
        ("", "objective = \"cost-per-token\""),
        ("", "objective = \"energy-per-token\""),
        ("", "objective = \"throughput-per-area\""),
        ("", "power_cap_w = 200.0"),
        ("max_area_mm2 = 500\n[chip]\ntdp_w = 300", ""),
    ];
    for (chip, search) in cases {
        let setup = setup(&["bert-large"], chip, search);
        let evaluator = ChipEvaluator::new(&setup, &()).unwrap_or_else(|(_, why)| panic!("{why}"));
        let judge = judge(&setup);
        let alone = OperatorsAlone::new(&evaluator, &judge);
        let worth = |point: &ChipPoint| match alone.evaluate(point, None) {
            Evaluation::Found(value, ()) => Some(value),
            _ => None,
        };
        for given in [Given::NOTHING, given(&setup)] {
            let allowed = |point: &&ChipPoint| {
                let asked = given.stacks.is_none_or(|stacks| point[8] == stacks);
                let linked = given == Given::NOTHING || point[9] == given.links;
                asked && linked && alone.fits(point)
            };
            let all = points(&setup);
            let best: Option<Value> = all.iter().filter(allowed).filter_map(worth).min();
            let found = alone.best(given, "test", &()).unwrap();
            assert_eq!(found.as_ref().and_then(worth), best, "{chip} {search} {given:?}");
        }
    }
}

#[test]
fn a_winner_is_compared_with_chips_and_parts_and_all_of_it_holds() {
    for (models, search) in [
        (&["bert-large"][..], "baselines = [\"a100-80g\"]"),
        (&["bert-large"], "objective = \"cost-per-token\""),
        (&["bert-large", "gpt2-xl"], ""),
    ] {
        let SearchedChips { outcome, boxes, .. } = searched(&setup(models, "", search));
        let own = usize::from(search.contains("a100"));
        assert_eq!(outcome.baselines.len(), 6 + own);
        for (at, baseline) in outcome.baselines.iter().enumerate() {
            if at == 2 && models.len() > 1 {
                assert!(baseline.reason.as_deref().unwrap().contains("one model"));
                continue;
            }
            assert!(baseline.reason.is_none(), "{}: {:?}", baseline.name, baseline.reason);
            let is = baseline.winner_is.unwrap();
            let of_space = baseline.entry.is_some();
            assert!(!of_space || is.by_objective.unwrap() >= 1.0, "{}: {is:?}", baseline.name);
            assert!(is.at_equal_area.is_some() && is.at_equal_cost.is_some());
        }
        verdict(&outcome, &boxes, false).unwrap();
        verdict(&outcome, &boxes, true).unwrap();
    }
}

#[test]
fn baselines_that_a_cap_of_power_rules_out_say_so() {
    let SearchedChips { outcome, boxes, .. } =
        searched(&setup(&["bert-large"], "", "power_cap_w = 60.0"));
    let said: Vec<&str> =
        outcome.baselines.iter().filter_map(|one| one.reason.as_deref()).collect();
    assert!(said.iter().any(|reason| reason.contains("cap of power")), "{said:?}");
    verdict(&outcome, &boxes, false).unwrap();
    verdict(&outcome, &boxes, true).unwrap();
}

/// What a lie does to an answer.
type Lie = fn(&mut ChipOutcome);

#[test]
fn lies_about_baselines_are_found() {
    let SearchedChips { outcome, boxes, .. } = searched(&setup(&["bert-large"], "", ""));
    let lies: [(&str, Lie); 15] = [
        ("another reason to win", |o| o.why_it_wins.as_mut().unwrap().push('!')),
        ("one is left out", |o| drop(o.baselines.pop())),
        ("another name", |o| o.baselines[0].name.push('!')),
        ("another description", |o| o.baselines[4].description.push('!')),
        ("a larger gain", |o| o.baselines[1].winner_is.as_mut().unwrap().faster *= 1.01),
        ("a larger gain for a dollar", |o| {
            o.baselines[3].winner_is.as_mut().unwrap().at_equal_cost = Some(99.0);
        }),
        ("no gain", |o| o.baselines[1].winner_is = None),
        ("a slower part", |o| {
            o.baselines[3].part.as_mut().unwrap().results[0].time_per_batch_s *= 2.0;
        }),
        ("a part that draws more", |o| {
            o.baselines[3].part.as_mut().unwrap().part.tdp_w = Some(900.0);
        }),
        ("a slower plan of experts", |o| {
            o.baselines[2].entry.as_mut().unwrap().results[0].throughput_sequences_per_s *= 0.5;
        }),
        ("links that were not given", |o| {
            o.baselines[1].entry = o.baselines[0].entry.clone();
        }),
        ("what fits does not", |o| {
            o.baselines[3].part = None;
            o.baselines[3].winner_is = None;
            o.baselines[3].reason = Some("no placement fits".into());
        }),
        ("a cap that there is not rules plans out", |o| {
            o.baselines[2].entry = None;
            o.baselines[2].winner_is = None;
            o.baselines[2].reason = Some("no placement fits that keeps the cap of power".into());
        }),
        ("operators draw more than a cap that there is not", |o| {
            o.baselines[0].entry = None;
            o.baselines[0].winner_is = None;
            let reason =
                "operators alone draw more than the cap of power on every chip that is allowed";
            o.baselines[0].reason = Some(reason.into());
        }),
        ("what was not stopped was", |o| {
            o.baselines[0].entry = None;
            o.baselines[0].winner_is = None;
            o.baselines[0].reason = Some("not computed: the search was stopped before".into());
        }),
    ];
    for (what, lie) in lies {
        let mut told = outcome.clone();
        lie(&mut told);
        assert!(told != outcome, "{what} is no lie");
        assert!(verdict(&told, &boxes, false).is_err(), "{what} is believed");
    }
    // Which chip operators alone choose, only a solver knows.
    let mut told = outcome.clone();
    told.baselines[0].entry = None;
    told.baselines[0].winner_is = None;
    told.baselines[0].reason = Some("no placement fits".into());
    told.why_it_wins = Some(phaze::search::chips::sentences::why_it_wins(
        told.winner.as_ref().unwrap(),
        &told.baselines,
        (&told.binds, &told.limited_by),
    ));
    verdict(&told, &boxes, false).unwrap();
    assert!(verdict(&told, &boxes, true).is_err());
}

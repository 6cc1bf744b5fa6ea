//! How the best chip changes with the budget, the objective and how much worse it may be, against every
//! chip of small spaces; lies about it are found.

mod chip_space;

use chip_space::points;
use chip_space::searched;
use chip_space::verdict;
use phaze::ask::chips::SearchedChips;
use phaze::hardware::chip::Budget;
use phaze::input::request::RequestFile;
use phaze::input::request::ready_chips;
use phaze::input::source::no_files;
use phaze::search::Judge;
use phaze::search::boxes::BoxProblem;
use phaze::search::boxes::Evaluation;
use phaze::search::chips::BudgetStep;
use phaze::search::chips::ByObjective;
use phaze::search::chips::ChipEvaluator;
use phaze::search::chips::ChipOutcome;
use phaze::search::chips::ChipSetup;
use phaze::search::chips::WithBudget;
use phaze::search::chips::judge;
use phaze::search::chips::nearly_as_good_as;
use phaze::units::Area;
use phaze::units::Money;
use phaze::units::Power;

/// A few hundred chips.
const KNOBS: &str = "tensor_cores = [6, 16, 24, 40]\nwidth = 128\ndepth = 128\n\
    vector_cores = [8, 64]\nvector_width = 128\nglb_mib = [16, 64]\nglb_bytes_per_cycle = [2048, 8192]\n\
    clock = [1.0, 1.4, 1.6]\nstacks = [1, 3, 4]\nlinks = [50, 400]\n";

fn setup(chip: &str, search: &str) -> ChipSetup {
    let text = format!(
        "[[model]]\nname = \"bert-large\"\n[job]\ndevices = 8\nglobal_batch = 64\nmicro_batches = [2]\n\
         [space]\n{KNOBS}{chip}\n[search]\nwhy = true\n{search}\n"
    );
    let file = RequestFile::read(&text, "test").unwrap();
    ready_chips(&file, "test", &no_files).unwrap()
}

#[test]
fn what_is_told_around_a_winner_is_what_every_chip_says() {
    for (chip, search) in [
        ("[chip]\ntdp_w = 350", ""),
        (
            "max_area_mm2 = 400\n[chip]\ntdp_w = 300\nprice_usd = 1500",
            "objective = \"cost-per-token\"",
        ),
    ] {
        let setup = setup(chip, search);
        let SearchedChips { outcome, boxes, .. } = searched(&setup);
        let why = outcome.why.as_ref().unwrap();
        let evaluator = ChipEvaluator::new(&setup, &()).unwrap_or_else(|(_, why)| panic!("{why}"));
        let all = points(&setup);
        let values = |judge: &Judge, budget: Budget| -> Vec<u128> {
            let objective = ByObjective { evaluator: &evaluator, models: vec![0], judge };
            let problem = WithBudget { objective: &objective, budget };
            let fitting = all.iter().filter(|point| problem.fits(point));
            let mut values: Vec<u128> = fitting
                .filter_map(|point| match problem.evaluate(point, None) {
                    Evaluation::Found(value, _) => Some(value.first),
                    _ => None,
                })
                .collect();
            values.sort_unstable();
            values
        };
        let own = judge(&setup);
        let known = values(&own, setup.grid.budget);
        let near = nearly_as_good_as(known[0], 10);
        let count = known.iter().filter(|value| **value <= near).count() as u64;
        assert!((why.counted.at_least..=why.counted.at_most).contains(&count), "{:?}", why.counted);
        assert_eq!(why.counted.at_least, why.counted.at_most);
        for (under, step) in
            why.budgets.iter().zip(BudgetStep::all(&setup.grid.budget, &setup.grid.technology))
        {
            let best = values(&own, step.budget).first().copied();
            let ratio = best.map(|best| known[0] as f64 / best as f64);
            assert_eq!(under.ratio, ratio, "{}", step.word());
        }
        for other in &why.objectives {
            let judge = Judge { objective: other.objective, ..own.clone() };
            let best = values(&judge, setup.grid.budget)[0];
            assert!((judge.figure(best) - other.entry.value).abs() <= other.entry.value * 1e-12);
        }
        assert_eq!(why.near_winners.len(), 6);
        verdict(&outcome, &boxes, false).unwrap();
        verdict(&outcome, &boxes, true).unwrap();
    }
}

/// What a lie does to an answer.
type Lie = fn(&mut ChipOutcome);

#[test]
fn lies_about_what_is_told_around_a_winner_are_found() {
    let SearchedChips { outcome, boxes, .. } = searched(&setup("[chip]\ntdp_w = 350", ""));
    verdict(&outcome, &boxes, false).unwrap();
    let lies: [(&str, Lie); 10] = [
        ("nothing is told", |o| o.why = None),
        ("more chips are as good", |o| o.why.as_mut().unwrap().counted.at_least += 1),
        ("fewer might be", |o| o.why.as_mut().unwrap().counted.at_most -= 1),
        ("a budget is left out", |o| drop(o.why.as_mut().unwrap().budgets.pop())),
        ("more watts bring more", |o| {
            o.why.as_mut().unwrap().budgets[11].ratio = Some(2.0);
        }),
        ("another limit", |o| o.why.as_mut().unwrap().budgets[0].limit += 1.0),
        ("fewer watts bring nothing less", |o| {
            let under = &mut o.why.as_mut().unwrap().budgets[6];
            (under.ratio, under.entry) = (Some(1.0), None);
        }),
        ("another winner is the cheapest", |o| {
            let winner = o.winner.clone().unwrap();
            o.why.as_mut().unwrap().near_winners[5].entry = winner;
        }),
        ("an objective is left out", |o| drop(o.why.as_mut().unwrap().objectives.pop())),
        ("the winner is worth more by another", |o| {
            o.why.as_mut().unwrap().objectives[0].winner_value *= 2.0;
        }),
    ];
    for (what, lie) in lies {
        let mut told = outcome.clone();
        lie(&mut told);
        assert!(told != outcome, "{what} is no lie");
        assert!(verdict(&told, &boxes, false).is_err(), "{what} is believed");
    }
    // A chip that was met names another place in the grid.
    let met = boxes.lines().find(|line| line.starts_with("count within 1 %,evaluated,")).unwrap();
    let mut cells: Vec<&str> = met.split(',').collect();
    cells[4] = "99999999";
    let elsewhere = boxes.replacen(met, &cells.join(","), 1);
    assert!(verdict(&outcome, &elsewhere, false).is_err(), "another place is believed");
    for word in ["tdp +20 %", "smallest within 1 %", "count within 1 %", "cost-per-token"] {
        let all = boxes.lines().filter(|line| !line.starts_with(&format!("{word},")));
        let without = all.collect::<Vec<_>>().join("\n") + "\n";
        assert!(
            without.len() < boxes.len() && verdict(&outcome, &without, false).is_err(),
            "{word}"
        );
    }
}

#[test]
fn each_limit_is_changed_alone() {
    let technology = setup("", "").grid.technology;
    let budget = Budget { area: Area(1000), tdp: Power(200), price: None };
    let steps = BudgetStep::all(&budget, &technology);
    assert_eq!(steps.len(), 12);
    assert_eq!((steps[0].word(), steps[0].budget.area), ("area -20 %".into(), Area(800)));
    assert_eq!((steps[11].word(), steps[11].budget.tdp), ("tdp +20 %".into(), Power(240)));
    assert_eq!(steps[11].budget.area, budget.area);
    let large = Budget { area: technology.reticle(), ..budget };
    assert!(BudgetStep::all(&large, &technology)[3..6].iter().all(|step| step.budget == large));
    let priced = Budget { price: Some(Money(300)), ..budget };
    let dearest = BudgetStep::all(&priced, &technology)[17];
    assert_eq!((dearest.budget.price, dearest.limit()), (Some(Money(360)), 3.6));
}

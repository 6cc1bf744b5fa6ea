//! Chips searched by boxes against every chip evaluated, on small spaces of real chips; the answers
//! are certified, and lies about them are found.

use phaze::certify::boxes;
use phaze::compare::chip_outcome;
use phaze::input::request::RequestFile;
use phaze::input::request::chips_judged_by;
use phaze::input::request::ready_chips;
use phaze::input::saved;
use phaze::input::source::no_files;
use phaze::report::boxes_csv;
use phaze::search::boxes::BoxProblem;
use phaze::search::boxes::Evaluation;
use phaze::search::boxes::Value;
use phaze::search::chips::ByObjective;
use phaze::search::chips::ChipEvaluator;
use phaze::search::chips::ChipFacts;
use phaze::search::chips::ChipOutcome;
use phaze::search::chips::ChipPoint;
use phaze::search::chips::ChipSetup;
use phaze::search::chips::chip_facts;
use phaze::search::chips::survey;

/// A few hundred chips.
const KNOBS: &str = "tensor_cores = [6, 16, 40]\nwidth = [64, 128]\ndepth = 128\n\
    vector_cores = [8, 64]\nvector_width = 128\nglb_mib = [16, 64]\nglb_bytes_per_cycle = [2048, 8192]\n\
    clock = [1.0, 1.6]\nstacks = [1, 3, 6]\nlinks = [50, 1600]\n";

fn setup(job: &str, chip: &str, search: &str) -> ChipSetup {
    let text = format!(
        "[[model]]\nname = \"bert-large\"\n[job]\ndevices = 8\nglobal_batch = 64\nmicro_batches = [2]\n\
         {job}\n[space]\n{KNOBS}{chip}\n[search]\n{search}\n"
    );
    let file = RequestFile::read(&text, "test").unwrap();
    ready_chips(&file, "test", &no_files).unwrap()
}

/// Every point of a grid.
fn points(setup: &ChipSetup) -> Vec<ChipPoint> {
    let lens = setup.grid.lens();
    let mut points = vec![[0; 10]];
    for (knob, &len) in lens.iter().enumerate() {
        let extended = points.iter().flat_map(|point| {
            (0..len).map(move |place| {
                let mut next = *point;
                next[knob] = place;
                next
            })
        });
        points = extended.collect();
    }
    points
}

fn searched(setup: &ChipSetup) -> (ChipOutcome, String, Vec<Value>, Vec<Value>) {
    let evaluator = ChipEvaluator::new(setup, &()).unwrap_or_else(|(_, why)| panic!("{why}"));
    let survey = survey(&evaluator, &());
    assert!(survey.complete);
    let judge = &survey.judge;
    let models = (0..setup.models.len()).collect();
    let problem = ByObjective { evaluator: &evaluator, models, judge };
    let mut all: Vec<Value> = points(setup)
        .iter()
        .filter(|point| problem.fits(point))
        .filter_map(|point| match problem.evaluate(point, None) {
            Evaluation::Found(value, _) => Some(value),
            _ => None,
        })
        .collect();
    all.sort_unstable();
    let outcome = chip_outcome(&evaluator, &survey, None);
    let mut boxes = Vec::new();
    boxes_csv::write(setup, &survey, &mut boxes).unwrap();
    let kept = survey.walk.kept.iter().map(|kept| kept.value).collect();
    (outcome, String::from_utf8(boxes).unwrap(), kept, all)
}

fn verdict(outcome: &ChipOutcome, boxes: &str) -> Result<boxes::VerifiedChips, String> {
    let question = chips_judged_by(outcome.request.clone(), "test").map_err(|e| e.to_string())?;
    let cells = saved::cells("boxes.csv", boxes).map_err(|e| e.to_string())?;
    let judged = boxes::check(&question, outcome, &cells).map_err(|lie| lie.to_string())?;
    Ok(judged.verified)
}

#[test]
fn boxes_find_the_best_chip_of_small_spaces_by_every_objective_and_budget() {
    let cases = [
        ("", "", "top = 3"),
        ("", "", "objective = \"cost-per-token\""),
        ("", "[chip]\nusd_per_gb_per_s = 85\nmargin = 0.8", "objective = \"cost-per-token\""),
        ("", "", "objective = \"carbon-per-token\""),
        ("", "", "objective = \"throughput-per-area\""),
        ("", "", "objective = \"energy-per-token\""),
        ("", "", "power_cap_w = 150.0"),
        // Six stacks and many links have no edge on such a die.
        ("", "max_area_mm2 = 500\n[chip]\ntdp_w = 300", ""),
        ("", "[chip]\nprice_usd = 1200", ""),
        ("", "[chip]\nnetwork = \"flat\"", ""),
        ("", "[chip]\nnetwork = \"2x4\"\nprocess_nm = 7", ""),
    ];
    for (job, chip, search) in cases {
        let setup = setup(job, chip, search);
        let (outcome, boxes, kept, all) = searched(&setup);
        assert_eq!(kept, all[..all.len().min(setup.request.top)], "{chip} {search}");
        assert!(outcome.proof.complete || outcome.proof.gap > 0.0, "{}", outcome.proof.statement);
        verdict(&outcome, &boxes).unwrap_or_else(|lie| panic!("{chip} {search}: {lie}"));
        let points: u64 = outcome.proof.closed.values().map(|closed| closed.points).sum();
        assert_eq!(points, outcome.proof.points);
    }
}

#[test]
fn chips_nearly_as_good_are_the_least_of_all_that_are() {
    let setup = setup("", "", "");
    let (outcome, _, kept, _) = searched(&setup);
    let evaluator = ChipEvaluator::new(&setup, &()).unwrap_or_else(|(_, why)| panic!("{why}"));
    let judge = phaze::search::chips::judge(&setup);
    let problem = ByObjective { evaluator: &evaluator, models: vec![0], judge: &judge };
    let limit = phaze::search::chips::nearly_as_good(kept[0].first);
    // In the order of the grid.
    let good: Vec<(u128, ChipPoint)> = points(&setup)
        .into_iter()
        .filter(|point| problem.fits(point))
        .filter_map(|point| match problem.evaluate(&point, None) {
            Evaluation::Found(value, _) if value.first <= limit => Some((value.first, point)),
            _ => None,
        })
        .collect();
    let figures = |point: &ChipPoint| setup.figures(&setup.knobs(point)).unwrap();
    // Of equal figures the better chip, of equals the first.
    let least = |figure: &dyn Fn(&ChipPoint) -> u64| {
        let least = good.iter().min_by_key(|(worth, point)| (figure(point), *worth)).unwrap();
        chip_facts(&setup, &least.1).unwrap()
    };
    let expected = [
        least(&|point| figures(point).die.total().0),
        least(&|point| figures(point).tdp.total().0),
        least(&|point| figures(point).cost.total().0),
    ];
    let found: Vec<ChipFacts> =
        outcome.near_winners.iter().map(|near| near.entry.chip.clone()).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_model_that_fits_on_no_chip_is_an_answer_with_its_proof() {
    let text = format!(
        "[[model]]\nname = \"gpt3-175b\"\n[job]\ndevices = 8\nglobal_batch = 64\n[space]\n{KNOBS}"
    );
    let file = RequestFile::read(&text, "test").unwrap();
    let setup = ready_chips(&file, "test", &no_files).unwrap();
    let evaluator = ChipEvaluator::new(&setup, &()).unwrap_or_else(|(_, why)| panic!("{why}"));
    let survey = survey(&evaluator, &());
    let outcome = chip_outcome(&evaluator, &survey, None);
    assert!(outcome.winner.is_none() && outcome.proof.complete);
    let mut boxes = Vec::new();
    boxes_csv::write(&setup, &survey, &mut boxes).unwrap();
    let verified = verdict(&outcome, &String::from_utf8(boxes).unwrap()).unwrap();
    assert_eq!(verified.plans, 0);
}

#[test]
fn several_models_are_joined_and_each_alone_is_proved() {
    let text = format!(
        "[[model]]\nname = \"bert-large\"\n[[model]]\nname = \"gpt2-xl\"\n[job]\ndevices = 8\n\
         global_batch = 64\nmicro_batches = [1]\ntensor_parallel = [1]\n[space]\n{KNOBS}"
    );
    let file = RequestFile::read(&text, "test").unwrap();
    let setup = ready_chips(&file, "test", &no_files).unwrap();
    let (outcome, boxes, kept, all) = searched(&setup);
    assert_eq!(kept[0], all[0]);
    verdict(&outcome, &boxes).unwrap();
    assert!(boxes.contains("model 1 alone"));
}

/// What a lie does to what is told.
type Lie<'a, T> = Box<dyn Fn(&mut T) + 'a>;

#[test]
fn lies_about_boxes_are_found_without_a_solver() {
    let setup = setup("", "", "");
    let (outcome, boxes, _, _) = searched(&setup);
    let row = |lines: &[String], why: &str| {
        let is = |line: &&String| line.starts_with(&format!("objective,{why},"));
        lines.iter().position(|line| is(&line)).unwrap_or_else(|| panic!("no row is {why}"))
    };
    let with = |lines: &mut Vec<String>, at: usize, cell: usize, to: &str| {
        let mut cells: Vec<&str> = lines[at].split(',').collect();
        cells[cell] = to;
        lines[at] = cells.join(",");
    };
    let (row, with) = (&row, &with);
    let lies: Vec<(&str, Lie<Vec<String>>)> = vec![
        ("a box is left out", Box::new(|lines| drop(lines.remove(1)))),
        ("a box stands twice", Box::new(|lines| lines.push(lines[1].clone()))),
        (
            "a bound is raised",
            Box::new(|lines| {
                let at = row(lines, "bound");
                with(lines, at, 2, "99999999999999999");
            }),
        ),
        (
            "a bound is lowered",
            Box::new(|lines| {
                let at = row(lines, "bound");
                with(lines, at, 2, "1");
            }),
        ),
        (
            "a bound names another place",
            Box::new(|lines| {
                let at = row(lines, "bound");
                with(lines, at, 4, "99999999999999999");
            }),
        ),
        (
            "what fits is over the budget",
            Box::new(|lines| {
                let at = row(lines, "bound");
                with(lines, at, 1, "over_budget");
                with(lines, at, 2, "");
                with(lines, at, 3, "");
                with(lines, at, 4, "");
            }),
        ),
        (
            "what fits is said not to fit",
            Box::new(|lines| {
                let at = row(lines, "bound");
                with(lines, at, 1, "nothing_fits");
                with(lines, at, 2, "");
                with(lines, at, 3, "");
                with(lines, at, 4, "");
            }),
        ),
        (
            "a box of several widths is a corner",
            Box::new(|lines| {
                let varies = |line: &String| {
                    let cells: Vec<&str> = line.split(',').collect();
                    line.starts_with("objective,bound,")
                        && (cells[5] != cells[6] || cells[7] != cells[8])
                };
                let at = lines.iter().position(varies).expect("some box has several widths");
                with(lines, at, 1, "corner");
            }),
        ),
        (
            "a box is open",
            Box::new(|lines| {
                let at = row(lines, "bound");
                with(lines, at, 1, "open");
            }),
        ),
        (
            "a row proves something else",
            Box::new(|lines| {
                let at = row(lines, "bound");
                with(lines, at, 0, "everything");
            }),
        ),
    ];
    verdict(&outcome, &boxes).unwrap();
    for (what, lie) in lies {
        let mut lines: Vec<String> = boxes.lines().map(str::to_owned).collect();
        lie(&mut lines);
        let told = verdict(&outcome, &(lines.join("\n") + "\n"));
        assert!(told.is_err(), "{what} is believed");
    }
}

#[test]
fn lies_about_the_answer_are_found_without_a_solver() {
    let setup = setup("", "", "");
    let (outcome, boxes, _, _) = searched(&setup);
    let lies: Vec<(&str, Lie<ChipOutcome>)> = vec![
        ("a smaller die", Box::new(|o| o.winner.as_mut().unwrap().chip.die_mm2 -= 1.0)),
        ("fewer watts", Box::new(|o| o.winner.as_mut().unwrap().chip.tdp_w -= 1.0)),
        ("a lower cost", Box::new(|o| o.winner.as_mut().unwrap().chip.cost_usd -= 1.0)),
        ("a better value", Box::new(|o| o.winner.as_mut().unwrap().value *= 1.01)),
        (
            "a knob that is none",
            Box::new(|o| {
                o.winner.as_mut().unwrap().chip.knobs.insert("stacks".into(), 2);
            }),
        ),
        ("another winner", Box::new(|o| o.winner = Some(o.near_winners[0].entry.clone()))),
        ("no winner", Box::new(|o| o.winner = None)),
        ("a near-winner left out", Box::new(|o| drop(o.near_winners.pop()))),
        (
            "a larger one is the smallest",
            Box::new(|o| {
                let mut winner = o.winner.clone().unwrap();
                std::mem::swap(&mut winner, &mut o.near_winners[0].entry);
            }),
        ),
        ("more points", Box::new(|o| o.proof.points += 1)),
        ("another sentence", Box::new(|o| o.proof.statement.push('!'))),
        ("fewer boxes", Box::new(|o| o.proof.certificate_entries -= 1)),
        ("another limit", Box::new(|o| o.binds[0].by = "edge".into())),
        ("another share", Box::new(|o| o.limited_by[0].share += 0.1)),
        ("a tighter budget", Box::new(|o| o.request.space.tdp_mw /= 4)),
        (
            "a smaller space",
            Box::new(|o| {
                o.request.space.knobs.insert("stacks".into(), vec![1, 3]);
            }),
        ),
        (
            "a faster plan",
            Box::new(|o| {
                o.winner.as_mut().unwrap().results[0].time_per_batch_s *= 0.9;
            }),
        ),
    ];
    for (what, lie) in lies {
        let mut told = outcome.clone();
        lie(&mut told);
        if told == outcome {
            continue;
        }
        assert!(verdict(&told, &boxes).is_err(), "{what} is believed");
    }
}

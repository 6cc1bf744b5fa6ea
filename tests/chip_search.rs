//! Chips searched by boxes against every chip evaluated, on small spaces of real chips; the answers
//! are certified, and lies about them are found.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use phaze::ask::chips::ChipVerdict;
use phaze::certify::boxes;
use phaze::compare::chip_outcome;
use phaze::input::request::RequestFile;
use phaze::input::request::chips_judged_by;
use phaze::input::request::ready_chips;
use phaze::input::saved;
use phaze::input::source::no_files;
use phaze::report::boxes_csv;
use phaze::search::Observer;
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
use phaze::search::chips::sentences;
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
        ("", "", "power_cap_w = 60.0\ntop = 3"),
        ("", "[chip]\nnetwork = \"flat\"", "power_cap_w = 90.0\nobjective = \"cost-per-token\""),
        // Six stacks and many links have no edge on such a die.
        ("", "max_area_mm2 = 500\n[chip]\ntdp_w = 300", ""),
        ("", "[chip]\nprice_usd = 1200", ""),
        ("", "[chip]\nnetwork = \"flat\"", ""),
        ("", "[chip]\nnetwork = \"2x4\"\nprocess_nm = 7", ""),
        ("", "[chip]\ndevices_per_node = 2\nbetween_gb_per_s = 25", "top = 2"),
        (
            "",
            "[chip]\ndevices_per_node = 4\nusd_per_gb_per_s_between = 200",
            "objective = \"cost-per-token\"",
        ),
        ("", "[chip]\nprecision = \"fp8\"", "top = 2"),
        ("", "[chip]\nprecision = \"fp8\"", "objective = \"energy-per-token\""),
        ("", "[chip]\nprecision = \"fp8\"\ntdp_w = 300", "objective = \"cost-per-token\""),
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
    for times in [10.0, 0.1, 0.0, -1.0] {
        let mut told = outcome.clone();
        *told.models[0].best_throughput_sequences_per_s.as_mut().unwrap() *= times;
        assert!(verdict(&told, &boxes).is_err(), "an own best {times} times as fast is believed");
    }
}

#[test]
fn answers_hold_where_links_are_slow_and_the_best_plans_use_few_devices() {
    let mut bounds = 0;
    let (flat, nodes) = ("network = \"flat\"", "devices_per_node = 5\nbetween_gb_per_s = 5");
    for (network, search) in [
        (flat, ""),
        ("network = \"torus\"", ""),
        (nodes, ""),
        (nodes, "objective = \"cost-per-token\""),
        (flat, "objective = \"energy-per-token\""),
        (flat, "power_cap_w = 150.0"),
    ] {
        let text = format!(
            "[[model]]\nname = \"bert-large\"\n[job]\ndevices = 64\nglobal_batch = 64\n\
             [chip]\n{network}\n[space]\ntensor_cores = [64, 128]\nwidth = [32, 128]\n\
             depth = 32\nvector_cores = 64\nvector_width = 128\nglb_mib = 32\nglb_bytes_per_cycle = 8192\n\
             clock = 1.0\nstacks = [3, 4]\nlinks = [5, 25, 400]\n[search]\n{search}\n"
        );
        let file = RequestFile::read(&text, "test").unwrap();
        let setup = ready_chips(&file, "test", &no_files).unwrap();
        let (outcome, boxes, kept, all) = searched(&setup);
        assert_eq!(kept[0], all[0]);
        bounds += boxes.lines().filter(|line| line.starts_with("objective,bound,")).count();
        verdict(&outcome, &boxes).unwrap_or_else(|lie| panic!("{network} {search}: {lie}"));
    }
    assert!(bounds > 6, "few bounds are judged");
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
    let without_value = |lines: &mut Vec<String>, why: &str| {
        let at = row(lines, "bound");
        with(lines, at, 1, why);
        (2..5).for_each(|cell| with(lines, at, cell, ""));
    };
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
            "a corner proves more",
            Box::new(|lines| {
                let at = row(lines, "corner");
                with(lines, at, 2, "99999999999999999");
            }),
        ),
        (
            "a corner names another place",
            Box::new(|lines| {
                let at = row(lines, "corner");
                with(lines, at, 4, "99999999999999999");
            }),
        ),
        ("what fits is over the budget", Box::new(|lines| without_value(lines, "over_budget"))),
        ("what fits is said not to fit", Box::new(|lines| without_value(lines, "nothing_fits"))),
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

/// Sixteen chips with so many vector cores.
fn with_vector_cores(cores: &str, search: &str) -> ChipSetup {
    let text = format!(
        "[[model]]\nname = \"bert-large\"\n[job]\ndevices = 8\nglobal_batch = 64\nmicro_batches = [2]\n\
         [space]\ntensor_cores = 16\nwidth = 128\ndepth = 128\nvector_cores = {cores}\n\
         vector_width = 128\nglb_mib = 16\nglb_bytes_per_cycle = 8192\nclock = [1.0, 1.6]\n\
         stacks = [1, 3]\nlinks = [50, 400]\n[search]\n{search}\n"
    );
    let file = RequestFile::read(&text, "test").unwrap();
    ready_chips(&file, "test", &no_files).unwrap()
}

/// A search that left too few lanes to a box closes it by its corner, though chips of it are better.
#[test]
fn a_corner_that_was_left_too_few_lanes_is_refuted_by_solving_it_again() {
    for search in ["", "objective = \"energy-per-token\""] {
        too_few_lanes_are_refuted(search);
    }
}

fn too_few_lanes_are_refuted(search: &str) {
    let (few, all) = (with_vector_cores("1", search), with_vector_cores("[1, 16]", search));
    let (honest, _, best, _) = searched(&all);
    assert_eq!(honest.winner.as_ref().unwrap().chip.knobs["vector_cores"], 16);
    let (mut told, mut boxes, kept, _) = searched(&few);
    assert!(best[0] < kept[0], "more lanes are better here");
    // The other half of the space, said to be closed: by its corner, and as nothing of what is nearly as good.
    let slab = "16,16,128,128,16,16,8192,8192,1000,1600,1,3,50,400";
    let Value { first, second, place } = kept[0];
    let row = format!("objective,corner,{first},{second},{place},16,16,128,128,128,128,{slab}\n");
    boxes.push_str(&row);
    for near in &mut told.near_winners {
        let word = near.least.word();
        let row = format!("{word},corner_nothing,,,,16,16,128,128,128,128,{slab}\n");
        boxes.push_str(&row);
        near.certificate_entries += 1;
    }
    told.request = all.request.clone();
    let winner = told.winner.clone().unwrap();
    let lens = all.grid.lens();
    let point: ChipPoint = std::array::from_fn(|at| {
        let value = winner.chip.knobs[phaze::hardware::chip::CHIP_KNOBS[at].name];
        u16::try_from(all.grid.values(at).binary_search(&value).unwrap()).unwrap()
    });
    assert_eq!((lens[3], phaze::search::boxes::place(lens, &point)), (2, place));
    told.binds = sentences::bindings(&all.grid, &point, true);
    let about = (told.binds.as_slice(), told.limited_by.as_slice());
    told.why_it_wins = Some(sentences::why_it_wins(&winner, &[], about));
    let proof = &mut told.proof;
    let corner = proof.closed.entry("corner".into()).or_default();
    (corner.boxes, corner.points) = (corner.boxes + 1, corner.points + 8);
    (proof.points, proof.certificate_entries) = (16, proof.certificate_entries + 1);
    let (points, closed) = (proof.points, &proof.closed);
    let said = sentences::Proved { points, closed, open_points: 0, stopped_by: None, gap: 0.0 };
    proof.statement = said.statement();
    // Nothing but the corner itself is false, and that takes a solver.
    verdict(&told, &boxes).unwrap();
    let deeply = phaze::ask::chips::check(("test", &told), ("boxes.csv", &boxes), Some(&()));
    match deeply.unwrap() {
        ChipVerdict::False(lie) => assert!(lie.contains("not better"), "{lie}"),
        _ => panic!("too few lanes are believed"),
    }
}

/// Ends a search after so many looks.
struct After(AtomicUsize);

impl Observer for After {
    fn begins(&self, _: &str) {}
    fn evaluated(&self, _: &str, _: usize) {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok();
    }
    fn stops(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[test]
fn the_gap_of_a_search_that_was_stopped_is_no_less_than_what_open_boxes_leave() {
    let setup = setup("", "", "");
    let evaluator = ChipEvaluator::new(&setup, &()).unwrap_or_else(|(_, why)| panic!("{why}"));
    let survey = survey(&evaluator, &After(AtomicUsize::new(2)));
    assert!(!survey.walk.open.is_empty() && !survey.walk.kept.is_empty());
    let outcome = chip_outcome(&evaluator, &survey, Some("the user"));
    let mut boxes = Vec::new();
    boxes_csv::write(&setup, &survey, &mut boxes).unwrap();
    let boxes = String::from_utf8(boxes).unwrap();
    let gap = outcome.proof.gap;
    assert!(gap > 0.0 && gap < 1.0, "{gap}");
    verdict(&outcome, &boxes).unwrap();
    for (lie, is_believed) in [(0.0, false), (gap / 2.0, false), (gap - 1e-6, false), (1.0, true)] {
        let mut told = outcome.clone();
        let proof = &mut told.proof;
        proof.gap = lie;
        let stopped_by = proof.stopped_by.as_deref();
        let (points, open_points, closed) = (proof.points, proof.open_points, &proof.closed);
        proof.statement =
            sentences::Proved { points, closed, open_points, stopped_by, gap: lie }.statement();
        // A larger gap claims less.
        assert_eq!(verdict(&told, &boxes).is_ok(), is_believed, "{lie} instead of {gap}");
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

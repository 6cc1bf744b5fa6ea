//! The front of chips against every chip evaluated, on small spaces of real chips; its proof is certified, and
//! lies about it are found.

mod chip_space;

use phaze::input::request::RequestFile;
use phaze::input::request::ready_chips;
use phaze::input::source::no_files;
use phaze::search::boxes::BoxProblem;
use phaze::search::boxes::Evaluation;
use phaze::search::boxes::Figures;
use phaze::search::chips::ByObjective;
use phaze::search::chips::ChipEvaluator;
use phaze::search::chips::ChipOutcome;
use phaze::search::chips::ChipSetup;
use phaze::search::chips::front_judge;
use phaze::search::chips::resolution;
use phaze::search::chips::survey;
use phaze::search::chips::survey_front;
use phaze::search::chips::taken;

use chip_space::points;
use chip_space::searched;
use chip_space::verdict;

/// A few hundred chips.
const KNOBS: &str = "tensor_cores = [6, 16, 40]\nwidth = [64, 128]\ndepth = 128\n\
    vector_cores = [8, 64]\nvector_width = 128\nglb_mib = [16, 64]\nglb_bytes_per_cycle = [2048, 8192]\n\
    clock = [1.0, 1.6]\nstacks = [1, 3, 6]\nlinks = [50, 1600]\n";

fn request(model: &str, chip: &str, search: &str) -> RequestFile {
    let text = format!(
        "[[model]]\nname = \"{model}\"\n[job]\ndevices = 8\nglobal_batch = 64\nmicro_batches = [2]\n\
         [space]\n{KNOBS}{chip}\n[search]\npareto = true\n{search}\n"
    );
    RequestFile::read(&text, "test").unwrap()
}

fn setup(chip: &str, search: &str) -> ChipSetup {
    ready_chips(&request("bert-large", chip, search), "test", &no_files).unwrap()
}

/// The figures that no chip beats, each chip evaluated.
fn exhaustive(evaluator: &ChipEvaluator) -> Vec<Figures> {
    let setup = evaluator.setup;
    let judge = front_judge(&phaze::search::chips::judge(setup));
    let problem = ByObjective { evaluator, models: vec![0], judge: &judge };
    let steps = resolution(setup);
    let mut all: Vec<Figures> = points(setup)
        .iter()
        .filter(|point| problem.fits(point))
        .filter_map(|point| match problem.evaluate(point, None) {
            Evaluation::Found(value, _) => Some(Figures {
                time: steps.up(u64::try_from(value.first).unwrap()),
                takes: taken(setup, point).unwrap().map(|figure| steps.up(figure)),
            }),
            _ => None,
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    let beaten = |one: &Figures| all.iter().any(|other| other != one && other.reaches(one));
    all.iter().filter(|one| !beaten(one)).copied().collect()
}

#[test]
fn the_front_is_that_of_every_chip_evaluated() {
    let cases = [
        ("", ""),
        ("", "resolution_percent = 0"),
        ("", "resolution_percent = 40"),
        ("", "resolution_percent = 3\nobjective = \"cost-per-token\""),
        ("max_area_mm2 = 500\n[chip]\ntdp_w = 300\nmargin = 0.8", "resolution_percent = 1"),
        ("[chip]\nprice_usd = 1200\nnetwork = \"flat\"", "resolution_percent = 5"),
        ("[chip]\nnetwork = \"2x4\"\nprocess_nm = 7", "resolution_percent = 2"),
    ];
    for (chip, search) in cases {
        let setup = setup(chip, search);
        let evaluator = ChipEvaluator::new(&setup, &()).unwrap_or_else(|(_, why)| panic!("{why}"));
        let surveyed = survey(&evaluator, &());
        let front = survey_front(&evaluator, &surveyed, &());
        assert!(front.complete);
        let found: Vec<Figures> = front.points.iter().map(|point| point.figures).collect();
        let fresh = ChipEvaluator::new(&setup, &()).unwrap_or_else(|(_, why)| panic!("{why}"));
        assert_eq!(found, exhaustive(&fresh), "{chip} {search}");
        assert!(found.len() > 1, "{chip} {search}");
    }
}

#[test]
fn a_front_holds_and_is_the_same_again() {
    let setup = setup("", "resolution_percent = 5");
    let first = searched(&setup);
    let front = first.outcome.front.as_ref().unwrap();
    assert!(front.points.len() > 2 && front.gaps.len() > 2, "{}", front.statement);
    verdict(&first.outcome, &first.boxes, true).unwrap();
    let again = searched(&setup);
    assert_eq!((first.json(), &first.boxes), (again.json(), &again.boxes));
}

#[test]
fn where_nothing_fits_there_is_no_front() {
    let file = request("gpt3-175b", "", "");
    let setup = ready_chips(&file, "test", &no_files).unwrap();
    let found = searched(&setup);
    assert!(found.outcome.winner.is_none() && found.outcome.front.is_none());
    verdict(&found.outcome, &found.boxes, false).unwrap();
}

#[test]
fn a_front_that_cannot_be_asked_for_is_refused_with_a_way_out() {
    let two = "[[model]]\nname = \"bert-large\"\n[[model]]\nname = \"gpt2-xl\"\n[search]\npareto = true\n";
    let two = RequestFile::read(two, "test").unwrap();
    let cases = [
        (two, "one model"),
        (request("bert-large", "", "objective = \"energy-per-token\""), "energy"),
        (request("bert-large", "", "power_cap_w = 200.0"), "cap of power"),
        (request("bert-large", "", "resolution_percent = -1"), "between 0 and 100"),
        (request("bert-large", "", "resolution_percent = 0.01"), "tenth of a percent"),
    ];
    for (file, expected) in cases {
        let said = ready_chips(&file, "test", &no_files).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}

/// What a lie does to what is told.
type Lie = fn(&mut ChipOutcome, &mut Vec<String>);

/// The first row of a gap that is closed so.
fn row(lines: &[String], why: &str) -> usize {
    let is = |line: &&String| line.starts_with("front gap") && line.split(',').nth(1) == Some(why);
    lines.iter().position(|line| is(&line)).unwrap_or_else(|| panic!("no row is {why}"))
}

fn with(lines: &mut [String], at: usize, cell: usize, to: &str) {
    let mut cells: Vec<&str> = lines[at].split(',').collect();
    cells[cell] = to;
    lines[at] = cells.join(",");
}

#[test]
fn lies_about_a_front_are_found_without_a_solver() {
    let setup = setup("", "resolution_percent = 5");
    let found = searched(&setup);
    let lies: [(&str, Lie); 19] = [
        ("a point is left out", |o, _| drop(o.front.as_mut().unwrap().points.remove(1))),
        ("the last point is left out", |o, _| drop(o.front.as_mut().unwrap().points.pop())),
        ("a point stands twice", |o, _| {
            let points = &mut o.front.as_mut().unwrap().points;
            points.push(points[0].clone());
        }),
        ("a chip that is beaten is added", |o, _| {
            let mut beaten = o.front.as_ref().unwrap().points[0].clone();
            beaten.entry = o.near_winners[0].entry.clone();
            o.front.as_mut().unwrap().points.push(beaten);
        }),
        ("a shorter time", |o, _| o.front.as_mut().unwrap().points[0].time_per_batch_ps /= 2),
        ("fewer dollars", |o, _| o.front.as_mut().unwrap().points[1].ownership_cents -= 1),
        ("fewer watts", |o, _| o.front.as_mut().unwrap().points[1].tdp_mw -= 1),
        ("a faster plan", |o, _| {
            o.front.as_mut().unwrap().points[0].entry.results[0].time_per_batch_s *= 0.5;
        }),
        ("a smaller die", |o, _| o.front.as_mut().unwrap().points[0].entry.chip.die_mm2 -= 1.0),
        ("another order", |o, _| o.front.as_mut().unwrap().points.swap(0, 1)),
        ("another resolution", |o, _| o.front.as_mut().unwrap().resolution_per_mille = 60),
        ("another sentence", |o, _| o.front.as_mut().unwrap().statement.push('!')),
        ("a gap is left out", |o, lines| {
            o.front.as_mut().unwrap().gaps.pop();
            let last = format!("front gap {},", o.front.as_ref().unwrap().gaps.len());
            lines.retain(|line| !line.starts_with(&last));
        }),
        ("a gap of more dollars", |o, _| {
            let gaps = &mut o.front.as_mut().unwrap().gaps;
            if let Some(cents) = gaps.iter_mut().find_map(|gap| gap.ownership_cents.as_mut()) {
                *cents *= 4;
            }
        }),
        ("a gap of a longer time", |o, _| {
            let gaps = &mut o.front.as_mut().unwrap().gaps;
            if let Some(time) = gaps.iter_mut().find_map(|gap| gap.time_per_batch_ps.as_mut()) {
                *time *= 4;
            }
        }),
        ("no front", |o, _| o.front = None),
        ("a box is left out", |_, lines| {
            let at = row(lines, "over_budget");
            lines.remove(at);
        }),
        ("what may fit is over the budget", |_, lines| {
            let at = row(lines, "bound");
            with(lines, at, 1, "over_budget");
            with(lines, at, 2, "");
            with(lines, at, 3, "");
            with(lines, at, 4, "");
        }),
        ("a bound is raised", |_, lines| {
            let at = row(lines, "bound");
            with(lines, at, 2, "99999999999999999");
        }),
    ];
    verdict(&found.outcome, &found.boxes, false).unwrap();
    for (what, lie) in lies {
        let mut outcome = found.outcome.clone();
        let mut lines: Vec<String> = found.boxes.lines().map(str::to_owned).collect();
        lie(&mut outcome, &mut lines);
        let told = verdict(&outcome, &(lines.join("\n") + "\n"), false);
        assert!(told.is_err(), "{what} is believed");
    }
}

#[test]
fn a_corner_that_closes_nothing_is_found_by_the_solvers() {
    let setup = setup("", "resolution_percent = 5");
    let found = searched(&setup);
    let mut outcome = found.outcome.clone();
    // The front without its fastest point, all gaps widened such that nothing seems to be left.
    let front = outcome.front.as_mut().unwrap();
    let gone = front.points.remove(0);
    let next = front.points[0].time_per_batch_ps;
    let mut lines: Vec<String> = found.boxes.lines().map(str::to_owned).collect();
    let slower = next.to_string();
    for (at, gap) in front.gaps.iter_mut().enumerate() {
        if gap.time_per_batch_ps.is_some_and(|time| time <= gone.time_per_batch_ps) {
            gap.time_per_batch_ps = Some(next);
            let own = format!("front gap {at},");
            for line in lines.iter_mut().filter(|line| line.starts_with(&own)) {
                let mut cells: Vec<&str> = line.split(',').collect();
                if cells[1] == "corner" || cells[1] == "beaten" || cells[1] == "evaluated" {
                    cells[2] = &slower;
                    *line = cells.join(",");
                }
            }
        }
    }
    let boxes = lines.join("\n") + "\n";
    assert!(verdict(&outcome, &boxes, true).is_err());
}

//! `phaze check`: verifies a saved answer from first principles.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::plan::n_threads;
use super::watch::Watch;
use phaze::ask::check;
use phaze::ask::check::Answer;
use phaze::ask::check::Verdict;
use phaze::ask::chips;
use phaze::ask::chips::ChipVerdict;
use phaze::ask::plan::saved as plan_files;
use phaze::ask::search::Watcher as _;
use phaze::certify::Verified;
use phaze::plan::Plan;
use phaze::report::placement as report;
use phaze::report::quantity::grouped;
use phaze::search::Observer;
use phaze::search::Outcome;
use phaze::search::chips::ChipOutcome;
use phaze::store::files;

/// Plans of the largest models are a megabyte, outcomes with long fronts tens of them.
const LARGEST_FILE: u64 = 1 << 30;

/// Verify a saved plan or the outcome of a search from first principles, without any solver.
#[derive(ClapArgs)]
pub struct Args {
    /// A plan that `phaze place --out` saved, or the outcome.json of a search, with its
    /// designs.csv or boxes.csv beside it; `-` reads a plan from standard input; the directory of a
    /// plan or of a search
    file: PathBuf,
    /// Have the solvers evaluate every evaluated design of a search once more, too
    #[arg(long)]
    deep: bool,
}

impl Args {
    /// Says on standard output what holds, or what does not.
    pub fn run(&self) -> Result<Exit, Refusal> {
        if self.file.is_dir() {
            return self.check_directory();
        }
        let name = files::name(&self.file);
        match check::read(&name, &files::read(&self.file, LARGEST_FILE)?)? {
            Answer::Plan(plan) => self.check_plan(&name, &plan),
            Answer::Outcome(_) | Answer::Chips(_) if self.file == Path::new("-") => {
                let problem = "standard input takes plans only: the outcome of a search is checked \
                               with the table beside it";
                Err(Refusal::Options(problem.into()))
            }
            Answer::Outcome(outcome) => self.check_outcome(&name, &outcome),
            Answer::Chips(outcome) => self.check_chips(&name, &outcome),
        }
    }

    fn check_chips(&self, name: &str, outcome: &ChipOutcome) -> Result<Exit, Refusal> {
        let beside = self.file.parent().unwrap_or(Path::new("")).join("boxes.csv");
        let boxes = files::read(&beside, LARGEST_FILE)?;
        let watch = self.deep.then(|| Watch::new(None));
        let observer = watch.as_ref().map(|watch| watch as &dyn Observer);
        let verdict = chips::check((name, outcome), (&files::name(&beside), &boxes), observer);
        if let Some(watch) = &watch {
            watch.finish();
        }
        let mut out = std::io::stdout().lock();
        let (verified, again) = match verdict? {
            ChipVerdict::Stopped => return Ok(Exit::Interrupted),
            ChipVerdict::False(lie) => {
                writeln!(out, "{name}: does not hold: {lie}")?;
                return Ok(Exit::Negative);
            }
            ChipVerdict::Holds(verified, again) => (verified, again),
        };
        writeln!(out, "{name}: holds")?;
        let lines = [
            (verified.plans, "plans fit and cost what they say, rebuilt from the request"),
            (verified.boxes, "boxes tile the grid; budgets and bounds of each computed anew"),
            (again, "corners and points evaluated once more by the solvers"),
        ];
        for (n, line) in lines.into_iter().filter(|(n, _)| *n > 0) {
            writeln!(out, "  {:>9} {line}", grouped(n as u64))?;
        }
        if !self.deep {
            writeln!(
                out,
                "Not checked, because it needs a solver (`--deep` does): that the {} boxes and points \
                 that rest on an exact\nevaluation are no better than they say, and that no plan on a \
                 told chip is better",
                grouped(verified.exact as u64)
            )?;
        }
        Ok(Exit::Done)
    }

    /// A directory of `phaze plan --out`, or of a search.
    fn check_directory(&self) -> Result<Exit, Refusal> {
        let inside = |name: &str| self.file.join(name);
        let file = inside(plan_files::PLAN);
        if !file.is_file() {
            let file = inside("outcome.json");
            return Self { file, deep: self.deep }.run();
        }
        let read = |name: &str| files::read(&inside(name), LARGEST_FILE);
        let Answer::Plan(plan) = check::read(&files::name(&file), &read(plan_files::PLAN)?)? else {
            return Self { file, deep: self.deep }.run();
        };
        let ended = self.check_plan(&files::name(&file), &plan)?;
        if ended != Exit::Done {
            return Ok(ended);
        }
        let verdict = plan_files::judge(&plan, &read, self.deep.then(n_threads))?;
        let mut out = std::io::stdout().lock();
        match verdict {
            Ok(names) => {
                for name in names {
                    writeln!(out, "{}: holds", files::name(&inside(&name)))?;
                }
                if !self.deep {
                    writeln!(
                        out,
                        "Not checked, because it needs a solver (`--deep` does): what is beside the \
                         plan, and the fewest devices"
                    )?;
                }
                Ok(Exit::Done)
            }
            Err(lie) => {
                writeln!(out, "{}: does not hold: {lie}", files::name(&self.file))?;
                Ok(Exit::Negative)
            }
        }
    }

    fn check_outcome(&self, name: &str, outcome: &Outcome) -> Result<Exit, Refusal> {
        let beside = |name: &str| self.file.parent().unwrap_or(Path::new("")).join(name);
        let read = |path: &Path| -> Result<(String, String), Refusal> {
            Ok((files::name(path), files::read(path, LARGEST_FILE)?))
        };
        let designs = read(&beside("designs.csv"))?;
        let boxes =
            if outcome.request.lists_all() { None } else { Some(read(&beside("boxes.csv"))?) };
        let boxes = boxes.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        let watch = self.deep.then(|| Watch::new(None));
        let observer = watch.as_ref().map(|watch| watch as &dyn Observer);
        let verdict = check::outcome((name, outcome), ((&designs.0, &designs.1), boxes), observer);
        if let Some(watch) = &watch {
            watch.finish();
        }
        let mut out = std::io::stdout().lock();
        match verdict? {
            Verdict::Stopped => Ok(Exit::Interrupted),
            Verdict::False(lie) => {
                writeln!(out, "{name}: does not hold: {lie}")?;
                Ok(Exit::Negative)
            }
            Verdict::Holds(verified) => {
                writeln!(out, "{name}: holds")?;
                self.tell(&verified, &mut out)?;
                Ok(Exit::Done)
            }
        }
    }

    /// Says what was verified, and what was not looked at.
    fn tell(&self, verified: &Verified, out: &mut dyn Write) -> Result<(), Refusal> {
        let pairs = match verified.boxes {
            0 => "designs x HBM sizes: bounds computed anew, statuses replayed",
            _ => "evaluated designs x HBM sizes: bounds computed anew, statuses as their boxes say",
        };
        let lines = [
            (verified.plans, "plans fit and cost what they say, rebuilt from the request"),
            (verified.passes, "layer passes: operators priced, schedules and memories checked"),
            (verified.pairs, pairs),
            (
                verified.boxes,
                "boxes of designs: they tile the grid, limits and bounds computed anew",
            ),
            (verified.evaluated_again, "evaluated once more by the solvers, with the same figures"),
        ];
        for (n, line) in lines.into_iter().filter(|(n, _)| *n > 0) {
            writeln!(out, "  {:>9} {line}", grouped(n as u64))?;
        }
        if !self.deep {
            out.write_all(NOT_CHECKED.as_bytes())?;
        }
        Ok(())
    }

    /// Says whether a plan of a model, or of a user's own layers, holds.
    fn check_plan(&self, name: &str, plan: &Plan) -> Result<Exit, Refusal> {
        let lie = check::plan(name, plan, self.deep)?;
        let mut out = std::io::stdout().lock();
        if let Some(lie) = lie {
            writeln!(out, "{name}: does not hold: {lie}")?;
            return Ok(Exit::Negative);
        }
        report::verdict(name, plan, self.deep, &mut out)?;
        Ok(Exit::Done)
    }
}

/// What needs a solver, as docs/outcome.md lists it.
const NOT_CHECKED: &str = "Not checked, because it needs a solver (`--deep` does): that evaluated \
    designs without an entry take the times\nand energies they say, that no mapping, schedule or \
    placement of an evaluated design is better, what a power\ncap rules out, several models' own \
    bests, that baselines are the best on their chips, and what turning a knob brings\n";

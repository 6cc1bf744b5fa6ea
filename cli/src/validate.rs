//! `phaze validate`: how close predictions are to measured runs.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use phaze::input::runs;
use phaze::input::runs::RunTable;
use phaze::measure::Bench;
use phaze::measure::Blocks;
use phaze::measure::Choice;
use phaze::measure::Run;
use phaze::measure::Scalar;
use phaze::measure::Split;
use phaze::measure::Term;
use phaze::measure::on_a_line;
use phaze::measure::validate;
use phaze::report::validation as report;
use phaze::report::validation::Titled;
use phaze::report::validation_page;
use phaze::store::files;

/// Files of runs are a page or two; this is a thousand times that.
const LARGEST_FILE: u64 = 16 << 20;

/// Compare predictions with measured training runs, beside two baselines: by set, with models left out.
#[derive(ClapArgs)]
pub struct Args {
    /// Files of measured runs, see docs/fidelity.md [default: all that come with phaze]
    #[arg(value_name = "RUNS.csv")]
    files: Vec<PathBuf>,
    /// Fit on this set alone, and predict the set that --on names
    #[arg(long, value_name = "SET", requires = "on")]
    from: Option<String>,
    /// Predict this set
    #[arg(long, value_name = "SET")]
    on: Option<String>,
    /// Which scalars are fitted: 1, 2, or names (matmul, memory, attention, `collective_us`), at
    /// most two [default: matmul, and memory where there are runs of three models]
    #[arg(long, value_name = "LIST")]
    scalars: Option<String>,
    /// Leave a term out of every prediction, to see what it is worth; may be given more than once
    #[arg(long, value_name = "TERM")]
    without: Vec<String>,
    /// Print every run, term by term
    #[arg(long)]
    per_run: bool,
    /// Draw predicted against measured times, set by set, as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Args {
    /// Answers on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let without = self.without.iter().map(|name| term(name)).collect::<Result<Vec<_>, _>>()?;
        let choice = self.scalars.as_deref().map_or(Ok(Choice::Usual), choice)?;
        let table = read(&self.files)?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for reason in &table.refused {
            writeln!(out, "refused: {reason}")?;
        }
        let bench = Bench::new(measured(table, &mut out)?, &without);
        for (run, reason) in &bench.left_out {
            writeln!(
                out,
                "not predicted: {}: {} {}: {reason}",
                run.place,
                run.model_name,
                run.strategy()
            )?;
        }
        let all = self.validations(&bench, &choice)?;
        if let Some(path) = &self.html {
            let mut page = Vec::new();
            validation_page::write(&bench, &all, &mut page)?;
            files::write(path, &page)?;
        }
        report::table(&all, &mut out)?;
        report::legend(&mut out)?;
        report::ranks(&all, &mut out)?;
        report::memory(&all, &mut out)?;
        report::fits(&all, &mut out)?;
        report::far_off(&bench, &all, &mut out)?;
        if self.per_run {
            for titled in &all {
                report::per_run(&bench, titled, &mut out)?;
            }
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn validations(&self, bench: &Bench, choice: &Choice) -> Result<Vec<Titled>, Refusal> {
        let sets = sets(bench);
        let of_set = |name: &String| -> Result<Vec<usize>, Refusal> {
            let found = sets.iter().find(|(set, _)| set == name);
            found.map(|(_, at)| at.clone()).ok_or_else(|| {
                let known: Vec<&str> = sets.iter().map(|(set, _)| set.as_str()).collect();
                Refusal::Options(format!("no set `{name}`; there are {}", known.join(", ")))
            })
        };
        let find = |title: (&str, String), at: &[usize], split: Split, blocks: Blocks| Titled {
            set: title.0.to_owned(),
            split: title.1,
            found: validate(bench, at, &split, blocks, choice),
        };
        let across = Blocks::AcrossStacks;
        if let (Some(from), Some(on)) = (&self.from, &self.on) {
            let split = Split::From(of_set(from)?);
            return Ok(vec![find((on, from.clone()), &of_set(on)?, split, across)]);
        }
        let shown: Vec<&(String, Vec<usize>)> =
            sets.iter().filter(|(set, _)| self.on.as_ref().is_none_or(|on| on == set)).collect();
        if let Some(on) = &self.on {
            of_set(on)?;
        }
        let mut all = Vec::new();
        for (set, at) in &shown {
            let own = Blocks::ByStack;
            all.push(find((set, "in sample".into()), at, Split::InSample, own));
            let left_out =
                find((set, "all but one model".into()), at, Split::LeaveOneModelOut, own);
            if left_out.found.time.is_some() {
                all.push(left_out);
            }
        }
        for (i, (one, at)) in shown.iter().enumerate() {
            for (other, from) in shown.iter().filter(|(set, _)| set != one) {
                let split = Split::From(from.clone());
                let found = find((one, other.clone()), at, split, across);
                if found.found.time.is_some() && found.found.unfitted.is_empty() {
                    all.push(found);
                }
            }
            for (other, more) in &shown[i + 1..] {
                if shares_hardware(bench, at, more) {
                    let both: Vec<usize> = at.iter().chain(more).copied().collect();
                    let set = format!("{one} + {other}");
                    let title = (set.as_str(), "all but one model".to_owned());
                    all.push(find(title, &both, Split::LeaveOneModelOut, across));
                }
            }
        }
        Ok(all)
    }
}

/// The sets of runs in the order in which they first occur.
fn sets(bench: &Bench) -> Vec<(String, Vec<usize>)> {
    let mut sets: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, one) in bench.runs.iter().enumerate() {
        match sets.iter_mut().find(|(set, _)| *set == one.run.set) {
            Some((_, places)) => places.push(at),
            None => sets.push((one.run.set.clone(), vec![at])),
        }
    }
    sets
}

fn shares_hardware(bench: &Bench, one: &[usize], other: &[usize]) -> bool {
    let key = |at: usize| (&bench.runs[at].run.hardware, bench.runs[at].run.precision);
    one.iter().any(|&a| other.iter().any(|&b| key(a) == key(b)))
}

/// The runs of all files, or those that come with phaze.
pub(super) fn read(paths: &[PathBuf]) -> Result<RunTable, Refusal> {
    let read_file = |path: &std::path::Path| files::small(path);
    if paths.is_empty() {
        let (file, text) = runs::PUBLISHED;
        return Ok(runs::read(text, file, &read_file)?);
    }
    let mut all = RunTable::default();
    for path in paths {
        let text = files::read(path, LARGEST_FILE)?;
        let found = runs::read(&text, &files::name(path), &read_file)?;
        all.runs.extend(found.runs);
        all.refused.extend(found.refused);
    }
    Ok(all)
}

/// The runs that were measured: of data that was computed, all of its set is refused.
pub(super) fn measured(
    table: RunTable,
    out: &mut dyn Write,
) -> Result<Vec<(Run, phaze::measure::Machine)>, Refusal> {
    let mut runs = table.runs;
    let mut names: Vec<String> = runs.iter().map(|(run, _)| run.set.clone()).collect();
    names.dedup();
    for name in names {
        let own: Vec<&Run> = runs.iter().map(|(run, _)| run).filter(|r| r.set == name).collect();
        if let Some(places) = on_a_line(&own) {
            writeln!(
                out,
                "refused: {name}: these times lie on one line, so they were computed, not measured: {}",
                places.join("; ")
            )?;
            runs.retain(|(run, _)| run.set != name);
        }
    }
    Ok(runs)
}

/// The scalars that a user asks for.
pub(super) fn choice(text: &str) -> Result<Choice, Refusal> {
    let both = [Scalar::Matmul, Scalar::Memory];
    match text {
        "1" => return Ok(Choice::Given(both[..1].to_vec())),
        "2" => return Ok(Choice::Given(both.to_vec())),
        _ => {}
    }
    let mut scalars = Vec::new();
    for name in text.split(',').map(str::trim) {
        let known: Vec<&str> = Scalar::ALL.iter().map(|scalar| scalar.name()).collect();
        let scalar = Scalar::named(name).ok_or_else(|| {
            let known = known.join(", ");
            Refusal::Options(format!("--scalars: `{name}` is no scalar; give 1, 2 or of {known}"))
        })?;
        if !scalars.contains(&scalar) {
            scalars.push(scalar);
        }
    }
    if scalars.len() > 2 || !scalars.contains(&Scalar::Matmul) {
        let message = "--scalars: matmul is always fitted, and at most one other beside it";
        return Err(Refusal::Options(message.into()));
    }
    scalars.sort_unstable();
    Ok(Choice::Given(scalars))
}

/// The term that a user calls `name`.
fn term(name: &str) -> Result<Term, Refusal> {
    let found = Term::ALL.iter().find(|(known, _)| *known == name).map(|(_, term)| *term);
    found.ok_or_else(|| {
        let known: Vec<&str> = Term::ALL.iter().map(|(known, _)| *known).collect();
        Refusal::Options(format!("--without: no term `{name}`; there are {}", known.join(", ")))
    })
}

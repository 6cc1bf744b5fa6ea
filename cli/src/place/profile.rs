//! Placing the layers of a profile that a user brings.

use std::io::Write;
use std::path::Path;

use super::Args;
use super::RecomputeChoice;
use crate::Exit;
use crate::Refusal;
use crate::files;
use phaze::input::profile::ProfileFile;
use phaze::input::profile::Profiled;
use phaze::input::profile::profile;
use phaze::input::profile::profiles;
use phaze::placement::Choices;
use phaze::placement::Found;
use phaze::placement::Problem;
use phaze::placement::best_of;
use phaze::placement::obstacle;
use phaze::plan::Answer;
use phaze::plan::Plan;
use phaze::plan::Proof;
use phaze::plan::TimeModel;
use phaze::plan::check::placement::check;
use phaze::report::placement as report;

/// Files of a thousand profiles are read; more are better split.
const LARGEST_FILE: u64 = 256 << 20;

/// What became of one profile.
enum Outcome {
    Placed(Box<Plan>),
    Infeasible(String),
}

/// Answers for one profile, or line by line for many.
pub(super) fn run(args: &Args, path: &Path) -> Result<Exit, Refusal> {
    let text = files::read(path, LARGEST_FILE)?;
    let name = files::name(path);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if path.extension().is_some_and(|extension| extension == "jsonl") {
        if args.out.is_some() || args.trace.is_some() {
            let problem = "--out and --trace save one plan, but a .jsonl file holds many profiles";
            return Err(Refusal::Options(problem.into()));
        }
        // All lines are read before the first is answered, so that a bad one stops everything.
        for file in profiles(&text, &name)? {
            let outcome = place(&file, args)?;
            writeln!(out, "{}", value(&file, &outcome))?;
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    let file = profile(&text, &name)?;
    let outcome = place(&file, args)?;
    if let Outcome::Placed(plan) = &outcome {
        args.save(plan)?;
    }
    match &outcome {
        _ if args.json => writeln!(out, "{:#}", value(&file, &outcome))?,
        Outcome::Placed(plan) => {
            report::text(plan, &mut out)?;
            args.draw(plan, &mut out)?;
        }
        Outcome::Infeasible(reason) => writeln!(out, "{}: nothing fits: {reason}", file.name)?,
    }
    out.flush()?;
    Ok(if matches!(outcome, Outcome::Placed(_)) { Exit::Done } else { Exit::Negative })
}

fn value(file: &ProfileFile, outcome: &Outcome) -> serde_json::Value {
    match outcome {
        Outcome::Placed(plan) => report::value(plan),
        Outcome::Infeasible(reason) => report::infeasible(&file.name, reason),
    }
}

/// Places a profile, in finer ticks where the first ones could not tell times apart.
fn place(file: &ProfileFile, args: &Args) -> Result<Outcome, Refusal> {
    let recompute = args.recompute.map_or_else(|| vec![file.recompute], RecomputeChoice::choices);
    let time_model = args.time_model.map_or(TimeModel::OneForwardOneBackward, TimeModel::from);
    let mut profiled = file.scaled(time_model, None)?;
    loop {
        let choices: Vec<Choices> = recompute.iter().map(|&how| Choices::plain(how)).collect();
        let problems = problems(&profiled, &choices);
        let best = best_of(&problems)
            .map_err(|many| Refusal::Options(format!("{}: {many}", file.name)))?;
        let Some((place, found)) = best else {
            return Ok(Outcome::Infeasible(report::reason(
                &profiled.units,
                problems.iter().map(|problem| (problem, obstacle(problem))),
            )));
        };
        let problem = &problems[place];
        if !is_precise(problem, &found) {
            let limit = upper_limit(&profiled, problem, &found);
            let finer = file.scaled(time_model, Some(limit))?;
            if finer.units.time_digits > profiled.units.time_digits {
                profiled = finer;
                continue;
            }
        }
        let plan = plan(file, &profiled, problem, &found);
        return Ok(Outcome::Placed(Box::new(plan)));
    }
}

fn problems<'a>(profiled: &'a Profiled, choices: &'a [Choices]) -> Vec<Problem<'a>> {
    let profiles = profiled.profiles.iter();
    profiles
        .flat_map(|profile| {
            choices.iter().map(|choices| Problem { profile, job: &profiled.job, choices })
        })
        .collect()
}

/// By how many ticks rounding may have moved the time of a placement: each term by one.
fn rounding(problem: &Problem, found: &Found) -> u128 {
    let pipeline = &found.placement.pipeline;
    let longest = pipeline.stages().map(<[usize]>::len).max().unwrap_or(0) as u128;
    let micro_batches = problem.job.micro_batches_per_pipeline(found.placement.data_parallel);
    let rounds = u128::from(micro_batches) + pipeline.n_stages() as u128;
    (3 * longest + 4) * rounds + 4
}

/// Whether rounding moved the time by less than 10⁻¹² of it.
fn is_precise(problem: &Problem, found: &Found) -> bool {
    rounding(problem, found) * 1_000_000_000_000 <= found.rank.time
}

/// A time, in the file's unit, that the best placement certainly keeps.
fn upper_limit(profiled: &Profiled, problem: &Problem, found: &Found) -> f64 {
    let ticks = found.rank.time + rounding(problem, found);
    // A little more than that, because the product is a float.
    profiled.units.time(ticks) * (1.0 + 1e-9)
}

fn plan(file: &ProfileFile, profiled: &Profiled, problem: &Problem, found: &Found) -> Plan {
    let Profiled { units, job, .. } = profiled;
    let plan = Plan {
        schema: Plan::SCHEMA.into(),
        version: Plan::VERSION,
        name: file.name.clone(),
        units: units.clone(),
        layers: Vec::new(),
        question: None,
        training: None,
        job: job.clone(),
        profile: problem.profile.clone(),
        answer: Answer::new(problem.profile, job, &found.placement),
        proof: Proof::Optimal { space: None, open: None },
    };
    check(&plan).expect("a plan that the solver found keeps every rule");
    assert_eq!(
        plan.answer.time_per_batch, found.rank.time,
        "the solver and the definition agree on the time of a batch"
    );
    plan
}

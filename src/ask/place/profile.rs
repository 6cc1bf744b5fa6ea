//! Placing the layers of a profile that a user brings.

use super::Placed;
use super::PlacedPlan;
use super::RecomputeChoice;
use crate::ask::Refusal;
use crate::input::profile::ProfileFile;
use crate::input::profile::Profiled;
use crate::placement::Choices;
use crate::placement::Found;
use crate::placement::Problem;
use crate::placement::best_of;
use crate::placement::obstacle;
use crate::plan::Answer;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::TimeModel;
use crate::plan::check::placement::check;
use crate::report::placement as report;

/// Places a profile, in finer ticks where the first ones could not tell times apart.
///
/// # Errors
/// That there is more to place than can be looked through, or a figure that cannot be counted with.
pub fn place(
    file: &ProfileFile,
    recompute: Option<RecomputeChoice>,
    time_model: Option<TimeModel>,
) -> Result<Placed, Refusal> {
    let recompute = recompute.map_or_else(|| vec![file.recompute], RecomputeChoice::choices);
    let time_model = time_model.unwrap_or(TimeModel::OneForwardOneBackward);
    let mut profiled = file.scaled(time_model, None)?;
    loop {
        let choices: Vec<Choices> = recompute.iter().map(|&how| Choices::plain(how)).collect();
        let problems = problems(&profiled, &choices);
        let best = best_of(&problems)
            .map_err(|many| Refusal::Options(format!("{}: {many}", file.name)))?;
        let Some((place, found)) = best else {
            let obstacles = problems.iter().map(|problem| (problem, obstacle(problem)));
            let reason = report::reason(&profiled.units, obstacles);
            return Ok(Placed::Nothing { name: file.name.clone(), design: None, reason });
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
        return Ok(Placed::Plan(Box::new(PlacedPlan { plan, best: None, fitted: None })));
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

//! Every design of a searched space, one row each (docs/outcome.md documents the columns).

use std::io;
use std::io::Write;

use crate::hardware::Knob;
use crate::search::Setup;
use crate::search::Status;
use crate::search::Survey;
use crate::strategy::Chosen;

/// What is told of each design first.
const KNOBS: [&str; 9] = [
    "design",
    "tensor_cores",
    "width",
    "depth",
    "vector_cores",
    "vector_width",
    "glb_mib",
    "glb_bytes_per_cycle",
    "area_um2",
];

/// What is told of each design with each size of memory, followed by that size.
const BY_SIZE: [&str; 4] = ["status", "bound", "value", "least_value"];

/// What is told of each model on an evaluated design with each size of memory.
const BY_SIZE_AND_MODEL: [&str; 3] = ["time_per_batch_s", "energy_per_batch_j", "devices_used"];

/// What is told of each model on an evaluated design with the best size of memory.
const BY_MODEL: [&str; 16] = [
    "time_per_batch_s",
    "throughput_sequences_per_s",
    "tokens_per_s",
    "mfu",
    "energy_per_token_j",
    "average_power_w",
    "strategy",
    "data_parallel",
    "pipeline",
    "chunks",
    "tensor_parallel",
    "context_parallel",
    "micro_batch",
    "zero",
    "recompute",
    "devices_used",
];

/// What is told besides where experts may be divided.
const OF_EXPERTS: [&str; 2] = ["expert_parallel", "expert_tensor"];

/// The names of all columns for these sizes of memory in GiB and these models, where `experts` are
/// divided or not.
pub fn columns(sizes: &[u64], models: &[&str], experts: bool) -> Vec<String> {
    // One model needs no suffix.
    let suffixes: Vec<String> = match models {
        [_] => vec![String::new()],
        several => several.iter().map(|name| format!(":{name}")).collect(),
    };
    let mut names: Vec<String> = KNOBS.map(str::to_owned).to_vec();
    for gib in sizes {
        names.extend(BY_SIZE.map(|what| format!("{what}_hbm{gib}")));
        for suffix in &suffixes {
            names.extend(BY_SIZE_AND_MODEL.map(|what| format!("{what}_hbm{gib}{suffix}")));
        }
    }
    names.extend(["best_hbm_gib", "value"].map(str::to_owned));
    for suffix in &suffixes {
        names.extend(BY_MODEL.map(|what| format!("{what}{suffix}")));
        let of_experts = OF_EXPERTS.into_iter().filter(|_| experts);
        names.extend(of_experts.map(|what| format!("{what}{suffix}")));
    }
    names
}

/// A whole number of 10^-`digits` as an exact decimal.
pub fn decimal(value: u128, digits: usize) -> String {
    let digits_of = format!("{value:0>width$}", width = digits + 1);
    let (whole, part) = digits_of.split_at(digits_of.len() - digits);
    let part = part.trim_end_matches('0');
    if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") }
}

/// Writes the header and a row per design.
pub fn write(setup: &Setup, survey: &Survey, out: &mut dyn Write) -> io::Result<()> {
    header(setup, out)?;
    for (design, candidate) in setup.candidates.iter().enumerate() {
        write!(out, "{design}")?;
        for knob in Knob::of_chip() {
            write!(out, ",")?;
            if let Some(value) = (knob.get)(candidate) {
                write!(out, "{value}")?;
            }
        }
        write!(out, ",{}", setup.areas[design].square_micrometres())?;
        for hbm in 0..survey.walks.len() {
            with_size(setup, survey, design, hbm, out)?;
        }
        best(setup, survey, design, out)?;
        writeln!(out)?;
    }
    Ok(())
}

fn header(setup: &Setup, out: &mut dyn Write) -> io::Result<()> {
    let models: Vec<&str> = setup.trainings.iter().map(|model| model.name.as_str()).collect();
    let experts = setup.request.strategies.divides_experts();
    let names = columns(&setup.request.space.hbm_gib, &models, experts);
    for (at, name) in names.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // A model's name may hold anything, so it is quoted.
        if name.contains(':') {
            write!(out, "{comma}\"{}\"", name.replace('"', "\"\""))?;
        } else {
            write!(out, "{comma}{name}")?;
        }
    }
    writeln!(out)
}

/// What became of a design with one size of memory.
fn with_size(
    setup: &Setup,
    survey: &Survey,
    design: usize,
    hbm: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let walk = &survey.walks[hbm];
    let status = match &walk.statuses[design] {
        Status::Evaluated(..) => "evaluated",
        Status::Pruned => "pruned",
        Status::Beaten => "beaten",
        Status::Infeasible => "infeasible",
        Status::Open => "open",
    };
    write!(out, ",{status},")?;
    if let Some(bound) = &walk.bounds[design] {
        write!(out, "{}", survey.judge.figure(bound.value))?;
    }
    let Status::Evaluated(merit, chosen) = &walk.statuses[design] else {
        let n_columns = 2 + BY_SIZE_AND_MODEL.len() * setup.trainings.len();
        return out.write_all(",".repeat(n_columns).as_bytes());
    };
    write!(out, ",{},", survey.judge.figure(merit.value))?;
    if let Some(least) = survey.judge.least_value(merit.value, setup.terms.price, chosen) {
        write!(out, "{least}")?;
    }
    for Chosen { standing, devices, .. } in chosen {
        let time = decimal(standing.time.0.into(), 12);
        write!(out, ",{time},{},{devices}", decimal(standing.energy.0, 15))?;
    }
    Ok(())
}

/// The best of the memory sizes with which the design was evaluated.
fn best(setup: &Setup, survey: &Survey, design: usize, out: &mut dyn Write) -> io::Result<()> {
    let evaluated =
        survey.walks.iter().enumerate().filter_map(|(hbm, walk)| match &walk.statuses[design] {
            Status::Evaluated(merit, chosen) => Some((merit.value, hbm, chosen)),
            _ => None,
        });
    let Some((value, hbm, chosen)) = evaluated.min_by_key(|(value, hbm, _)| (*value, *hbm)) else {
        let experts = setup.request.strategies.divides_experts();
        let of_experts = if experts { OF_EXPERTS.len() } else { 0 };
        let n_columns = 2 + (BY_MODEL.len() + of_experts) * setup.trainings.len();
        return out.write_all(",".repeat(n_columns).as_bytes());
    };
    let gib = setup.request.space.hbm_gib[hbm];
    write!(out, ",{gib},{}", survey.judge.figure(value))?;
    for (model, chosen) in chosen.iter().enumerate() {
        row(setup, model, design, hbm, chosen, out)?;
    }
    Ok(())
}

fn row(
    setup: &Setup,
    model: usize,
    design: usize,
    hbm: usize,
    chosen: &Chosen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let peak = setup.chip(design, hbm).peak_flops_per_second();
    let rates = setup.rates(model, peak, chosen);
    let strategy = &chosen.strategy;
    write!(
        out,
        ",{},{},{},{},{},{}",
        chosen.standing.time.seconds(),
        rates.sequences_per_s,
        rates.tokens_per_s,
        rates.mfu,
        rates.energy_per_token_j,
        chosen.average_power(),
    )?;
    // The sentence has commas of its own, and never a quotation mark.
    write!(
        out,
        ",\"{strategy}\",{},{},{},{},{},{},{},{},{}",
        strategy.data_parallel,
        strategy.pipeline,
        strategy.schedule.chunks(),
        strategy.tensor_parallel,
        strategy.context_parallel,
        strategy.micro_batch,
        strategy.zero.stage(),
        strategy.recompute,
        chosen.devices
    )?;
    if setup.request.strategies.divides_experts() {
        write!(out, ",{},{}", strategy.expert_parallel, strategy.expert_tensor)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_become_exact_decimals() {
        let cases = [(0, 12, "0"), (1, 3, "0.001"), (1500, 3, "1.5"), (12_000, 3, "12")];
        for (value, digits, expected) in cases {
            assert_eq!(decimal(value, digits), expected);
        }
    }

    #[test]
    fn several_models_are_told_apart_by_a_suffix() {
        let names = columns(&[32], &["a", "b"], false);
        assert!(names.contains(&"time_per_batch_s_hbm32:b".to_owned()));
        assert!(names.contains(&"mfu:a".to_owned()));
        assert!(columns(&[32], &["a"], false).contains(&"mfu".to_owned()));
        let (plain, more) = (columns(&[32], &["a"], false), columns(&[32], &["a"], true));
        assert_eq!([&plain[..], &OF_EXPERTS.map(str::to_owned)].concat(), more);
    }
}

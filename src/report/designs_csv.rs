//! Every design of a searched space, one row each (docs/outcome.md documents the columns).

use std::io;
use std::io::Write;

use crate::hardware::Knob;
use crate::search::Setup;
use crate::search::Status;
use crate::search::Survey;
use crate::strategy::Chosen;

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
        for walk in &survey.walks {
            let status = match &walk.statuses[design] {
                Status::Evaluated(..) => "evaluated",
                Status::Pruned => "pruned",
                Status::Infeasible => "infeasible",
                Status::Open => "open",
            };
            write!(out, ",{status},")?;
            if let Some(bound) = &walk.bounds[design] {
                write!(out, "{}", survey.judge.figure(bound.value))?;
            }
        }
        best(setup, survey, design, out)?;
        writeln!(out)?;
    }
    Ok(())
}

fn header(setup: &Setup, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "design")?;
    for knob in Knob::of_chip() {
        write!(out, ",{}", knob.name)?;
    }
    write!(out, ",area_um2")?;
    for gib in &setup.request.space.hbm_gib {
        write!(out, ",status_hbm{gib},bound_hbm{gib}")?;
    }
    write!(out, ",best_hbm_gib,value")?;
    for training in &setup.trainings {
        // One model needs no suffix; a name may hold anything, so it is quoted.
        let suffix = match setup.trainings.len() {
            1 => String::new(),
            _ => format!(":{}", training.name.replace('"', "\"\"")),
        };
        for column in COLUMNS {
            match suffix.as_str() {
                "" => write!(out, ",{column}")?,
                suffix => write!(out, ",\"{column}{suffix}\"")?,
            }
        }
    }
    writeln!(out)
}

/// What is told of each model on an evaluated design.
const COLUMNS: [&str; 12] = [
    "time_per_batch_s",
    "throughput_sequences_per_s",
    "tokens_per_s",
    "mfu",
    "energy_per_token_j",
    "average_power_w",
    "data_parallel",
    "pipeline_stages",
    "tensor_parallel",
    "micro_batch",
    "recompute",
    "devices_used",
];

/// The best of the memory sizes with which the design was evaluated.
fn best(setup: &Setup, survey: &Survey, design: usize, out: &mut dyn Write) -> io::Result<()> {
    let evaluated =
        survey.walks.iter().enumerate().filter_map(|(hbm, walk)| match &walk.statuses[design] {
            Status::Evaluated(merit, chosen) => Some((merit.value, hbm, chosen)),
            _ => None,
        });
    let Some((value, hbm, chosen)) = evaluated.min_by_key(|(value, hbm, _)| (*value, *hbm)) else {
        let n_columns = 2 + COLUMNS.len() * setup.trainings.len();
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
    write!(
        out,
        ",{},{},{},{},{},{},{},{},{},{},{},{}",
        chosen.standing.time.seconds(),
        rates.sequences_per_s,
        rates.tokens_per_s,
        rates.mfu,
        rates.energy_per_token_j,
        chosen.average_power(),
        chosen.data_parallel,
        chosen.stages,
        chosen.tensor_parallel,
        chosen.micro_batch,
        chosen.recompute,
        chosen.devices
    )
}

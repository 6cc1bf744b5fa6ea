//! The published evaluation as a markdown table, one row per model.

use std::io;
use std::io::Write;

use super::outcome::design_line;
use super::quantity::grouped;
use super::quantity::percent;
use crate::plan::Recompute;
use crate::search::Outcome;

/// The head of a table.
pub fn heading(published: bool, out: &mut dyn Write) -> io::Result<()> {
    let title = if published {
        "With the published constants, vector costs, rule, time model and optimizer"
    } else {
        "With our physics"
    };
    writeln!(out, "### {title}\n")?;
    writeln!(
        out,
        "| model | best design | plan | sequences/s | MFU | x tpuv4-like, expert | x tpuv4-like | \
         x tpuv4 | x operators alone | evaluated | gap |"
    )?;
    writeln!(out, "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
}

/// What was found for one model.
pub fn row(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let name = outcome.models.first().map_or("", |model| &model.name);
    let Some(winner) = &outcome.winner else {
        let reason = outcome.infeasible_reason.as_deref().unwrap_or_default();
        return writeln!(out, "| {name} | nothing fits: {reason} | | | | | | | | | |");
    };
    let Some(result) = winner.results.first() else { return Ok(()) };
    let strategy = &result.strategy.degrees;
    let ratio = |at: usize| {
        let ratio = outcome.baselines.get(at).and_then(|baseline| baseline.winner_ratio);
        ratio.map_or("does not fit".to_owned(), |ratio| format!("{ratio:.2}"))
    };
    let evaluated: usize = outcome.proof.by_hbm.iter().map(|row| row.evaluated).sum();
    let gap = outcome.proof.by_hbm.iter().map(|row| row.gap).fold(0.0, f64::max);
    writeln!(
        out,
        "| {name} | {} | d={} s={} t={} mb={} {} | {:.1} | {} | {} | {} | {} | {} | {} | {} |",
        design_line(&winner.design),
        strategy.data_parallel,
        strategy.pipeline,
        strategy.tensor_parallel,
        strategy.micro_batch,
        // As many layers as memory asks for may be none.
        match strategy.recompute {
            Recompute::First(0) => Recompute::None,
            other => other,
        },
        result.throughput_sequences_per_s,
        percent(result.mfu),
        ratio(0),
        ratio(1),
        ratio(2),
        ratio(3),
        grouped(evaluated as u64),
        percent(gap)
    )
}

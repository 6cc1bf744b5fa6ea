//! The list of models.

use std::io;
use std::io::Write;

use serde::Serialize;

use super::quantity::grouped;
use crate::model::Model;
use crate::parallel::legal_widths;

/// A table, a line for each model.
pub fn text(models: &[Model], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<20} {:<13} {:>6} {:>6} {:>7} {:>7} {:>7} {:>9} {:>17}",
        "model", "family", "layers", "hidden", "heads", "MLP", "tokens", "vocab.", "parameters"
    )?;
    for model in models {
        let spec = &model.spec;
        let heads = match spec.kv_heads {
            all if all == spec.heads => spec.heads.to_string(),
            kv_heads => format!("{}/{kv_heads}", spec.heads),
        };
        writeln!(
            out,
            "{:<20} {:<13} {:>6} {:>6} {:>7} {:>7} {:>7} {:>9} {:>17}",
            spec.name,
            spec.family.name(),
            spec.layers,
            grouped(spec.hidden),
            heads,
            grouped(spec.experts.filter(|_| spec.mlp == 0).map_or(spec.mlp, |experts| experts.mlp)),
            grouped(spec.max_sequence),
            grouped(spec.vocabulary),
            grouped(model.parameters()),
        )?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "heads: query/key-value where grouped; tokens: the longest sequence, and the default."
    )?;
    writeln!(
        out,
        "Each is a small file in inputs/models to copy; `phaze inspect MODEL` shows one in full."
    )
}

/// The same as a JSON list.
pub fn json(models: &[Model], out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<Line> = models.iter().map(Line::of).collect();
    serde_json::to_writer_pretty(&mut *out, &lines)?;
    writeln!(out)
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    family: &'static str,
    layers: u64,
    hidden_size: u64,
    heads: u64,
    kv_heads: u64,
    mlp_size: u64,
    max_sequence_tokens: u64,
    vocabulary: u64,
    parameters: u64,
    parameters_active: u64,
    parameters_training_head: u64,
    tensor_parallel_widths: Vec<u64>,
}

impl<'a> Line<'a> {
    fn of(model: &'a Model) -> Self {
        let spec = &model.spec;
        Self {
            name: &spec.name,
            family: spec.family.name(),
            layers: spec.layers,
            hidden_size: spec.hidden,
            heads: spec.heads,
            kv_heads: spec.kv_heads,
            mlp_size: spec.mlp,
            max_sequence_tokens: spec.max_sequence,
            vocabulary: spec.vocabulary,
            parameters: model.parameters(),
            parameters_active: model.active_parameters(),
            parameters_training_head: model.training_head_parameters(),
            tensor_parallel_widths: legal_widths(spec),
        }
    }
}

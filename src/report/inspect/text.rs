//! An inspection for people.

use std::io;
use std::io::Write;

use super::Inspection;
use super::StateBytes;
use super::pass_flops;
use super::vector_work;
use crate::graph::Dag;
use crate::model::Modules;
use crate::model::Reach;
use crate::model::op::Op;
use crate::model::op::Work;
use crate::model::spec::Spec;
use crate::parallel::LayerShare;
use crate::parallel::Setting;
use crate::report::quantity::bytes;
use crate::report::quantity::grouped;
use crate::report::quantity::shown;
use crate::report::quantity::si;
use crate::units::Bytes;
use crate::units::Flops;

/// Writes the whole inspection, at most 100 columns wide.
pub fn write(inspection: &Inspection, out: &mut dyn Write) -> io::Result<()> {
    heading(inspection, out)?;
    model(inspection, out)?;
    device(inspection, out)?;
    layers(inspection, out)?;
    for (_, layer) in inspection.layers() {
        operators(&format!("{}, forward", layer.name), &layer.forward, inspection, out)?;
        operators(&format!("{}, backward", layer.name), &layer.backward, inspection, out)?;
    }
    Ok(())
}

fn heading(inspection: &Inspection, out: &mut dyn Write) -> io::Result<()> {
    let spec = &inspection.model.spec;
    writeln!(out, "{}", shown(&spec.name))?;
    let grouping = if spec.kv_heads == spec.heads {
        String::new()
    } else {
        format!(" ({} for keys and values)", spec.kv_heads)
    };
    writeln!(
        out,
        "  {} family, {} layers, hidden {}, {} heads{grouping} of {}, MLP {},",
        spec.family.name(),
        grouped(spec.layers),
        grouped(spec.hidden),
        grouped(spec.heads),
        spec.head,
        grouped(spec.experts.filter(|_| spec.mlp == 0).map_or(spec.mlp, |experts| experts.mlp)),
    )?;
    let mut notes = vec![format!("vocabulary {}", grouped(spec.vocabulary))];
    notes.push(match spec.positions {
        Some(rows) => format!("{} learned positions", grouped(rows)),
        None if spec.rotary == 0 => "positions in the mask".into(),
        None => "rotary positions".into(),
    });
    if spec.embedding != spec.hidden {
        notes.push(format!("embedding {}", grouped(spec.embedding)));
    }
    notes.push(if spec.tied { "tied head".into() } else { "head of its own".into() });
    writeln!(out, "  {}", notes.join(", "))?;
    parts(spec, out)?;
    mixture(spec, out)?;
    limits(spec, out)?;
    let Setting { micro_batch, sequence, attention, element, .. } = inspection.share.setting;
    writeln!(
        out,
        "  sequence {}, micro-batch {}, attention {}, {} bytes per element",
        grouped(sequence),
        grouped(micro_batch),
        attention.name(),
        element.0
    )?;
    writeln!(out)
}

/// What stands before or behind the layers, where there is anything.
fn parts(spec: &Spec, out: &mut dyn Write) -> io::Result<()> {
    if spec.decoder_layers > 0 {
        let layers = grouped(spec.decoder_layers);
        writeln!(out, "  an encoder, and {layers} layers of a decoder that attend to its output")?;
    }
    if spec.patch > 0 {
        writeln!(out, "  patches of {} elements", grouped(spec.patch))?;
    }
    if spec.next_tokens > 0 {
        writeln!(
            out,
            "  a layer behind the last that tells the token after the next, for training"
        )?;
    }
    Ok(())
}

/// Experts and latent elements, where there are any.
fn mixture(spec: &Spec, out: &mut dyn Write) -> io::Result<()> {
    if let Some(experts) = spec.experts {
        let shared = experts.shared.map_or(String::new(), |shared| {
            format!(", and one of {} that all visit", grouped(shared))
        });
        let count = grouped(experts.count);
        let (each, chosen) = (grouped(experts.mlp), grouped(experts.chosen));
        writeln!(
            out,
            "  {count} experts of {each} elements, of which a token visits {chosen}{shared}"
        )?;
        if experts.load_per_mille > 1000 {
            let load = experts.load_per_mille as f64 / 1000.0;
            writeln!(out, "  experts loaded {load} times as much as evenly")?;
        }
    }
    if let Some(latent) = spec.latent {
        let queries = latent
            .query
            .map_or(String::new(), |query| format!("queries from {}, ", grouped(query)));
        let (kv, value) = (grouped(latent.kv), grouped(latent.value));
        writeln!(out, "  latent attention: {queries}keys and values from {kv}, values of {value}")?;
    }
    Ok(())
}

/// Which layers look at a part of the sequence only, and what was not read.
fn limits(spec: &Spec, out: &mut dyn Write) -> io::Result<()> {
    let limits: Vec<String> = spec
        .reaches()
        .filter_map(|(count, reach)| {
            let (what, tokens) = match reach {
                Reach::All | Reach::Every => return None,
                Reach::Window(tokens) => ("sliding window", tokens),
                Reach::Chunk(tokens) => ("chunks", tokens),
            };
            let tokens = grouped(tokens);
            Some(format!("{what} of {tokens} tokens in {} layers", grouped(count)))
        })
        .collect();
    if !limits.is_empty() {
        writeln!(out, "  {}", limits.join(", "))?;
    }
    if let Some(part) = spec.left_out() {
        writeln!(out, "  {part} is left out")?;
    }
    Ok(())
}

fn model(inspection: &Inspection, out: &mut dyn Write) -> io::Result<()> {
    let parameters = inspection.model.parameters();
    let head = inspection.model.training_head_parameters();
    writeln!(out, "Whole model")?;
    line(out, "parameters", &grouped(parameters))?;
    if inspection.model.spec.experts.is_some() {
        let active = inspection.model.active_parameters();
        line(out, "  active, that a token passes through", &grouped(active))?;
    }
    if head > 0 {
        line(out, "  training head besides", &grouped(head))?;
    }
    let name = inspection.optimizer.name();
    state(out, inspection.state(parameters + head), name)?;
    let flops = inspection.flops;
    writeln!(out, "  {:<34} {:>26} {:>18}", "FLOPs of matmuls", "per sequence", "per token")?;
    let mut row = |what: &str, flops: Flops| {
        let per_token = flops.0 / u128::from(inspection.share.setting.sequence);
        writeln!(out, "    {what:<32} {:>26} {:>18}", grouped(flops.0), grouped(per_token))
    };
    row("forward", flops.forward)?;
    row("training", flops.training)?;
    row("training with full recompute", flops.full_recompute)?;
    if flops.attention_repeated > Flops::ZERO {
        row("scores computed again, besides", flops.attention_repeated)?;
    }
    writeln!(out)
}

fn device(inspection: &Inspection, out: &mut dyn Write) -> io::Result<()> {
    let setting = inspection.share.setting;
    match (setting.tensor_parallel, setting.sequence_parallel) {
        (1, _) => writeln!(out, "One device, one micro-batch")?,
        (width, false) => writeln!(out, "One of {width} tensor-parallel devices, one micro-batch")?,
        (width, true) => {
            writeln!(out, "One of {width} tensor- and sequence-parallel devices, one micro-batch")?;
        }
    }
    if setting.context > 1 {
        let tokens =
            format!("one of {} devices' ({})", setting.context, setting.context_kind.name());
        line(out, "tokens of each sequence", &tokens)?;
    }
    if setting.expert_devices() > 1 {
        let experts =
            format!("dealt out to {}, {} share each", setting.expert, setting.expert_tensor);
        line(out, "experts of each layer", &experts)?;
    }
    if setting.repeated != Modules::NONE {
        line(out, "repeated by the backward pass", &setting.repeated.to_string())?;
    }
    let parameters = inspection.device_parameters();
    line(out, "parameters", &grouped(parameters))?;
    let beyond = |count: fn(&LayerShare) -> u64| -> u64 {
        inspection.layers().map(|(n, layer)| n * count(layer)).sum()
    };
    if setting.tensor_parallel > 1 {
        line(out, "  further copies, all devices", &grouped(beyond(|layer| layer.replicated)))?;
        line(out, "  vocabulary padding, all devices", &grouped(beyond(|layer| layer.padded)))?;
    }
    if let Some(tied) = inspection.share.tied {
        line(out, "  of these, table that the head uses", &grouped(tied.parameters))?;
    }
    state(out, inspection.state(parameters), inspection.optimizer.name())?;
    line(out, "kept for the backward pass", &bytes(inspection.kept()))?;
    writeln!(out)
}

fn layers(inspection: &Inspection, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<13} {:>6} {:>15} {:>12} {:>12} {:>10} {:>9} {:>9}",
        "Layers", "count", "parameters", "forward", "backward", "kept", "in", "out"
    )?;
    for (count, layer) in inspection.layers() {
        writeln!(
            out,
            "  {:<11} {:>6} {:>15} {:>12} {:>12} {:>10} {:>9} {:>9}",
            layer.name,
            grouped(count),
            grouped(layer.parameters),
            operations(pass_flops(&layer.forward)),
            operations(pass_flops(&layer.backward)),
            bytes(layer.kept),
            size(layer.input),
            size(layer.output),
        )?;
    }
    Ok(())
}

fn operators(
    title: &str,
    pass: &Dag<Op>,
    inspection: &Inspection,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out)?;
    writeln!(
        out,
        "{title:<34} {:<28} {:>10} {:>8} {:>8} {:>7}",
        "work", "FLOPs", "in", "out", "cores"
    )?;
    for op in pass.nodes() {
        let (read, written) = op.hbm_bytes(inspection.share.setting.element);
        let (read, written) = match &op.work {
            Work::Collective(collective) => (collective.size, Bytes::ZERO),
            _ => (read, written),
        };
        writeln!(
            out,
            "  {:<32} {:<28} {:>10} {:>8} {:>8} {:>7}",
            op.name,
            loops(op),
            operations(op.flops()),
            size(read),
            size(written),
            op.core().name(),
        )?;
        let rest = match &op.work {
            Work::Matmul { fused, .. } => &fused[..],
            _ => vector_work(op).get(1..).unwrap_or(&[]),
        };
        if !rest.is_empty() {
            let names: Vec<&str> = rest.iter().map(|work| work.kind.name()).collect();
            writeln!(out, "    + {}", names.join(", "))?;
        }
    }
    Ok(())
}

/// The loops of an operator in a few characters.
fn loops(op: &Op) -> String {
    match &op.work {
        Work::Matmul { matmul, .. } => {
            format!("{}x{}x{}x{}", matmul.b, matmul.m, matmul.k, matmul.n)
        }
        Work::Vector(work) => {
            let first = work.first().expect("vector work has at least one pass");
            format!("{} {}x{}", first.kind.name(), first.rows, first.row)
        }
        Work::Opaque { .. } => "opaque".into(),
        Work::Move => "move".into(),
        Work::Collective(collective) => {
            format!("{} among {}", collective.kind.name(), collective.group)
        }
    }
}

fn state(out: &mut dyn Write, state: StateBytes, optimizer: &str) -> io::Result<()> {
    line(out, "weights", &bytes(state.weights))?;
    line(out, "gradients", &bytes(state.gradients))?;
    line(out, &format!("optimizer state ({optimizer})"), &bytes(state.optimizer))
}

fn line(out: &mut dyn Write, what: &str, value: &str) -> io::Result<()> {
    writeln!(out, "  {what:<36} {value:>24}")
}

pub(super) fn operations(flops: Flops) -> String {
    if flops == Flops::ZERO { "-".into() } else { si(flops.0 as f64, "FLOP") }
}

fn size(size: Bytes) -> String {
    if size == Bytes::ZERO { "-".into() } else { bytes(size) }
}

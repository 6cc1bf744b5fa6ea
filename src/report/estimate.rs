//! Estimates for people and for programs: one matmul with its mapping, or all of a model.

use std::io;
use std::io::Write;

use serde_json::Value;
use serde_json::json;

use super::quantity::bytes;
use super::quantity::grouped;
use super::quantity::percent;
use super::quantity::shown;
use super::quantity::si;
use super::quantity::time;
use crate::estimate::OpCosts;
use crate::estimate::roofline::Roofline;
use crate::estimate::tensor_core::Cost;
use crate::estimate::tensor_core::Loop;
use crate::estimate::tensor_core::Mapping;
use crate::hardware::CoreSpec;
use crate::model::op::Matmul;
use crate::model::op::Op;
use crate::model::op::Work;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

/// A matmul with the mapping found for it and what it costs.
#[derive(Clone, Copy, Debug)]
pub struct MatmulAnswer {
    /// What is multiplied.
    pub matmul: Matmul,
    /// On what.
    pub core: CoreSpec,
    /// How.
    pub mapping: Mapping,
    /// At what cost.
    pub cost: Cost,
}

/// An operator of a model with what it takes.
pub struct OpAnswer<'a> {
    /// The operator.
    pub op: &'a Op,
    /// What it takes.
    pub costs: OpCosts,
    /// What it takes at least.
    pub roofline: Roofline,
}

/// One pass through one kind of layer.
pub struct PassAnswer<'a> {
    /// Of which layer.
    pub layer: &'a str,
    /// How often it occurs in the model.
    pub occurs: u64,
    /// `forward` or `backward`.
    pub pass: &'static str,
    /// Its operators in order.
    pub operators: Vec<OpAnswer<'a>>,
}

impl MatmulAnswer {
    fn macs(&self) -> f64 {
        self.matmul.flops().0 as f64 / 2.0
    }

    fn fraction_of_peak(&self) -> f64 {
        self.macs() / (self.core.macs_per_cycle() as f64 * self.cost.cycles.0 as f64)
    }

    fn seconds(&self) -> f64 {
        self.cost.cycles.0 as f64 / self.core.clock.as_hertz() as f64
    }

    /// The answer as one JSON object.
    pub fn value(&self) -> Value {
        let Cost { needs, .. } = self.cost;
        let energy: serde_json::Map<String, Value> = self
            .cost
            .energy
            .parts()
            .iter()
            .map(|(level, energy)| ((*level).to_owned(), json!(energy.picojoules())))
            .collect();
        json!({
            "cycles": self.cost.cycles.0,
            "seconds": self.seconds(),
            "energy_pj": self.cost.total_energy().picojoules(),
            "limit": self.cost.limit.name(),
            "fraction_of_peak": self.fraction_of_peak(),
            "cycles_needed": {
                "compute": needs.compute,
                "local": needs.local,
                "glb": needs.glb,
                "hbm": needs.hbm,
            },
            "energy_pj_by_level": energy,
            "hbm_read_bytes": self.cost.hbm_read.0,
            "hbm_written_bytes": self.cost.hbm_written.0,
            "glb_read_bytes": self.cost.glb_read.0,
            "glb_written_bytes": self.cost.glb_written.0,
            "mapping": mapping_value(&self.mapping),
        })
    }

    /// The answer for people, the mapping drawn as loops.
    pub fn text(&self, name: &str, out: &mut dyn Write) -> io::Result<()> {
        let Matmul { b, m, k, n } = self.matmul;
        let core = &self.core;
        let cost = &self.cost;
        writeln!(
            out,
            "{b} x {m} x {k} x {n} on {name}: {} of {} x {}",
            counted(core.count, "core"),
            core.width,
            core.depth
        )?;
        let cycles = grouped(cost.cycles.0);
        writeln!(out, "\ncycles       {cycles:>16}   {}", si(self.seconds(), "s"))?;
        writeln!(
            out,
            "of peak      {:>16}   {}",
            percent(self.fraction_of_peak()),
            si(2.0 * self.macs() / self.seconds(), "FLOP/s")
        )?;
        writeln!(out, "limit        {:>16}", cost.limit.name())?;
        let needs = cost.needs;
        let levels = [
            ("compute", needs.compute),
            ("local", needs.local),
            ("glb", needs.glb),
            ("hbm", needs.hbm),
        ];
        writeln!(out, "\ncycles that each would need alone")?;
        for (level, need) in levels {
            let share = need as f64 / cost.cycles.0 as f64;
            writeln!(
                out,
                "  {level:<10} {:>16}   {:<20} {}",
                grouped(need),
                bar(share),
                percent(share)
            )?;
        }
        let total = cost.total_energy();
        writeln!(out, "\nenergy       {:>16}", si(total.joules(), "J"))?;
        for (level, energy) in cost.energy.parts() {
            let share = energy.0 as f64 / total.0.max(1) as f64;
            let joules = si(energy.joules(), "J");
            writeln!(out, "  {level:<10} {joules:>16}   {:<20} {}", bar(share), percent(share))?;
        }
        writeln!(out, "\nmapping")?;
        self.loops(out)
    }

    fn loops(&self, out: &mut dyn Write) -> io::Result<()> {
        let Mapping { batch_split, split, way, local, glb, .. } = self.mapping;
        let sizes = [self.matmul.m, self.matmul.k, self.matmul.n];
        let cost = &self.cost;
        let core = &self.core;
        let share: [u64; 3] = std::array::from_fn(|i| sizes[i].div_ceil(split[i]));
        let glb_tiles = std::array::from_fn(|i| sizes[i].div_ceil(glb[i]));
        let local_tiles = std::array::from_fn(|i| share[i].div_ceil(local[i]));
        let used = batch_split * split.iter().product::<u64>();
        writeln!(
            out,
            "  HBM            {} read, {} written",
            bytes(cost.hbm_read),
            bytes(cost.hbm_written)
        )?;
        writeln!(out, "  │ for {}", loops(glb_tiles, self.mapping.glb_inner))?;
        writeln!(
            out,
            "  └ GLB          tile {}{}   {} read, {} written",
            tile(glb),
            if batch_split > 1 { format!(" of {batch_split} matrices") } else { String::new() },
            bytes(cost.glb_read),
            bytes(cost.glb_written)
        )?;
        let mut divided: Vec<String> = Vec::new();
        if batch_split > 1 {
            divided.push(format!("batch / {batch_split}"));
        }
        let names = Loop::ALL.iter().zip(split).filter(|(_, cores)| *cores > 1);
        divided.extend(names.map(|(on, cores)| format!("{} / {cores}", on.name())));
        let divided = if divided.is_empty() { "undivided".into() } else { divided.join(", ") };
        writeln!(out, "    │ on {} of {}: {divided}", counted(used, "core"), core.count)?;
        writeln!(out, "    │ for {}", loops(local_tiles, self.mapping.local_inner))?;
        writeln!(out, "    └ local      tile {}", tile(local))?;
        writeln!(
            out,
            "      │ {} on width {}, {} on depth {}, {} streams",
            way.width.name(),
            core.width,
            way.depth.name(),
            core.depth,
            way.stream.name()
        )?;
        let steps = cost.needs.compute;
        writeln!(out, "      └ array    {} cycles", grouped(steps))
    }
}

fn mapping_value(mapping: &Mapping) -> Value {
    let sizes = |[m, k, n]: [u64; 3]| json!({ "m": m, "k": k, "n": n });
    let [m, k, n] = mapping.split;
    json!({
        "cores": { "b": mapping.batch_split, "m": m, "k": k, "n": n },
        "array": {
            "width": mapping.way.width.name(),
            "depth": mapping.way.depth.name(),
            "stream": mapping.way.stream.name(),
        },
        "local_tile": sizes(mapping.local),
        "local_innermost": mapping.local_inner.name(),
        "glb_tile": sizes(mapping.glb),
        "glb_innermost": mapping.glb_inner.name(),
    })
}

fn loops(tiles: [u64; 3], inner: Loop) -> String {
    let counts = Loop::ALL.iter().zip(tiles).filter(|(_, count)| *count > 1);
    let counts: Vec<String> = counts
        .map(|(on, count)| {
            let mark = if *on == inner { " (innermost)" } else { "" };
            format!("{} of {}{mark}", on.name(), counted(count, "tile"))
        })
        .collect();
    if counts.is_empty() { "one tile".into() } else { counts.join(", ") }
}

fn tile([m, k, n]: [u64; 3]) -> String {
    format!("m {m} · k {k} · n {n}")
}

fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A share of one as a bar of 20 places.
fn bar(share: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share lies between 0 and 1"
    )]
    let places = (share.clamp(0.0, 1.0) * 20.0).round() as usize;
    "█".repeat(places)
}

/// All operators of a model for people.
pub fn model_text(title: &str, passes: &[PassAnswer], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", shown(title))?;
    let width = passes
        .iter()
        .flat_map(|pass| pass.operators.iter().map(|answer| answer.op.name.chars().count()))
        .fold(8, usize::max);
    for pass in passes {
        writeln!(out, "\n{} {} ({} in the model)", pass.layer, pass.pass, pass.occurs)?;
        writeln!(
            out,
            "  {:<width$} {:<8} {:<26} {:>9} {:>9}  {:<8} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "operator",
            "cores",
            "shape",
            "one core",
            "spread",
            "limit",
            "compute",
            "HBM",
            "of roof",
            "traffic",
            "energy"
        )?;
        for answer in &pass.operators {
            let spread = answer.costs.spread;
            writeln!(
                out,
                "  {:<width$} {:<8} {:<26} {:>9} {:>9}  {:<8} {:>9} {:>9} {:>9} {:>9} {:>9}",
                answer.op.name,
                answer.op.core().name(),
                shape(&answer.op.work),
                time(answer.costs.alone.time),
                time(spread.time),
                spread.limit.name(),
                time(answer.roofline.compute),
                time(answer.roofline.hbm),
                of_roof(answer).map_or_else(|| "-".into(), percent),
                bytes(spread.hbm),
                si(spread.energy.joules(), "J"),
            )?;
        }
        let total: Time = pass.operators.iter().map(|answer| answer.costs.spread.time).sum();
        let energy: Energy = pass.operators.iter().map(|answer| answer.costs.spread.energy).sum();
        let traffic: Bytes = pass.operators.iter().map(|answer| answer.costs.spread.hbm).sum();
        writeln!(
            out,
            "  one after the other, spread: {}, {} through HBM, {}",
            time(total),
            bytes(traffic),
            si(energy.joules(), "J")
        )?;
    }
    writeln!(
        out,
        "\ncompute and HBM are rooflines: all arrays or lanes busy, each operand moved once."
    )
}

/// The same for programs.
pub fn model_value(title: &str, passes: &[PassAnswer]) -> Value {
    let estimate = |estimate: &crate::estimate::Estimate| {
        json!({
            "seconds": estimate.time.seconds(),
            "energy_pj": estimate.energy.picojoules(),
            "limit": estimate.limit.name(),
            "hbm_bytes": estimate.hbm.0,
            "glb_read_bytes": estimate.glb_read.0,
            "glb_written_bytes": estimate.glb_written.0,
        })
    };
    let operator = |answer: &OpAnswer| {
        json!({
            "name": answer.op.name,
            "core": answer.op.core().name(),
            "shape": shape(&answer.op.work),
            "flops": answer.op.flops().0 as f64,
            "alone": estimate(&answer.costs.alone),
            "spread": estimate(&answer.costs.spread),
            "roofline_compute_seconds": answer.roofline.compute.seconds(),
            "roofline_hbm_seconds": answer.roofline.hbm.seconds(),
            "fraction_of_roofline": of_roof(answer),
        })
    };
    let passes: Vec<Value> = passes
        .iter()
        .map(|pass| {
            json!({
                "layer": pass.layer,
                "occurs": pass.occurs,
                "pass": pass.pass,
                "operators": pass.operators.iter().map(operator).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "title": title, "passes": passes })
}

/// How close an operator comes to the least that it can take.
fn of_roof(answer: &OpAnswer) -> Option<f64> {
    let (roof, taken) = (answer.roofline.time(), answer.costs.spread.time);
    (roof > Time::ZERO && taken > Time::ZERO).then(|| roof.seconds() / taken.seconds())
}

fn shape(work: &Work) -> String {
    match work {
        Work::Matmul { matmul: Matmul { b, m, k, n }, fused, .. } => {
            let fused = if fused.is_empty() { String::new() } else { format!(" +{}", fused.len()) };
            format!("{b}x{m}x{k}x{n}{fused}")
        }
        Work::Vector(chain) => match chain.first() {
            Some(work) => format!("{}x{}", work.rows, work.row),
            None => String::new(),
        },
        Work::Opaque { .. } => "opaque".into(),
        Work::Move => "move".into(),
        Work::Collective(collective) => {
            format!("{} among {}", bytes(collective.size), collective.group)
        }
    }
}

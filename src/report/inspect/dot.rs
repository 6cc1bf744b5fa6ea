//! One layer's operators, forward and backward, as a graph for Graphviz.

use std::io;
use std::io::Write;

use super::text::operations;
use super::vector_work;
use crate::graph::Dag;
use crate::model::op::CoreKind;
use crate::model::op::Op;
use crate::model::op::Work;
use crate::parallel::LayerShare;
use crate::report::quantity::bytes;

/// Writes the two passes of `layer` side by side.
pub fn write(layer: &LayerShare, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "digraph \"{}\" {{", escaped(&layer.name))?;
    writeln!(out, "  rankdir = TB;")?;
    writeln!(out, "  node [shape = box, style = filled, fontname = \"Helvetica\"];")?;
    let legend = "blue: tensor core, yellow: vector core, green: both, orange: network";
    writeln!(out, "  label = \"{legend}\";")?;
    cluster("forward", &layer.forward, out)?;
    cluster("backward", &layer.backward, out)?;
    writeln!(out, "}}")
}

fn cluster(name: &str, pass: &Dag<Op>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  subgraph cluster_{name} {{")?;
    writeln!(out, "    label = \"{name}\";")?;
    for id in pass.ids() {
        let op = pass.node(id);
        let (label, colour) = (label(op), colour(op.core()));
        writeln!(
            out,
            "    {name}_{} [label = \"{label}\", fillcolor = \"{colour}\"];",
            id.index()
        )?;
    }
    for (from, to) in pass.edges() {
        writeln!(out, "    {name}_{} -> {name}_{};", from.index(), to.index())?;
    }
    writeln!(out, "  }}")
}

/// Name, loops and vector work, a line each.
fn label(op: &Op) -> String {
    let mut lines = vec![escaped(&op.name)];
    match &op.work {
        Work::Matmul { matmul, .. } => {
            lines.push(format!("{} x {} x {} x {}", matmul.b, matmul.m, matmul.k, matmul.n));
        }
        Work::Collective(collective) => lines.push(format!(
            "{} of {} among {}",
            collective.kind.name(),
            bytes(collective.size),
            collective.group
        )),
        Work::Opaque { .. } => lines.push(operations(op.flops())),
        Work::Move => lines.push(format!("move {}", bytes(op.traffic.hbm_written))),
        Work::Vector(_) => {}
    }
    for work in vector_work(op) {
        lines.push(format!("{} {} x {}", work.kind.name(), work.rows, work.row));
    }
    lines.join("\\n")
}

/// Colours that stay apart for every kind of eye (after Okabe and Ito).
fn colour(core: CoreKind) -> &'static str {
    match core {
        CoreKind::Tensor => "#56B4E9",
        CoreKind::Vector => "#F0E442",
        CoreKind::Both => "#7BC8A4",
        CoreKind::Network => "#E69F00",
        CoreKind::None => "#FFFFFF",
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

//! What the tests of this room and those above ask of a graph: that the shapes of every edge's two
//! ends agree.

use std::collections::BTreeSet;

use super::dim::Dim;
use super::fusion::Scale;
use super::layer::Action;
use super::layer::Graph;
use super::layer::Step;
use super::layer::TensorId;
use super::op::CollectiveKind;
use super::op::Pass;
use super::op::VectorKind;

/// Checks every step of `graph`; the message names the first that is wrong.
pub fn check(graph: &Graph, scale: Scale) {
    let mut made: BTreeSet<TensorId> = BTreeSet::new();
    let makers = graph.makers();
    for step in &graph.steps {
        for read in &step.reads {
            let in_order = makers[read.0].is_none() || made.contains(read);
            assert!(in_order, "{}: reads {} too early", step.name, graph.at(*read).name);
        }
        for &written in &step.writes {
            assert!(made.insert(written), "{}: makes a tensor once more", step.name);
        }
        check_step(graph, step, scale);
    }
    let names: BTreeSet<&str> = graph.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names.len(), graph.steps.len(), "names of steps are unique");
}

fn check_step(graph: &Graph, step: &Step, scale: Scale) {
    let size = |id: TensorId| {
        let tensor = graph.at(id);
        scale.sizes(tensor.scattered).elements(&tensor.dims)
    };
    let sum = |ids: &[TensorId]| ids.iter().map(|&id| size(id)).sum::<u64>();
    let name = &step.name;
    match &step.action {
        Action::Contract => check_contraction(graph, step),
        Action::Vector { kind, rows, row } => {
            let x = graph.at(step.reads[0]);
            let work = scale.sizes(x.scattered).elements(&[&rows[..], row].concat());
            match kind {
                VectorKind::Rotary => assert!(work <= size(step.reads[0]), "{name}"),
                // What they read first is a part of a row, or backward the few that were chosen.
                VectorKind::Join | VectorKind::Route => {
                    assert!(work >= size(step.reads[0]), "{name}");
                }
                _ => assert_eq!(work, size(step.reads[0]), "{name}"),
            }
            for &written in &step.writes {
                let tensor = graph.at(written);
                let others = matches!(
                    kind,
                    VectorKind::CrossEntropy
                        | VectorKind::Route
                        | VectorKind::Weigh
                        | VectorKind::Join
                );
                let reduced = tensor.form.is_weight() || others;
                assert!(reduced || size(written) == size(step.reads[0]), "{name}");
                let weight = tensor.form.is_weight();
                let apart = *kind == VectorKind::Join;
                let alike = tensor.scattered == x.scattered;
                assert!(weight || apart || alike, "{name}: divided alike");
            }
        }
        Action::Gather => {
            let row = |id: TensorId| graph.at(id).dims.last().copied();
            assert_eq!(row(step.writes[0]), row(step.reads[0]), "{name}");
        }
        Action::Dispatch | Action::Combine => {
            let row = |id: TensorId| graph.at(id).dims.last().copied();
            assert_eq!(row(step.writes[0]), row(step.reads[0]), "{name}");
        }
        Action::Opaque(opaque) => {
            let n_tensors = step.reads.len() + step.writes.len();
            let known = opaque.keeps.iter().all(|&place| place < n_tensors);
            assert!(step.pass == Pass::Backward || known, "{name}");
        }
        Action::Split | Action::Concat => assert_eq!(sum(&step.reads), sum(&step.writes), "{name}"),
        &Action::Exchange { axis, there, .. } => {
            let (from, to) = (sum(&step.reads), sum(&step.writes));
            let group = scale.groups.along(axis);
            let in_rows = step.reads.iter().chain(&step.writes).any(|&id| {
                let dims = &graph.at(id).dims;
                dims.contains(&Dim::OwnRows) || dims.contains(&Dim::SentRows)
            });
            match there {
                // Each device rounds its own rows up, and all of them together are rounded once.
                Some(_) if in_rows => assert!(from.min(to) * group >= from.max(to), "{name}"),
                None | Some(CollectiveKind::AllReduce) => assert_eq!(from, to, "{name}"),
                Some(CollectiveKind::AllGather) => assert_eq!(from * group, to, "{name}"),
                Some(CollectiveKind::ReduceScatter) => {
                    assert_eq!(from, to * group, "{name}");
                }
                // What there are too few of to divide travels in copies; several blocks may
                // follow one, or one several.
                Some(CollectiveKind::AllToAll | CollectiveKind::Send) => {
                    assert!(to.is_multiple_of(from) || from.is_multiple_of(to), "{name}");
                }
            }
        }
    }
}

/// Every dimension of a contraction is a loop, and its operands are divided alike.
fn check_contraction(graph: &Graph, step: &Step) {
    let name = &step.name;
    let loops = graph.contraction(step);
    let set = |dims: &[&[Dim]]| dims.concat().into_iter().collect::<BTreeSet<Dim>>();
    let dims = |id: TensorId| set(&[&graph.at(id).dims]);
    assert_eq!(dims(step.reads[0]), set(&[&loops.b, &loops.m, &loops.k]), "{name}: left");
    assert_eq!(dims(step.reads[1]), set(&[&loops.b, &loops.k, &loops.n]), "{name}: right");
    assert_eq!(dims(step.writes[0]), set(&[&loops.b, &loops.m, &loops.n]), "{name}: result");
    let activations = step.reads.iter().chain(&step.writes).map(|&id| graph.at(id));
    let scattered: BTreeSet<bool> =
        activations.filter(|t| !t.form.is_weight()).map(|t| t.scattered).collect();
    assert_eq!(scattered.len(), 1, "{name}: operands are divided alike");
}

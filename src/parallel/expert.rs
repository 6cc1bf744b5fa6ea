//! Experts that devices share: what they exchange of the rows that visit them.
//!
//! Experts are dealt out along the expert axis, and each is divided along the axis of its elements:
//! every device of that one has a part of the elements between an expert's matmuls. Every device has
//! tokens of its own. So rows go to the devices that have their experts, all to all, are gathered
//! there by those that share them, and what comes out is summed, scattered and sent back.

use super::Setting;
use crate::model::Axis;
use crate::model::dim::Dim;
use crate::model::layer::Action;
use crate::model::layer::Graph;
use crate::model::layer::Layer;
use crate::model::layer::Step;
use crate::model::layer::Tensor;
use crate::model::layer::TensorId;
use crate::model::op::CollectiveKind;

/// How the rows of experts stand at one end of an exchange.
#[derive(Clone, Copy)]
struct Rows {
    /// What a reader knows them by.
    name: &'static str,
    /// The experts that they are for, and how many each has.
    dims: [Dim; 2],
}

/// Of one device's tokens, for every expert that there is.
const SENT: Rows = Rows { name: "sent", dims: [Dim::Choices, Dim::SentRows] };
/// As they arrive on one of the devices that share an expert.
const OWN: Rows = Rows { name: "own", dims: [Dim::Experts, Dim::OwnRows] };

/// The layer with the exchanges that several devices need whose experts it shares among them; where
/// there are several `relays`, tokens are first sent to groups of experts, once for each.
pub fn divide(layer: &Layer, setting: Setting, relays: u64) -> Layer {
    let graph = Graph { tensors: layer.graph.tensors.clone(), steps: Vec::new() };
    let mut division = Division { graph, setting, is_relayed: relays > 1 };
    for step in &layer.graph.steps {
        match step.action {
            Action::Dispatch => division.dispatch(step),
            Action::Combine => division.combine(step),
            _ => division.graph.steps.push(step.clone()),
        }
    }
    Layer { graph: division.graph, ..layer.clone() }
}

struct Division {
    graph: Graph,
    setting: Setting,
    /// Whether tokens are first sent to groups of experts.
    is_relayed: bool,
}

impl Division {
    /// Rows are sent to their experts after they were dispatched, and gathered there.
    fn dispatch(&mut self, step: &Step) {
        let mut rows = step.writes[0];
        let mut later = Vec::new();
        if self.setting.expert_tensor > 1 {
            let own = self.standing(rows, OWN);
            let ways = [CollectiveKind::AllGather, CollectiveKind::ReduceScatter];
            let axis = Axis::ExpertTensor;
            later.push(exchange("dispatch_gather", step, axis, ways, (own, rows)));
            rows = own;
        }
        if self.setting.expert > 1 {
            let sent = self.standing(rows, SENT);
            let ways = [CollectiveKind::AllToAll; 2];
            later.push(exchange("dispatch_send", step, Axis::Expert, ways, (sent, rows)));
            rows = sent;
        }
        if self.is_relayed {
            let [left, arrived] = ["left", "arrived"].map(|name| self.relayed(rows, name));
            let ways = [CollectiveKind::AllToAll; 2];
            let (name, reads) = ("dispatch_copy".into(), vec![arrived]);
            later.push(Step { name, reads, writes: vec![rows], ..step.clone() });
            let axis = Axis::ExpertGroup;
            later.push(exchange("dispatch_relay", step, axis, ways, (left, arrived)));
            rows = left;
        }
        self.graph.steps.push(Step { writes: vec![rows], ..step.clone() });
        self.graph.steps.extend(later.into_iter().rev());
    }

    /// Rows are summed and scattered, and sent back, before they are combined.
    fn combine(&mut self, step: &Step) {
        let mut rows = step.reads[0];
        if self.setting.expert_tensor > 1 {
            let own = self.standing(rows, OWN);
            let ways = [CollectiveKind::ReduceScatter, CollectiveKind::AllGather];
            let axis = Axis::ExpertTensor;
            self.graph.steps.push(exchange("combine_scatter", step, axis, ways, (rows, own)));
            rows = own;
        }
        if self.setting.expert > 1 {
            let sent = self.standing(rows, SENT);
            let ways = [CollectiveKind::AllToAll; 2];
            self.graph.steps.push(exchange("combine_send", step, Axis::Expert, ways, (rows, sent)));
            rows = sent;
        }
        if self.is_relayed {
            let [left, arrived] = ["left", "arrived"].map(|name| self.relayed(rows, name));
            let (name, reads) = ("combine_copies".into(), vec![rows]);
            self.graph.steps.push(Step { name, reads, writes: vec![left], ..step.clone() });
            let (axis, ways) = (Axis::ExpertGroup, [CollectiveKind::AllToAll; 2]);
            self.graph.steps.push(exchange("combine_relay", step, axis, ways, (left, arrived)));
            rows = arrived;
        }
        self.graph.steps.push(Step { reads: vec![rows], ..step.clone() });
    }

    /// The rows of a tensor as they stand elsewhere.
    fn standing(&mut self, all: TensorId, rows: Rows) -> TensorId {
        let [experts, each] = rows.dims;
        let elsewhere = |dim: &Dim| match dim {
            Dim::Experts => experts,
            Dim::Rows | Dim::OwnRows => each,
            other => *other,
        };
        let dims = self.graph.at(all).dims.iter().map(elsewhere).collect();
        self.like(all, rows.name, dims)
    }

    /// The tokens that rows are copies of, once for each group of experts that they visit.
    fn relayed(&mut self, rows: TensorId, name: &str) -> TensorId {
        let elements = self.graph.at(rows).dims[2..].iter().copied();
        let dims = [Dim::RelayedRows].into_iter().chain(elements).collect();
        self.like(rows, name, dims)
    }

    fn like(&mut self, other: TensorId, name: &str, dims: Vec<Dim>) -> TensorId {
        let tensor = self.graph.at(other).clone();
        self.graph.tensor(Tensor { name: format!("{}_{name}", tensor.name), dims, ..tensor })
    }
}

fn exchange(
    name: &str,
    of: &Step,
    axis: Axis,
    [there, back]: [CollectiveKind; 2],
    (from, to): (TensorId, TensorId),
) -> Step {
    Step {
        name: name.into(),
        action: Action::Exchange { axis, there: Some(there), back: Some(back) },
        reads: vec![from],
        writes: vec![to],
        ..of.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::shard;
    use super::*;
    use crate::graph::Dag;
    use crate::model::ExpertGroups;
    use crate::model::Experts;
    use crate::model::families;
    use crate::model::op::Op;
    use crate::model::op::Work;
    use crate::model::spec::Spec;
    use crate::model::spec::examples;

    /// A mixture of 4 experts, of which each token of 32 elements visits 2.
    fn mixture() -> Spec {
        let spec = examples::all().into_iter().find(|spec| spec.experts.is_some());
        spec.expect("some have experts")
    }

    /// What a pass exchanges for experts: the name, the bytes, the devices and how far apart they are.
    fn exchanged(pass: &Dag<Op>) -> Vec<(&str, u64, u64, u64)> {
        let exchange = |op| match op {
            &Op { ref name, work: Work::Collective(found), .. } if found.axis != Axis::Tensor => {
                Some((&name[..], found.size.0, found.group, found.stride))
            }
            _ => None,
        };
        pass.nodes().iter().filter_map(exchange).collect()
    }

    fn on(width: u64, expert: u64, expert_tensor: u64) -> Setting {
        Setting {
            sequence: 64,
            tensor_parallel: width,
            sequence_parallel: width > 1,
            expert,
            expert_tensor,
            ..Setting::ALONE
        }
    }

    #[test]
    fn rows_go_to_their_experts_and_back_in_both_passes() {
        let model = families::build(&mixture());
        let share = shard(&model, on(2, 2, 2)).unwrap();
        // 32 tokens of a device visit 2 experts each, in 2 bytes.
        let (sent, gathered) = (32 * 2 * 32 * 2, 2 * 32 * 2 * 32 * 2);
        let there = exchanged(&share.kinds[1].forward);
        assert_eq!(
            there,
            [
                ("dispatch_send", sent, 2, 2),
                ("dispatch_gather", gathered, 2, 1),
                ("combine_scatter", gathered, 2, 1),
                ("combine_send", sent, 2, 2),
            ]
        );
        let back = exchanged(&share.kinds[1].backward);
        for name in ["combine_send", "combine_scatter", "dispatch_gather", "dispatch_send"] {
            let count = back.iter().filter(|(found, ..)| found.starts_with(name)).count();
            assert!(count >= 1, "{name} in {back:?}");
        }
        let sends = back.iter().filter(|(_, size, ..)| *size == sent);
        assert_eq!(sends.count(), 2, "{back:?}");
        let whole = shard(&model, on(2, 1, 1)).unwrap();
        assert_eq!(exchanged(&whole.kinds[1].forward), []);
    }

    #[test]
    fn tokens_are_sent_once_to_each_group_and_copied_there() {
        let spec = mixture();
        let groups = Some(ExpertGroups { count: 2, chosen: 1 });
        let experts = spec.experts.map(|experts| Experts { groups, ..experts });
        let model = families::build(&Spec { experts, ..spec.clone() });
        let share = shard(&model, on(1, 4, 1)).unwrap();
        let (relayed, sent) = (64 * 32 * 2, 64 * 2 * 32 * 2);
        assert_eq!(
            exchanged(&share.kinds[1].forward),
            [
                ("dispatch_relay", relayed, 2, 2),
                ("dispatch_send", sent, 2, 1),
                ("combine_send", sent, 2, 1),
                ("combine_relay", relayed, 2, 2),
            ]
        );
        // Where each device has whole groups, nothing is gained from sending to groups first.
        for (expert, model) in [(2, &model), (4, &families::build(&spec))] {
            let share = shard(model, on(1, expert, 1)).unwrap();
            assert_eq!(
                exchanged(&share.kinds[1].forward),
                [("dispatch_send", sent, expert, 1), ("combine_send", sent, expert, 1)]
            );
        }
    }

    #[test]
    fn dealing_out_leaves_each_device_its_part_of_the_experts_and_as_many_rows() {
        let model = families::build(&mixture());
        let whole = shard(&model, on(1, 1, 1)).unwrap();
        let dealt = shard(&model, on(1, 4, 1)).unwrap();
        let (whole, dealt) = (&whole.kinds[1], &dealt.kinds[1]);
        assert_eq!(dealt.expert_parameters * 4, whole.expert_parameters);
        assert_eq!(
            dealt.parameters - dealt.expert_parameters,
            whole.parameters - whole.expert_parameters
        );
        assert_eq!(dealt.kept, whole.kept);
        let flops =
            |pass: &Dag<Op>| pass.nodes().iter().map(Op::flops).sum::<crate::units::Flops>();
        assert_eq!(flops(&dealt.forward), flops(&whole.forward));
    }
}

//! Whether a step of which only the cost is known says all that its division needs.

use std::collections::BTreeSet;

use super::valid::Verdict;
use super::valid::is_of_a_division;
use super::valid::require;
use crate::model::dim::Dim;
use crate::model::layer::Graph;
use crate::model::layer::Step;
use crate::model::layer::Tensor;
use crate::model::opaque::MOST;
use crate::model::opaque::Opaque;
use crate::model::spec::Spec;

/// Judges such a step.
pub fn check(at: &str, graph: &Graph, step: &Step, (opaque, spec): (&Opaque, &Spec)) -> Verdict {
    let tensors: Vec<&Tensor> =
        step.reads.iter().chain(&step.writes).map(|&id| graph.at(id)).collect();
    let (reads, writes) = tensors.split_at(step.reads.len());
    require(!reads[0].form.is_weight(), &format!("{at}.reads"), "start with a weight")?;
    let makes_a_weight = writes.iter().any(|tensor| tensor.form.is_weight());
    require(!makes_a_weight, &format!("{at}.writes"), "have a weight")?;
    let at = format!("{at}.action.opaque");
    over(&at, opaque, spec)?;
    keeps(&at, opaque, &tensors)?;
    for (pass, figures) in [("forward", opaque.forward), ("backward", opaque.backward)] {
        let each = [("flops", figures.flops), ("read", figures.read), ("written", figures.written)];
        for (name, figure) in each {
            let at = format!("{at}.{pass}.{name} = {figure}");
            require(figure <= MOST, &at, "is more than 2^40")?;
        }
    }
    let has = |dim: Dim| tensors.iter().any(|tensor| tensor.dims.contains(&dim));
    let of_experts = [Dim::Experts, Dim::Rows, Dim::ExpertMlp].into_iter().any(has);
    require(!of_experts, &at, "works on the rows of experts, which devices share by rule")?;
    let by_token = opaque.over.contains(&Dim::Sequence);
    require(!(by_token && has(Dim::Keys)), &at, "goes over `sequence` and works on keys")?;
    let divided = tensors.iter().any(|tensor| tensor.is_cut());
    let problem = "works on what tensor parallelism divides, and goes over none of it";
    require(opaque.is_cut() || !divided, &at, problem)
}

fn over(at: &str, opaque: &Opaque, spec: &Spec) -> Verdict {
    let at = format!("{at}.over");
    let dims = &opaque.over;
    let distinct: BTreeSet<Dim> = dims.iter().copied().collect();
    require(distinct.len() == dims.len(), &at, "has one twice")?;
    require(!dims.iter().any(|&dim| is_of_a_division(dim)), &at, "has one of a division")?;
    let known = spec.sizes(1, 1).wide_elements(dims) > 0;
    require(known, &at, "has one whose size the numbers do not say")?;
    let of_experts = |dim: &Dim| matches!(dim, Dim::Experts | Dim::Rows | Dim::ExpertMlp);
    require(!dims.iter().any(of_experts), &at, "has one of experts")?;
    let keys = dims.contains(&Dim::Sequence) && dims.contains(&Dim::Keys);
    require(!keys, &at, "has both `sequence` and `keys`")?;
    let divided = dims.iter().filter(|&&dim| dim.is_cut() && dim != Dim::Group);
    require(divided.count() <= 1, &at, "has two that tensor parallelism divides")
}

fn keeps(at: &str, opaque: &Opaque, tensors: &[&Tensor]) -> Verdict {
    let at = format!("{at}.keeps");
    let distinct: BTreeSet<usize> = opaque.keeps.iter().copied().collect();
    require(distinct.len() == opaque.keeps.len(), &at, "has one twice")?;
    let is_there =
        |&place: &usize| tensors.get(place).is_some_and(|tensor| !tensor.form.is_weight());
    let problem = "has a place that is none of an activation that it reads or writes";
    require(opaque.keeps.iter().all(is_there), &at, problem)
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use crate::input::Conventions;
    use crate::input::place;
    use crate::input::place::Basics;
    use crate::model::Model;
    use crate::model::families;
    use crate::model::op::Work;
    use crate::parallel::LayerShare;
    use crate::parallel::Setting;
    use crate::parallel::shard;
    use serde_json::Value;
    use serde_json::json;

    const EXAMPLE: &str = include_str!("../../../inputs/graphs/own-kernel.json");

    fn example() -> Value {
        serde_json::from_str(EXAMPLE).unwrap()
    }

    /// The only step of the example that is opaque.
    fn step(file: &mut Value) -> &mut Value {
        let steps = file["kinds"][1]["graph"]["steps"].as_array_mut().unwrap();
        steps.iter_mut().find(|step| step["name"] == "own_mlp").unwrap()
    }

    fn layer(model: &Model, setting: Setting) -> LayerShare {
        shard(model, Setting { sequence: 64, ..setting }).unwrap().kinds.swap_remove(1)
    }

    fn flops(pass: &crate::graph::Dag<crate::model::op::Op>) -> u128 {
        pass.nodes().iter().map(|op| op.flops().0).sum()
    }

    /// The example does what the MLP of a Llama of its size does, in one kernel that keeps its input
    /// and does the matmuls of the forward pass once more.
    #[test]
    fn a_kernel_of_its_own_does_and_keeps_what_its_figures_say() {
        let own = read("own.json", EXAMPLE).unwrap();
        let plain = families::build(&own.spec);
        let [own_alone, plain_alone] = [&own, &plain].map(|model| layer(model, Setting::ALONE));
        let (tokens, h, f) = (64, 1024, 2816);
        assert_eq!(flops(&own_alone.forward), flops(&plain_alone.forward));
        let again = u128::from(6 * tokens * h * f);
        assert_eq!(flops(&own_alone.backward), flops(&plain_alone.backward) + again);
        assert_eq!(plain_alone.kept.0 - own_alone.kept.0, 6 * tokens * f);
        assert_eq!(own_alone.parameters, plain_alone.parameters);
        assert_eq!(own_alone.weight_gradients, plain_alone.weight_gradients);
        let kernel = own_alone.backward.nodes().iter().find(|op| op.name == "own_mlp.grad");
        let kernel = kernel.expect("it has a gradient");
        assert_eq!(kernel.work, Work::Opaque { flops: 18 * tokens * h * f });
        assert_eq!(kernel.traffic.hbm_read.0, 8 * tokens * f);
    }

    #[test]
    fn it_is_divided_as_what_it_goes_over_and_its_exchanges_follow() {
        let own = read("own.json", EXAMPLE).unwrap();
        let plain = families::build(&own.spec);
        for (tensor_parallel, sequence_parallel, context) in [(2, false, 1), (4, true, 2)] {
            let setting = Setting { tensor_parallel, sequence_parallel, context, ..Setting::ALONE };
            let [own, plain] = [&own, &plain].map(|model| layer(model, setting));
            assert_eq!(flops(&own.forward), flops(&plain.forward));
            assert_eq!((own.parameters, own.input), (plain.parameters, plain.input));
            let exchanged = |layer: &LayerShare| -> Vec<(String, Work)> {
                let passes = layer.forward.nodes().iter().chain(layer.backward.nodes());
                let exchanges = passes.filter(|op| matches!(op.work, Work::Collective(_)));
                let mut found: Vec<_> =
                    exchanges.map(|op| (op.name.clone(), op.work.clone())).collect();
                found.sort();
                found
            };
            assert_eq!(exchanged(&own), exchanged(&plain));
        }
    }

    #[test]
    fn one_that_needs_whole_sequences_is_never_given_a_part() {
        let mut file = example();
        step(&mut file)["action"]["opaque"]["over"] = json!(["batch", "mlp"]);
        let model = read("own.json", &file.to_string()).unwrap();
        let asked = |tensor_parallel, sequence_parallel, context| {
            let setting = Setting { tensor_parallel, sequence_parallel, context, ..Setting::ALONE };
            shard(&model, Setting { sequence: 64, ..setting })
        };
        for (sequence_parallel, context) in [(true, 1), (false, 2)] {
            let refused = asked(2, sequence_parallel, context).unwrap_err().to_string();
            assert!(refused.contains("`own_mlp` of layer `transformer`"), "{refused}");
        }
        assert!(asked(2, false, 1).is_ok());
    }

    #[test]
    fn what_does_not_say_all_that_its_division_needs_is_refused_by_its_place() {
        let cases: [(&str, Value, &str); 8] = [
            ("/over", json!(["batch", "batch"]), "opaque.over` has one twice"),
            ("/over", json!(["mlp", "vocabulary"]), "two that tensor parallelism divides"),
            ("/over", json!(["experts"]), "opaque.over` has one whose size"),
            ("/over", json!(["batch"]), "works on what tensor parallelism divides"),
            ("/keeps", json!([0, 0]), "opaque.keeps` has one twice"),
            ("/keeps", json!([1]), "opaque.keeps` has a place that is none"),
            ("/forward/flops", json!(1_u64 << 41), "opaque.forward.flops = 2199023255552`"),
            ("/backward", json!({"flops": 1}), "missing field `read`"),
        ];
        for (pointer, value, message) in cases {
            let mut file = example();
            let opaque = &mut step(&mut file)["action"]["opaque"];
            *opaque.pointer_mut(pointer).expect(pointer) = value;
            let refused = read("own.json", &file.to_string()).unwrap_err().to_string();
            assert!(refused.contains(message), "{pointer}: {refused}");
        }
    }

    #[test]
    fn its_plan_is_believed_and_a_lie_about_it_is_not() {
        let files = |_: &std::path::Path| Ok(EXAMPLE.to_owned());
        let basics = Basics { sequence: Some(512), ..Basics::new("own.json", "h100-sxm", 4) };
        let question = place::question(&basics, Conventions::of(false), &files).unwrap();
        let ready = place::ready(question, "question").unwrap();
        let plan = place::solve(&ready).unwrap().expect("it fits");
        place::judge(&plan, "plan").unwrap().unwrap_or_else(|lie| panic!("{lie}"));
        let lies: [fn(&mut crate::plan::OpFacts); 3] =
            [|op| op.flops /= 2.0, |op| op.hbm_bytes -= 1, |op| op.energy_j *= 0.5];
        for lie in lies {
            let mut forged = plan.clone();
            let layers = forged.layers.iter_mut();
            let mut ops = layers.flat_map(|layer| &mut layer.forward.operators);
            lie(ops.find(|op| op.name == "own_mlp").expect("every plan has it"));
            assert!(place::judge(&forged, "plan").unwrap().is_err());
        }
    }
}

//! Whether a graph of a user's own is one that a family could have written.

use std::collections::BTreeSet;

use super::opaque;
use crate::input::fields::LARGEST_SIZE;
use crate::model::Layer;
use crate::model::Model;
use crate::model::dim::Dim;
use crate::model::dim::MOST_OWN;
use crate::model::layer::Action;
use crate::model::layer::Form;
use crate::model::layer::Graph;
use crate::model::layer::Step;
use crate::model::layer::TensorId;
use crate::model::op::VectorKind;
use crate::model::spec::Spec;

/// The most layers of a decoder.
const MOST_LAYERS: u64 = 100_000;

/// The first thing that is wrong, by its place.
pub(super) type Verdict = Result<(), String>;

/// Judges a model: its numbers, its layers, and how they stand in a chain.
pub fn check(model: &Model) -> Verdict {
    numbers(&model.spec)?;
    chain(model)?;
    let mut names = BTreeSet::new();
    for (kind, layer) in model.kinds.iter().enumerate() {
        let at = format!("kinds[{kind}]");
        let named = !layer.name.is_empty() && layer.name != "layer";
        require(
            named && names.insert(&layer.name),
            &format!("{at}.name"),
            "is no name of its own",
        )?;
        tensors(&format!("{at}.graph"), layer, &model.spec)?;
        order(&format!("{at}.graph"), layer)?;
        for (nth, step) in layer.graph.steps.iter().enumerate() {
            steps(&format!("{at}.graph.steps[{nth}]"), &layer.graph, step, &model.spec)?;
        }
        pairs(&format!("{at}.graph.steps"), &layer.graph)?;
        let countable = layer.within_limits(&model.spec.sizes(1, 1), model.occurrences(kind));
        require(countable, &at, "has more than 2^58 parameters")?;
    }
    Ok(())
}

pub(super) fn require(holds: bool, at: &str, problem: &str) -> Verdict {
    if holds { Ok(()) } else { Err(format!("`{at}` {problem}")) }
}

fn numbers(spec: &Spec) -> Verdict {
    let within = |name: &str, size: u64, least: u64, most: u64| {
        let range = format!("is out of range; allowed are {least} to {most}");
        require((least..=most).contains(&size), &format!("numbers.{name} = {size}"), &range)
    };
    let size = |name: &str, size: u64| within(name, size, 1, LARGEST_SIZE);
    size("hidden", spec.hidden)?;
    within("heads", spec.heads, 1, 1 << 16)?;
    within("kv_heads", spec.kv_heads, 1, 1 << 16)?;
    size("head", spec.head)?;
    within("mlp", spec.mlp, 0, LARGEST_SIZE)?;
    size("vocabulary", spec.vocabulary)?;
    within("vocabulary_multiple", spec.vocabulary_multiple.unwrap_or(1), 1, 1 << 16)?;
    size("embedding", spec.embedding)?;
    size("max_sequence", spec.max_sequence)?;
    within("positions", spec.positions.unwrap_or(1), 1, 1 << 25)?;
    size("types", spec.types.unwrap_or(1))?;
    within("rotary", spec.rotary, 0, spec.head)?;
    let kv_heads = format!("numbers.kv_heads = {}", spec.kv_heads);
    let even = spec.heads.is_multiple_of(spec.kv_heads);
    require(even, &kv_heads, &format!("does not divide the {} heads", spec.heads))?;
    if let Some(experts) = spec.experts {
        size("experts.count", experts.count)?;
        within("experts.chosen", experts.chosen, 1, experts.count)?;
        size("experts.mlp", experts.mlp)?;
        size("experts.shared", experts.shared.unwrap_or(1))?;
        within("experts.load_per_mille", experts.load_per_mille, 1000, 1_000_000)?;
        if let Some(groups) = experts.groups {
            within("experts.groups.count", groups.count, 1, experts.count)?;
            within("experts.groups.chosen", groups.chosen, 1, groups.count)?;
            let count = format!("numbers.experts.groups.count = {}", groups.count);
            let even = experts.count.is_multiple_of(groups.count);
            require(even, &count, &format!("does not divide the {} experts", experts.count))?;
        }
    }
    if let Some(latent) = spec.latent {
        size("latent.query", latent.query.unwrap_or(1))?;
        size("latent.kv", latent.kv)?;
        size("latent.value", latent.value)?;
    }
    for (name, own) in [("own", &spec.own), ("own_cut", &spec.own_cut)] {
        require(own.len() <= MOST_OWN, &format!("numbers.{name}"), "has more than 8 dimensions")?;
        own.iter().try_for_each(|&each| size(name, each))?;
    }
    within("decoder_layers", spec.decoder_layers, 0, MOST_LAYERS)?;
    within("buckets", spec.buckets, 0, LARGEST_SIZE)?;
    within("patch", spec.patch, 0, LARGEST_SIZE)?;
    within("next_tokens", spec.next_tokens, 0, 1)?;
    for variant in &spec.variants {
        size("variants.reach", variant.reach.tokens().unwrap_or(1))?;
    }
    Ok(())
}

/// The first layer reads ids, the last ends in the loss, and those between hand tokens on.
fn chain(model: &Model) -> Verdict {
    let n_layers = model.sequence.len();
    require(n_layers >= 3, "sequence", "has fewer than three layers")?;
    let inner = n_layers as u64 - 2;
    let layers = format!("numbers.layers = {}", model.spec.layers);
    let expected = model.spec.inner_layers();
    let problem = format!(", and the sequence has {inner} between the first and the last");
    let same = expected == inner;
    if !same {
        return Err(format!("`{layers}`{problem}"));
    }
    for (place, &kind) in model.sequence.iter().enumerate() {
        let at = format!("sequence[{place}]");
        let Some(layer) = model.kinds.get(kind) else {
            return Err(format!("`{at} = {kind}` is no kind of layer"));
        };
        let (first, last) = (place == 0, place + 1 == n_layers);
        require(first || layer.input.is_some(), &at, "is not the first layer and takes nothing")?;
        require(!first || layer.input.is_none(), &at, "is the first layer and takes something")?;
        require(last || layer.output.is_some(), &at, "is not the last layer and hands nothing on")?;
        require(!last || layer.output.is_none(), &at, "is the last layer and hands something on")?;
    }
    let used: BTreeSet<usize> = model.sequence.iter().copied().collect();
    require(used.len() == model.kinds.len(), "kinds", "has a kind that is in no place")
}

/// Dimensions that only a division among devices makes.
pub(super) fn is_of_a_division(dim: Dim) -> bool {
    matches!(
        dim,
        Dim::KeyBlock
            | Dim::MiddleKeys
            | Dim::Queries
            | Dim::TurnedKvHeads
            | Dim::TurnedGroup
            | Dim::OwnRows
            | Dim::SentRows
            | Dim::RelayedRows
    )
}

fn tensors(at: &str, layer: &Layer, spec: &Spec) -> Verdict {
    let sizes = spec.sizes(1, 1);
    for (nth, tensor) in layer.graph.tensors.iter().enumerate() {
        let at = format!("{at}.tensors[{nth}]");
        require(!tensor.name.is_empty(), &format!("{at}.name"), "is empty")?;
        let dims = &tensor.dims;
        let distinct: BTreeSet<Dim> = dims.iter().copied().collect();
        let at = format!("{at}.dims");
        require(
            !dims.is_empty() && distinct.len() == dims.len(),
            &at,
            "are none or have one twice",
        )?;
        require(!dims.iter().any(|&dim| is_of_a_division(dim)), &at, "have one of a division")?;
        require(sizes.wide_elements(dims) > 0, &at, "have one whose size the numbers do not say")?;
        // A key-value head and the query heads that share it are divided together.
        let divided = dims.iter().filter(|&&dim| dim.is_cut() && dim != Dim::Group);
        require(divided.count() <= 1, &at, "have two that tensor parallelism divides")?;
        let tokens = dims.iter().any(|dim| matches!(dim, Dim::Batch | Dim::Sequence | Dim::Keys));
        let is_weight = tensor.form.is_weight();
        require(!is_weight || !tokens, &at, "are those of a weight and go over tokens")?;
    }
    let hidden = [Dim::Batch, Dim::Sequence, Dim::Hidden];
    let pair = [Dim::Batch, Dim::Sequence, Dim::Pair, Dim::Hidden];
    for (end, id) in [("input", layer.input), ("output", layer.output)] {
        let Some(id) = id else { continue };
        let tensor = layer.graph.tensors.get(id.0);
        let shaped = |dims: &[Dim]| dims == hidden || dims == pair;
        let fits = tensor.is_some_and(|t| shaped(&t.dims) && t.form == Form::Activation);
        let at = at.trim_end_matches(".graph");
        require(
            fits,
            &format!("{at}.{end}"),
            "is not an activation of batch, sequence, perhaps pair, and hidden",
        )?;
    }
    Ok(())
}

/// Every tensor is there before it is read, and is made once.
fn order(at: &str, layer: &Layer) -> Verdict {
    let graph = &layer.graph;
    let mut names = BTreeSet::new();
    let is_weight = |id: usize| graph.tensors.get(id).is_some_and(|t| t.form.is_weight());
    let mut there: Vec<bool> = (0..graph.tensors.len()).map(is_weight).collect();
    if let Some(input) = layer.input {
        require(!is_weight(input.0), at, "takes a weight")?;
        there[input.0] = true;
    }
    // The first layer may read what the batch holds beside ids.
    let made: BTreeSet<usize> =
        graph.steps.iter().flat_map(|step| step.writes.iter().map(|id| id.0)).collect();
    if layer.input.is_none() {
        (0..there.len()).filter(|id| !made.contains(id)).for_each(|id| there[id] = true);
    }
    for (nth, step) in graph.steps.iter().enumerate() {
        let at = |field: &str| format!("{at}.steps[{nth}].{field}");
        let own = !step.name.is_empty() && names.insert(&step.name);
        require(own, &at("name"), "is no name of its own")?;
        let read = step.reads.iter().all(|id| there.get(id.0) == Some(&true));
        require(read && !step.reads.is_empty(), &at("reads"), "are none or not there yet")?;
        let distinct: BTreeSet<TensorId> = step.reads.iter().copied().collect();
        require(distinct.len() == step.reads.len(), &at("reads"), "have one twice")?;
        require(!step.writes.is_empty(), &at("writes"), "are none")?;
        for id in &step.writes {
            let new = there.get(id.0) == Some(&false);
            require(new, &at("writes"), "have one that is there already, or that there is not")?;
            there[id.0] = true;
        }
    }
    let handed_on = layer.output.is_none_or(|id| there[id.0] && layer.input != Some(id));
    require(handed_on, at, "hands on what no step makes")?;
    let losses = graph.steps.iter().filter(|step| is_kind(step, VectorKind::CrossEntropy)).count();
    let ends = usize::from(layer.output.is_none());
    require(losses == ends, at, "has one loss if it is the last layer, and else none")
}

fn is_kind(step: &Step, wanted: VectorKind) -> bool {
    matches!(step.action, Action::Vector { kind, .. } if kind == wanted)
}

/// Each step reads and makes what its action does.
fn steps(at: &str, graph: &Graph, step: &Step, spec: &Spec) -> Verdict {
    let (reads, writes) = (step.reads.len(), step.writes.len());
    let form = |id: TensorId| graph.at(id).form;
    let at_reads = format!("{at}.reads");
    let flows = |id: &TensorId| !form(*id).is_weight();
    let count = |n_reads: usize, n_writes: usize| {
        require(reads == n_reads, &at_reads, &format!("are {reads}, not {n_reads}"))?;
        require(writes == n_writes, &format!("{at}.writes"), &format!("are not {n_writes}"))
    };
    match &step.action {
        Action::Contract => {
            count(2, 1)?;
            require(flows(&step.reads[0]), &at_reads, "start with a weight")?;
            contraction(at, graph, step)
        }
        Action::Vector { kind, rows, row } => {
            vector(at, graph, step, *kind, &[&rows[..], row].concat())
        }
        Action::Gather => {
            count(1, 1)?;
            let (table, rows) = (graph.at(step.reads[0]), &graph.at(step.writes[0]).dims[..]);
            let picks = match (table.form.is_weight(), &table.dims[..]) {
                (true, &[Dim::Vocabulary, row]) => rows == [Dim::Batch, Dim::Sequence, row],
                (false, &[Dim::Batch, Dim::Sequence, row]) => rows == [Dim::Batch, Dim::One, row],
                _ => false,
            };
            require(picks, at, "picks neither rows of a table of tokens nor the first token")
        }
        Action::Split | Action::Concat => {
            let (whole, parts) =
                if step.action == Action::Split { (reads, writes) } else { (writes, reads) };
            require(whole == 1 && parts > 1, at, "is not between one tensor and several")?;
            require(step.reads.iter().all(flows), &at_reads, "have a weight")?;
            parts_make_the_whole(at, graph, step, spec)
        }
        Action::Dispatch | Action::Combine => {
            count(1, 1)?;
            let ends = [step.reads[0], step.writes[0]].map(|id| &graph.at(id).dims[..]);
            let tokens: &[Dim] = &[Dim::Batch, Dim::Sequence, Dim::Hidden];
            let rows: &[Dim] = &[Dim::Experts, Dim::Rows, Dim::Hidden];
            let there = step.action == Action::Dispatch;
            let wanted = if there { [tokens, rows] } else { [rows, tokens] };
            require(ends == wanted, at, "is not between tokens and the rows of experts")
        }
        Action::Opaque(of) => opaque::check(at, graph, step, (of, spec)),
        Action::Exchange { .. } => {
            Err(format!("`{at}.action` is an exchange, which follows by rule"))
        }
    }
}

/// A tensor that is seen as several has as many elements as they have together, however many tokens
/// there are, and is made in the same bytes.
fn parts_make_the_whole(at: &str, graph: &Graph, step: &Step, spec: &Spec) -> Verdict {
    let same = [(1, 1), (2, 6)].into_iter().all(|(batch, sequence)| {
        let sizes = spec.sizes(batch, sequence);
        let count = |id: &TensorId| sizes.wide_elements(&graph.at(*id).dims);
        let sum = |ids: &[TensorId]| ids.iter().map(count).fold(0, u128::saturating_add);
        sum(&step.reads) == sum(&step.writes)
    });
    require(same, at, "is between tensors of other numbers of elements")?;
    let form = graph.at(step.reads[0]).form;
    let alike = step.reads.iter().chain(&step.writes).all(|&id| graph.at(id).form == form);
    require(alike, at, "is between tensors of different forms")
}

/// Every dimension is summed over, or in one or both operands and in the result.
fn contraction(at: &str, graph: &Graph, step: &Step) -> Verdict {
    let dims = |id: TensorId| graph.at(id).dims.iter().copied().collect::<BTreeSet<Dim>>();
    let (left, right, out) = (dims(step.reads[0]), dims(step.reads[1]), dims(step.writes[0]));
    let lone: Vec<Dim> = left.symmetric_difference(&right).copied().collect();
    let all: BTreeSet<Dim> = left.union(&right).copied().collect();
    let kept = lone.iter().all(|dim| out.contains(dim));
    let summed = left.intersection(&right).any(|dim| !out.contains(dim));
    require(kept && summed && out.is_subset(&all), at, "is no sum of products of what it reads")
}

/// What each kind of vector work reads, makes and goes over.
fn vector(at: &str, graph: &Graph, step: &Step, kind: VectorKind, over: &[Dim]) -> Verdict {
    use VectorKind as V;
    let reads: Vec<bool> = step.reads.iter().map(|&id| graph.at(id).form.is_weight()).collect();
    let fits = match kind {
        V::Add | V::Multiply | V::Weigh | V::Join => reads == [false, false],
        V::Bias => reads == [false, true],
        V::Scale
        | V::Mask
        | V::Relu
        | V::SquaredRelu
        | V::Gelu
        | V::Silu
        | V::Tanh
        | V::Sigmoid
        | V::Dropout
        | V::Softmax
        | V::Rotary
        | V::Route
        | V::CrossEntropy => reads == [false],
        V::LayerNorm => reads == [false, true] || reads == [false, true, true],
        V::RmsNorm => reads == [false] || reads == [false, true],
        V::Sgd | V::Adam => false,
    };
    require(fits, &format!("{at}.reads"), &format!("are not what {} reads", kind.name()))?;
    let dims = |id: TensorId| &graph.at(id).dims[..];
    let (x, made) = (dims(step.reads[0]), dims(step.writes[0]));
    let n_writes = if kind == V::Dropout { 2 } else { 1 };
    let writes = format!("{at}.writes");
    require(step.writes.len() == n_writes, &writes, &format!("are not {n_writes}"))?;
    let shaped = match kind {
        V::CrossEntropy => over == x && made == &x[..x.len() - 1],
        V::Route => over == x && made.split_last() == Some((&Dim::Routes, &x[..x.len() - 1])),
        V::Join => over == made && is_joined(&[x, dims(step.reads[1])], made),
        V::Rotary => over.last() == Some(&Dim::Rotary) && made == x,
        _ => over == x && step.writes.iter().all(|&id| dims(id) == x),
    };
    require(shaped, &format!("{at}.action"), "does not go over what it reads and makes")?;
    let same = !matches!(kind, V::Add | V::Multiply) || dims(step.reads[1]) == x;
    require(same, &format!("{at}.reads"), "have other dimensions than each other")?;
    let wide = |id: TensorId| graph.at(id).form == Form::Wide;
    let counted = kind != V::CrossEntropy || wide(step.reads[0]) && wide(step.writes[0]);
    require(counted, &format!("{at}.reads"), "have logits that are not wide")?;
    let masked = kind != V::Dropout || graph.at(step.writes[1]).form == Form::Mask;
    require(masked, &writes, "do not end with a mask")
}

/// Rows that are made of parts: each dimension of rows is one of a part, and none is lost.
fn is_joined(parts: &[&[Dim]], made: &[Dim]) -> bool {
    let Some((_, rows)) = made.split_last() else { return false };
    // What is the same for all heads may be told of tokens as they attend.
    let is_of_rows =
        |dim: &Dim| rows.contains(dim) || (*dim == Dim::Sequence && rows.contains(&Dim::Keys));
    rows.iter().all(|row| parts.iter().any(|part| part.contains(row)))
        && parts.iter().all(|part| part[..part.len() - 1].iter().all(is_of_rows))
}

/// Work on pairs of tokens is in one piece, starts from keys, and waits for nothing that comes out
/// of it.
fn pairs(at: &str, graph: &Graph) -> Verdict {
    let of_pairs = |id: &TensorId| Dim::are_pairs(&graph.at(*id).dims);
    let is_paired = |step: &&Step| step.reads.iter().chain(&step.writes).any(of_pairs);
    let mut rest = graph.steps.iter().skip_while(|step| !is_paired(step));
    let paired: Vec<&Step> = rest.by_ref().take_while(is_paired).collect();
    let results: BTreeSet<TensorId> =
        paired.iter().flat_map(|step| &step.writes).copied().filter(|id| !of_pairs(id)).collect();
    let waits = |step: &&Step| step.reads.iter().any(|read| results.contains(read));
    let twice = rest.any(|step| is_paired(&step)) || paired.iter().any(waits);
    require(!twice, at, "meet pairs of tokens twice")?;
    let is_of_keys = |id: &TensorId| !of_pairs(id) && graph.at(*id).dims.contains(&Dim::Keys);
    let meets_keys = paired.iter().flat_map(|step| &step.reads).any(is_of_keys);
    require(paired.is_empty() || meets_keys, at, "meet pairs of tokens without keys")
}

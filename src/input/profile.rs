//! Layer profiles that users bring, in the published artifact's format.
//!
//! Numbers are the user's own units. They are scaled to integers once per profile: sizes so that
//! every decimal place is kept (a profile whose sizes 60 bits cannot hold is refused), times so
//! finely that what rounding moves stays below 10⁻¹² of the answer.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::InputError;
use super::decimal::Decimal;
use super::numbers::Field;
use crate::graph::Dag;
use crate::placement::MOST_LAYERS;
use crate::plan::Edge;
use crate::plan::EndRules;
use crate::plan::Job;
use crate::plan::LayerProfile;
use crate::plan::Links;
use crate::plan::PerParameter;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::plan::Units;

/// What a file asks, in its own decimals.
#[derive(Clone, Debug)]
pub struct ProfileFile {
    /// What the user calls it.
    pub name: String,
    /// What is computed again, by the file.
    pub recompute: Recompute,
    /// How many of the layers, by id from 0, are transformer layers, where the file says so.
    pub transformer_layers: Option<u64>,
    file: String,
    widths: Vec<Width>,
    devices: u64,
    micro_batches: u64,
    memory: Decimal,
    bandwidth: Decimal,
    /// Sizes of optimizer state for each size of parameters.
    state: u64,
}

/// The same in integers, ready to be placed.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// What the integers below mean.
    pub units: Units,
    /// The layers at each width, narrow ones first.
    pub profiles: Vec<Profile>,
    /// What is asked.
    pub job: Job,
}

/// What is read of a file; other keys are the artifact's own and mean nothing here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    max_memory_per_device: Option<f64>,
    max_devices: Option<f64>,
    bandwidth: Option<f64>,
    mbs_in_batch: Option<f64>,
    activation_recomputation: Option<bool>,
    optimizer_algorithm: Option<String>,
    num_transformer_layers: Option<u64>,
    nodes: Option<BTreeMap<String, Vec<RawNode>>>,
    edges: Option<BTreeMap<String, Vec<RawEdge>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawNode {
    id: Option<i64>,
    parameter_size: Option<f64>,
    activation_size: Option<f64>,
    optimal_latency_fw: Option<f64>,
    optimal_latency_bw: Option<f64>,
    is_tensor_parallelized: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEdge {
    source_id: Option<i64>,
    dest_id: Option<i64>,
    communication_cost: Option<f64>,
}

/// Reads one profile, bare or under the key `profile`, from a file that goes by `file`.
pub fn profile(text: &str, file: &str) -> Result<ProfileFile, InputError> {
    let syntax = |error: &serde_json::Error, line: Option<usize>| InputError::Syntax {
        file: file.to_owned(),
        line,
        message: error.to_string(),
    };
    let value: Value = serde_json::from_str(text).map_err(|e| syntax(&e, None))?;
    let name = value.get("name").and_then(Value::as_str).unwrap_or(file).to_owned();
    let bare = match value {
        Value::Object(mut fields) if fields.contains_key("profile") => {
            fields.remove("profile").unwrap_or_default()
        }
        bare => bare,
    };
    let raw = Raw::deserialize(bare).map_err(|e| syntax(&e, None))?;
    Reader { file }.read(&raw, name)
}

/// Reads a profile from every line that is not empty; errors name the line.
pub fn profiles(text: &str, file: &str) -> Result<Vec<ProfileFile>, InputError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(i, line)| profile(line, &format!("{file}, line {}", i + 1))).collect()
}

/// One layer with its numbers as decimals.
#[derive(Clone, Debug)]
struct Layer {
    id: i64,
    forward: Decimal,
    backward: Decimal,
    parameters: Decimal,
    activations: Decimal,
    tensor_parallel: bool,
}

/// The layers and edges of one width, as decimals.
#[derive(Clone, Debug)]
struct Width {
    devices: u64,
    layers: Vec<Layer>,
    /// Ends by place in `layers`, and size.
    edges: Vec<(usize, usize, Decimal)>,
    /// The size with the most decimal places, and the field that holds it; none where all are zero.
    finest: Option<(Decimal, String)>,
}

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn field(&self, name: impl Into<String>) -> Field {
        Field::new(self.file, &name.into())
    }

    fn number(&self, name: &str, found: Option<f64>) -> Result<Decimal, InputError> {
        let field = self.field(name);
        let value = found.ok_or_else(|| field.missing("give a number, 0 or more"))?;
        let decimal = Decimal::of(value).filter(|_| value <= 1e30);
        decimal.ok_or_else(|| {
            let problem = if value < 0.0 { "is negative" } else { "is too large" };
            field.value(&value.to_string(), problem, "allowed are 0 to 1e30")
        })
    }

    fn count(&self, name: &str, found: Option<f64>) -> Result<u64, InputError> {
        let field = self.field(name);
        let value = found.ok_or_else(|| field.missing("give a whole number, 1 or more"))?;
        let whole = Decimal::of(value).filter(|_| value.fract() == 0.0);
        let whole = whole.and_then(|whole| whole.nearest(0));
        whole.filter(|whole| (1..=Job::LARGEST_COUNT).contains(whole)).ok_or_else(|| {
            field.value(&value.to_string(), "is not a usable count", "allowed are 1 to 2^32, whole")
        })
    }

    fn read(&self, raw: &Raw, name: String) -> Result<ProfileFile, InputError> {
        let devices = self.count("maxDevices", raw.max_devices)?;
        let micro_batches = self.count("mbsInBatch", raw.mbs_in_batch)?;
        let memory = self.number("maxMemoryPerDevice", raw.max_memory_per_device)?;
        let bandwidth = self.number("bandwidth", raw.bandwidth)?;
        if bandwidth.digits() == 0 {
            let field = self.field("bandwidth");
            return Err(field.value("0", "moves nothing", "give a rate above 0"));
        }
        let state = match raw.optimizer_algorithm.as_deref() {
            Some("SGD") => 0,
            Some("Adam") => 1,
            Some(other) => {
                return Err(InputError::Unknown {
                    file: self.file.to_owned(),
                    what: "optimizerAlgorithm".into(),
                    found: other.to_owned(),
                    known: vec!["SGD".into(), "Adam".into()],
                });
            }
            None => return Err(self.field("optimizerAlgorithm").missing("it holds SGD or Adam")),
        };
        let recompute = match raw.activation_recomputation {
            Some(true) => Recompute::Stage,
            Some(false) => Recompute::None,
            None => {
                let field = self.field("activationRecomputation");
                return Err(field.missing("it holds true or false"));
            }
        };
        Ok(ProfileFile {
            name,
            recompute,
            transformer_layers: raw.num_transformer_layers,
            file: self.file.to_owned(),
            widths: self.widths(raw)?,
            devices,
            micro_batches,
            memory,
            bandwidth,
            state,
        })
    }

    fn widths(&self, raw: &Raw) -> Result<Vec<Width>, InputError> {
        let nodes = raw.nodes.as_ref().filter(|nodes| !nodes.is_empty());
        let nodes = nodes.ok_or_else(|| {
            self.field("nodes").missing("it holds a list of layers for each width")
        })?;
        let no_edges = BTreeMap::new();
        let edges = raw.edges.as_ref().unwrap_or(&no_edges);
        let mut widths = Vec::new();
        for (key, layers) in nodes {
            let place = format!("nodes.{key}");
            let width: u64 =
                key.parse().ok().filter(|w| (1..=1 << 20).contains(w)).ok_or_else(|| {
                    self.field("nodes").value(key, "is not a width", "allowed are 1 to 1048576")
                })?;
            let crossing = edges.get(key);
            if crossing.is_none() && layers.len() > 1 {
                let field = self.field(format!("edges.{key}"));
                return Err(field.missing("give the edges between the layers of that width"));
            }
            let crossing = crossing.map_or(&[][..], Vec::as_slice);
            widths.push(self.width(width, &place, layers, crossing)?);
        }
        if let Some(stranger) = edges.keys().find(|key| !nodes.contains_key(*key)) {
            return Err(InputError::Unknown {
                file: self.file.to_owned(),
                what: "width in `edges`".into(),
                found: stranger.clone(),
                known: nodes.keys().cloned().collect(),
            });
        }
        widths.sort_by_key(|width| width.devices);
        self.sizes_are_held(&widths)?;
        let ids = |width: &Width| width.layers.iter().map(|l| l.id).collect::<BTreeSet<i64>>();
        let first = ids(&widths[0]);
        for other in &widths[1..] {
            if let Some(lone) = first.symmetric_difference(&ids(other)).next() {
                return Err(self.field(format!("nodes.{}", other.devices)).value(
                    &format!("layer {lone}"),
                    &format!("is at width {} or {} only", widths[0].devices, other.devices),
                    "every width has the same layers",
                ));
            }
        }
        Ok(widths)
    }

    /// Checks that 60 bits hold the sum of all sizes in units of the finest one.
    fn sizes_are_held(&self, widths: &[Width]) -> Result<(), InputError> {
        let sizes = widths.iter().map(Width::sizes).fold(0.0, f64::max);
        let places = places(sizes);
        let finest = widths.iter().filter_map(|width| width.finest.as_ref());
        match finest.min_by_key(|(size, _)| size.exponent()) {
            Some((size, name)) if -size.exponent() > places => Err(self.field(name).value(
                &format!("{:e}", size.value()),
                &format!("cannot be held exactly beside sizes that add up to {sizes:e}"),
                &format!("allowed are multiples of 1e{}", -places),
            )),
            _ => Ok(()),
        }
    }

    fn width(
        &self,
        width: u64,
        place: &str,
        nodes: &[RawNode],
        edges: &[RawEdge],
    ) -> Result<Width, InputError> {
        let field = self.field(place);
        if nodes.is_empty() || nodes.len() > MOST_LAYERS {
            let found = format!("{} layers", nodes.len());
            let allowed = format!("allowed are 1 to {MOST_LAYERS}");
            return Err(field.value(&found, "cannot be placed", &allowed));
        }
        let mut layers = Vec::new();
        for (i, node) in nodes.iter().enumerate() {
            let at = |name: &str| format!("{place}[{i}].{name}");
            let missing = |name: &str, expected: &str| self.field(at(name)).missing(expected);
            layers.push(Layer {
                id: node.id.ok_or_else(|| missing("id", "give a whole number"))?,
                forward: self.number(&at("optimalLatencyFw"), node.optimal_latency_fw)?,
                backward: self.number(&at("optimalLatencyBw"), node.optimal_latency_bw)?,
                parameters: self.number(&at("parameterSize"), node.parameter_size)?,
                activations: self.number(&at("activationSize"), node.activation_size)?,
                tensor_parallel: node
                    .is_tensor_parallelized
                    .ok_or_else(|| missing("isTensorParallelized", "it holds true or false"))?,
            });
        }
        let mut places = BTreeMap::new();
        for (i, layer) in layers.iter().enumerate() {
            if places.insert(layer.id, i).is_some() {
                let found = layer.id.to_string();
                return Err(self.field(format!("{place}[{i}].id")).value(
                    &found,
                    "is there twice",
                    "give each layer an id of its own",
                ));
            }
        }
        let edges = self.edges(width, &places, edges)?;
        self.ordered(width, layers, &edges)
    }

    fn edges(
        &self,
        width: u64,
        places: &BTreeMap<i64, usize>,
        edges: &[RawEdge],
    ) -> Result<Vec<(usize, usize, Decimal)>, InputError> {
        let mut found = Vec::new();
        for (i, edge) in edges.iter().enumerate() {
            let at = |name: &str| format!("edges.{width}[{i}].{name}");
            let end = |name: &str, id: Option<i64>| {
                let field = self.field(at(name));
                let id = id.ok_or_else(|| field.missing("give the id of a layer"))?;
                places.get(&id).copied().ok_or_else(|| {
                    let known = format!("ids are {}", listed(places.keys()));
                    field.value(&id.to_string(), "is the id of no layer", &known)
                })
            };
            let (from, to) = (end("sourceId", edge.source_id)?, end("destId", edge.dest_id)?);
            let size = self.number(&at("communicationCost"), edge.communication_cost)?;
            found.push((from, to, size));
        }
        Ok(found)
    }

    /// Puts layers in an order that no edge runs against.
    fn ordered(
        &self,
        width: u64,
        layers: Vec<Layer>,
        edges: &[(usize, usize, Decimal)],
    ) -> Result<Width, InputError> {
        let ends: Vec<(usize, usize)> = edges.iter().map(|&(from, to, _)| (from, to)).collect();
        let ids: Vec<i64> = layers.iter().map(|layer| layer.id).collect();
        let field = self.field(format!("edges.{width}"));
        let (graph, places) =
            Dag::from_edges((0..layers.len()).collect(), &ends).map_err(|cycle| {
                let found = format!("layer {}", ids[cycle.0]);
                field.value(&found, "comes before itself", "edges may not run in a circle")
            })?;
        if let Some(lone) = unreached(layers.len(), &ends) {
            let found = format!("layer {}", ids[lone]);
            let problem = format!("has no edges that join it to layer {}", ids[0]);
            return Err(field.value(&found, &problem, "give the edge that is missing"));
        }
        let finest = finest(width, &layers, edges);
        let mut layers: Vec<Option<Layer>> = layers.into_iter().map(Some).collect();
        let order = graph.nodes().iter().filter_map(|&place| layers[place].take());
        let layers: Vec<Layer> = order.collect();
        let moved = |place: usize| places[place].index();
        let edges = edges.iter().map(|&(from, to, size)| (moved(from), moved(to), size)).collect();
        Ok(Width { devices: width, layers, edges, finest })
    }
}

/// A layer that no edges, in either direction, join to the first.
fn unreached(n_layers: usize, edges: &[(usize, usize)]) -> Option<usize> {
    let mut neighbours = vec![Vec::new(); n_layers];
    for &(from, to) in edges {
        neighbours[from].push(to);
        neighbours[to].push(from);
    }
    let mut reached = vec![false; n_layers];
    reached[0] = true;
    let mut fresh = vec![0];
    while let Some(layer) = fresh.pop() {
        for &next in &neighbours[layer] {
            if !std::mem::replace(&mut reached[next], true) {
                fresh.push(next);
            }
        }
    }
    reached.iter().position(|reached| !reached)
}

/// The first few of a long list.
fn listed<'a>(ids: impl ExactSizeIterator<Item = &'a i64>) -> String {
    let n = ids.len();
    let shown: Vec<String> = ids.take(12).map(ToString::to_string).collect();
    let more = if n > 12 { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

impl ProfileFile {
    /// The profile in integers.
    ///
    /// Without `longest`, ticks leave room for any batch in 64 bits. Given a time that some
    /// placement reaches, they are as fine as 64 bits allow for a single stage, and nothing that
    /// takes longer is told apart.
    pub fn scaled(
        &self,
        time_model: TimeModel,
        longest: Option<f64>,
    ) -> Result<Profiled, InputError> {
        let scale = Scale::new(&self.widths, self.bandwidth, self.micro_batches, longest);
        let job = Job {
            micro_batches: self.micro_batches,
            devices: self.devices,
            memory: self.memory.down(scale.size_places).unwrap_or(u64::MAX),
            installed: self.memory.down(scale.size_places).unwrap_or(u64::MAX),
            links: Links::Rate {
                power: scale.time_places - scale.size_places - self.bandwidth.exponent(),
                rate: self.bandwidth.digits(),
                longest: scale.longest,
            },
            per_parameter: PerParameter {
                weight: 1,
                gradient: 1,
                exchanged: None,
                state: self.state,
                step_per_gibi: 0,
            },
            time_model,
            ends: EndRules::PLAIN,
        };
        let flawed = |width: u64, flaw: &dyn std::fmt::Display| InputError::Syntax {
            file: self.file.clone(),
            line: None,
            message: format!("width {width}: {flaw}"),
        };
        let mut profiles = Vec::new();
        for width in self.widths.iter().filter(|width| longest.is_none_or(|l| width.least() <= l)) {
            let profile = width.scaled(&scale);
            let profile = profile.ok_or_else(|| flawed(width.devices, &"numbers exceed 2^64"))?;
            job.validate(&profile).map_err(|flaw| flawed(width.devices, &flaw))?;
            profiles.push(profile);
        }
        let units = Units {
            time: "the profile's".into(),
            time_digits: scale.time_places,
            size: "the profile's".into(),
            size_digits: scale.size_places,
        };
        Ok(Profiled { units, profiles, job })
    }
}

/// How decimals become integers.
struct Scale {
    time_places: i32,
    size_places: i32,
    /// `longest` of the links, in ticks.
    longest: u64,
}

impl Scale {
    fn new(widths: &[Width], bandwidth: Decimal, micro_batches: u64, longest: Option<f64>) -> Self {
        let rate = bandwidth.value();
        let cap = |time: f64| longest.map_or(time, |longest| time.min(longest));
        let mut times = 0.0_f64;
        let mut size_places = None;
        for width in widths.iter().filter(|width| longest.is_none_or(|l| width.least() <= l)) {
            let sum = |of: fn(&Layer) -> Decimal| width.sum(of);
            let crossing = width.edges.iter().map(|edge| edge.2.value());
            let sends: f64 = crossing.map(|size| cap(size / rate)).sum();
            let exchange = 2.0 * sends + 4.0 * cap(sum(|l| l.parameters) / rate);
            times = times.max(2.0 * sum(|l| l.forward) + sum(|l| l.backward)).max(exchange);
            size_places = size_places.max(width.finest.as_ref().map(|(size, _)| -size.exponent()));
        }
        let n_layers = widths.iter().map(|width| width.layers.len()).max().unwrap_or(0);
        let rounds = if longest.is_none() { micro_batches as f64 + n_layers as f64 } else { 1.0 };
        let time_places = places(times).min(places(times * rounds / 8.0));
        let cap = longest.and_then(Decimal::of).and_then(|longest| longest.up(time_places));
        Self {
            time_places,
            size_places: size_places.unwrap_or(0),
            longest: cap.unwrap_or(u64::MAX),
        }
    }
}

/// The most decimal places with which a sum stays within 60 bits.
fn places(sum: f64) -> i32 {
    // Half of the range, because these sums are floats.
    let room = 2_f64.powi(59);
    if sum > 0.0 { whole((room / sum).log10().floor()) } else { 0 }
}

/// The size with the most decimal places, by the field that holds it.
fn finest(
    width: u64,
    layers: &[Layer],
    edges: &[(usize, usize, Decimal)],
) -> Option<(Decimal, String)> {
    let layers = layers.iter().enumerate().flat_map(|(i, layer)| {
        [("parameterSize", layer.parameters), ("activationSize", layer.activations)]
            .map(|(name, size)| (size, format!("nodes.{width}[{i}].{name}")))
    });
    let crossing = |(i, edge): (usize, &(usize, usize, Decimal))| {
        (edge.2, format!("edges.{width}[{i}].communicationCost"))
    };
    let sizes = layers.chain(edges.iter().enumerate().map(crossing));
    sizes.filter(|(size, _)| size.digits() > 0).min_by_key(|(size, _)| size.exponent())
}

fn whole(value: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "it is clamped just before")]
    let whole = value.clamp(-400.0, 400.0) as i32;
    whole
}

impl Width {
    /// The largest of the sums of its sizes.
    fn sizes(&self) -> f64 {
        let crossing = self.edges.iter().map(|edge| edge.2.value()).sum::<f64>();
        self.sum(|l| l.parameters).max(self.sum(|l| l.activations)).max(crossing)
    }

    fn sum(&self, of: fn(&Layer) -> Decimal) -> f64 {
        self.layers.iter().map(|layer| of(layer).value()).sum()
    }

    /// What no batch takes less than.
    fn least(&self) -> f64 {
        let layers = self.layers.iter();
        let each = layers.map(|layer| layer.forward.value() + layer.backward.value());
        each.fold(0.0, f64::max)
    }

    /// The same in integers; identical layers become one kind.
    fn scaled(&self, scale: &Scale) -> Option<Profile> {
        let mut kinds: Vec<LayerProfile> = Vec::new();
        let mut sequence = Vec::new();
        for layer in &self.layers {
            let kind = LayerProfile {
                name: String::new(),
                forward: layer.forward.nearest(scale.time_places)?,
                backward: layer.backward.nearest(scale.time_places)?,
                parameters: layer.parameters.up(scale.size_places)?,
                expert_parameters: 0,
                activations: layer.activations.up(scale.size_places)?,
                tensor_parallel: layer.tensor_parallel,
                collectives: 0,
                backward_collectives: 0,
                all_to_all: 0,
                working: 0,
                held_on: 0,
                repeatable: true,
            };
            let known = kinds.iter().rposition(|known| *known == kind);
            sequence.push(known.unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            }));
        }
        for (i, kind) in kinds.iter_mut().enumerate() {
            kind.name = format!("kind {i}");
        }
        let edge = |&(from, to, size): &(usize, usize, Decimal)| {
            Some(Edge::new(from, to, size.up(scale.size_places)?))
        };
        Some(Profile {
            width: self.devices,
            expert_devices: None,
            context: 1,
            kinds,
            sequence,
            ids: self.layers.iter().map(|layer| layer.id).collect(),
            edges: self.edges.iter().map(edge).collect::<Option<_>>()?,
            tied: 0,
        })
    }
}

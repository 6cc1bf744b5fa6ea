//! From a question about one chip to what is ready to run: the same for one that a user asks and
//! for one inside a saved plan, which may be hostile.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Conventions;
use super::InputError;
use super::batch::DEFAULT_BATCH_TOKENS;
use super::batch::default_sequence;
use super::batch::nearest_batch;
use super::efficiency_choice;
use super::hardware::Hardware;
use super::hardware::preset;
use super::imbalance;
use super::network;
use super::next_tokens;
use super::numbers::Field;
use super::source;
use super::source::Reader;
use super::source::printable;
use crate::certify::FalseClaim;
use crate::certify::PlanGround;
use crate::certify::check_plan;
use crate::estimate::EstimateTable;
use crate::estimate::Options;
use crate::hardware::Accelerator;
use crate::hardware::Candidate;
use crate::hardware::Cluster;
use crate::hardware::Design;
use crate::hardware::Knob;
use crate::hardware::chip::PublishedFigures;
use crate::hardware::network::Network;
use crate::model::Attention;
use crate::model::Axis;
use crate::model::Model;
use crate::model::Precision;
use crate::parallel::Setting;
use crate::parallel::frameworks::Framework;
use crate::parallel::legal_contexts;
use crate::parallel::legal_expert_degrees;
use crate::parallel::legal_widths;
use crate::plan::Basis;
use crate::plan::Job;
use crate::plan::Plan;
use crate::plan::Question;
use crate::plan::Source;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::strategy::Best;
use crate::strategy::Planner;
use crate::strategy::Price;
use crate::strategy::Shares;
use crate::strategy::Terms;
use crate::strategy::Training;
use crate::strategy::result::ModelResult;
use crate::units::Bytes;

/// The largest sequence and degrees: beyond any use, and small enough to count with.
pub const LARGEST_SEQUENCE: u64 = 1 << 24;
/// The same for micro-batches and widths.
pub const LARGEST_DEGREE: u64 = 1 << 16;

/// A question made ready to run.
#[derive(Clone, Debug)]
pub struct Ready {
    /// As it was asked.
    pub question: Question,
    /// What is trained.
    pub model: Model,
    /// What it runs on.
    pub chip: Accelerator,
    /// What may be chosen, and how it is counted.
    pub terms: Terms,
    /// What was divided before, where questions beside each other share it.
    pub shares: Arc<Shares>,
}

/// What a question cannot be without, and what its defaults depend on.
#[derive(Clone, Copy, Debug)]
pub struct Basics<'a> {
    /// A built-in model or the path of a file.
    pub model: &'a str,
    /// A built-in accelerator or the path of a file.
    pub hardware: &'a str,
    /// Devices at hand.
    pub devices: u64,
    /// Tokens in a sequence; `None` for what the model is made for, at most 8,192.
    pub sequence: Option<u64>,
    /// Sequences in a batch; `None` for about 4 million tokens.
    pub global_batch: Option<u64>,
    /// What attention leaves behind; `None` for the default.
    pub attention: Option<Attention>,
    /// What must accept the plan; `None` for what the hardware is mostly used with.
    pub framework: Option<Framework>,
}

impl<'a> Basics<'a> {
    /// A model on so many devices of an accelerator, everything else as by default.
    pub fn new(model: &'a str, hardware: &'a str, devices: u64) -> Self {
        Self {
            model,
            hardware,
            devices,
            sequence: None,
            global_batch: None,
            attention: None,
            framework: None,
        }
    }
}

/// The question that a model, an accelerator and a number of devices ask, every default filled in;
/// `read` opens the files that they name.
///
/// # Errors
/// What cannot be read or is not known.
pub fn question(
    basics: &Basics,
    conventions: &Conventions,
    read: &Reader,
) -> Result<Question, InputError> {
    let Basics { model, hardware, devices, .. } = *basics;
    let (found, text) = source::model(model, read)?;
    let (known, hardware_text) = source::hardware(hardware, "hardware", read)?;
    let published = conventions.replaces_physics;
    let longest = found.spec.max_sequence;
    let usual = if published { longest } else { default_sequence(longest) };
    let sequence = basics.sequence.unwrap_or(usual);
    let batch =
        if published { PUBLISHED_BATCH } else { nearest_batch(DEFAULT_BATCH_TOKENS, sequence) };
    let global_batch = basics.global_batch.unwrap_or(batch);
    let attention = basics.attention.unwrap_or(conventions.attention);
    let framework = basics.framework.or(known.framework).filter(|_| !published);
    let framework = framework.unwrap_or(Framework::Any);
    let network = &known.physics.network;
    let widths = default_widths(&found, conventions, network);
    let micro_batches = default_micro_batches(global_batch);
    let mut space = conventions.space(micro_batches, widths, attention, framework);
    if !published {
        space.context_parallel = default_contexts(&found, sequence);
        deal_out_experts(&mut space, std::slice::from_ref(&found), devices);
        divide_experts(&mut space, &found);
    }
    Ok(Question {
        model: Source { name: model.to_owned(), text },
        imbalance_per_mille: None,
        next_tokens: None,
        sequence,
        hardware: Source { name: hardware.to_owned(), text: hardware_text },
        network_times: None,
        knobs: BTreeMap::new(),
        published,
        devices,
        global_batch,
        space,
        reserve_per_mille: conventions.reserve_per_mille,
        optimizer: conventions.optimizer,
        attention,
        masked: conventions.masked,
        precision: Precision::Bf16,
        efficiency: None,
        time_model: conventions.time_model,
        rule: conventions.rule,
    })
}

/// The most times that links may be faster than they are.
pub const FASTEST_NETWORK: u64 = 1000;

/// Sequences in a batch of the published evaluation.
pub const PUBLISHED_BATCH: u64 = 4096;

/// The most devices that share the tokens of a sequence where nobody says.
const MOST_CONTEXT: u64 = 64;

/// The fewest tokens of a sequence that a device has then.
const LEAST_TOKENS: u64 = 2048;

/// The micro-batch sizes to choose from where none are asked for: those that divide the batch.
pub fn default_micro_batches(global_batch: u64) -> Vec<u64> {
    [1, 2, 4, 8].into_iter().filter(|&size| global_batch.is_multiple_of(size)).collect()
}

/// The widths to choose from where none are asked for: those that divide the model, up to as many
/// devices as are closest to each other.
pub fn default_widths(model: &Model, conventions: &Conventions, network: &Network) -> Vec<u64> {
    let legal = legal_widths(&model.spec);
    if conventions.time_model == TimeModel::Published {
        return conventions.widths.iter().copied().filter(|width| legal.contains(width)).collect();
    }
    let most = network.devices_per_node().unwrap_or(MOST_WIDTH);
    legal.into_iter().filter(|&width| width <= most).collect()
}

/// The most devices that share a layer where the network has no nodes and nobody says.
const MOST_WIDTH: u64 = 64;

/// The numbers of devices that may share a sequence where none are asked for.
pub fn default_contexts(model: &Model, sequence: u64) -> Vec<u64> {
    let setting = Setting { sequence, ..Setting::ALONE };
    let most = (sequence / LEAST_TOKENS).clamp(1, MOST_CONTEXT);
    legal_contexts(&model.spec, setting, most)
}

/// Leaves of a list of degrees what is asked for, upwards and each once.
pub fn ask_for(asked: Option<&[u64]>, list: &mut Vec<u64>) {
    if let Some(degrees) = asked {
        *list = degrees.to_vec();
        list.sort_unstable();
        list.dedup();
    }
}

/// Leaves experts to be dealt out in every way that some model allows and the devices suffice for.
pub fn deal_out_experts(space: &mut StrategySpace, models: &[Model], devices: u64) {
    let legal = models.iter().flat_map(|model| legal_expert_degrees(&model.spec, Axis::Expert));
    let found: Vec<u64> = legal.filter(|&degree| degree <= devices).collect();
    ask_for(Some(&found), &mut space.expert_parallel);
}

/// Leaves each expert of a model to be whole, or divided as layers are.
fn divide_experts(space: &mut StrategySpace, model: &Model) {
    let legal = legal_expert_degrees(&model.spec, Axis::ExpertTensor).into_iter();
    let is_width = |degree: &u64| *degree == 1 || space.tensor_parallel.contains(degree);
    let found: Vec<u64> = legal.filter(is_width).collect();
    ask_for(Some(&found), &mut space.expert_tensor);
}

/// Makes a question ready; `file` is what errors refer to.
///
/// # Errors
/// The first field that makes no sense, with what is allowed.
pub fn ready(question: Question, file: &str) -> Result<Ready, InputError> {
    validate(&question, file)?;
    let mut model = match &question.model.text {
        Some(text) => source::model_text(&printable(&question.model.name), text)?,
        None => super::model(&question.model.name)?,
    };
    if let Some(count) = question.next_tokens {
        next_tokens::apply(&mut model, count, &Field::new(file, "mtp"))?;
    }
    if let Some(load) = question.imbalance_per_mille {
        imbalance::apply(&mut model, load, &Field::new(file, "imbalance_per_mille"))?;
    }
    deep_enough(&question.space, &model, file)?;
    let Question { hardware, knobs, published, efficiency, .. } = &question;
    let (hardware, chip) =
        accelerator(hardware, knobs, (Conventions::of(*published), efficiency.as_ref()), file)?;
    hardware.computes_in(question.precision, &Field::new(file, "precision"))?;
    let field = Field::new(file, "devices");
    network::reaches(&hardware.physics.network, question.devices, &field)?;
    let vector_costs = Conventions::of(question.published).vector_costs;
    let times = question.network_times.unwrap_or(1);
    let network = hardware.physics.reached_network().with_bandwidths(|link| link.times(times));
    let terms = Terms {
        design: hardware.name,
        cluster: Cluster { devices: question.devices, network },
        global_batch: question.global_batch,
        space: question.space.clone(),
        reserve_per_mille: question.reserve_per_mille,
        attention: question.attention,
        masked: question.masked,
        element: Bytes(hardware.physics.element_bytes),
        stack: hardware.physics.efficiency.stack(question.precision),
        optimizer: question.optimizer,
        time_model: question.time_model,
        rule: question.rule,
        options: Options { vector_costs, ..Options::default() },
        price: Price::Time,
        power_cap_w: None,
        basis: Basis::of(&hardware.physics, question.precision),
    };
    Ok(Ready { question, model, chip, terms, shares: Arc::default() })
}

/// The plan that answers a question; `None` where nothing fits.
///
/// # Errors
/// That the model cannot be trained so at all.
pub fn solve(ready: &Ready) -> Result<Option<Plan>, InputError> {
    let name = printable(&ready.question.model.name);
    let Ready { question, model, chip, terms, shares } = ready;
    let trained = (question.model.name.as_str(), model.clone());
    let training = Training::with(shares, trained, question.sequence, terms).map_err(|reason| {
        Field::new(&name, "setting").value(&name, &reason.to_string(), "ask for another")
    })?;
    let table = EstimateTable::new(terms.options);
    let planner = Planner { terms, training: &training, table: &table };
    let best = planner.best_on(chip);
    Ok(best.map(|best| plan(&planner, chip, question, &best)))
}

/// Judges a plan of a model from its own question, without any solver; `file` is what errors refer
/// to.
///
/// # Errors
/// That the question makes no sense; the answer itself is a verdict.
pub fn judge(plan: &Plan, file: &str) -> Result<Result<(), FalseClaim>, InputError> {
    let Some(question) = &plan.question else {
        let field = Field::new(file, "question");
        return Err(field.missing("a plan of a model holds what was asked"));
    };
    let ready = ready(question.clone(), file)?;
    let ground = PlanGround {
        question,
        model: &ready.model,
        chip: &ready.chip,
        hardware: &ready.terms.design,
        network: ready.terms.cluster.network,
        vector_costs: ready.terms.options.vector_costs,
        element: ready.terms.element,
        basis: ready.terms.basis.clone(),
    };
    Ok(check_plan(plan, &ground))
}

/// A way to train as a plan that stands alone: with its question and its layers in full.
pub fn plan(planner: &Planner, chip: &Accelerator, question: &Question, best: &Best) -> Plan {
    let ModelResult { plan, layers, .. } = planner.result(chip, best);
    let question = Question { devices: planner.terms.cluster.devices, ..question.clone() };
    Plan { question: Some(question), layers, ..plan }
}

/// Hardware with knobs turned by hand, and the accelerator that it makes; where conventions replace
/// the physics, in theirs.
///
/// # Errors
/// The hardware or the knob that makes no sense; `file` is what errors refer to.
pub fn accelerator(
    Source { name, text }: &Source,
    knobs: &BTreeMap<String, u64>,
    (conventions, efficiency): (&Conventions, Option<&Source>),
    file: &str,
) -> Result<(Hardware, Accelerator), InputError> {
    let mut found = match text {
        Some(text) => super::hardware::hardware(text, &printable(name))?,
        None => preset(name, file)?,
    };
    found.design = turned(found.design, knobs, file)?;
    if !knobs.is_empty() {
        // What is public of a part says nothing of another.
        found.published = PublishedFigures::default();
    }
    if conventions.replaces_physics {
        found.physics = preset(conventions.hardware, file)?.physics;
        found.making = None;
    }
    found = found.in_process(file)?;
    efficiency_choice::assume(efficiency, &mut found, file)?;
    if !knobs.is_empty() {
        // Another design was not measured.
        found.physics.calibrations.clear();
    }
    if let Some(&gib) = knobs.get("hbm_gib") {
        let field = Field::new(file, "hbm_gib");
        found.physics.hbm.knows(gib).map_err(|unknown| {
            field.value(&gib.to_string(), &unknown.to_string(), "give a size that is known")
        })?;
    }
    let chip = match &found.making {
        Some(making) => making.accelerator(found.design, &found.physics),
        None => Accelerator::new(found.design, &found.physics),
    };
    let chip = chip.map_err(|reason| {
        let field = Field::new(file, "hardware");
        field.value(&printable(name), &reason.to_string(), "turn a knob, or choose another")
    })?;
    Ok((found, chip))
}

/// A design with its knobs turned; buffers and lanes that follow from the array keep following it.
fn turned(base: Design, knobs: &BTreeMap<String, u64>, file: &str) -> Result<Design, InputError> {
    let knob = |name: &str| knobs.get(name).copied();
    let (width, depth) = (knob("width").unwrap_or(base.width), knob("depth").unwrap_or(base.depth));
    let mut design = base.with_array(width, depth);
    if let Some(lanes) = knob("vector_width") {
        design = design.with_lanes(lanes);
    }
    let mut candidate = Candidate::from(design);
    for (name, &value) in knobs {
        let known = Knob::named(name).ok_or_else(|| InputError::Unknown {
            file: file.to_owned(),
            what: "knob".into(),
            found: printable(name),
            known: crate::hardware::KNOBS.iter().map(|knob| knob.name.to_owned()).collect(),
        })?;
        known.check(value).map_err(|reason| {
            Field::new(file, name).value(&value.to_string(), &reason.to_string(), "turn it less")
        })?;
        (known.set)(&mut candidate, value);
    }
    Ok(candidate.design)
}

/// Refuses more virtual stages than there are layers.
fn deep_enough(space: &StrategySpace, model: &Model, file: &str) -> Result<(), InputError> {
    let n_layers = model.sequence.len() as u64;
    let (ranks, chunks) = (space.pipeline.least, space.chunks.least);
    if ranks.saturating_mul(chunks) <= n_layers {
        return Ok(());
    }
    let field = Field::new(file, "space.pipeline");
    let found = if chunks > 1 { format!("{ranks} x {chunks} chunks") } else { ranks.to_string() };
    let problem =
        format!("asks for more stages than the {n_layers} layers, embedding and head included");
    let allowed = format!("give p from 1 to {}", n_layers / chunks.min(n_layers));
    Err(field.value(&found, &problem, &allowed))
}

fn validate(question: &Question, file: &str) -> Result<(), InputError> {
    let field = |name: &str| Field::new(file, name);
    let sources = [("model", &question.model), ("hardware", &question.hardware)];
    let efficiency = question.efficiency.iter().map(|chosen| ("efficiency", chosen));
    for (name, Source { name: found, text }) in sources.into_iter().chain(efficiency) {
        if source::is_path(found) != text.is_some() || printable(found) != *found {
            let allowed = "give a built-in name, or the path of a file with its text";
            return Err(field(name).value(&printable(found), "is not one of the two", allowed));
        }
    }
    field("sequence").whole(question.sequence, 1, LARGEST_SEQUENCE)?;
    field("devices").whole(question.devices, 1, Job::LARGEST_COUNT)?;
    field("global_batch").whole(question.global_batch, 1, Job::LARGEST_COUNT)?;
    if let Some(times) = question.network_times {
        field("network_times").whole(times, 1, FASTEST_NETWORK)?;
    }
    let reserve = question.reserve_per_mille;
    if !(-50..1000).contains(&reserve) {
        let allowed = "allowed are -50 to 999 thousandths";
        return Err(field("reserve_per_mille").value(&reserve.to_string(), "is no part", allowed));
    }
    super::space_of::validate(&question.space, question.global_batch, file, "space")
}

//! From a question about one chip to what is ready to run: the same for one that a user asks and
//! for one inside a saved plan, which may be hostile.

use std::collections::BTreeMap;

use super::Conventions;
use super::InputError;
use super::hardware::Hardware;
use super::hardware::preset;
use super::hf_config;
use super::network;
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
use crate::model::Model;
use crate::parallel::legal_widths;
use crate::plan::Job;
use crate::plan::Plan;
use crate::plan::Question;
use crate::plan::Source;
use crate::strategy::Best;
use crate::strategy::Degrees;
use crate::strategy::Planner;
use crate::strategy::Price;
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
    /// Degrees that were given.
    pub degrees: Option<Degrees>,
}

/// The question that a model, an accelerator and a number of devices ask, every default filled in;
/// `read` opens the files that they name.
///
/// # Errors
/// What cannot be read or is not known.
pub fn question(
    model: &str,
    hardware: &str,
    devices: u64,
    conventions: &Conventions,
    read: &Reader,
) -> Result<Question, InputError> {
    let (found, text) = source::model(model, read)?;
    let (_, hardware_text) = source::hardware(hardware, "hardware", read)?;
    let global_batch = DEFAULT_BATCH;
    Ok(Question {
        model: Source { name: model.to_owned(), text },
        sequence: found.spec.max_sequence,
        hardware: Source { name: hardware.to_owned(), text: hardware_text },
        knobs: BTreeMap::new(),
        published: conventions.replaces_physics,
        devices,
        global_batch,
        micro_batches: default_micro_batches(global_batch),
        tensor_parallel: default_widths(&found, conventions),
        recompute: conventions.recompute.to_vec(),
        optimizer: conventions.optimizer,
        attention: conventions.attention,
        sequence_parallel: false,
        time_model: conventions.time_model,
        rule: conventions.rule,
        strategy: None,
    })
}

/// Sequences in a batch where nobody says.
pub const DEFAULT_BATCH: u64 = 4096;

/// The micro-batch sizes to choose from where none are asked for: those that divide the batch.
pub fn default_micro_batches(global_batch: u64) -> Vec<u64> {
    [1, 2, 4, 8].into_iter().filter(|&size| global_batch.is_multiple_of(size)).collect()
}

/// The widths to choose from where none are asked for: those that divide the model.
pub fn default_widths(model: &Model, conventions: &Conventions) -> Vec<u64> {
    let legal = legal_widths(&model.spec);
    conventions.widths.iter().copied().filter(|width| legal.contains(width)).collect()
}

/// Makes a question ready; `file` is what errors refer to.
///
/// # Errors
/// The first field that makes no sense, with what is allowed.
pub fn ready(question: Question, file: &str) -> Result<Ready, InputError> {
    validate(&question, file)?;
    let model = match &question.model.text {
        Some(text) => hf_config::read(&printable(&question.model.name), text)?,
        None => super::model(&question.model.name)?,
    };
    let Question { hardware, knobs, published, .. } = &question;
    let (hardware, chip) = accelerator(hardware, knobs, Conventions::of(*published), file)?;
    let field = Field::new(file, "devices");
    network::reaches(&hardware.physics.network, question.devices, &field)?;
    let vector_costs = Conventions::of(question.published).vector_costs;
    let terms = Terms {
        design: hardware.name,
        cluster: Cluster { devices: question.devices, network: hardware.physics.network },
        global_batch: question.global_batch,
        micro_batches: question.micro_batches.clone(),
        widths: question.tensor_parallel.clone(),
        recompute: question.recompute.clone(),
        data_parallel: 1..=u64::MAX,
        stages: 1..=usize::MAX,
        sequence_parallel: question.sequence_parallel,
        attention: question.attention,
        element: Bytes(hardware.physics.element_bytes),
        optimizer: question.optimizer,
        time_model: question.time_model,
        rule: question.rule,
        options: Options { vector_costs, ..Options::default() },
        price: Price::Time,
        power_cap_w: None,
    };
    let degrees = question.strategy.map(|given| Degrees {
        stages: usize::try_from(given.pipeline).unwrap_or(usize::MAX),
        data_parallel: given.data_parallel,
        tensor_parallel: given.tensor_parallel,
    });
    Ok(Ready { question, model, chip, terms, degrees })
}

/// The plan that answers a question; `None` where nothing fits.
///
/// # Errors
/// That the model cannot be trained so at all.
pub fn solve(ready: &Ready) -> Result<Option<Plan>, InputError> {
    let name = printable(&ready.question.model.name);
    let Ready { question, model, chip, terms, degrees } = ready;
    let training = Training::new(&question.model.name, model.clone(), question.sequence, terms)
        .map_err(|reason| {
            Field::new(&name, "setting").value(&name, &reason.to_string(), "ask for another")
        })?;
    let table = EstimateTable::new(terms.options);
    let planner = Planner { terms, training: &training, table: &table };
    let best = match degrees {
        Some(degrees) => planner.given(chip, *degrees),
        None => planner.best_on(chip),
    };
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
    conventions: &Conventions,
    file: &str,
) -> Result<(Hardware, Accelerator), InputError> {
    let mut found = match text {
        Some(text) => super::hardware::hardware(text, &printable(name))?,
        None => preset(name, file)?,
    };
    found.design = turned(found.design, knobs, file)?;
    if conventions.replaces_physics {
        found.physics = preset(conventions.hardware, file)?.physics;
    }
    if let Some(&gib) = knobs.get("hbm_gib") {
        let field = Field::new(file, "hbm_gib");
        found.physics.hbm.knows(gib).map_err(|unknown| {
            field.value(&gib.to_string(), &unknown.to_string(), "give a size that is known")
        })?;
    }
    let chip = Accelerator::new(found.design, &found.physics).map_err(|reason| {
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

fn validate(question: &Question, file: &str) -> Result<(), InputError> {
    let field = |name: &str| Field::new(file, name);
    for (name, Source { name: found, text }) in
        [("model", &question.model), ("hardware", &question.hardware)]
    {
        if source::is_path(found) != text.is_some() || printable(found) != *found {
            let allowed = "give a built-in name, or the path of a file with its text";
            return Err(field(name).value(&printable(found), "is not one of the two", allowed));
        }
    }
    field("sequence").whole(question.sequence, 1, LARGEST_SEQUENCE)?;
    field("devices").whole(question.devices, 1, Job::LARGEST_COUNT)?;
    field("global_batch").whole(question.global_batch, 1, Job::LARGEST_COUNT)?;
    let lists = [
        ("micro_batches", &question.micro_batches),
        ("tensor_parallel", &question.tensor_parallel),
    ];
    for (name, list) in lists {
        if list.is_empty() {
            return Err(field(name).missing("give at least one value"));
        }
        for &value in list {
            field(name).whole(value, 1, LARGEST_DEGREE)?;
        }
        if !list.is_sorted_by(|a, b| a < b) {
            return Err(field(name).value(&format!("{list:?}"), "is not ascending", "sort it"));
        }
    }
    let batch = question.global_batch;
    if let Some(odd) = question.micro_batches.iter().find(|&&size| !batch.is_multiple_of(size)) {
        let problem = format!("does not divide the batch of {batch}");
        return Err(field("micro_batches").value(
            &odd.to_string(),
            &problem,
            "give divisors of it",
        ));
    }
    if question.recompute.is_empty() || !question.recompute.is_sorted_by(|a, b| a < b) {
        return Err(field("recompute").missing("give at least one choice, each once, in order"));
    }
    if let Some(given) = question.strategy {
        let degrees = [given.pipeline, given.data_parallel, given.tensor_parallel];
        for degree in degrees {
            field("strategy").whole(degree, 1, Job::LARGEST_COUNT)?;
        }
        if question.tensor_parallel != [given.tensor_parallel] {
            let found = format!("{:?}", question.tensor_parallel);
            let allowed = "the strategy says how wide it is";
            return Err(field("tensor_parallel").value(&found, "is another width", allowed));
        }
    }
    Ok(())
}

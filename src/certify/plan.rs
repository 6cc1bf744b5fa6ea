//! A plan that stands alone: from its question everything but the decisions is rebuilt, as for an
//! entry of a search.

use crate::estimate::VectorCosts;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::network::Network;
use crate::model::Model;
use crate::parallel::Setting;
use crate::parallel::legal_widths;
use crate::parallel::shard;
use crate::plan::Answer;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::Question;
use crate::plan::Training;
use crate::plan::Units;
use crate::strategy::Degrees;
use crate::units::Bytes;

use super::claims::FalseClaim;
use super::claims::Verdict;
use super::claims::equal;
use super::claims::require;
use super::operator::Place;
use super::placed;
use super::placed::Around;
use super::placed::Origin;
use super::placed::Paths;
use super::placed::Placed;
use super::rebuild::flops_per_sequence;

/// What the question of a plan names.
pub struct PlanGround<'a> {
    /// The question itself.
    pub question: &'a Question,
    /// What is trained.
    pub model: &'a Model,
    /// What it runs on, and what that is called.
    pub chip: &'a Accelerator,
    /// The name of the hardware.
    pub hardware: &'a str,
    /// What joins the devices.
    pub network: Network,
    /// Cycles of vector work.
    pub vector_costs: VectorCosts,
    /// The size of an element.
    pub element: Bytes,
}

/// Judges a plan of a model, claim by claim. That no strategy is faster is for a solver to say.
pub fn check_plan(plan: &Plan, ground: &PlanGround) -> Verdict {
    let question = ground.question;
    let Some(training) = &plan.training else {
        return Err(FalseClaim::new("training", "null", "what the question trains"));
    };
    let legal = legal_widths(&ground.model.spec);
    let may_be = |width: &u64| legal.contains(width) && *width <= question.devices;
    let widths: Vec<u64> = question.tensor_parallel.iter().copied().filter(may_be).collect();
    let (width, micro_batch) = (plan.answer.tensor_parallel, training.micro_batch);
    require(widths.contains(&width), "answer.tensor_parallel", width, format!("{widths:?}"))?;
    let sizes = &question.micro_batches;
    let known = sizes.contains(&micro_batch);
    require(known, "training.micro_batch", micro_batch, format!("{sizes:?}"))?;
    let setting = Setting {
        micro_batch,
        sequence: question.sequence,
        tensor_parallel: width,
        sequence_parallel: question.sequence_parallel && width > 1,
        attention: question.attention,
        element: ground.element,
        ..Setting::ALONE
    };
    let share = shard(ground.model, setting)
        .map_err(|reason| FalseClaim::new("question", "a legal setting", reason))?;
    let scopes = ground.network.scopes(question.devices);
    let devices = plan.job.devices;
    let known = scopes.contains(&devices) && width <= devices;
    require(known, "job.devices", devices, format!("{scopes:?}"))?;
    let cluster = Cluster { devices, network: ground.network };
    let around = Around {
        place: Place { chip: ground.chip, cluster: &cluster, costs: ground.vector_costs },
        rule: question.rule,
        optimizer: question.optimizer,
        global_batch: question.global_batch,
        time_model: question.time_model,
        recompute: &question.recompute,
    };
    let origin = match question.strategy {
        None => Origin::Searched,
        Some(given) => Origin::Given(Degrees {
            stages: usize::try_from(given.pipeline).unwrap_or(usize::MAX),
            data_parallel: given.data_parallel,
            tensor_parallel: given.tensor_parallel,
        }),
    };
    let paths = Paths { layers: "layers".into(), answer: "answer".into() };
    let placed = placed::check(&paths, &around, &share, origin, &plan.layers, &plan.answer)?;
    equal("", plan, &told(plan, ground, placed, widths, micro_batch)?)
}

/// The plan as its decisions and its question tell it.
fn told(
    plan: &Plan,
    ground: &PlanGround,
    placed: Placed,
    widths: Vec<u64>,
    micro_batch: u64,
) -> Result<Plan, FalseClaim> {
    let PlanGround { question, model, chip, .. } = *ground;
    let Placed { profile, job, placement, .. } = placed;
    let flops = flops_per_sequence(model, question.sequence)
        .map_err(|reason| FalseClaim::new("question.sequence", question.sequence, reason))?;
    Ok(Plan {
        schema: Plan::SCHEMA.into(),
        version: Plan::VERSION,
        name: question.model.name.clone(),
        units: Units::physical(),
        question: Some(question.clone()),
        training: Some(Training {
            design: ground.hardware.to_owned(),
            global_batch: question.global_batch,
            micro_batch,
            sequence: question.sequence,
            optimizer: question.optimizer.name().into(),
            attention: question.attention.name().into(),
            sequence_parallel: question.sequence_parallel,
            flops_per_sequence: flops.0,
            peak_flops_per_second: u64::try_from(chip.peak_flops_per_second()).unwrap_or(u64::MAX),
        }),
        answer: Answer::new(&profile, &job, &placement),
        proof: match question.strategy {
            Some(_) => Proof::Given,
            None => Proof::Optimal {
                widths,
                recompute: question.recompute.clone(),
                micro_batch_sizes: question.micro_batches.clone(),
            },
        },
        job,
        profile,
        layers: plan.layers.clone(),
    })
}

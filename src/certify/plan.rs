//! A plan that stands alone: from its question everything but the decisions is rebuilt, as for an
//! entry of a search.

use crate::estimate::VectorCosts;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::network::Network;
use crate::model::Model;
use crate::plan::Answer;
use crate::plan::Basis;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::Question;
use crate::plan::TimeModel;
use crate::plan::Training;
use crate::plan::Units;
use crate::units::Bytes;

use super::claims::FalseClaim;
use super::claims::Verdict;
use super::claims::equal;
use super::claims::require;
use super::divide::Asked;
use super::operator::Place;
use super::placed;
use super::placed::Around;
use super::placed::Paths;
use super::placed::Placed;
use super::placed::Told;
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
    /// What times rest on beside the data sheet.
    pub basis: Option<Basis>,
}

/// Judges a plan of a model, claim by claim. That no strategy is faster is for a solver to say.
pub fn check_plan(plan: &Plan, ground: &PlanGround) -> Verdict {
    let question = ground.question;
    let Some(training) = &plan.training else {
        return Err(FalseClaim::new("training", "null", "what the question trains"));
    };
    let asked = Asked {
        model: ground.model,
        sequence: question.sequence,
        devices: question.devices,
        global_batch: question.global_batch,
        space: &question.space,
        attention: question.attention,
        masked: question.masked,
        element: ground.element,
        stack: ground.chip.efficiency().stack(question.precision),
        optimizer: question.optimizer,
        time_model: question.time_model,
        reserve_per_mille: question.reserve_per_mille,
    };
    let scopes = asked.scopes(ground.network.scopes(question.devices));
    let devices = plan.job.devices;
    require(scopes.contains(&devices), "job.devices", devices, format!("{scopes:?}"))?;
    let cluster = Cluster { devices, network: ground.network };
    let around = Around {
        place: Place { chip: ground.chip, cluster: &cluster, costs: ground.vector_costs },
        asked,
        rule: question.rule,
    };
    let paths = Paths {
        strategy: "training.strategy".into(),
        layers: "layers".into(),
        answer: "answer".into(),
    };
    let strategy = &training.strategy;
    let told = Told { strategy, layers: &plan.layers, answer: &plan.answer };
    let placed = placed::check(&paths, &around, &told)?;
    let proof = proof("proof", &plan.proof, &asked, placed.costs.time_per_batch)?;
    equal("", plan, &Plan { proof, ..rebuilt(plan, ground, &asked, placed)? })
}

/// The proof of a plan: the space is the question's, and that no layout of virtual stages beats so
/// many ticks may be said only where such layouts may be chosen, and of less than the plan takes.
/// That the figure holds is for a solver to say.
pub fn proof(path: &str, claimed: &Proof, asked: &Asked, time: u128) -> Result<Proof, FalseClaim> {
    let space = asked.space;
    let Proof::Optimal { open, .. } = *claimed;
    if let Some(open) = open {
        let at = format!("{path}.open");
        let several = space.chunks.most > 1
            && space.pipeline.most > 1
            && asked.time_model == TimeModel::OneForwardOneBackward;
        require(several, &at, open, "absent: no rank has several virtual stages")?;
        require(0 < open && open < time, &at, open, format!("more than 0, less than {time}"))?;
    }
    Ok(Proof::Optimal { space: Some(space.clone()), open })
}

/// The plan as its decisions and its question tell it, its proof apart.
fn rebuilt(
    plan: &Plan,
    ground: &PlanGround,
    asked: &Asked,
    placed: Placed,
) -> Result<Plan, FalseClaim> {
    let &PlanGround { question, model, chip, .. } = ground;
    let Placed { strategy, profile, job, placement, .. } = placed;
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
            micro_batch: strategy.micro_batch,
            sequence: question.sequence,
            optimizer: question.optimizer.name().into(),
            attention: question.attention.name().into(),
            strategy,
            expert_load_per_mille: ground.model.spec.experts.map(|e| e.load_per_mille),
            flops_per_sequence: flops.0,
            causal_flops_per_sequence: asked.causal_flops_per_sequence(),
            peak_flops_per_second: u64::try_from(chip.peak_in(question.precision))
                .unwrap_or(u64::MAX),
            basis: ground.basis.clone(),
        }),
        answer: Answer::new(&profile, &job, &placement),
        proof: plan.proof.clone(),
        job,
        profile,
        layers: plan.layers.clone(),
    })
}

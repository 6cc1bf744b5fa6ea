//! Judges a saved plan from first principles: no solver is asked, nothing claimed is believed.

use crate::parallel::Order;
use crate::plan::Answer;
use crate::plan::Flaw;
use crate::plan::IllegalOrder;
use crate::plan::Job;
use crate::plan::Plan;
use crate::plan::Profile;

/// The first rule that a plan breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// It is not a plan, or one of another version.
    #[error("it is `{schema}` version {version}; this program checks `phaze-plan` version 3")]
    Schema {
        /// What it says it is.
        schema: String,
        /// Which version.
        version: u32,
    },
    /// The profile contradicts itself.
    #[error("the profile: {0}")]
    Profile(#[from] Flaw),
    /// No pipeline, or more than there are micro-batches.
    #[error("there are {found} pipelines; allowed are 1 to {most}, one for each micro-batch")]
    Pipelines {
        /// How many.
        found: u64,
        /// How many there may be.
        most: u64,
    },
    /// The plan is of another width than its profile.
    #[error("the plan is {plan} wide, its profile {profile}")]
    Width {
        /// The plan's.
        plan: u64,
        /// The profile's.
        profile: u64,
    },
    /// Some layer is in no stage or in two, or a stage is empty.
    #[error("the stages do not hold each of {n_layers} layers exactly once")]
    Stages {
        /// How many there are.
        n_layers: usize,
    },
    /// A tensor would have to go back.
    #[error(
        "the edge from layer {from} to layer {to} runs back, from stage {later} to stage {earlier}"
    )]
    BackwardEdge {
        /// The layer that makes it.
        from: usize,
        /// The layer that reads it.
        to: usize,
        /// The stage of the first.
        later: usize,
        /// The stage of the second.
        earlier: usize,
    },
    /// Ranks cannot run their passes in this order.
    #[error("the order of passes: {0}")]
    Order(#[from] IllegalOrder),
    /// Replicas share in groups that are not of one size.
    #[error("{shards} replicas are said to share of {replicas}; a divisor is allowed")]
    Shards {
        /// How many share.
        shards: u64,
        /// How many there are.
        replicas: u64,
    },
    /// The devices of a rank do not hold every expert equally often, or other ones would in the grid
    /// of experts.
    #[error("{devices} devices that hold all experts do not fit {copies} pipelines in {order}")]
    Experts {
        /// How many hold all of them together.
        devices: u64,
        /// Copies of the pipeline.
        copies: u64,
        /// How devices are numbered.
        order: Order,
    },
    /// There are fewer devices than the stages take.
    #[error("{needed} devices are needed, there are {available}")]
    TooFewDevices {
        /// How many are needed.
        needed: u64,
        /// How many there are.
        available: u64,
    },
    /// A stage does not fit.
    #[error("stage {stage} needs {needed} of memory, a device has {available}")]
    OutOfMemory {
        /// Which, from 0.
        stage: usize,
        /// What it needs.
        needed: u128,
        /// What there is.
        available: u64,
    },
    /// A claim is not what the definition says.
    #[error("{what} is claimed to be {claimed}, but is {found}")]
    Claim {
        /// Of what.
        what: String,
        /// What the plan says.
        claimed: String,
        /// What follows from its profile.
        found: String,
    },
}

/// Checks that the plan is well formed, fits, and costs exactly what it claims.
pub fn check(plan: &Plan) -> Result<(), Violation> {
    if plan.schema != Plan::SCHEMA || plan.version != Plan::VERSION {
        return Err(Violation::Schema { schema: plan.schema.clone(), version: plan.version });
    }
    plan.job.validate(&plan.profile)?;
    let (found, most) = (plan.answer.data_parallel, plan.job.micro_batches);
    if found == 0 || found > most {
        return Err(Violation::Pipelines { found, most });
    }
    if let Some(training) = &plan.training {
        let said = training.micro_batch.checked_mul(plan.job.micro_batches);
        if said != Some(training.global_batch) {
            return Err(Violation::Claim {
                what: "the batch".into(),
                claimed: training.global_batch.to_string(),
                found: format!(
                    "{} micro-batches of {}",
                    plan.job.micro_batches, training.micro_batch
                ),
            });
        }
    }
    let (claimed, width) = (plan.answer.tensor_parallel, plan.profile.width);
    if claimed != width {
        return Err(Violation::Width { plan: claimed, profile: width });
    }
    check_answer(&plan.profile, &plan.job, &plan.answer)
}

fn check_answer(profile: &Profile, job: &Job, claimed: &Answer) -> Result<(), Violation> {
    let n_layers = profile.n_layers();
    let placement = claimed.placement(n_layers).ok_or(Violation::Stages { n_layers })?;
    no_edge_runs_back(profile, claimed)?;
    let micro_batches = job.micro_batches_per_pipeline(placement.data_parallel);
    placement.schedule.check(placement.ranks(), micro_batches)?;
    let replicas = placement.data_parallel.saturating_mul(profile.context);
    if let Some(shards) = placement.shards.filter(|&n| n == 0 || !replicas.is_multiple_of(n)) {
        return Err(Violation::Shards { shards, replicas });
    }
    if let Some(devices) = profile.expert_devices.filter(|_| !placement.shape().folds(profile)) {
        let (copies, order) = (placement.data_parallel, placement.order);
        return Err(Violation::Experts { devices, copies, order });
    }
    let found = Answer::new(profile, job, &placement);
    if found.devices > job.devices {
        let (needed, available) = (found.devices, job.devices);
        return Err(Violation::TooFewDevices { needed, available });
    }
    let available = job.memory;
    for (stage, needed) in found.ranks.iter().map(|rank| rank.memory.total()).enumerate() {
        if needed > u128::from(available) {
            return Err(Violation::OutOfMemory { stage, needed, available });
        }
    }
    claims_hold(claimed, &found)
}

fn no_edge_runs_back(profile: &Profile, answer: &Answer) -> Result<(), Violation> {
    let mut stage_of = vec![0; profile.n_layers()];
    for (stage, held) in answer.stages.iter().enumerate() {
        for &layer in &held.layers {
            stage_of[layer] = stage;
        }
    }
    let runs_back = profile.edges.iter().find(|edge| stage_of[edge.from] > stage_of[edge.to]);
    runs_back.map_or(Ok(()), |edge| {
        let (later, earlier) = (stage_of[edge.from], stage_of[edge.to]);
        Err(Violation::BackwardEdge { from: edge.from, to: edge.to, later, earlier })
    })
}

fn claims_hold(claimed: &Answer, found: &Answer) -> Result<(), Violation> {
    let mut claims: Vec<(String, String, String)> = vec![
        ("the number of devices".into(), claimed.devices.to_string(), found.devices.to_string()),
        (
            "the time per batch".into(),
            claimed.time_per_batch.to_string(),
            found.time_per_batch.to_string(),
        ),
        (
            "the simulated time per batch".into(),
            format!("{:?}", claimed.simulated),
            format!("{:?}", found.simulated),
        ),
    ];
    for (i, (said, is)) in claimed.stages.iter().zip(&found.stages).enumerate() {
        let counts = [
            ("the devices", said.devices, is.devices),
            ("the forward pass", said.forward, is.forward),
            ("the backward pass", said.backward, is.backward),
            ("the transfer", said.transfer, is.transfer),
            ("the wait for weights", said.waits_for_weights, is.waits_for_weights),
            ("the number of parameters", said.parameters, is.parameters),
            ("the number of repeated layers", said.repeated as u64, is.repeated as u64),
        ];
        claims.extend(counts.map(|(what, said, is)| {
            (format!("{what} of stage {i}"), said.to_string(), is.to_string())
        }));
    }
    let counts = (claimed.ranks.len(), found.ranks.len());
    claims.push(("the number of ranks".into(), counts.0.to_string(), counts.1.to_string()));
    for (i, (said, is)) in claimed.ranks.iter().zip(&found.ranks).enumerate() {
        claims.push((
            format!("the memory of rank {i}"),
            format!("{:?}", said.memory),
            format!("{:?}", is.memory),
        ));
        claims.push((
            format!("what follows the passes of rank {i}"),
            format!("{:?}", (said.exchange, said.gathering, said.after, said.finished)),
            format!("{:?}", (is.exchange, is.gathering, is.after, is.finished)),
        ));
    }
    let wrong = claims.into_iter().find(|(_, claimed, found)| claimed != found);
    wrong.map_or(Ok(()), |(what, claimed, found)| Err(Violation::Claim { what, claimed, found }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::EndRules;
    use crate::plan::Links;
    use crate::plan::PassOrder;
    use crate::plan::PerParameter;
    use crate::plan::Pipeline;
    use crate::plan::Placement;
    use crate::plan::Proof;
    use crate::plan::Recompute;
    use crate::plan::StageAnswer;
    use crate::plan::TimeModel;
    use crate::plan::Units;
    use crate::plan::profile::tests::chain;

    fn sound() -> Plan {
        let profile = chain(&[(1, 2), (3, 4), (5, 6), (7, 8)], 10);
        let job = Job {
            micro_batches: 8,
            devices: 4,
            memory: 10,
            installed: 10,
            links: Links::Rate { power: 0, rate: 10, longest: u64::MAX },
            per_parameter: PerParameter {
                weight: 1,
                gradient: 1,
                exchanged: None,
                state: 1,
                step_per_gibi: 1,
            },
            time_model: TimeModel::OneForwardOneBackward,
            ends: EndRules::PLAIN,
        };
        let pipeline = Pipeline::of_chain(4, vec![2, 4]).unwrap();
        let placement = Placement::plain(2, Recompute::None, pipeline);
        let answer = Answer::new(&profile, &job, &placement);
        Plan {
            schema: Plan::SCHEMA.into(),
            version: Plan::VERSION,
            name: "a chain".into(),
            units: Units::physical(),
            layers: Vec::new(),
            question: None,
            training: None,
            job,
            profile,
            answer,
            proof: Proof::Optimal { space: None, open: None },
        }
    }

    #[test]
    fn a_sound_plan_survives_writing_and_reading() {
        let plan = sound();
        assert_eq!(check(&plan), Ok(()));
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }

    /// Two virtual stages of one layer on each rank.
    fn interleave(plan: &mut Plan, group: u64) {
        plan.answer.schedule = PassOrder::Interleaved { chunks: 2, group };
        let stage = |layer| StageAnswer { layers: vec![layer], ..plan.answer.stages[0].clone() };
        plan.answer.stages = (0..4).map(stage).collect();
    }

    type Breaking = fn(&mut Plan);

    #[test]
    fn each_way_to_break_a_plan_is_named() {
        let breakings: [(Breaking, &str); 26] = [
            (|p| p.schema = "phaze-outcome".into(), "phaze-outcome"),
            (|p| p.version = 2, "version 2"),
            (|p| p.profile.width = 0, "there are 0 width"),
            (|p| p.profile.context = 0, "there are 0 context degree"),
            (|p| p.profile.edges[0].to = 9, "does not lead forward"),
            (|p| p.job.devices = 0, "there are 0 devices"),
            (|p| p.job.micro_batches = 1 << 40, "micro-batches; allowed"),
            (|p| p.answer.data_parallel = 0, "there are 0 pipelines"),
            (|p| p.answer.tensor_parallel = 2, "2 wide, its profile 1"),
            (|p| p.answer.stages[0].layers[0] = 1, "exactly once"),
            (|p| p.answer.stages[0].layers[0] = 99, "exactly once"),
            (|p| p.answer.stages.swap(0, 1), "runs back"),
            (|p| interleave(p, 0), "groups of 0 micro-batches"),
            (|p| p.answer.shards = Some(0), "0 replicas are said to share of 2"),
            (|p| p.answer.shards = Some(3), "3 replicas are said to share of 2"),
            (|p| p.job.devices = 3, "4 devices are needed, there are 3"),
            (|p| p.job.micro_batches = 1, "there are 2 pipelines; allowed are 1 to 1"),
            (|p| p.job.memory = 9, "stage 0 needs 10 of memory, a device has 9"),
            (|p| p.answer.time_per_batch -= 1, "the time per batch is claimed"),
            (|p| p.answer.simulated = Some(1), "the simulated time"),
            (|p| p.answer.devices = 3, "the number of devices is claimed to be 3, but is 4"),
            (|p| p.answer.stages[1].forward -= 1, "the forward pass of stage 1"),
            (|p| p.answer.ranks[1].memory.activations -= 1, "the memory of rank 1"),
            (|p| p.answer.ranks[0].exchange = 0, "what follows the passes of rank 0"),
            (|p| p.profile.kinds[0].backward += 1, "the time per batch is claimed"),
            (
                |p| p.job.links = Links::Rate { power: 30, rate: 1, longest: u64::MAX },
                "exchanges of all layers",
            ),
        ];
        for (break_it, said) in breakings {
            let mut plan = sound();
            break_it(&mut plan);
            let violation = check(&plan).expect_err(said).to_string();
            assert!(violation.contains(said), "{violation} should say {said}");
        }
    }
}

//! A small plan for tests of what is told and drawn.

use crate::model::Modules;
use crate::parallel::ContextKind;
use crate::parallel::Order;
use crate::parallel::zero::Zero;
use crate::plan::Answer;
use crate::plan::Buckets;
use crate::plan::Edge;
use crate::plan::EndRules;
use crate::plan::Hiding;
use crate::plan::Job;
use crate::plan::LayerProfile;
use crate::plan::Limits;
use crate::plan::Links;
use crate::plan::PassOrder;
use crate::plan::PerParameter;
use crate::plan::Pipeline;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Profile;
use crate::plan::Proof;
use crate::plan::Recompute;
use crate::plan::StepStart;
use crate::plan::Strategy;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::plan::Training;
use crate::plan::Units;

/// Eight layers on two ranks of two devices, twice: one stage each, or two in turn.
pub fn example(interleaved: bool) -> Plan {
    let (profile, job) = (profile(), job());
    let schedule = if interleaved {
        PassOrder::Interleaved { chunks: 2, group: 2 }
    } else {
        PassOrder::OneForwardOneBackward
    };
    let ends = if interleaved { vec![2, 4, 6, 8] } else { vec![4, 8] };
    let placement = Placement {
        schedule,
        zero: Zero::State,
        ..Placement::plain(
            2,
            Recompute::First(1),
            Pipeline::of_chain(8, ends).expect("no stage is empty"),
        )
    };
    let answer = Answer::new(&profile, &job, &placement);
    let space = StrategySpace {
        chunks: Limits { least: 1, most: 2 },
        zero: vec![Zero::Nothing, Zero::State],
        zero_in_pipelines: vec![Zero::State],
        ..StrategySpace::plain(vec![1], vec![1, 2], vec![Recompute::AsNeeded])
    };
    Plan {
        schema: Plan::SCHEMA.into(),
        version: Plan::VERSION,
        name: "example".into(),
        units: Units::physical(),
        question: None,
        training: Some(training(&placement)),
        job,
        profile,
        answer,
        proof: Proof::Optimal { space: Some(space), open: None },
        layers: Vec::new(),
    }
}

fn profile() -> Profile {
    let layer = LayerProfile {
        name: "transformer".into(),
        forward: 1_000_000,
        backward: 2_000_000,
        parameters: 1_000,
        expert_parameters: 0,
        activations: 5_000,
        tensor_parallel: true,
        collectives: 300_000,
        backward_collectives: 200_000,
        all_to_all: 0,
        working: 700,
        held_on: 0,
        repeatable: true,
    };
    Profile {
        width: 2,
        context: 1,
        expert_devices: None,
        kinds: vec![layer],
        sequence: vec![0; 8],
        ids: (0..8).collect(),
        edges: (1..8).map(|to| Edge::new(to - 1, to, 100)).collect(),
        tied: 0,
    }
}

fn job() -> Job {
    Job {
        micro_batches: 32,
        devices: 8,
        memory: 94_000,
        installed: 100_000,
        links: Links::Rate { power: 2, rate: 1, longest: 1 << 60 },
        per_parameter: PerParameter {
            weight: 2,
            gradient: 4,
            exchanged: None,
            state: 12,
            step_per_gibi: 1 << 40,
        },
        time_model: TimeModel::OneForwardOneBackward,
        ends: EndRules {
            step_start: StepStart::AllGradients,
            buckets: Buckets::Layers,
            hiding: Hiding::Own,
        },
    }
}

fn training(placement: &Placement) -> Training {
    Training {
        design: "a chip".into(),
        global_batch: 32,
        micro_batch: 1,
        sequence: 1024,
        optimizer: "adam-mixed".into(),
        attention: "recomputed".into(),
        expert_load_per_mille: None,
        strategy: Strategy {
            tensor_parallel: 2,
            sequence_parallel: true,
            context_parallel: 1,
            context_kind: ContextKind::Ring,
            expert_parallel: 1,
            expert_tensor: 1,
            pipeline: 2,
            schedule: placement.schedule,
            data_parallel: 2,
            micro_batch: 1,
            zero: Zero::State,
            shards: None,
            order: Order::default(),
            recompute: placement.recompute,
            repeated: Modules::NONE,
        },
        flops_per_sequence: 1_000_000_000,
        causal_flops_per_sequence: Some(900_000_000),
        peak_flops_per_second: 1_000_000_000_000_000,
        basis: None,
    }
}

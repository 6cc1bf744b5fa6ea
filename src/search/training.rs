//! One model of a request made ready: its shares by width and micro-batch, and what bounds them.

use super::ground::Ground;
use super::ground::LayerTimes;
use super::ground::Terrain;
use super::roofline::Needs;
use super::roofline::Rates;
use super::roofline::Sketch;
use crate::estimate::VectorCosts;
use crate::estimate::vector_core::cycles_per_element;
use crate::graph::Dag;
use crate::hardware::Cluster;
use crate::hardware::network::Exchange;
use crate::hardware::network::Group;
use crate::model::Model;
use crate::model::op::Home;
use crate::model::op::Homes;
use crate::model::op::Matmul;
use crate::model::op::Op;
use crate::model::op::VectorWork;
use crate::model::op::Work;
use crate::parallel::LayerShare;
use crate::parallel::Share;
use crate::plan::Job;
use crate::plan::Recompute;
use crate::units::Bytes;
use crate::units::Flops;

/// Femtojoules of one multiplication and addition at 16 bits.
const MAC_FJ: u64 = 938;

/// A model that is trained, and every way to divide it that is asked for.
#[derive(Clone, Debug)]
pub struct Training {
    /// What the user calls it.
    pub name: String,
    /// The model itself.
    pub model: Model,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// How much it counts beside others.
    pub weight: f64,
    /// Operations of training one sequence, nothing computed twice.
    pub flops_per_sequence: Flops,
    /// One for each legal width and micro-batch.
    pub divisions: Vec<Division>,
}

/// A model at one width and micro-batch.
#[derive(Clone, Debug)]
pub struct Division {
    /// What one device does.
    pub share: Share,
    /// The kind of layer that occurs most often, and how often.
    repeated: (usize, u64),
    /// By kind of layer: what its operators need at the least, forward and backward.
    needs: Vec<[Dag<Needs>; 2]>,
}

/// The bounds of a division for every array shape and memory of a space.
#[derive(Clone, Debug)]
pub struct Optimism {
    /// By array shape, then by kind of layer, forward and backward.
    sketches: Vec<Vec<[Sketch; 2]>>,
    /// By size of off-chip memory, then by recompute choice.
    grounds: Vec<Vec<(Recompute, Ground)>>,
    repeated: (usize, u64),
    /// How often each kind occurs.
    occurrences: Vec<u64>,
}

impl Division {
    /// Prepares a share; `cluster` is what its exchanges run on.
    pub fn new(share: Share, costs: VectorCosts, cluster: &Cluster) -> Self {
        let occurrences = occurrences(&share);
        let most = (0..share.kinds.len()).rev().max_by_key(|&kind| occurrences[kind]);
        let repeated = most.map_or((0, 0), |kind| (kind, occurrences[kind]));
        let element = share.setting.element;
        let needs = share
            .kinds
            .iter()
            .map(|kind| {
                [&kind.forward, &kind.backward]
                    .map(|pass| pass.map(|op| needs(op, costs, element, cluster)))
            })
            .collect();
        Self { share, repeated, needs }
    }

    /// Prepares bounds for arrays of these shapes and devices of these sizes of memory.
    pub fn optimism(
        &self,
        arrays: &[(u64, u64)],
        jobs: &[Job],
        recompute: &[Recompute],
    ) -> Optimism {
        let sketches = arrays.iter().map(|&(width, depth)| {
            let sketch = |pass: &Dag<Needs>| Sketch::new(pass, width, depth);
            self.needs
                .iter()
                .map(|[forward, backward]| [sketch(forward), sketch(backward)])
                .collect()
        });
        let grounds = jobs.iter().map(|job| {
            recompute.iter().map(|&choice| (choice, self.ground(job, choice))).collect()
        });
        Optimism {
            sketches: sketches.collect(),
            grounds: grounds.collect(),
            repeated: self.repeated,
            occurrences: occurrences(&self.share),
        }
    }

    /// Femtojoules of one micro-batch through all layers on one device, at the least, forward so
    /// often: each multiply-accumulate, and each byte that must cross HBM, at `hbm_fj` for 8.
    pub fn least_energy(&self, hbm_fj: u64, forward_passes: u128) -> u128 {
        let of_pass = |pass: &Dag<Needs>| -> u128 {
            let of_op = |needs: &Needs| {
                let macs = needs.matmul.map_or(0, |matmul| matmul.flops().0 / 2);
                macs * u128::from(MAC_FJ) + u128::from(needs.hbm_bytes) * u128::from(hbm_fj) / 8
            };
            pass.nodes().iter().map(of_op).sum()
        };
        let of_kind = |[forward, backward]: &[Dag<Needs>; 2]| {
            of_pass(forward) * forward_passes + of_pass(backward)
        };
        let kinds = self.needs.iter().zip(self.occurrences());
        kinds.map(|(passes, count)| of_kind(passes) * u128::from(count)).sum()
    }

    /// Devices that every stage takes at the least.
    pub fn devices_per_stage(&self) -> u64 {
        let all_are_wide = self.share.kinds.iter().all(|kind| kind.tensor_parallel);
        if all_are_wide { self.share.setting.tensor_parallel } else { 1 }
    }

    /// How often each kind of layer occurs.
    pub fn occurrences(&self) -> Vec<u64> {
        occurrences(&self.share)
    }

    /// Sums a figure of each pass over all layers of the model.
    pub fn sum_over_passes(&self, figure: impl Fn(&Dag<Needs>) -> u64) -> u128 {
        let kinds = self.needs.iter().zip(self.occurrences());
        kinds
            .map(|(passes, count)| {
                let both: u128 = passes.iter().map(|pass| u128::from(figure(pass))).sum();
                both * u128::from(count)
            })
            .sum()
    }

    fn ground(&self, job: &Job, recompute: Recompute) -> Ground {
        let (kind, repeated) = self.repeated;
        let layer: &LayerShare = &self.share.kinds[kind];
        let held = &job.per_parameter;
        let width = self.share.setting.tensor_parallel;
        let terrain = Terrain {
            devices: job.devices,
            devices_per_stage: self.devices_per_stage(),
            micro_batches: job.micro_batches,
            layers: self.share.sequence.len() as u64,
            repeated,
            recompute,
            time_model: job.time_model,
            capacity: job.memory,
            state: layer.parameters * (held.weight + held.gradient + held.state),
            kept: layer.kept.0,
            input: layer.input.0,
        };
        let parameters: u64 =
            self.share.sequence.iter().map(|&kind| self.share.kinds[kind].parameters).sum();
        // Some stage holds at least the average number of parameters.
        Ground::survey(terrain, |replicas, stages| {
            job.exchange(parameters / stages, width, replicas)
        })
    }
}

impl Optimism {
    /// For each recompute choice, a time per batch that no placement can beat on a design with
    /// these rates, the `array`-th shape and the `memory`-th size, and the least load of all
    /// layers together; choices that surely do not fit are left out.
    pub fn least_times<'a>(
        &'a self,
        array: usize,
        memory: usize,
        rates: &Rates,
        scratch: &mut Vec<f64>,
    ) -> impl Iterator<Item = (Recompute, u64, f64)> + use<'a> {
        let mut times = LayerTimes::default();
        for (kind, [forward, backward]) in self.sketches[array].iter().enumerate() {
            let forward = forward.least_time(rates, scratch);
            let backward = backward.least_time(rates, scratch);
            if kind == self.repeated.0 {
                (times.forward, times.backward) = (forward, backward);
            } else {
                times.others_forward += forward * self.occurrences[kind] as f64;
                times.others_backward += backward * self.occurrences[kind] as f64;
            }
        }
        let repeated = self.repeated.1 as f64;
        let forward = repeated * times.forward + times.others_forward;
        let backward = repeated * times.backward + times.others_backward;
        self.grounds[memory].iter().filter_map(move |(recompute, ground)| {
            let again = if *recompute == Recompute::Full { forward } else { 0.0 };
            Some((*recompute, ground.least_time(times)?, again + forward + backward))
        })
    }
}

fn occurrences(share: &Share) -> Vec<u64> {
    let count = |kind| share.sequence.iter().filter(|&&at| at == kind).count() as u64;
    (0..share.kinds.len()).map(count).collect()
}

/// What an operator needs on any design.
fn needs(op: &Op, costs: VectorCosts, element: Bytes, cluster: &Cluster) -> Needs {
    let lane_cycles = |chain: &[VectorWork]| -> u64 {
        chain
            .iter()
            .map(|work| work.elements() * cycles_per_element(work.kind, work.pass, costs))
            .sum()
    };
    let besides = op.traffic.hbm_read + op.traffic.hbm_written;
    let mut needs = Needs { matmul: None, lane_cycles: 0, hbm_bytes: besides.0, network: 0 };
    match &op.work {
        Work::Matmul { matmul, homes, fused } => {
            needs.matmul = Some(*matmul);
            needs.lane_cycles = lane_cycles(fused);
            needs.hbm_bytes += operand_bytes(matmul, *homes, element);
        }
        Work::Vector(chain) => needs.lane_cycles = lane_cycles(chain),
        Work::Move => {}
        Work::Collective(collective) => {
            let group = Group { size: collective.group, stride: 1 };
            let exchange = Exchange::Collective(collective.kind);
            needs.network = cluster.time(exchange, collective.size, group).0;
            needs.hbm_bytes = 0;
        }
    }
    needs
}

/// Bytes of a product's operands that cross HBM, each once.
fn operand_bytes(matmul: &Matmul, homes: Homes, element: Bytes) -> u64 {
    let Matmul { b, m, k, n } = *matmul;
    let operands = [(homes.a, m * k), (homes.b, k * n), (homes.out, m * n)];
    let crossing = operands.into_iter().filter(|(home, _)| *home == Home::Hbm);
    crossing.map(|(_, elements)| b * elements * element.0).sum()
}

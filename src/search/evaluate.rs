//! The best way to train a model on one design, exactly.
//!
//! Divisions and recompute choices are taken in the order of their optimistic bounds; the first
//! bound that is worse than the best found ends the list, so most are never scheduled or placed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Chosen;
use super::Setup;
use super::Standing;
use super::energy;
use super::roofline::Rates;
use super::training::Division;
use super::training::Optimism;
use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::placement;
use crate::placement::Found;
use crate::placement::Rank;
use crate::placement::profile::LayerGraphs;
use crate::placement::profile::LayerPasses;
use crate::placement::profile::even_cut;
use crate::placement::profile::job;
use crate::placement::profile::profile;
use crate::plan::Job;
use crate::plan::Links;
use crate::plan::PerParameter;
use crate::plan::Placement;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::cost;
use crate::schedule::ProofKind;
use crate::schedule::layer::PassTime;
use crate::units::Time;

/// Evaluates designs of a setup; estimates are shared by all threads.
pub struct Evaluator<'a> {
    /// What is asked.
    pub setup: &'a Setup,
    table: EstimateTable,
    /// By model and division.
    graphs: Vec<Vec<LayerGraphs>>,
    /// By model and division.
    optimism: Vec<Vec<Optimism>>,
    /// By design: the place of its array in the list of shapes.
    array_of: Vec<usize>,
}

/// The best way to train on a design, with all that it rests on.
#[derive(Clone, Debug)]
pub struct Best {
    /// In figures.
    pub chosen: Chosen,
    /// Which division of the model.
    pub division: usize,
    /// Which layers form which stage.
    pub found: Found,
    /// The layers at that width and micro-batch.
    pub profile: Profile,
    /// What was asked of the placement.
    pub job: Job,
    /// Whether the strategy was given, not searched.
    pub given: bool,
}

/// A strategy that experts chose: stages, replicas and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degrees {
    /// Stages of a pipeline.
    pub stages: usize,
    /// Copies of the pipeline.
    pub data_parallel: u64,
    /// Devices that share a layer.
    pub tensor_parallel: u64,
}

/// A design with bounds prepared for its array and memory.
struct Ground<'a> {
    chip: Accelerator,
    optimism: &'a [Optimism],
    array: usize,
    memory: usize,
}

impl<'a> Evaluator<'a> {
    /// Prepares graphs and bounds of all models.
    pub fn new(setup: &'a Setup) -> Self {
        let shape = |candidate: &crate::hardware::Candidate| {
            (candidate.design.width, candidate.design.depth)
        };
        let mut arrays: Vec<(u64, u64)> = setup.candidates.iter().map(shape).collect();
        arrays.sort_unstable();
        arrays.dedup();
        let place: BTreeMap<(u64, u64), usize> =
            arrays.iter().enumerate().map(|(place, &array)| (array, place)).collect();
        let graphs_of = |division: &Division| LayerGraphs::new(&division.share);
        let trainings = || setup.trainings.iter();
        Self {
            table: EstimateTable::new(setup.options),
            graphs: trainings().map(|t| t.divisions.iter().map(graphs_of).collect()).collect(),
            optimism: (0..setup.trainings.len())
                .map(|model| optimism(setup, model, &arrays, &setup.request.space.hbm_gib))
                .collect(),
            array_of: setup.candidates.iter().map(|c| place[&shape(c)]).collect(),
            setup,
        }
    }

    /// What no way to train a model on a design can beat; `None` where it surely does not fit.
    pub fn optimistic(&self, model: usize, candidate: usize, hbm: usize) -> Option<Standing> {
        let ground = self.ground(model, candidate, hbm);
        let ways = Self::ways(&ground);
        let time = ways.iter().map(|way| way.bound).min()?;
        let divisions = &self.setup.trainings[model].divisions;
        let energy = ways
            .iter()
            .map(|way| {
                let micro_batches = self.micro_batches(&divisions[way.division]);
                let division = &divisions[way.division];
                energy::least(division, &ground.chip, micro_batches, way.recompute, way.load)
            })
            .min()?;
        Some(Standing { time: Time(time), energy })
    }

    /// The best way to train a model on a design of the space.
    pub fn best(&self, model: usize, candidate: usize, hbm: usize) -> Option<Best> {
        self.best_at(model, &self.ground(model, candidate, hbm))
    }

    /// The best way to train a model on any accelerator.
    pub fn best_on(&self, model: usize, chip: &Accelerator) -> Option<Best> {
        let design = chip.design();
        let arrays = [(design.width, design.depth)];
        let memory = design.hbm.0 / crate::units::Bytes::GIB.0;
        let optimism = optimism(self.setup, model, &arrays, &[memory]);
        let ground = Ground { chip: chip.clone(), optimism: &optimism, array: 0, memory: 0 };
        self.best_at(model, &ground)
    }

    /// The best way to train with given degrees, repeated layers cut evenly: over micro-batches and
    /// recompute choices. `None` where no such way fits.
    pub fn given(&self, model: usize, chip: &Accelerator, degrees: Degrees) -> Option<Best> {
        let divisions = &self.setup.trainings[model].divisions;
        let mut best: Option<(Rank, usize, Found, Timed)> = None;
        for (at, division) in divisions.iter().enumerate() {
            if division.share.setting.tensor_parallel != degrees.tensor_parallel {
                continue;
            }
            let passes = self.passes(model, at, chip)?;
            let profile = profile(&division.share, &passes);
            let job = self.job(division, chip)?;
            let pipeline = even_cut(&profile.sequence, degrees.stages)?;
            for &recompute in &self.setup.request.recompute {
                let data_parallel = degrees.data_parallel;
                let placement = Placement { data_parallel, recompute, pipeline: pipeline.clone() };
                let cost = cost(&profile, &job, &placement);
                let fits = cost.devices <= job.devices
                    && cost.stages.iter().all(|stage| stage.memory.total() <= job.memory.into());
                let rank = Rank {
                    time: cost.time_per_batch,
                    devices: cost.devices,
                    stages: degrees.stages,
                };
                if fits && best.as_ref().is_none_or(|(known, ..)| rank < *known) {
                    let timed = Timed {
                        passes: passes.clone(),
                        profile: profile.clone(),
                        job: job.clone(),
                    };
                    best = Some((rank, at, Found { rank, placement }, timed));
                }
            }
        }
        let (_, division, found, timed) = best?;
        let way = Way { bound: 0, division, recompute: found.placement.recompute, load: 0.0 };
        let time = found.rank.time;
        let settled = self.settled(way, &divisions[division], found, timed, chip, time);
        Some(Best { given: true, ..settled })
    }

    /// How long the layers of one division take on a chip, by kind; `None` where an operator is
    /// too large to be timed.
    fn passes(&self, model: usize, at: usize, chip: &Accelerator) -> Option<Vec<LayerPasses>> {
        let share = &self.setup.trainings[model].divisions[at].share;
        let around = (chip, &self.setup.cluster);
        self.graphs[model][at].passes(share, around, &self.table, self.setup.rule).ok()
    }

    /// What is asked of the placement of one division on a chip; `None` where an operator is too
    /// large to be timed.
    pub fn asked(&self, model: usize, at: usize, chip: &Accelerator) -> Option<(Profile, Job)> {
        let division = &self.setup.trainings[model].divisions[at];
        let passes = self.passes(model, at, chip)?;
        Some((profile(&division.share, &passes), self.job(division, chip)?))
    }

    /// The table of estimates that all evaluations share.
    pub fn table(&self) -> &EstimateTable {
        &self.table
    }

    fn ground(&self, model: usize, candidate: usize, hbm: usize) -> Ground<'_> {
        Ground {
            chip: self.setup.chip(candidate, hbm),
            optimism: &self.optimism[model],
            array: self.array_of[candidate],
            memory: hbm,
        }
    }

    fn micro_batches(&self, division: &Division) -> u64 {
        self.setup.request.global_batch / division.share.setting.micro_batch
    }

    /// All ways to divide and recompute, each with its bound.
    fn ways(ground: &Ground) -> Vec<Way> {
        let rates = rates(&ground.chip);
        let mut scratch = Vec::new();
        let mut ways = Vec::new();
        for (division, optimism) in ground.optimism.iter().enumerate() {
            let least = optimism.least_times(ground.array, ground.memory, &rates, &mut scratch);
            ways.extend(least.map(|(recompute, bound, load)| Way {
                bound,
                division,
                recompute,
                load,
            }));
        }
        ways
    }

    fn best_at(&self, model: usize, ground: &Ground) -> Option<Best> {
        let divisions = &self.setup.trainings[model].divisions;
        let mut ways = Self::ways(ground);
        ways.sort_unstable_by_key(|way| (way.bound, way.division, way.recompute));
        let mut timed: BTreeMap<usize, Timed> = BTreeMap::new();
        let mut best: Option<(Rank, Way, Found)> = None;
        for way in ways {
            if best.as_ref().is_some_and(|(rank, _, _)| rank.time < u128::from(way.bound)) {
                break;
            }
            let Timed { profile, job, .. } = match timed.entry(way.division) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let passes = self.passes(model, way.division, &ground.chip)?;
                    let profile = profile(&divisions[way.division].share, &passes);
                    let job = self.job(&divisions[way.division], &ground.chip)?;
                    place.insert(Timed { passes, profile, job })
                }
            };
            let problem = placement::Problem::new(profile, job, way.recompute);
            let incumbent = best.as_ref().map(|(rank, _, _)| *rank);
            let found = placement::solve(&problem, incumbent).expect("a chain does not branch");
            if let Some(found) = found {
                best = Some((found.rank, way, found));
            }
        }
        let (_, way, found) = best?;
        let least_time = self.least_time(&timed, found.rank);
        let timed = timed.remove(&way.division)?;
        let division = &divisions[way.division];
        Some(self.settled(way, division, found, timed, &ground.chip, least_time))
    }

    /// The time per batch if every schedule that is not proved ended at its bound.
    fn least_time(&self, timed: &BTreeMap<usize, Timed>, best: Rank) -> u128 {
        let mut least = best;
        for Timed { passes, profile, job } in timed.values() {
            let unproved = |pass: &PassTime| pass.proof.kind == ProofKind::None;
            if !passes.iter().any(|kind| unproved(&kind.forward) || unproved(&kind.backward)) {
                continue;
            }
            let mut shorter = profile.clone();
            for (kind, passes) in shorter.kinds.iter_mut().zip(passes) {
                kind.forward = passes.forward.proof.lower_bound.min(kind.forward);
                kind.backward = passes.backward.proof.lower_bound.min(kind.backward);
            }
            for &recompute in &self.setup.request.recompute {
                let problem = placement::Problem::new(&shorter, job, recompute);
                let found = placement::solve(&problem, Some(least));
                least = found.ok().flatten().map_or(least, |found| found.rank);
            }
        }
        least.time
    }

    fn settled(
        &self,
        way: Way,
        division: &Division,
        found: Found,
        timed: Timed,
        chip: &Accelerator,
        least_time: u128,
    ) -> Best {
        let Timed { passes, profile, job } = timed;
        // A batch beyond the range of a time, 213 days, counts as one of that length: such a design
        // wins only where all are as slow.
        let time = Time(u64::try_from(found.rank.time).unwrap_or(u64::MAX));
        let energy = energy::of_batch(&energy::Batch {
            passes: &passes,
            profile: &profile,
            job: &job,
            found: &found,
            chip,
            optimizer: self.setup.optimizer,
            table: &self.table,
            cluster: &self.setup.cluster,
        });
        let chosen = Chosen {
            standing: Standing { time, energy },
            least_time: Time(u64::try_from(least_time).unwrap_or(u64::MAX)),
            tensor_parallel: division.share.setting.tensor_parallel,
            micro_batch: division.share.setting.micro_batch,
            recompute: way.recompute,
            data_parallel: found.placement.data_parallel,
            stages: found.rank.stages as u64,
            devices: found.rank.devices,
        };
        Best { chosen, division: way.division, found, profile, job, given: false }
    }

    /// What a division asks of its placement on a chip; `None` where the optimizer's step is too
    /// large to be timed.
    fn job(&self, division: &Division, chip: &Accelerator) -> Option<Job> {
        let Setup { cluster, optimizer, request, .. } = self.setup;
        let micro_batches = self.micro_batches(division);
        job((chip, cluster), *optimizer, micro_batches, request.time_model, &self.table).ok()
    }
}

/// A division and a recompute choice, with a time that it cannot beat.
#[derive(Clone, Copy)]
struct Way {
    bound: u64,
    division: usize,
    recompute: Recompute,
    /// What all layers together load a stage with at the least, in picoseconds.
    load: f64,
}

/// A division with its exact layer times.
struct Timed {
    passes: Vec<LayerPasses>,
    profile: Profile,
    job: Job,
}

/// The job of a division, the optimizer's step left out: what bounds may know.
fn job_without_step(setup: &Setup, division: &Division, memory: u64) -> Job {
    let optimizer = setup.optimizer;
    Job {
        micro_batches: setup.request.global_batch / division.share.setting.micro_batch,
        devices: setup.request.devices,
        memory,
        links: Links::Network(setup.physics.network),
        per_parameter: PerParameter {
            weight: optimizer.weight().0,
            gradient: optimizer.gradient().0,
            state: optimizer.state().0,
            step_per_gibi: 0,
        },
        time_model: setup.request.time_model,
    }
}

fn optimism(setup: &Setup, model: usize, arrays: &[(u64, u64)], hbm_gib: &[u64]) -> Vec<Optimism> {
    let divisions = setup.trainings[model].divisions.iter();
    divisions
        .map(|division| {
            let jobs: Vec<Job> =
                hbm_gib.iter().map(|gib| job_without_step(setup, division, gib << 30)).collect();
            division.optimism(arrays, &jobs, &setup.request.recompute)
        })
        .collect()
}

/// What a chip can do at the most.
pub fn rates(chip: &Accelerator) -> Rates {
    let design = chip.design();
    let cycle = 1e12 / chip.clock().as_hertz() as f64;
    Rates {
        step: cycle / design.tensor_cores as f64,
        lane_cycle: cycle / (design.vector_cores as f64 * design.vector_width as f64),
        byte: 1e12 / chip.hbm_bandwidth().as_bytes_per_second() as f64,
    }
}

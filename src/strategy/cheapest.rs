//! The strategy of least price where the price is not time alone, or where a cap rules some out.
//!
//! Every shape is a strategy of its own, with its fastest cut. Shapes are taken in the order of a
//! price that no cut of theirs can beat.

use super::best::Candidate;
use super::best::Planner;
use super::best::Searched;
use super::best::Timed;
use super::best::TimedDivisions;
use super::best::Way;
use super::energy::BatchEnergy;
use super::energy::EnergyFloor;
use super::frugal::LeastDivisions;
use super::price::Price;
use super::space_bound::SpaceBound;
use super::space_bound::Variant;
use super::training::Division;
use crate::hardware::Accelerator;
use crate::placement::Choice;
use crate::placement::Choices;
use crate::placement::Problem;
use crate::placement::Rank;
use crate::placement::every_shape;
use crate::placement::solve;
use crate::plan::PassOrder;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::TimeModel;
use crate::units::Energy;
use crate::units::Time;

/// The cheapest of all `variants`, which come in the order of their least prices.
pub(super) fn search(
    planner: &Planner,
    on: (&Accelerator, &SpaceBound),
    variants: &[Variant],
    timed: &mut TimedDivisions,
) -> Searched {
    let mut searched = Searched::default();
    for (price, variant) in in_order(planner, on, variants) {
        if searched.best.as_ref().is_some_and(|known| known.score.0 < price) {
            break;
        }
        let Variant { division, sharded, .. } = *variant;
        let way = (division, sharded);
        let divided = planner.training.division(division, sharded, planner.terms);
        let timed = timed.entry(way).or_insert_with(|| planner.timed(&divided, on.0));
        let Some(timed) = timed else { continue };
        let shapes = Shapes::new(planner, on, (variant, &divided), timed);
        shapes.improve(way, &mut searched);
    }
    searched
}

/// Variants with a price that none of their placements can beat, the least first: energies as the operators' best
/// mappings say, which tell far more of them apart than rooflines do.
fn in_order<'a>(
    planner: &Planner,
    on: (&Accelerator, &SpaceBound),
    variants: &'a [Variant],
) -> Vec<(u128, &'a Variant)> {
    let mut known = LeastDivisions::default();
    let mut price = |variant: &Variant| match planner.terms.price {
        Price::Time => Some(planner.terms.price.of(variant.least)),
        Price::Energy => {
            let most = Energy(u128::MAX);
            planner.least_energy_of(variant, on, &mut known, most).map(|energy| energy.0)
        }
    };
    let priced = variants.iter().filter_map(|variant| Some((price(variant)?, variant)));
    let mut priced: Vec<(u128, &Variant)> = priced.collect();
    // Equal ones stay as they came.
    priced.sort_by_key(|(price, _)| *price);
    priced
}

/// All shapes of one division and recompute choice.
struct Shapes<'a> {
    planner: &'a Planner<'a>,
    chip: &'a Accelerator,
    bound: &'a SpaceBound,
    variant: &'a Variant,
    divided: &'a Division,
    timed: &'a Timed,
    choices: Choices,
    energy: BatchEnergy<'a>,
    floor: EnergyFloor,
}

impl<'a> Shapes<'a> {
    fn new(
        planner: &'a Planner<'a>,
        (chip, bound): (&'a Accelerator, &'a SpaceBound),
        (variant, divided): (&'a Variant, &'a Division),
        timed: &'a Timed,
    ) -> Self {
        let &Variant { division, sharded, recompute, .. } = variant;
        let energy = planner.batch_energy(chip, divided, timed);
        let floor = energy.floor((recompute, divided.repeated.0));
        let choices = planner.training.choices(planner.terms, division, (sharded, recompute));
        Self { planner, chip, bound, variant, divided, timed, choices, energy, floor }
    }

    /// Looks for a better strategy among these shapes.
    fn improve(&self, way: Way, searched: &mut Searched) {
        let known = searched.best.as_ref().map(|known| known.score.0);
        for (least_price, shape) in self.in_order(known) {
            if searched.best.as_ref().is_some_and(|known| known.score.0 < least_price) {
                break;
            }
            let only = self.only(shape);
            let problem = self.problem(&only);
            let known = searched.best.as_ref().map(|known| known.score.0);
            let limit = known.map(|known| self.slower_than_any(&shape, known));
            let solved = solve(&problem, limit).expect("a chain does not branch");
            let Some(found) = solved.best else { continue };
            if let Some(open) = solved.open {
                searched.open = Some(searched.open.map_or(open, |known| known.min(open)));
            }
            let standing = self.planner.standing(self.chip, self.divided, self.timed, &found);
            let Some(standing) = standing else { continue };
            let score = (self.planner.terms.price.of(standing), found.rank, way);
            if searched.best.as_ref().is_none_or(|known| score < known.score) {
                searched.best = Some(Candidate { score, found });
            }
        }
    }

    /// Comes after every placement of a shape that costs no more than `known`.
    fn slower_than_any(&self, shape: &Shape, known: u128) -> Rank {
        let time = match self.planner.terms.price {
            Price::Time => known,
            // The longer a batch takes, the more it costs at the least.
            Price::Energy => {
                let each = self.divided.devices_per_stage();
                let repeats = self.least_repeats(shape);
                let costs =
                    |time: u64| self.energy.least((self.floor, repeats), shape, each, Time(time)).0;
                let (mut enough, mut too_long) = (0, u64::MAX);
                while enough + 1 < too_long {
                    let middle = enough.midpoint(too_long);
                    if costs(middle) <= known { enough = middle } else { too_long = middle }
                }
                enough.into()
            }
        };
        Rank { time: time + 1, devices: 0, stages: 0, choice: Choice::default() }
    }

    /// Forward passes of the repeated layer that memory asks to run again at the least for each micro-batch,
    /// whatever the cut.
    fn least_repeats(&self, shape: &Shape) -> f64 {
        let chunks = shape.schedule.chunks();
        let pipelines = (shape.ranks as u64, shape.data_parallel, chunks);
        self.bound.least_repeats(
            self.planner.terms,
            (self.variant, self.divided, self.chip),
            pipelines,
        )
    }

    fn problem<'b>(&'b self, choices: &'b Choices) -> Problem<'b> {
        Problem { profile: &self.timed.profile, job: &self.timed.job, choices }
    }

    /// One shape alone.
    fn only(&self, shape: Shape) -> Choices {
        let chunks = shape.schedule.chunks();
        Choices {
            data_parallel: shape.data_parallel..=shape.data_parallel,
            ranks: shape.ranks..=shape.ranks,
            chunks: chunks..=chunks,
            zero: [vec![shape.zero], vec![shape.zero]],
            orders: vec![shape.order],
            ..self.choices.clone()
        }
    }

    /// The shapes that may be better than a known price, the most promising first.
    fn in_order(&self, known: Option<u128>) -> Vec<(u128, Shape)> {
        let all = self.shapes();
        let each = self.divided.devices_per_stage();
        let priced = all.into_iter().map(|(shape, least)| {
            let time = Time(u64::try_from(least).unwrap_or(u64::MAX));
            let price = match self.planner.terms.price {
                Price::Time => least,
                Price::Energy => {
                    let floor = (self.floor, self.least_repeats(&shape));
                    self.energy.least(floor, &shape, each, time).0
                }
            };
            (price, shape)
        });
        let mut shapes: Vec<(u128, Shape)> =
            priced.filter(|(price, _)| known.is_none_or(|known| *price <= known)).collect();
        shapes.sort_by_key(|(price, shape)| (*price, shape.data_parallel, shape.ranks));
        shapes
    }

    /// Every shape, with a time that none of its cuts can beat.
    fn shapes(&self) -> Vec<(Shape, u128)> {
        match self.timed.job.time_model {
            TimeModel::OneForwardOneBackward => {
                let capped = self.planner.terms.power_cap_w.is_some();
                let mut shapes = every_shape(&self.problem(&self.choices), capped);
                // However many layers are repeated as needed is one strategy.
                if self.choices.recompute == [Recompute::AsNeeded] {
                    shapes.retain(|(shape, _)| shape.recompute != Recompute::EVERY_LAYER);
                }
                shapes
            }
            TimeModel::Published => self.plain_shapes(),
        }
    }

    /// Every number of replicas and stages, in the published time model: more replicas with as many
    /// micro-batches each take more devices and energy; they draw less on average though, so that
    /// a cap may ask for any.
    fn plain_shapes(&self) -> Vec<(Shape, u128)> {
        let (job, profile) = (&self.timed.job, &self.timed.profile);
        let each = self.divided.devices_per_stage();
        let load = |layer: &crate::plan::LayerProfile| u128::from(layer.forward + layer.backward);
        let work: u128 = profile.layers().map(load).sum();
        let slowest = profile.layers().map(load).max().unwrap_or(0);
        let capped = self.planner.terms.power_cap_w.is_some() || !job.links.is_flat();
        let mut found = Vec::new();
        let most = (job.devices / each).min(job.micro_batches);
        let mut data_parallel = 1;
        while data_parallel <= most {
            let rounds = job.micro_batches_per_pipeline(data_parallel);
            for ranks in 1..=profile.n_layers() {
                if data_parallel * each * ranks as u64 > job.devices {
                    break;
                }
                let shape = Shape {
                    data_parallel,
                    ranks,
                    schedule: PassOrder::OneForwardOneBackward,
                    zero: self.choices.zero[0][0],
                    shards: None,
                    order: self.choices.orders[0],
                    recompute: self.choices.recompute[0],
                };
                let slowest = work.div_ceil(ranks as u128).max(slowest);
                found.push((shape, slowest * (u128::from(rounds) + ranks as u128 - 1)));
            }
            let last = match rounds {
                1 => most,
                _ => ((job.micro_batches - 1) / (rounds - 1)).min(most),
            };
            data_parallel = if capped { data_parallel + 1 } else { last + 1 };
        }
        found
    }
}

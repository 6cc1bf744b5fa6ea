//! What turning one knob of a design would bring, everything else re-optimised.

use rayon::prelude::*;

use super::Request;
use super::Sensitivity;
use super::Setup;
use super::evaluate::Evaluator;
use super::objective::Standing;
use crate::hardware::Accelerator;
use crate::hardware::HbmBandwidth;
use crate::hardware::Physics;
use crate::hardware::network::Network;
use crate::model::Model;
use crate::units::Area;
use crate::units::Bandwidth;

/// A knob of the chip or of what is around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knob {
    TensorCores,
    Width,
    Depth,
    VectorCores,
    VectorWidth,
    Glb,
    GlbBandwidth,
    HbmSize,
    HbmBandwidth,
    NetworkBandwidth,
}

const KNOBS: [(Knob, &str); 10] = [
    (Knob::TensorCores, "tensor cores"),
    (Knob::Width, "array width"),
    (Knob::Depth, "array depth"),
    (Knob::VectorCores, "vector cores"),
    (Knob::VectorWidth, "vector lanes"),
    (Knob::Glb, "global buffer (MiB)"),
    (Knob::GlbBandwidth, "global buffer (bytes/cycle)"),
    (Knob::HbmSize, "HBM (GiB)"),
    (Knob::HbmBandwidth, "HBM (GB/s)"),
    (Knob::NetworkBandwidth, "network (GB/s)"),
];

/// Every knob doubled and halved.
pub fn sensitivities(setup: &Setup, chip: &Accelerator, own: &[Standing]) -> Vec<Sensitivity> {
    let turns: Vec<(Knob, &str, bool)> =
        KNOBS.iter().flat_map(|&(knob, name)| [(knob, name, true), (knob, name, false)]).collect();
    turns
        .par_iter()
        .map(|&(knob, name, doubled)| {
            let turned = Turned::new(setup, chip, knob, doubled);
            let found = turned.standings(setup);
            let ratio = found.as_ref().ok().map(|(standings, _)| speed_up(own, standings));
            let area = found.as_ref().ok().map(|(_, area)| area.0 as f64);
            Sensitivity {
                knob: name.into(),
                change: if doubled { "doubled" } else { "halved" }.into(),
                from: turned.from,
                to: turned.to,
                throughput_ratio: ratio,
                area_ratio: area.map(|area| area / chip.total_area().0 as f64),
                note: found.err(),
            }
        })
        .collect()
}

/// The geometric mean of how much faster each model became.
fn speed_up(before: &[Standing], after: &[Standing]) -> f64 {
    let logs = before
        .iter()
        .zip(after)
        .map(|(before, after)| (before.time.0 as f64 / after.time.0 as f64).ln());
    (logs.sum::<f64>() / before.len() as f64).exp()
}

/// A search of one design with one knob turned.
struct Turned {
    request: Request,
    physics: Physics,
    from: f64,
    to: f64,
}

impl Turned {
    fn new(setup: &Setup, chip: &Accelerator, knob: Knob, doubled: bool) -> Self {
        let design = chip.design();
        let turn = |value: u64| if doubled { value.saturating_mul(2) } else { value / 2 };
        let mut request = setup.request.clone();
        let mut physics = setup.physics.clone();
        let space = &mut request.space;
        space.tensor_cores = vec![design.tensor_cores];
        space.width = vec![design.width];
        space.depth = vec![design.depth];
        space.vector_cores = vec![design.vector_cores];
        space.vector_width = vec![design.vector_width];
        space.glb_mib = vec![design.glb.0 >> 20];
        space.glb_bytes_per_cycle = vec![chip.tensor(crate::hardware::Use::Spread).glb_port.read];
        space.hbm_gib = vec![design.hbm.0 >> 30];
        (space.min_area_nm2, space.max_area_nm2) = (0, u64::MAX);
        physics.hbm = HbmBandwidth::Fixed(chip.hbm_bandwidth());
        let list = match knob {
            Knob::TensorCores => &mut space.tensor_cores,
            Knob::Width => &mut space.width,
            Knob::Depth => &mut space.depth,
            Knob::VectorCores => &mut space.vector_cores,
            Knob::VectorWidth => &mut space.vector_width,
            Knob::Glb => &mut space.glb_mib,
            Knob::GlbBandwidth => &mut space.glb_bytes_per_cycle,
            Knob::HbmSize => &mut space.hbm_gib,
            Knob::HbmBandwidth => {
                let rate = chip.hbm_bandwidth();
                let (from, to) = (rate, turned_rate(rate, doubled));
                physics.hbm = HbmBandwidth::Fixed(to);
                return Self { request, physics, from: gigabytes(from), to: gigabytes(to) };
            }
            Knob::NetworkBandwidth => {
                let (from, to) = turn_network(&mut physics.network, doubled);
                return Self { request, physics, from, to };
            }
        };
        let from = list[0];
        list[0] = turn(from);
        let to = list[0];
        Self { request, physics, from: from as f64, to: to as f64 }
    }

    /// How each model does then, and the area; or why it cannot be.
    fn standings(&self, setup: &Setup) -> Result<(Vec<Standing>, Area), String> {
        let models: Vec<Model> = setup.trainings.iter().map(|t| t.model.clone()).collect();
        let setup = Setup::new(self.request.clone(), models, self.physics.clone())
            .map_err(|_| "cannot be built".to_owned())?;
        let evaluator = Evaluator::new(&setup);
        let best = |model: usize| evaluator.best(model, 0, 0).map(|best| best.chosen.standing);
        let all: Option<Vec<Standing>> = (0..setup.trainings.len()).map(best).collect();
        let area = setup.areas[0];
        all.map(|standings| (standings, area)).ok_or_else(|| "does not fit".to_owned())
    }
}

fn turned_rate(rate: Bandwidth, doubled: bool) -> Bandwidth {
    let rate = rate.as_bytes_per_second();
    let turned = if doubled { rate.saturating_mul(2) } else { rate.div_ceil(2) };
    Bandwidth::bytes_per_second(turned).expect("half of a rate, rounded up, is not zero")
}

fn gigabytes(rate: Bandwidth) -> f64 {
    rate.as_bytes_per_second() as f64 / 1e9
}

/// Turns every link; answers the rate of the fastest, before and after.
fn turn_network(network: &mut Network, doubled: bool) -> (f64, f64) {
    match network {
        Network::Flat(flat) => {
            let from = flat.link.bandwidth;
            flat.link.bandwidth = turned_rate(from, doubled);
            (gigabytes(from), gigabytes(flat.link.bandwidth))
        }
        Network::Nodes(nodes) => {
            let from = nodes.inside.bandwidth;
            nodes.inside.bandwidth = turned_rate(from, doubled);
            nodes.between.bandwidth = turned_rate(nodes.between.bandwidth, doubled);
            (gigabytes(from), gigabytes(nodes.inside.bandwidth))
        }
    }
}

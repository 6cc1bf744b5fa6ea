//! What turning one knob of a design would bring, everything else re-optimised.

use rayon::prelude::*;

use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::hardware::Design;
use crate::hardware::HbmBandwidth;
use crate::hardware::Physics;
use crate::hardware::Use;
use crate::hardware::network::Network;
use crate::search::Judge;
use crate::search::Sensitivity;
use crate::search::Setup;
use crate::strategy::Planner;
use crate::strategy::Standing;
use crate::strategy::Terms;
use crate::strategy::Training;
use crate::units::Area;
use crate::units::Bandwidth;
use crate::units::Bytes;

/// A knob of the chip or of what is around it: its name, and how it is turned. Turning answers the
/// figure before and after.
struct Turn {
    name: &'static str,
    turn: fn(&mut Chip, Factor) -> (f64, f64),
}

/// A design in its physics.
#[derive(Clone)]
struct Chip {
    design: Design,
    physics: Physics,
}

/// By what a knob is turned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Factor {
    Double,
    Half,
}

impl Factor {
    fn of(self, value: u64) -> u64 {
        match self {
            Self::Double => value.saturating_mul(2),
            Self::Half => value / 2,
        }
    }

    fn of_rate(self, rate: Bandwidth) -> Bandwidth {
        let rate = rate.as_bytes_per_second();
        let turned = match self {
            Self::Double => rate.saturating_mul(2),
            Self::Half => rate.div_ceil(2),
        };
        Bandwidth::bytes_per_second(turned).expect("half of a rate, rounded up, is not zero")
    }
}

const TURNS: [Turn; 10] = [
    Turn { name: "tensor cores", turn: |chip, by| turned(&mut chip.design.tensor_cores, by) },
    Turn {
        name: "array width",
        turn: |chip, by| {
            let Design { width, depth, .. } = chip.design;
            array(chip, by.of(width), depth);
            (width as f64, by.of(width) as f64)
        },
    },
    Turn {
        name: "array depth",
        turn: |chip, by| {
            let Design { width, depth, .. } = chip.design;
            array(chip, width, by.of(depth));
            (depth as f64, by.of(depth) as f64)
        },
    },
    Turn { name: "vector cores", turn: |chip, by| turned(&mut chip.design.vector_cores, by) },
    Turn {
        name: "vector lanes",
        turn: |chip, by| {
            let lanes = chip.design.vector_width;
            chip.design = chip.design.with_lanes(by.of(lanes));
            (lanes as f64, by.of(lanes) as f64)
        },
    },
    Turn {
        name: "global buffer (MiB)",
        turn: |chip, by| in_units(&mut chip.design.glb, Bytes::MIB, by),
    },
    Turn {
        name: "global buffer (bytes/cycle)",
        turn: |chip, by| {
            turned(&mut chip.physics.glb.write, by);
            turned(&mut chip.physics.glb.read, by)
        },
    },
    Turn { name: "HBM (GiB)", turn: |chip, by| in_units(&mut chip.design.hbm, Bytes::GIB, by) },
    Turn {
        name: "HBM (GB/s)",
        turn: |chip, by| {
            let rate = chip.physics.hbm.of(chip.design.hbm);
            chip.physics.hbm = HbmBandwidth::Fixed(by.of_rate(rate));
            (gigabytes(rate), gigabytes(by.of_rate(rate)))
        },
    },
    Turn { name: "network (GB/s)", turn: |chip, by| network(&mut chip.physics.network, by) },
];

/// A chip with one knob turned.
#[derive(Clone, Debug)]
pub struct Turned {
    /// Which knob.
    pub knob: &'static str,
    /// `doubled` or `halved`.
    pub change: &'static str,
    /// Its figure before.
    pub from: f64,
    /// Its figure after.
    pub to: f64,
    /// The knobs then.
    pub design: Design,
    /// The constants then.
    pub physics: Physics,
}

/// Every knob of a chip doubled and halved, in the physics of its search.
pub fn turns(chip: &Accelerator, physics: &Physics) -> Vec<Turned> {
    let base = Chip {
        design: *chip.design(),
        physics: Physics {
            glb: chip.tensor(Use::Spread).glb_port,
            hbm: HbmBandwidth::Fixed(chip.hbm_bandwidth()),
            ..physics.clone()
        },
    };
    let both = [(Factor::Double, "doubled"), (Factor::Half, "halved")];
    let each = TURNS.iter().flat_map(|turn| both.map(|(by, change)| (turn, by, change)));
    each.map(|(Turn { name, turn }, by, change)| {
        let mut other = base.clone();
        let (from, to) = turn(&mut other, by);
        let Chip { design, physics } = other;
        Turned { knob: name, change, from, to, design, physics }
    })
    .collect()
}

/// Why a turned chip has no ratios.
pub const UNBUILDABLE: &str = "cannot be built";
/// The same where nothing fits on it.
pub const UNFIT: &str = "does not fit";

/// What every turn of a chip brings; `own` is how the models do on the chip itself.
pub fn sensitivities(
    setup: &Setup,
    judge: &Judge,
    chip: &Accelerator,
    own: &[Standing],
) -> Vec<Sensitivity> {
    turns(chip, &setup.physics)
        .par_iter()
        .map(|turned| {
            let found = standings(setup, turned);
            let ratio = |cost: &dyn Fn(Standing, Area) -> f64| {
                let (standings, area) = found.as_ref().ok()?;
                Some(gain(own, chip.total_area(), standings, *area, cost))
            };
            let area = found.as_ref().ok().map(|(_, area)| area.0 as f64);
            Sensitivity {
                knob: turned.knob.into(),
                change: turned.change.into(),
                from: turned.from,
                to: turned.to,
                throughput_ratio: ratio(&|standing, _| standing.time.0 as f64),
                value_ratio: ratio(&|standing, area| Judge::cost(judge.objective, standing, area)),
                area_ratio: area.map(|area| area / chip.total_area().0 as f64),
                note: found.err().map(str::to_owned),
            }
        })
        .collect()
}

/// The geometric mean of by how much each model's cost fell.
pub fn gain(
    before: &[Standing],
    area_before: Area,
    after: &[Standing],
    area_after: Area,
    cost: &dyn Fn(Standing, Area) -> f64,
) -> f64 {
    let logs = before
        .iter()
        .zip(after)
        .map(|(&before, &after)| (cost(before, area_before) / cost(after, area_after)).ln());
    (logs.sum::<f64>() / before.len() as f64).exp()
}

/// How each model does on a chip, and its area; or why it cannot be.
fn standings(setup: &Setup, chip: &Turned) -> Result<(Vec<Standing>, Area), &'static str> {
    let built = Accelerator::new(chip.design, &chip.physics).map_err(|_| UNBUILDABLE)?;
    let mut terms = setup.terms.clone();
    terms.cluster.network = chip.physics.reached_network();
    let same_network = terms.cluster == setup.terms.cluster;
    let table = EstimateTable::new(terms.options);
    let best = |training: &Training| -> Option<Standing> {
        let own = if same_network { None } else { Some(other_network(training, &terms)?) };
        let training = own.as_ref().unwrap_or(training);
        let best = Planner { terms: &terms, training, table: &table }.best_on(&built)?;
        Some(best.chosen.standing)
    };
    let all: Option<Vec<Standing>> = setup.trainings.iter().map(best).collect();
    all.map(|standings| (standings, built.total_area())).ok_or(UNFIT)
}

/// A training whose exchanges run on another network.
fn other_network(training: &Training, terms: &Terms) -> Option<Training> {
    Training::new(&training.name, training.model.clone(), training.sequence, terms).ok()
}

fn turned(knob: &mut u64, by: Factor) -> (f64, f64) {
    let from = *knob;
    *knob = by.of(from);
    (from as f64, *knob as f64)
}

fn in_units(size: &mut Bytes, unit: Bytes, by: Factor) -> (f64, f64) {
    let from = size.0 / unit.0;
    *size = Bytes(by.of(from).saturating_mul(unit.0));
    (from as f64, by.of(from) as f64)
}

/// Turns the arrays; vector cores stay as they are.
fn array(chip: &mut Chip, width: u64, depth: u64) {
    let lanes = chip.design.vector_width;
    chip.design = chip.design.with_array(width, depth).with_lanes(lanes);
}

fn gigabytes(rate: Bandwidth) -> f64 {
    rate.as_bytes_per_second() as f64 / 1e9
}

/// Turns every link; answers the rate to the nearest neighbours, before and after.
fn network(network: &mut Network, by: Factor) -> (f64, f64) {
    let from = network.nearest_bandwidth();
    *network = network.with_bandwidths(|rate| by.of_rate(rate));
    (gigabytes(from), gigabytes(network.nearest_bandwidth()))
}

//! All chips that a search may choose from: lists of values of the knobs, the process, and the budget.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::Budget;
use super::CHIP_KNOBS;
use super::ChipKnobs;
use super::build::TORUS_PORTS;
use super::cubic_torus;
use crate::hardware::network::Level;
use crate::hardware::network::Levels;
use crate::hardware::network::Link;
use crate::hardware::network::Network;
use crate::hardware::network::NoLevels;
use crate::hardware::network::NoTorus;
use crate::hardware::network::Torus;
use crate::hardware::technology::Constant;
use crate::hardware::technology::Generation;
use crate::hardware::technology::Technology;
use crate::model::Precision;
use crate::units::Area;
use crate::units::Bandwidth;
use crate::units::Money;
use crate::units::Power;
use crate::units::Time;

/// How many knobs a chip has.
pub const N_CHIP_KNOBS: usize = CHIP_KNOBS.len();

/// What is asked of chips; the same words and units as in request files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipSpace {
    /// What chips are made in, in nanometres.
    pub process_nm: u64,
    /// What arrays multiply.
    pub precision: Precision,
    /// The generation of off-chip memory.
    pub memory: String,
    /// By knob of [`CHIP_KNOBS`]: its values, ascending, each once.
    pub knobs: BTreeMap<String, Vec<u64>>,
    /// The largest die, in square nanometres.
    pub max_area_nm2: u64,
    /// The most thermal design power, in milliwatts.
    pub tdp_mw: u64,
    /// The most that a chip may cost to make, in cents.
    pub max_price_cents: Option<u64>,
    /// How chips are wired.
    pub network: ChipNetwork,
    /// Whether the owner buys the chips, and pays the margin of their maker, or builds them.
    pub bought: bool,
    /// Constants of the technology that are not as its file says, by name, in their small units.
    pub constants: BTreeMap<String, u64>,
}

/// What the links of a chip lead to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ChipNetwork {
    /// Rings along up to three dimensions, each port with a sixth of the links; no sides: the most
    /// cubic box of the devices.
    Torus(Vec<u64>),
    /// A switch between all chips, at the rate of all links.
    Flat,
    /// Nodes of chips behind a switch, at the rate of all links; each chip has a card of its own to other
    /// nodes.
    Nodes {
        /// Chips of a node.
        devices: u64,
        /// GB/s of the card of each, per direction.
        between_gb_per_s: u64,
    },
}

impl ChipSpace {
    /// The chips of a process that are searched unless something else is asked for: more than 10⁹.
    pub fn default_of(technology: &Technology) -> Self {
        let knobs = CHIP_KNOBS.iter().map(|knob| (knob.name.to_owned(), default_values(knob.name)));
        let budget = Budget::default_of(technology);
        Self {
            process_nm: technology.process_nm,
            precision: Precision::Bf16,
            memory: "hbm3e".into(),
            knobs: knobs.collect(),
            max_area_nm2: budget.area.0,
            tdp_mw: budget.tdp.0,
            max_price_cents: None,
            network: ChipNetwork::Torus(Vec::new()),
            bought: false,
            constants: BTreeMap::new(),
        }
    }

    /// What a chip may take.
    pub fn budget(&self) -> Budget {
        Budget {
            area: Area(self.max_area_nm2),
            tdp: Power(self.tdp_mw),
            price: self.max_price_cents.map(Money),
        }
    }

    /// The technology with the constants that were asked for; unknown names change nothing.
    pub fn technology(&self, of_process: &Technology) -> Technology {
        let named = self.constants.iter();
        let known = named.filter_map(|(name, value)| Some((Constant::named(name)?, *value)));
        known.fold(of_process.clone(), |technology, (constant, value)| {
            technology.with(constant, value)
        })
    }

    /// How many combinations of values there are.
    pub fn points(&self) -> u128 {
        let lens = self.knobs.values().map(|values| values.len() as u128);
        lens.fold(1, u128::saturating_mul)
    }
}

impl ChipNetwork {
    /// The network of so many chips with such links.
    ///
    /// # Errors
    /// Sides that no torus has, or nodes of no size.
    pub fn of(
        &self,
        links_gb_per_s: u64,
        devices: u64,
        latency: Time,
    ) -> Result<Network, NoNetwork> {
        let link = |gb_per_s: u64, parts: u64| {
            let rate = (gb_per_s.saturating_mul(1_000_000_000) / parts).max(1);
            let bandwidth = Bandwidth::bytes_per_second(rate).expect("one is not zero");
            Link { bandwidth, latency }
        };
        match self {
            Self::Flat => Ok(Network::flat(link(links_gb_per_s, 1))),
            Self::Nodes { devices, between_gb_per_s } => {
                let (inside, between) = (link(links_gb_per_s, 1), link(*between_gb_per_s, 1));
                let levels = [Level::new(Some(*devices), inside), Level::new(None, between)];
                Ok(Network::Levels(Levels::new(&levels)?))
            }
            Self::Torus(_) if devices == 1 => Ok(Network::flat(link(links_gb_per_s, TORUS_PORTS))),
            Self::Torus(sides) => {
                let cubic = cubic_torus(devices);
                let sides = if sides.is_empty() { &cubic } else { sides };
                Ok(Network::Torus(Torus::new(sides, link(links_gb_per_s, TORUS_PORTS))?))
            }
        }
    }
}

/// Why chips cannot be wired so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoNetwork {
    /// Sides that no torus has.
    #[error(transparent)]
    Torus(#[from] NoTorus),
    /// Nodes of no size.
    #[error(transparent)]
    Levels(#[from] NoLevels),
}

/// A space made ready: every point of it is a chip.
#[derive(Clone, Debug)]
pub struct ChipGrid {
    /// What chips are made in, with the constants that were asked for.
    pub technology: Technology,
    /// What a chip may take.
    pub budget: Budget,
    precision: Precision,
    generation: Generation,
    values: [Vec<u64>; N_CHIP_KNOBS],
}

impl ChipGrid {
    /// The grid of a space in the technology of its process; `None` where a knob has no values, one
    /// has more than can be counted, or the generation of memory is not known.
    pub fn new(space: &ChipSpace, of_process: &Technology) -> Option<Self> {
        let technology = space.technology(of_process);
        let values = CHIP_KNOBS.each_ref().map(|knob| {
            let listed = space.knobs.get(knob.name);
            listed.filter(|values| u16::try_from(values.len()).is_ok()).cloned()
        });
        let values: Vec<Vec<u64>> = values.into_iter().collect::<Option<_>>()?;
        let all_have_values = values.iter().all(|values| !values.is_empty());
        Some(Self {
            generation: technology.generation(&space.memory)?,
            budget: space.budget(),
            precision: space.precision,
            values: <[Vec<u64>; N_CHIP_KNOBS]>::try_from(values)
                .ok()
                .filter(|_| all_have_values)?,
            technology,
        })
    }

    /// How many values each knob has.
    pub fn lens(&self) -> [u16; N_CHIP_KNOBS] {
        self.values.each_ref().map(|values| u16::try_from(values.len()).unwrap_or(u16::MAX))
    }

    /// The values of a knob, ascending.
    pub fn values(&self, knob: usize) -> &[u64] {
        &self.values[knob]
    }

    /// The chip whose knobs have the values at these places.
    pub fn chip(&self, places: &[u16; N_CHIP_KNOBS]) -> ChipKnobs {
        let mut chip = ChipKnobs {
            precision: self.precision,
            tensor_cores: 1,
            width: 1,
            depth: 1,
            vector_cores: 1,
            vector_width: 1,
            glb_mib: 1,
            glb_bytes_per_cycle: 1,
            clock_mhz: 1,
            generation: self.generation,
            stacks: 1,
            links_gb_per_s: 1,
        };
        for ((knob, values), &place) in CHIP_KNOBS.iter().zip(&self.values).zip(places) {
            (knob.set)(&mut chip, values[usize::from(place)]);
        }
        chip
    }

    /// Where a chip stands in the grid; `None` where it is none of it.
    pub fn place(&self, chip: &ChipKnobs) -> Option<[u16; N_CHIP_KNOBS]> {
        let mut places = [0; N_CHIP_KNOBS];
        for ((place, knob), values) in places.iter_mut().zip(&CHIP_KNOBS).zip(&self.values) {
            *place = u16::try_from(values.binary_search(&(knob.get)(chip)).ok()?).ok()?;
        }
        let alike = (chip.precision, chip.generation) == (self.precision, self.generation);
        alike.then_some(places)
    }
}

/// The place of a knob in [`CHIP_KNOBS`].
pub fn knob_place(name: &str) -> Option<usize> {
    CHIP_KNOBS.iter().position(|knob| knob.name == name)
}

/// What is searched of a knob unless something else is asked for.
fn default_values(knob: &str) -> Vec<u64> {
    let powers = |from: u64, to: u64| -> Vec<u64> {
        std::iter::successors(Some(from), |value| Some(value * 2))
            .take_while(|value| *value <= to)
            .collect()
    };
    match knob {
        "tensor_cores" => quarter_octaves(),
        "width" | "depth" => powers(32, 256),
        "vector_cores" => powers(1, 4096),
        "vector_width" => powers(64, 2048),
        "glb_mib" => powers(8, 256),
        "glb_bytes_per_cycle" => powers(2048, 16_384),
        "clock_mhz" => (9..=18).map(|tenths| tenths * 100).collect(),
        "stacks" => (1..=6).collect(),
        // By half octaves, rounded.
        _ => vec![25, 35, 50, 71, 100, 141, 200, 283, 400, 566, 800, 1131, 1600],
    }
}

/// One to seven, then four steps in each doubling up to 4,096, rounded.
fn quarter_octaves() -> Vec<u64> {
    // 8 · 2^(k/4), in thousandths.
    let steps = [8000_u64, 9514, 11_314, 13_454];
    let octaves = (0..9).flat_map(|octave| steps.map(|step| ((step << octave) + 500) / 1000));
    (1..8).chain(octaves).chain([4096]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::LinkTier;
    use super::super::properties::example;
    use super::super::properties::technology;
    use super::*;

    #[test]
    fn the_default_space_has_a_billion_chips() {
        let technology = technology();
        let space = ChipSpace::default_of(&technology);
        assert_eq!(space.points(), 1_027_952_640);
        assert_eq!(space.knobs["tensor_cores"].len(), 44);
        let ascending = |values: &Vec<u64>| values.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(space.knobs.values().all(ascending));
        let grid = ChipGrid::new(&space, &technology).unwrap();
        assert_eq!(grid.lens().map(u128::from).iter().product::<u128>(), space.points());
    }

    #[test]
    fn chips_and_places_are_the_same_thing() {
        let technology = technology();
        let grid = ChipGrid::new(&ChipSpace::default_of(&technology), &technology).unwrap();
        let places = [9, 2, 1, 5, 2, 3, 1, 7, 4, 10];
        assert_eq!(grid.place(&grid.chip(&places)), Some(places));
        assert_eq!(grid.place(&ChipKnobs { tensor_cores: 33, ..example() }), None);
        let last = grid.chip(&grid.lens().map(|len| len - 1));
        assert_eq!((last.tensor_cores, last.clock_mhz, last.links_gb_per_s), (4096, 1800, 1600));
    }

    #[test]
    fn a_torus_shares_links_among_six_ports_and_a_switch_has_them_all() {
        let rate = |network: Network| network.nearest_bandwidth().as_bytes_per_second();
        let torus = ChipNetwork::Torus(Vec::new()).of(600, 64, Time(7)).unwrap();
        assert_eq!(torus, super::super::torus_of_links(600, 64, Time(7)));
        assert_eq!(rate(ChipNetwork::Flat.of(600, 64, Time(7)).unwrap()), 600_000_000_000);
        let flat = ChipNetwork::Torus(vec![2, 32]).of(600, 64, Time(7)).unwrap();
        assert!(matches!(flat, Network::Torus(torus) if torus.dims().eq([2, 32])));
        assert!(ChipNetwork::Torus(vec![0, 2]).of(600, 64, Time(7)).is_err());
        let nodes = |devices| ChipNetwork::Nodes { devices, between_gb_per_s: 50 };
        let network = nodes(8).of(600, 64, Time(7)).unwrap();
        assert_eq!(rate(network), 600_000_000_000);
        assert_eq!(network.slowest_link().bandwidth.as_bytes_per_second(), 50_000_000_000);
        assert_eq!(
            LinkTier::of_network(&network, 600),
            [(600, LinkTier::ScaleUp), (50, LinkTier::ScaleOut)]
        );
        assert!(nodes(0).of(600, 64, Time(7)).is_err());
    }

    #[test]
    fn constants_are_those_that_were_asked_for() {
        let technology = technology();
        let mut space = ChipSpace::default_of(&technology);
        space.constants.insert("cost.usd_per_kwh".into(), 123);
        assert_eq!(space.technology(&technology).value(Constant::KilowattHour), 123);
    }
}

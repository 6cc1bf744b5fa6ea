//! Spaces of chips: the `[space]` section of a request that names knobs of whole chips and their largest
//! die, and its `[chip]` section, which holds the process, watts, dollars, the network and what money costs.

use serde::Deserialize;
use toml::Value;

use super::InputError;
use super::numbers::Field;
use super::space;
use super::space::RawSpace;
use super::technology;
use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::ChipKnob;
use crate::hardware::chip::ChipNetwork;
use crate::hardware::chip::ChipSpace;
use crate::hardware::network::Levels;
use crate::hardware::technology::Constant;
use crate::model::Precision;

/// Which designs are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceKind {
    /// Cores and buffers of the published evaluation, at 22 nm.
    Published,
    /// Whole chips under one budget.
    Chips,
}

/// The names of the spaces.
pub const SPACES: [(&str, SpaceKind); 2] =
    [("chips", SpaceKind::Chips), ("published", SpaceKind::Published)];

/// The `[chip]` section as it is written; what is left out is as the technology says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[expect(missing_docs, reason = "the commented example describes every key")]
pub struct ChipTable {
    pub process_nm: Option<u64>,
    pub precision: Option<String>,
    pub memory: Option<String>,
    pub tdp_w: Option<f64>,
    pub price_usd: Option<f64>,
    pub network: Option<String>,
    pub devices_per_node: Option<u64>,
    pub between_gb_per_s: Option<u64>,
    pub margin: Option<f64>,
    pub volume: Option<f64>,
    pub usd_per_kwh: Option<f64>,
    pub years: Option<f64>,
    pub usd_per_gb_per_s: Option<f64>,
    pub usd_per_gb_per_s_between: Option<f64>,
}

impl ChipTable {
    /// The first key that is set.
    pub fn first_key(&self) -> Option<&'static str> {
        let set = [
            ("process_nm", self.process_nm.is_some()),
            ("precision", self.precision.is_some()),
            ("memory", self.memory.is_some()),
            ("tdp_w", self.tdp_w.is_some()),
            ("price_usd", self.price_usd.is_some()),
            ("network", self.network.is_some()),
            ("devices_per_node", self.devices_per_node.is_some()),
            ("between_gb_per_s", self.between_gb_per_s.is_some()),
            ("margin", self.margin.is_some()),
            ("volume", self.volume.is_some()),
            ("usd_per_kwh", self.usd_per_kwh.is_some()),
            ("years", self.years.is_some()),
            ("usd_per_gb_per_s", self.usd_per_gb_per_s.is_some()),
            ("usd_per_gb_per_s_between", self.usd_per_gb_per_s_between.is_some()),
        ];
        set.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }

    /// The space that this and `knobs` describe; `file` is where they were written.
    pub fn space(&self, knobs: &RawSpace, file: &str) -> Result<ChipSpace, InputError> {
        let field = |name: &str| Field::new(file, &format!("chip.{name}"));
        let process = self.process_nm.unwrap_or(technology::DEFAULT_PROCESS);
        let technology = technology::of_process(process, file, "chip.process_nm")?;
        let mut found = ChipSpace::default_of(&technology);
        found.precision = self.precision(file)?;
        if let Some(memory) = &self.memory {
            technology::generation(&technology, memory, file)?;
            found.memory.clone_from(memory);
        }
        if let Some(watts) = self.tdp_w {
            found.tdp_mw = field("tdp_w").scaled(watts, 1e3, 1.0, 1e5)?;
        }
        if let Some(dollars) = self.price_usd {
            let cents = field("price_usd").scaled(dollars, 1e2, 1.0, 1e7)?;
            found.max_price_cents = Some(cents);
        }
        found.network = self.wired(file)?;
        let in_nodes = matches!(found.network, ChipNetwork::Nodes { .. });
        // Links of chips in nodes lead no further than their node.
        let links = if in_nodes { &LINK_PRICES[..1] } else { &LINK_PRICES };
        let constants = [
            ("margin", self.margin, &[Constant::Margin][..]),
            ("volume", self.volume, &[Constant::Volume]),
            ("usd_per_kwh", self.usd_per_kwh, &[Constant::KilowattHour]),
            ("years", self.years, &[Constant::Years]),
            ("usd_per_gb_per_s", self.usd_per_gb_per_s, links),
            ("usd_per_gb_per_s_between", self.usd_per_gb_per_s_between, &LINK_PRICES[1..]),
        ];
        for (name, value, constants) in constants {
            let Some(value) = value else { continue };
            for constant in constants {
                let row = constant.row();
                let (low, high) = (*row.range.start(), *row.range.end());
                let value = field(name).scaled(value, row.factor, low, high)?;
                found.constants.insert(row.name.to_owned(), value);
            }
        }
        found.bought = self.margin.is_some();
        knobs.set_chip_knobs(&mut found, file)?;
        Ok(found)
    }

    /// How chips are wired.
    fn wired(&self, file: &str) -> Result<ChipNetwork, InputError> {
        let field = |name: &str| Field::new(file, &format!("chip.{name}"));
        let of_nodes = [
            ("devices_per_node", self.devices_per_node.map(|count| count.to_string())),
            ("between_gb_per_s", self.between_gb_per_s.map(|rate| rate.to_string())),
            ("usd_per_gb_per_s_between", self.usd_per_gb_per_s_between.map(|usd| usd.to_string())),
        ];
        let mut given = of_nodes.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let given = given.next();
        match (self.network.as_deref(), given) {
            (None, None) => Ok(ChipNetwork::Torus(Vec::new())),
            (None | Some(NODES), _) => {
                let devices = self.devices_per_node.unwrap_or(USUAL_NODE);
                let between = self.between_gb_per_s.unwrap_or(USUAL_CARD);
                Ok(ChipNetwork::Nodes {
                    devices: field("devices_per_node").whole(devices, 2, Levels::LARGEST)?,
                    between_gb_per_s: field("between_gb_per_s").whole(between, 1, FASTEST_CARD)?,
                })
            }
            (Some(network), None) => network_of(network, &field("network")),
            (Some(network), Some((name, value))) => {
                network_of(network, &field("network"))?;
                let problem = format!("is of chips in nodes, and the network is {network}");
                Err(field(name).value(value, &problem, "leave it out, or make the network nodes"))
            }
        }
    }

    fn precision(&self, file: &str) -> Result<Precision, InputError> {
        let Some(found) = self.precision.as_deref() else { return Ok(Precision::default()) };
        Precision::named(found).ok_or_else(|| InputError::Unknown {
            file: file.to_owned(),
            what: "precision".into(),
            found: found.to_owned(),
            known: Precision::ALL.map(|known| known.name().to_owned()).to_vec(),
        })
    }
}

/// The name of a network of nodes.
const NODES: &str = "nodes";

/// Chips of a node, and GB/s of the card of each, where they are not given: as of nodes of H100.
const USUAL_NODE: u64 = 8;
const USUAL_CARD: u64 = 50;

/// The fastest card, in GB/s.
pub(super) const FASTEST_CARD: u64 = 1 << 20;

/// What a GB/s of links costs, whether inside a node or between nodes.
const LINK_PRICES: [Constant; 2] = [Constant::ScaleUpLink, Constant::ScaleOutLink];

/// What one reticle exposes.
const LARGEST_MM2: f64 = 858.0;

/// `flat`, `torus`, or the sides of a torus such as `8x8x16`; nodes have keys of their own.
fn network_of(word: &str, field: &Field) -> Result<ChipNetwork, InputError> {
    match word {
        "flat" => return Ok(ChipNetwork::Flat),
        "torus" => return Ok(ChipNetwork::Torus(Vec::new())),
        _ => {}
    }
    let sides: Result<Vec<u64>, _> = word.split('x').map(str::parse).collect();
    match sides {
        Ok(sides) if (1..=3).contains(&sides.len()) => Ok(ChipNetwork::Torus(sides)),
        _ => Err(field.value(
            word,
            "is no network",
            "give torus, its sides as 8x8x16, flat, or nodes",
        )),
    }
}

impl RawSpace {
    /// Which space it is: the one that it names, or the published one where it sets what only that
    /// one has, else that of chips.
    pub fn kind(&self, file: &str) -> Result<SpaceKind, InputError> {
        let Some(name) = self.get(space::NAME) else {
            let (published, chips) = (space::keys(), chip_keys());
            let only = |of: &[String], not: &[String]| {
                let knows = |keys: &[String], key: &str| keys.iter().any(|known| known == key);
                self.keys().find(|key| knows(of, key) && !knows(not, key))
            };
            return match (only(&published, &chips), only(&chips, &published)) {
                (Some(one), Some(other)) => {
                    let problem = format!(
                        "is a knob of the published space, and `space.{other}` of that of chips"
                    );
                    let field = Field::new(file, &format!("space.{one}"));
                    let found = self.get(one).map_or_else(String::new, ToString::to_string);
                    Err(field.value(&found, &problem, "leave one of them out"))
                }
                (Some(_), None) => Ok(SpaceKind::Published),
                (None, _) => Ok(SpaceKind::Chips),
            };
        };
        let name = name.as_str().unwrap_or_default();
        let found = SPACES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        found.ok_or_else(|| InputError::Unknown {
            file: file.to_owned(),
            what: "space".into(),
            found: name.to_owned(),
            known: SPACES.map(|(name, _)| name.to_owned()).to_vec(),
        })
    }

    /// Sets the knobs of a space of chips, and the largest die, to what this section gives them.
    pub fn set_chip_knobs(&self, to: &mut ChipSpace, file: &str) -> Result<(), InputError> {
        if let Some(mm2) = self.max_area_nm2(file, (1.0, LARGEST_MM2))? {
            to.max_area_nm2 = mm2;
        }
        let mut set: Vec<(&str, &str)> = Vec::new();
        for key in self.keys().filter(|key| ![space::NAME, space::MAX_AREA].contains(key)) {
            let value = self.get(key).expect("a key of the section");
            let (knob, unit) = knob_named(key).ok_or_else(|| InputError::Unknown {
                file: file.to_owned(),
                what: "key of [space]".into(),
                found: key.to_owned(),
                known: chip_keys(),
            })?;
            let field = Field::new(file, &format!("space.{key}"));
            if let Some((other, _)) = set.iter().find(|(_, name)| *name == knob.name) {
                let problem = format!("sets the knob that `space.{other}` sets");
                return Err(field.value(&value.to_string(), &problem, "give one of them"));
            }
            set.push((key, knob.name));
            let known = to.knobs.get(knob.name).cloned().unwrap_or_default();
            let reading = Reading { field, knob, unit };
            to.knobs.insert(knob.name.to_owned(), reading.values(value, &known)?);
        }
        Ok(())
    }
}

/// What the section may hold where it is one of chips.
pub fn chip_keys() -> Vec<String> {
    let names = CHIP_KNOBS.iter().map(|knob| knob.name.to_owned());
    names.chain(["clock", space::MAX_AREA, space::NAME].map(str::to_owned)).collect()
}

/// The knob that users call so, and how many of its unit one of theirs is: a clock may be given in
/// GHz.
fn knob_named(key: &str) -> Option<(&'static ChipKnob, f64)> {
    match key {
        "clock" => ChipKnob::named("clock_mhz").map(|knob| (knob, 1000.0)),
        _ => ChipKnob::named(key).map(|knob| (knob, 1.0)),
    }
}

/// Reads the values of one knob.
struct Reading {
    field: Field,
    knob: &'static ChipKnob,
    unit: f64,
}

impl Reading {
    /// The values, ascending, each once; a range takes those of `known` between its ends.
    fn values(&self, found: &Value, known: &[u64]) -> Result<Vec<u64>, InputError> {
        let mut values = match found {
            Value::Array(list) if list.is_empty() => {
                return Err(self.field.value("[]", "has no value", &self.allowed()));
            }
            Value::Array(list) => {
                list.iter().map(|value| self.one(value)).collect::<Result<_, _>>()?
            }
            Value::Integer(_) | Value::Float(_) => vec![self.one(found)?],
            Value::Table(ends) => self.between(ends, known)?,
            _ => {
                let problem = "is no list of values";
                return Err(self.field.value(&found.to_string(), problem, &self.allowed()));
            }
        };
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    fn between(&self, ends: &toml::Table, known: &[u64]) -> Result<Vec<u64>, InputError> {
        let end = |name: &str| ends.get(name).map(|value| self.one(value)).transpose();
        let shown = || Value::Table(ends.clone()).to_string();
        let (Some(from), Some(to), 2) = (end("from")?, end("to")?, ends.len()) else {
            return Err(self.field.value(&shown(), "is no range", &self.allowed()));
        };
        if from > to {
            let problem = "ends before it begins";
            return Err(self.field.value(&shown(), problem, "give the smaller end first"));
        }
        let values: Vec<u64> =
            known.iter().copied().filter(|value| (from..=to).contains(value)).collect();
        if values.is_empty() {
            let known = known.iter().map(|&value| (value as f64 / self.unit).to_string());
            let known: Vec<String> = known.collect();
            let allowed = format!("the knob has {}", known.join(", "));
            return Err(self.field.value(&shown(), "holds no value of the knob", &allowed));
        }
        Ok(values)
    }

    /// A number in the unit of the user, as whole numbers of the unit of the knob.
    fn one(&self, found: &Value) -> Result<u64, InputError> {
        let number = match found {
            Value::Integer(value) => *value as f64,
            Value::Float(value) => *value,
            _ => return Err(self.field.value(&found.to_string(), "is no number", &self.allowed())),
        };
        let (low, high) = (*self.knob.range.start() as f64, *self.knob.range.end() as f64);
        let whole = (number * self.unit).round();
        if !(low..=high).contains(&whole) {
            return Err(self.field.value(&found.to_string(), "is out of range", &self.allowed()));
        }
        // A thousandth of the unit is rounding of decimals, more is not a whole number.
        if (number * self.unit - whole).abs() > 1e-3 {
            let problem = "is not a whole number of its unit";
            return Err(self.field.value(&found.to_string(), problem, &self.allowed()));
        }
        self.field.scaled(whole, 1.0, low, high)
    }

    fn allowed(&self) -> String {
        let (low, high) = (self.knob.range.start(), self.knob.range.end());
        let numbers = match (self.unit > 1.0, self.knob.unit) {
            (true, _) => {
                let [low, high] = [low, high].map(|end| *end as f64 / self.unit);
                format!("numbers from {low} to {high} GHz in steps of 0.001")
            }
            (false, "") => format!("whole numbers from {low} to {high}"),
            (false, unit) => format!("whole numbers from {low} to {high} {unit}"),
        };
        format!(
            "allowed are {numbers}, one or a list, and a range such as \
             {{ from = 2, to = 64 }}, which takes the knob's values between its ends"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(section: &str) -> Result<ChipSpace, String> {
        let raw: RawSpace = toml::from_str(section).map_err(|error| error.to_string())?;
        ChipTable::default().space(&raw, "r.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn knobs_are_lists_or_the_values_between_two_ends() {
        let found =
            read("stacks = 4\nlinks = [400, 200]\nclock = { from = 1.4, to = 1.8 }").unwrap();
        assert_eq!(found.knobs["stacks"], [4]);
        assert_eq!(found.knobs["links"], [200, 400]);
        assert_eq!(found.knobs["clock_mhz"], [1400, 1500, 1600, 1700, 1800]);
        assert_eq!(read("clock_mhz = 1450").unwrap().knobs["clock_mhz"], [1450]);
    }

    #[test]
    fn impossible_values_are_refused_by_name() {
        for (line, expected) in [
            ("stacks = []", "`space.stacks = []` has no value"),
            ("stacks = 0", "`space.stacks = 0` is out of range"),
            ("stacks = 1.5", "is not a whole number of its unit"),
            ("links = \"many\"", "is no list of values"),
            ("clock = { from = 3, to = 4 }", "holds no value of the knob"),
            (
                "max_area_mm2 = 900",
                "`space.max_area_mm2 = 900` is out of range; allowed are 1 to 858",
            ),
            ("max_area_mm2 = [600]", "is no number"),
            ("stakcs = 4", "unknown key of [space] `stakcs` (did you mean `stacks`?)"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.starts_with("r.toml: ") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_name_chooses_the_space_and_what_only_one_has_does_too() {
        let kind = |text: &str| {
            let raw: RawSpace = toml::from_str(text).unwrap();
            raw.kind("r.toml").map_err(|error| error.to_string())
        };
        assert_eq!(kind(""), Ok(SpaceKind::Chips));
        assert_eq!(kind("width = 128\nmax_area_mm2 = 600"), Ok(SpaceKind::Chips));
        assert_eq!(kind("hbm_gib = 32"), Ok(SpaceKind::Published));
        assert_eq!(kind("name = \"published\"\nwidth = 128"), Ok(SpaceKind::Published));
        assert!(kind("name = \"chip\"").unwrap_err().contains("did you mean `chips`?"));
    }

    #[test]
    fn a_budget_and_prices_are_those_that_were_given() {
        let table: ChipTable = toml::from_str(
            "process_nm = 7\ntdp_w = 450\nprice_usd = 3000\nyears = 5\n\
             usd_per_gb_per_s = 20\nnetwork = \"4x4x4\"\nmargin = 0.5\n",
        )
        .unwrap();
        let largest: RawSpace = toml::from_str("max_area_mm2 = 600").unwrap();
        let found = table.space(&largest, "r.toml").unwrap();
        assert_eq!((found.process_nm, found.tdp_mw), (7, 450_000));
        assert_eq!(found.max_area_nm2, 600_000_000_000_000);
        assert_eq!(found.max_price_cents, Some(300_000));
        assert_eq!(found.network, ChipNetwork::Torus(vec![4, 4, 4]));
        assert!(found.bought);
        assert_eq!(found.constants["cost.years"], 5000);
        assert_eq!(found.constants["cost.scale_out_usd_per_gb_per_s"], 2000);
        let nodes: ChipTable =
            toml::from_str("between_gb_per_s = 25\nusd_per_gb_per_s = 20").unwrap();
        let nodes = nodes.space(&RawSpace::default(), "r.toml").unwrap();
        assert_eq!(nodes.network, ChipNetwork::Nodes { devices: 8, between_gb_per_s: 25 });
        // What links cost inside a node says nothing of the cards that leave it.
        assert_eq!(nodes.constants["cost.scale_up_usd_per_gb_per_s"], 2000);
        assert_eq!(nodes.constants.len(), 1);
        for (text, expected) in [
            ("process_nm = 6", "`chip.process_nm = 6` is a process without a table"),
            ("tdp_w = -3", "`chip.tdp_w = -3` is out of range"),
            ("usd_per_kwh = -0.1", "`chip.usd_per_kwh = -0.1` is out of range"),
            ("network = \"mesh\"", "is no network; give torus"),
            (
                "network = \"flat\"\ndevices_per_node = 8",
                "is of chips in nodes, and the network is flat",
            ),
            (
                "usd_per_gb_per_s_between = 9\nnetwork = \"4x4\"",
                "and the network is 4x4; leave it out",
            ),
            (
                "devices_per_node = 1",
                "`chip.devices_per_node = 1` is out of range; allowed are 2 to",
            ),
            ("between_gb_per_s = 0", "`chip.between_gb_per_s = 0` is out of range"),
            ("precision = \"fp9\"", "unknown precision `fp9`; known are bf16, fp8"),
            ("memory = \"hbm9\"", "unknown generation of memory `hbm9`"),
        ] {
            let table: ChipTable = toml::from_str(text).unwrap();
            let error = table.space(&RawSpace::default(), "r.toml").unwrap_err().to_string();
            assert!(error.starts_with("r.toml: ") && error.contains(expected), "{error}");
        }
    }
}

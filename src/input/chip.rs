//! The `[chip]` table of a hardware file: how the part is made, and what is public of it.

use serde::Deserialize;

use super::InputError;
use super::numbers::Field;
use super::technology;
use crate::hardware::chip::Die;
use crate::hardware::chip::GivenEnergies;
use crate::hardware::chip::Making;
use crate::hardware::chip::Multiprocessors;
use crate::hardware::chip::PublishedFigures;
use crate::hardware::chip::Sourced;
use crate::hardware::technology::MemoryConstant;
use crate::model::Precision;
use crate::units::Area;
use crate::units::Bytes;
use crate::units::Money;
use crate::units::Power;

/// The table as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawChip {
    process_nm: Option<u64>,
    memory: Option<String>,
    stacks: Option<u64>,
    sites: Option<u64>,
    stack_gib: Option<u64>,
    links_gb_per_s: Option<f64>,
    #[serde(default)]
    fp8: bool,
    multiprocessors: Option<RawMultiprocessors>,
    #[serde(default)]
    dies: Vec<RawDie>,
    #[serde(default)]
    published: RawPublished,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawMultiprocessors {
    physical: u64,
    registers_kib: u64,
    l1_kib: u64,
    l2_mib: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawDie {
    mm2: f64,
    count: u64,
    process_nm: Option<u64>,
    on_interposer: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawPublished {
    die_mm2: Option<RawFigure>,
    die_below_mm2: Option<RawFigure>,
    tdp_w: Option<RawFigure>,
    mean_w: Option<RawFigure>,
    max_w: Option<RawFigure>,
    host_w: Option<RawFigure>,
    cost_usd: Option<RawFigure>,
    price_usd: Option<RawFigure>,
    rent_usd_per_hour: Option<RawFigure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with value and source")]
struct RawFigure {
    value: f64,
    source: String,
}

/// What must be said together so that die, power and cost follow.
const ENOUGH: &str = "a chip needs process_nm, memory, stacks and links_gb_per_s together";

impl RawChip {
    /// How the part is made, where the table says enough, and what is public of it.
    pub(super) fn read(
        &self,
        energies: GivenEnergies,
        file: &str,
    ) -> Result<(Option<Making>, PublishedFigures), InputError> {
        let published = self.published.read(file)?;
        let silent = self.process_nm.is_none()
            && self.memory.is_none()
            && self.stacks.is_none()
            && self.sites.is_none()
            && self.links_gb_per_s.is_none()
            && self.multiprocessors.is_none()
            && self.dies.is_empty();
        if silent {
            return Ok((None, published));
        }
        Ok((Some(self.making(energies, file)?), published))
    }

    fn making(&self, energies: GivenEnergies, file: &str) -> Result<Making, InputError> {
        let field = |name: &str| Field::new(file, &format!("chip.{name}"));
        let given =
            |name: &str, value: Option<u64>| value.ok_or_else(|| field(name).missing(ENOUGH));
        let process = given("process_nm", self.process_nm)?;
        let technology = technology::of_process(process, file, "chip.process_nm")?;
        let memory = self.memory.as_ref().ok_or_else(|| field("memory").missing(ENOUGH))?;
        let generation = technology::generation(&technology, memory, file)?;
        let stacks = field("stacks").whole(given("stacks", self.stacks)?, 0, 1 << 10)?;
        let sites = field("sites").whole(self.sites.unwrap_or(stacks), stacks, 1 << 10)?;
        let stack = self
            .stack_gib
            .unwrap_or_else(|| technology.memory(generation).value(MemoryConstant::Size));
        let stack = Bytes::GIB * field("stack_gib").whole(stack, 1, 1 << 16)?;
        let links = self.links_gb_per_s.ok_or_else(|| field("links_gb_per_s").missing(ENOUGH))?;
        // Whole GB/s, a started one counted whole.
        let links = field("links_gb_per_s").scaled(links.ceil(), 1.0, 0.0, 1e6)?;
        let mut dies = Vec::new();
        for (place, die) in self.dies.iter().enumerate() {
            dies.push(die.read(process, file, place)?);
        }
        let multiprocessors = match &self.multiprocessors {
            None => None,
            Some(own) => Some(own.read(file)?),
        };
        let precision = if self.fp8 { Precision::Fp8 } else { Precision::Bf16 };
        Ok(Making {
            technology,
            precision,
            generation,
            sites,
            stacks,
            stack,
            links_gb_per_s: links,
            multiprocessors,
            dies,
            energies,
        })
    }
}

impl RawMultiprocessors {
    fn read(&self, file: &str) -> Result<Multiprocessors, InputError> {
        let field = |name: &str| Field::new(file, &format!("chip.multiprocessors.{name}"));
        let registers = field("registers_kib").whole(self.registers_kib, 0, 1 << 20)?;
        let l1 = field("l1_kib").whole(self.l1_kib, 0, 1 << 20)?;
        Ok(Multiprocessors {
            physical: field("physical").whole(self.physical, 1, 1 << 16)?,
            local: Bytes::KIB * (registers + l1),
            cache: Bytes::MIB * field("l2_mib").whole(self.l2_mib, 0, 1 << 20)?,
        })
    }
}

impl RawDie {
    fn read(&self, process: u64, file: &str, place: usize) -> Result<Die, InputError> {
        let name = |key: &str| format!("chip.dies[{}].{key}", place + 1);
        let field = |key: &str| Field::new(file, &name(key));
        let process = self.process_nm.unwrap_or(process);
        Ok(Die {
            area: Area(field("mm2").scaled(self.mm2, 1e12, 0.1, 858.0)?),
            count: field("count").whole(self.count, 1, 64)?,
            technology: technology::of_process(process, file, &name("process_nm"))?,
            on_interposer: self.on_interposer.unwrap_or(true),
        })
    }
}

impl RawPublished {
    fn read(&self, file: &str) -> Result<PublishedFigures, InputError> {
        let figure = |name: &str, found: &Option<RawFigure>, factor: f64, high: f64| {
            let Some(found) = found else { return Ok(None) };
            let field = |key: &str| Field::new(file, &format!("chip.published.{name}.{key}"));
            if found.source.trim().is_empty() {
                return Err(field("source").missing("say who published it"));
            }
            let value = field("value").scaled(found.value, factor, 0.0, high)?;
            Ok(Some((value, found.source.clone())))
        };
        let area = |name, found| Ok(figure(name, found, 1e12, 1e5)?.map(sourced(Area)));
        let power = |name, found| Ok(figure(name, found, 1e3, 1e5)?.map(sourced(Power)));
        let money = |name, found| Ok(figure(name, found, 1e2, 1e7)?.map(sourced(Money)));
        Ok(PublishedFigures {
            die: area("die_mm2", &self.die_mm2)?,
            die_below: area("die_below_mm2", &self.die_below_mm2)?,
            tdp: power("tdp_w", &self.tdp_w)?,
            mean_power: power("mean_w", &self.mean_w)?,
            max_power: power("max_w", &self.max_w)?,
            host_power: power("host_w", &self.host_w)?,
            cost: money("cost_usd", &self.cost_usd)?,
            price: money("price_usd", &self.price_usd)?,
            rent: money("rent_usd_per_hour", &self.rent_usd_per_hour)?,
        })
    }
}

/// A figure in its unit.
fn sourced<T>(unit: impl Fn(u64) -> T) -> impl Fn((u64, String)) -> Sourced<T> {
    move |(value, source)| Sourced { value: unit(value), source }
}

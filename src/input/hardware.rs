//! Hardware files: a design and the physics it is built in, built-in or a user's own.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::InputError;
use super::chip::RawChip;
use super::efficiency::RawEfficiency;
use super::network::RawNetwork;
use super::network::rate;
use super::numbers::Field;
use super::numbers::syntax;
use crate::compare::References;
use crate::hardware::ChipEnergies;
use crate::hardware::Design;
use crate::hardware::Efficiency;
use crate::hardware::HbmBandwidth;
use crate::hardware::Physics;
use crate::hardware::Port;
use crate::hardware::chip::GivenEnergies;
use crate::hardware::chip::Making;
use crate::hardware::chip::PublishedFigures;
use crate::model::Precision;
use crate::parallel::frameworks::Framework;
use crate::units::Bytes;
use crate::units::Frequency;

/// A design together with the physics it is built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// What the user calls it: a preset's name or a file's.
    pub name: String,
    /// What it is, in a sentence.
    pub summary: String,
    /// Its knobs.
    pub design: Design,
    /// Its constants.
    pub physics: Physics,
    /// What trains on it mostly, where one framework does.
    pub framework: Option<Framework>,
    /// How it is made, where its file says enough to tell its die, power and cost.
    pub making: Option<Making>,
    /// What is public of it.
    pub published: PublishedFigures,
    /// Whether its arrays compute in 8 bits: its file says what they reach then.
    pub fp8: bool,
}

impl Hardware {
    /// The same with the energies of the process that it is made in.
    ///
    /// # Errors
    /// A clock that no supply of the process reaches; `place` is what held the name.
    pub fn in_process(mut self, place: &str) -> Result<Self, InputError> {
        if let Some(making) = &self.making {
            self.physics = making.physics(&self.design, &self.physics).map_err(|reason| {
                let field = Field::new(place, "physics.clock_ghz");
                let ghz = self.physics.clock.as_hertz() as f64 / 1e9;
                let allowed = "lower the clock, or leave out the table [chip]";
                field.value(&ghz.to_string(), &format!("cannot be: {reason}"), allowed)
            })?;
        }
        Ok(self)
    }
}

/// The built-in hardware files, by name.
const PRESETS: [(&str, &str); 16] = [
    ("icml24", include_str!("../../inputs/hardware/icml24.toml")),
    ("tpuv4-like", BASE),
    ("tpuv4", include_str!("../../inputs/hardware/tpuv4.toml")),
    ("a100-40g", include_str!("../../inputs/hardware/a100-40g.toml")),
    ("a100-80g", include_str!("../../inputs/hardware/a100-80g.toml")),
    ("h100-sxm", include_str!("../../inputs/hardware/h100-sxm.toml")),
    ("h200-sxm", include_str!("../../inputs/hardware/h200-sxm.toml")),
    ("h800-sxm", include_str!("../../inputs/hardware/h800-sxm.toml")),
    ("b200", include_str!("../../inputs/hardware/b200.toml")),
    ("l40s", include_str!("../../inputs/hardware/l40s.toml")),
    ("mi300x", include_str!("../../inputs/hardware/mi300x.toml")),
    ("gaudi3", include_str!("../../inputs/hardware/gaudi3.toml")),
    ("trainium2", include_str!("../../inputs/hardware/trainium2.toml")),
    ("tpuv5e", include_str!("../../inputs/hardware/tpuv5e.toml")),
    ("tpuv5p", include_str!("../../inputs/hardware/tpuv5p.toml")),
    ("tpuv6e", include_str!("../../inputs/hardware/tpuv6e.toml")),
];

/// The file whose physics and network stand in for what another leaves out.
const BASE: &str = include_str!("../../inputs/hardware/tpuv4-like.toml");

/// The names of the built-in hardware.
pub fn preset_names() -> Vec<String> {
    PRESETS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// The text of a built-in hardware file.
pub fn preset_text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Built-in hardware; an unknown name is answered with the known ones. `place` is what held the
/// name, such as an option.
pub fn preset(name: &str, place: &str) -> Result<Hardware, InputError> {
    let text = preset_text(name).ok_or_else(|| InputError::Unknown {
        file: place.to_owned(),
        what: "hardware".into(),
        found: name.to_owned(),
        known: preset_names(),
    })?;
    hardware(text, name)
}

/// The accelerators that winners are compared with.
///
/// # Errors
/// Never: they are built in.
pub fn references() -> Result<References, InputError> {
    let real = preset("tpuv4", "baseline")?;
    Ok(References {
        tpuv4_like: preset("tpuv4-like", "baseline")?.design,
        tpuv4: (real.design, real.physics),
    })
}

impl Hardware {
    /// Refuses a precision that its arrays do not compute in; `field` is what asked for it.
    pub(super) fn computes_in(
        &self,
        precision: Precision,
        field: &Field,
    ) -> Result<(), InputError> {
        if precision == Precision::Bf16 || self.fp8 {
            return Ok(());
        }
        let problem = format!("is not what {} computes in", self.name);
        let allowed = "take bf16, or hardware whose file gives `efficiency.matmul_fp8`";
        Err(field.value(precision.name(), &problem, allowed))
    }
}

/// Reads the text of a hardware file that goes by the name `file`.
pub fn hardware(text: &str, file: &str) -> Result<Hardware, InputError> {
    let base = raw(BASE, "tpuv4-like")?;
    let mut found = raw(text, file)?;
    let energies = found.physics.given_energies(file)?;
    found.physics.fill_in(base.physics);
    if found.network.is_absent() {
        found.network = base.network;
    }
    let mut physics = physics(&found, file)?;
    if let Some(block) = &found.efficiency {
        (physics.efficiency, physics.calibrations) = block.read(file)?;
    }
    let gib = found.memory.hbm_gib;
    physics.hbm.knows(gib).map_err(|unknown| {
        let field = Field::new(file, "memory.hbm_gib");
        field.value(&gib.to_string(), &unknown.problem(), &unknown.allowed())
    })?;
    let (making, published) = found.chip.read(energies, file)?;
    Ok(Hardware {
        name: file.to_owned(),
        summary: found.summary.clone(),
        framework: found.launchable.as_deref().map(|name| framework(name, file)).transpose()?,
        design: design(&found, file)?,
        fp8: found.efficiency.as_ref().is_some_and(RawEfficiency::has_fp8),
        physics,
        making,
        published,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawFile {
    #[serde(default)]
    summary: String,
    launchable: Option<String>,
    cores: RawCores,
    memory: RawMemory,
    #[serde(default)]
    physics: RawPhysics,
    #[serde(default)]
    network: RawNetwork,
    #[serde(default)]
    chip: RawChip,
    efficiency: Option<RawEfficiency>,
}

/// The framework of that name.
fn framework(name: &str, file: &str) -> Result<Framework, InputError> {
    name.parse().map_err(|_| InputError::Unknown {
        file: file.to_owned(),
        what: "`launchable`".into(),
        found: name.to_owned(),
        known: ["megatron", "torchtitan", "maxtext", "any"].map(str::to_owned).to_vec(),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawCores {
    tensor_cores: u64,
    width: u64,
    depth: u64,
    vector_cores: u64,
    vector_width: Option<u64>,
    local_kib: Option<u64>,
    vector_local_kib: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawMemory {
    glb_mib: u64,
    hbm_gib: u64,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`glb_multicast` is neither a whole number nor \"unlimited\"")]
enum Multicast {
    Cores(u64),
    Named(String),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`hbm_gb_per_s` is neither a number nor a table of one by size")]
enum HbmRate {
    Fixed(f64),
    BySize(BTreeMap<String, f64>),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawPhysics {
    clock_ghz: Option<f64>,
    element_bytes: Option<u64>,
    partial_sum_bytes: Option<u64>,
    fill_and_drain: Option<bool>,
    local_read_bytes_per_cycle: Option<u64>,
    local_write_bytes_per_cycle: Option<u64>,
    vector_local_read_bytes_per_cycle: Option<u64>,
    vector_local_write_bytes_per_cycle: Option<u64>,
    glb_read_bytes_per_cycle: Option<u64>,
    glb_write_bytes_per_cycle: Option<u64>,
    glb_multicast: Option<Multicast>,
    hbm_gb_per_s: Option<HbmRate>,
    hbm_pj_per_8_bytes: Option<f64>,
    network_pj_per_bit: Option<f64>,
    static_w_per_mm2: Option<f64>,
}

impl RawPhysics {
    /// The energies that the file gives for itself.
    fn given_energies(&self, file: &str) -> Result<GivenEnergies, InputError> {
        let given = |name: &str, value: Option<f64>, factor: f64, high: f64| {
            let field = Field::new(file, &format!("physics.{name}"));
            value.map(|value| field.scaled(value, factor, 0.0, high)).transpose()
        };
        Ok(GivenEnergies {
            hbm_fj: given("hbm_pj_per_8_bytes", self.hbm_pj_per_8_bytes, 1e3, 1e6)?,
            network_fj_per_byte: given("network_pj_per_bit", self.network_pj_per_bit, 8e3, 1e6)?,
            static_uw_per_mm2: given("static_w_per_mm2", self.static_w_per_mm2, 1e6, 1e3)?,
        })
    }

    /// Takes from `base` what is missing; a local bandwidth that is missing follows from the
    /// array and is not taken.
    fn fill_in(&mut self, base: Self) {
        self.clock_ghz = self.clock_ghz.or(base.clock_ghz);
        self.element_bytes = self.element_bytes.or(base.element_bytes);
        self.partial_sum_bytes = self.partial_sum_bytes.or(base.partial_sum_bytes);
        self.fill_and_drain = self.fill_and_drain.or(base.fill_and_drain);
        self.glb_read_bytes_per_cycle =
            self.glb_read_bytes_per_cycle.or(base.glb_read_bytes_per_cycle);
        self.glb_write_bytes_per_cycle =
            self.glb_write_bytes_per_cycle.or(base.glb_write_bytes_per_cycle);
        self.glb_multicast = self.glb_multicast.take().or(base.glb_multicast);
        self.hbm_gb_per_s = self.hbm_gb_per_s.take().or(base.hbm_gb_per_s);
        self.hbm_pj_per_8_bytes = self.hbm_pj_per_8_bytes.or(base.hbm_pj_per_8_bytes);
        self.network_pj_per_bit = self.network_pj_per_bit.or(base.network_pj_per_bit);
        self.static_w_per_mm2 = self.static_w_per_mm2.or(base.static_w_per_mm2);
    }
}

fn raw(text: &str, file: &str) -> Result<RawFile, InputError> {
    toml::from_str(text).map_err(|error| syntax(&error, text, file))
}

fn design(found: &RawFile, file: &str) -> Result<Design, InputError> {
    let cores = &found.cores;
    let bytes = |name: &str, count: u64, unit: Bytes| {
        Field::new(file, name).whole(count, 1, (1 << 50) / unit.0).map(|count| unit * count)
    };
    let vector_width = cores.vector_width.unwrap_or(cores.width);
    let local = match cores.local_kib {
        Some(kib) => bytes("cores.local_kib", kib, Bytes::KIB)?,
        None => Design::published_local(cores.width, cores.depth),
    };
    let vector_local = match cores.vector_local_kib {
        Some(kib) => bytes("cores.vector_local_kib", kib, Bytes::KIB)?,
        None => Design::published_vector_local(vector_width),
    };
    Ok(Design {
        tensor_cores: cores.tensor_cores,
        vector_cores: cores.vector_cores,
        width: cores.width,
        depth: cores.depth,
        vector_width,
        local,
        vector_local,
        glb: bytes("memory.glb_mib", found.memory.glb_mib, Bytes::MIB)?,
        hbm: bytes("memory.hbm_gib", found.memory.hbm_gib, Bytes::GIB)?,
    })
}

fn physics(found: &RawFile, file: &str) -> Result<Physics, InputError> {
    let raw = &found.physics;
    let field = |name: &str| Field::new(file, &format!("physics.{name}"));
    let whole = |name: &str, value: Option<u64>, high: u64| {
        let value = value.ok_or_else(|| field(name).missing("give a whole number"))?;
        field(name).whole(value, 1, high)
    };
    let scaled = |name: &str, value: Option<f64>, factor: f64, low: f64, high: f64| {
        let value = value.ok_or_else(|| field(name).missing("give a number"))?;
        field(name).scaled(value, factor, low, high)
    };
    // Ports move at most a mebibyte per cycle: beyond any chip, and nothing overflows.
    let port = |read: (&str, Option<u64>), write: (&str, Option<u64>)| {
        let (read, write) = match (read.1, write.1) {
            (None, None) => return Ok(None),
            _ => (whole(read.0, read.1, 1 << 20)?, whole(write.0, write.1, 1 << 20)?),
        };
        Ok(Some(Port { read, write }))
    };
    let clock = scaled("clock_ghz", raw.clock_ghz, 1e9, 1e-3, 100.0)?;
    let multicast = match &raw.glb_multicast {
        None => return Err(field("glb_multicast").missing("give a number or \"unlimited\"")),
        Some(Multicast::Cores(cores)) => Some(field("glb_multicast").whole(*cores, 1, 1 << 32)?),
        Some(Multicast::Named(name)) if name == "unlimited" => None,
        Some(Multicast::Named(name)) => {
            return Err(field("glb_multicast").value(
                &format!("\"{name}\""),
                "is no number of cores",
                "allowed are whole numbers and \"unlimited\"",
            ));
        }
    };
    let glb = port(
        ("glb_read_bytes_per_cycle", raw.glb_read_bytes_per_cycle),
        ("glb_write_bytes_per_cycle", raw.glb_write_bytes_per_cycle),
    )?;
    Ok(Physics {
        clock: Frequency::hertz(clock).expect("a clock in range is not zero"),
        element_bytes: whole("element_bytes", raw.element_bytes, 16)?,
        partial_sum_bytes: whole("partial_sum_bytes", raw.partial_sum_bytes, 16)?,
        fill_and_drain: raw
            .fill_and_drain
            .ok_or_else(|| field("fill_and_drain").missing("give true or false"))?,
        local: port(
            ("local_read_bytes_per_cycle", raw.local_read_bytes_per_cycle),
            ("local_write_bytes_per_cycle", raw.local_write_bytes_per_cycle),
        )?,
        vector_local: port(
            ("vector_local_read_bytes_per_cycle", raw.vector_local_read_bytes_per_cycle),
            ("vector_local_write_bytes_per_cycle", raw.vector_local_write_bytes_per_cycle),
        )?,
        glb: glb.ok_or_else(|| field("glb_read_bytes_per_cycle").missing("give a number"))?,
        multicast,
        hbm: hbm_bandwidth(raw, file)?,
        energies: ChipEnergies::PUBLISHED,
        hbm_fj: scaled("hbm_pj_per_8_bytes", raw.hbm_pj_per_8_bytes, 1e3, 0.0, 1e6)?,
        network_fj_per_byte: scaled("network_pj_per_bit", raw.network_pj_per_bit, 8e3, 0.0, 1e6)?,
        static_uw_per_mm2: scaled("static_w_per_mm2", raw.static_w_per_mm2, 1e6, 0.0, 1e3)?,
        beside_uw: 0,
        network: found.network.read(file)?,
        efficiency: Efficiency::IDEAL,
        efficiency_from: None,
        calibrations: Vec::new(),
    })
}

fn hbm_bandwidth(raw: &RawPhysics, file: &str) -> Result<HbmBandwidth, InputError> {
    let field = Field::new(file, "physics.hbm_gb_per_s");
    match &raw.hbm_gb_per_s {
        None => Err(field.missing("give a rate, or one for each size in GiB")),
        Some(HbmRate::Fixed(gb_per_s)) => Ok(HbmBandwidth::Fixed(rate(&field, *gb_per_s)?)),
        Some(HbmRate::BySize(parts)) if parts.is_empty() => {
            Err(field.missing("give a rate for at least one size in GiB"))
        }
        Some(HbmRate::BySize(parts)) => {
            let mut rates = Vec::new();
            for (size, &gb_per_s) in parts {
                let gib = size.parse::<u64>().ok().filter(|gib| (1..=1 << 20).contains(gib));
                let gib = gib.ok_or_else(|| {
                    field.value(size, "is no size in GiB", "allowed are whole numbers of GiB")
                })?;
                rates.push((Bytes::GIB * gib, rate(&field, gb_per_s)?));
            }
            rates.sort_unstable();
            Ok(HbmBandwidth::BySize(rates))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Accelerator;

    #[test]
    fn every_preset_can_be_built() {
        for name in preset_names() {
            let found = preset(&name, "--design").unwrap();
            Accelerator::new(found.design, &found.physics).unwrap();
            let found = found.in_process("--design").unwrap();
            if let Some(making) = found.making {
                making.accelerator(found.design, &found.physics).unwrap();
                making.figures(&found.design, &found.physics, &found.published).unwrap();
            }
        }
    }

    #[test]
    fn a_part_has_the_energies_of_its_process_and_those_that_its_file_gives() {
        let text = preset_text("h100-sxm").unwrap();
        let own =
            text.replace("hbm_gb_per_s = 3352", "hbm_gb_per_s = 3352\nhbm_pj_per_8_bytes = 7");
        let read = |text: &str| hardware(text, "own.toml").unwrap().in_process("").unwrap().physics;
        let (plain, own) = (read(text), read(&own));
        // 3.9 pJ per bit for 64 bits, and 12 % of losses.
        assert_eq!((plain.hbm_fj, own.hbm_fj), (279_552, 7_000));
        assert_eq!(plain.energies, own.energies);
        let published = preset("icml24", "").unwrap().in_process("").unwrap().physics.energies;
        assert_eq!(published, ChipEnergies::PUBLISHED);
        assert!(plain.energies.mac_fj < published.mac_fj + published.register_fj);
    }

    #[test]
    fn a_chip_that_says_too_little_or_nonsense_is_refused_by_name() {
        let good = preset_text("h100-sxm").unwrap();
        let cases = [
            (
                "process_nm = 5 ",
                "process_nm = 4 ",
                "`chip.process_nm = 4` is a process without a table",
            ),
            ("process_nm = 5 ", "# ", "`chip.process_nm` is missing"),
            ("memory = \"hbm3\"", "memory = \"hbm33\"", "did you mean `hbm3`"),
            ("stacks = 5 ", "stacks = -5 ", "expected a whole number"),
            ("sites = 6 ", "sites = 4 ", "`chip.sites = 4` is out of range; allowed are 5 to"),
            ("links_gb_per_s = 450", "links_gb_per_s = -1", "`chip.links_gb_per_s = -1`"),
            ("value = 3320", "value = -3320", "`chip.published.cost_usd.value = -3320`"),
            ("physical = 144", "physical = 0", "`chip.multiprocessors.physical = 0`"),
            ("tdp_w", "tdp", "unknown field `tdp`"),
        ];
        for (from, to, expected) in cases {
            assert!(good.contains(from), "{from}");
            let error = hardware(&good.replacen(from, to, 1), "mine.toml").unwrap_err().to_string();
            assert!(error.starts_with("mine.toml: ") && error.contains(expected), "{error}");
        }
        let fast = good.replace("clock_ghz = 1.83 ", "clock_ghz = 2.5 ");
        let error = hardware(&fast, "mine.toml").unwrap().in_process("mine.toml").unwrap_err();
        assert!(error.to_string().contains("at most 2124 MHz"), "{error}");
    }

    #[test]
    fn presets_reach_the_public_peak() {
        for (name, teraflops) in [
            ("tpuv4", 275.0),
            ("a100-80g", 312.0),
            ("a100-40g", 312.0),
            ("h100-sxm", 989.4),
            ("h200-sxm", 989.4),
            ("h800-sxm", 989.4),
            ("b200", 2250.0),
            ("l40s", 362.0),
            ("mi300x", 1307.4),
            ("gaudi3", 1835.0),
            ("trainium2", 667.0),
            ("tpuv5e", 197.0),
            ("tpuv5p", 459.0),
            ("tpuv6e", 918.0),
        ] {
            let found = preset(name, "--design").unwrap();
            let chip = Accelerator::new(found.design, &found.physics).unwrap();
            let peak = chip.peak_flops_per_second() as f64 / 1e12;
            assert!((peak / teraflops - 1.0).abs() < 2e-3, "{name}: {peak}");
        }
    }

    #[test]
    fn what_a_file_leaves_out_is_as_in_the_baseline() {
        let text = "[cores]\ntensor_cores = 2\nwidth = 8\ndepth = 4\nvector_cores = 1\n\
                    [memory]\nglb_mib = 2\nhbm_gib = 64\n";
        let (own, base) = (hardware(text, "own.toml").unwrap(), preset("tpuv4-like", "").unwrap());
        assert_eq!(own.physics, base.physics);
        assert_eq!(own.design.vector_width, 8);
        assert_eq!(own.design.local, Bytes(1024));
    }

    #[test]
    fn errors_name_the_file_and_the_field() {
        let good = preset_text("tpuv4-like").unwrap();
        let cases = [
            ("clock_ghz = 1.05", "clock_ghz = -1", "`physics.clock_ghz = -1`"),
            ("\nwidth = 128 ", "\nwdith = 128 ", "unknown field `wdith`"),
            ("glb_multicast = 16", "glb_multicast = \"all\"", "`physics.glb_multicast = \"all\"`"),
            ("{ 32 = 1200", "{ x = 1200", "`physics.hbm_gb_per_s = x`"),
            ("glb_mib = 128", "glb_mib = 0", "`memory.glb_mib = 0`"),
            ("\nhbm_gib = 32 ", "\nhbm_gib = 48 ", "nearest are 32 and 64"),
            ("\nhbm_gib = 32 ", "\nhbm_gib = 1000 ", "known are 32, 64, 80"),
            ("glb_multicast = 16", "glb_multicast = 1.5", "is neither a whole number nor"),
            (
                "clock_ghz = 1.05",
                "clock_ghz = \"fast\"",
                "found the text \"fast\", expected a number",
            ),
            ("latency_us = 1.0", "devices_per_node = 8", "`network.between_gb_per_s`"),
        ];
        for (from, to, expected) in cases {
            assert!(good.contains(from), "{from}");
            let error = hardware(&good.replace(from, to), "mine.toml").unwrap_err().to_string();
            assert!(error.starts_with("mine.toml: ") && error.contains(expected), "{error}");
        }
    }
}

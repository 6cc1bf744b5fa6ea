//! The constants of a technology, in one table.

use std::ops::RangeInclusive;

/// One row of the table.
pub struct ConstantRow {
    /// Which constant.
    pub constant: Constant,
    /// What technology files call it: table and key.
    pub name: &'static str,
    /// What it is counted in there.
    pub unit: &'static str,
    /// How many of the small units, in which it is kept, make one of those.
    pub factor: f64,
    /// What files may say.
    pub range: RangeInclusive<f64>,
}

/// Writes the names of the constants and their table, so that neither can lack a row.
macro_rules! constants {
    ($($(#[$doc:meta])* $constant:ident = $name:literal in $unit:literal x $factor:literal, $range:expr;)+) => {
        /// A constant of a technology; the doc of each names the small unit in which it is kept.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Constant { $($(#[$doc])* $constant,)+ }

        impl Constant {
            /// How many there are.
            pub const COUNT: usize = [$(Self::$constant),+].len();

            /// The table, in the order of the constants.
            pub const ROWS: [ConstantRow; Self::COUNT] = [$(ConstantRow {
                constant: Self::$constant,
                name: $name,
                unit: $unit,
                factor: $factor,
                range: $range,
            }),+];
        }
    };
}

constants! {
    /// Transistors per mm², at the peak of the process.
    LogicDensity = "node.logic_mtr_per_mm2" in "million transistors per mm²" x 1e6, 1.0..=1e4;
    /// Square nanometres of a bit.
    Bitcell = "node.sram_bitcell_um2" in "µm²" x 1e6, 1e-3..=1.0;
    /// Wires, in thousandths of those at 7 nm.
    WireArea = "node.wire_area_rel" in "of 7 nm" x 1e3, 0.01..=10.0;
    /// Energies of logic and buffers, in thousandths of those at 7 nm.
    LogicEnergy = "node.energy_rel" in "of 7 nm" x 1e3, 0.01..=10.0;
    /// MHz at the nominal supply.
    NominalClock = "node.nominal_ghz" in "GHz" x 1e3, 0.1..=10.0;
    /// Cents of a wafer.
    Wafer = "node.wafer_usd" in "$" x 1e2, 100.0..=1e6;
    /// Defects per m².
    Defects = "node.defects_per_cm2" in "per cm²" x 1e4, 0.0..=2.0;
    /// Cents of a set of masks.
    Masks = "node.masks_usd" in "$" x 1e2, 0.0..=1e9;
    /// Watt-hours per cm² of wafer.
    FabEnergy = "node.fab_kwh_per_cm2" in "kWh per cm²" x 1e3, 0.0..=100.0;
    /// Milligrams of `CO₂e` per cm² of wafer.
    FabGas = "node.fab_gas_g_per_cm2" in "g per cm²" x 1e3, 0.0..=1e5;
    /// Square nanometres per GB/s and direction.
    SerdesArea = "node.serdes_mm2_per_gb_per_s" in "mm² per GB/s" x 1e12, 0.0..=10.0;
    /// Femtojoules per bit.
    SerdesEnergy = "node.serdes_pj_per_bit" in "pJ per bit" x 1e3, 0.0..=1e3;

    /// Transistors.
    MacTransistors = "area.mac_transistors" in "transistors" x 1.0, 1.0..=1e7;
    /// Thousandths by which it is larger.
    Fp8Extra = "area.fp8_extra" in "of a multiply-accumulator" x 1e3, 0.0..=10.0;
    /// Transistors.
    LaneTransistors = "area.lane_transistors" in "transistors" x 1.0, 1.0..=1e9;
    /// Thousandths of the peak density.
    AsicDensity = "area.asic_density" in "of the peak density" x 1e3, 0.01..=1.0;
    /// Thousandths of the peak density.
    SimtDensity = "area.simt_density" in "of the peak density" x 1e3, 0.01..=1.0;
    /// Transistors of a multiprocessor beside its units and memories.
    SimtControl = "area.simt_control_transistors" in "transistors" x 1.0, 0.0..=1e10;
    /// Transistors per mm² where the areas of controllers were measured.
    ReferenceDensity = "area.reference_mtr_per_mm2" in "million transistors per mm²" x 1e6, 1.0..=1e4;
    /// Square nanometres of a bit where the areas of memories were measured.
    ReferenceBitcell = "area.reference_bitcell_um2" in "µm²" x 1e6, 1e-3..=1.0;
    /// Square nanometres per MiB.
    SramArea = "area.sram_mm2_per_mib" in "mm² per MiB" x 1e12, 1e-3..=100.0;
    /// Square nanometres per MiB, with tags.
    CacheArea = "area.cache_mm2_per_mib" in "mm² per MiB" x 1e12, 1e-3..=100.0;
    /// Square nanometres per MiB.
    RegisterArea = "area.registers_mm2_per_mib" in "mm² per MiB" x 1e12, 1e-3..=100.0;
    /// Square nanometres of the network on a chip of the next two constants.
    NocArea = "area.noc_mm2" in "mm²" x 1e12, 0.0..=858.0;
    /// Bytes per cycle of that network.
    NocBytes = "area.noc_bytes_per_cycle" in "bytes per cycle" x 1.0, 1.0..=1e6;
    /// Square nanometres of that chip.
    NocDie = "area.noc_die_mm2" in "mm²" x 1e12, 1.0..=858.0;
    /// Square nanometres of a core's port to the network on the chip.
    PortArea = "area.port_mm2" in "mm²" x 1e12, 0.0..=100.0;
    /// Thousandths of the parts.
    TopLevel = "area.top_level" in "of the parts" x 1e3, 0.0..=10.0;
    /// Square nanometres.
    FixedArea = "area.fixed_mm2" in "mm²" x 1e12, 0.0..=858.0;

    /// Micrometres.
    ReticleShort = "edge.reticle_short_mm" in "mm" x 1e3, 1.0..=1e3;
    /// Micrometres.
    ReticleLong = "edge.reticle_long_mm" in "mm" x 1e3, 1.0..=1e3;
    /// Thousandths by which the long side may exceed the short one.
    Aspect = "edge.aspect" in "long side by short side" x 1e3, 1.0..=10.0;
    /// Micrometres of the edge that a stack takes.
    MemoryEdge = "edge.memory_mm_per_stack" in "mm" x 1e3, 0.0..=100.0;
    /// Micrometres of the edge that 100 GB/s per direction take.
    LinkEdge = "edge.links_mm_per_100_gb_per_s" in "mm per 100 GB/s" x 1e3, 0.0..=100.0;

    /// Femtojoules.
    MacEnergy = "power.mac_pj" in "pJ" x 1e3, 0.0..=1e3;
    /// Femtojoules.
    MacFp8Energy = "power.mac_fp8_pj" in "pJ" x 1e3, 0.0..=1e3;
    /// Femtojoules.
    MacSimtEnergy = "power.mac_simt_pj" in "pJ" x 1e3, 0.0..=1e3;
    /// Femtojoules of a lane and cycle.
    LaneEnergy = "power.lane_pj" in "pJ" x 1e3, 0.0..=1e3;
    /// Femtojoules per byte.
    GlbEnergy = "power.glb_pj_per_byte" in "pJ per byte" x 1e3, 0.0..=1e3;
    /// The process of the published energies, in thousandths of 7 nm.
    PublishedEnergy = "power.published_energy_rel" in "of 7 nm" x 1e3, 0.01..=100.0;
    /// Thousandths.
    ArrayActivity = "power.activity_arrays" in "of the cycles" x 1e3, 0.0..=1.0;
    /// Thousandths.
    LaneActivity = "power.activity_lanes" in "of the cycles" x 1e3, 0.0..=1.0;
    /// Thousandths.
    GlbActivity = "power.activity_glb" in "of the cycles" x 1e3, 0.0..=1.0;
    /// Thousandths.
    MemoryActivity = "power.activity_memory" in "of the bandwidth" x 1e3, 0.0..=1.0;
    /// Thousandths.
    LinkActivity = "power.activity_links" in "of the bandwidth" x 1e3, 0.0..=1.0;
    /// Microwatts per mm² at the nominal supply.
    StaticPower = "power.static_w_per_mm2" in "W per mm²" x 1e6, 0.0..=10.0;
    /// Thousandths of what the chip takes.
    RegulatorLoss = "power.regulator_loss" in "of the power" x 1e3, 0.0..=1.0;
    /// Microwatts.
    MemoryIdle = "power.memory_idle_w_per_stack" in "W" x 1e6, 0.0..=1e3;

    /// Micrometres.
    WaferDiameter = "cost.wafer_mm" in "mm" x 1e3, 100.0..=1e3;
    /// Thousandths of the area.
    CriticalArea = "cost.critical_area" in "of the area" x 1e3, 0.0..=1.0;
    /// Thousandths of what stands on the interposer.
    InterposerMargin = "cost.interposer_margin" in "of what stands on it" x 1e3, 0.0..=10.0;
    /// Square nanometres.
    SiteArea = "cost.site_mm2" in "mm²" x 1e12, 0.0..=858.0;
    /// Millionths of a dollar per mm².
    Packaging = "cost.packaging_usd_per_mm2" in "$ per mm²" x 1e6, 0.0..=100.0;
    /// Thousandths of die, memory and package.
    TestAndAssembly = "cost.test_and_assembly" in "of die, memory and package" x 1e3, 0.0..=10.0;
    /// Cents.
    Host = "cost.host_usd" in "$" x 1e2, 0.0..=1e6;
    /// Cents per GB/s and direction.
    ScaleUpLink = "cost.scale_up_usd_per_gb_per_s" in "$ per GB/s" x 1e2, 0.0..=1e5;
    /// Cents per GB/s and direction.
    ScaleOutLink = "cost.scale_out_usd_per_gb_per_s" in "$ per GB/s" x 1e2, 0.0..=1e5;
    /// Thousandths of the price that are not the cost of the chip.
    Margin = "cost.margin" in "of the price" x 1e3, 0.0..=0.99;
    /// Chips.
    Volume = "cost.volume_chips" in "chips" x 1.0, 1.0..=1e9;
    /// Cents.
    DesignCost = "cost.design_usd" in "$" x 1e2, 0.0..=1e11;
    /// Millionths of a dollar per watt.
    Building = "cost.building_usd_per_w" in "$ per W" x 1e6, 0.0..=1e3;
    /// Thousandths of a year.
    Years = "cost.years" in "years" x 1e3, 0.01..=100.0;
    /// Millionths of a dollar.
    KilowattHour = "cost.usd_per_kwh" in "$" x 1e6, 0.0..=100.0;
    /// Thousandths of what the chips take.
    Pue = "cost.pue" in "of the power of the chips" x 1e3, 1.0..=10.0;
    /// Thousandths of the time.
    Utilisation = "cost.utilisation" in "of the time" x 1e3, 0.01..=1.0;

    /// Milligrams of `CO₂e`.
    FabGrid = "carbon.fab_g_per_kwh" in "g per kWh" x 1e3, 0.0..=1e4;
    /// Milligrams of `CO₂e`.
    Materials = "carbon.materials_g_per_cm2" in "g per cm²" x 1e3, 0.0..=1e5;
    /// Milligrams of `CO₂e`.
    MemoryCarbon = "carbon.memory_g_per_gib" in "g per GiB" x 1e3, 0.0..=1e5;
    /// Milligrams of `CO₂e`.
    UseGrid = "carbon.use_g_per_kwh" in "g per kWh" x 1e3, 0.0..=1e4;

    /// Square nanometres of the largest chip that a search allows unless it is told otherwise.
    DefaultArea = "budget.area_mm2" in "mm²" x 1e12, 1.0..=858.0;
    /// Milliwatts that a search allows unless it is told otherwise.
    DefaultTdp = "budget.tdp_w" in "W" x 1e3, 1.0..=1e5;
}

impl Constant {
    /// Its row of the table.
    pub fn row(self) -> &'static ConstantRow {
        const ROWS: &[ConstantRow] = &Constant::ROWS;
        &ROWS[self as usize]
    }

    /// The constant that technology files call so.
    pub fn named(name: &str) -> Option<Self> {
        Self::ROWS.iter().find(|row| row.name == name).map(|row| row.constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_stands_in_its_own_row() {
        for (place, row) in Constant::ROWS.iter().enumerate() {
            assert_eq!(row.constant as usize, place, "{}", row.name);
            assert_eq!(Constant::named(row.name), Some(row.constant));
            assert!(*row.range.end() * row.factor <= 1.2e15, "{}: {:?}", row.name, row.range);
        }
    }
}

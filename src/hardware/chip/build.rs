//! The accelerator that a chip is: bandwidths from its knobs, energies from its process.

use super::Chip;
use super::ChipKnobs;
use super::Cores;
use super::DieArea;
use super::budget::no_die;
use super::budget::no_power;
use super::power::fp8_product_femtojoules;
use super::power::product_femtojoules;
use crate::hardware::Accelerator;
use crate::hardware::AreaBreakdown;
use crate::hardware::BufferEnergies;
use crate::hardware::ChipEnergies;
use crate::hardware::Design;
use crate::hardware::HbmBandwidth;
use crate::hardware::OffChipTime;
use crate::hardware::Physics;
use crate::hardware::Port;
use crate::hardware::Unbuildable;
use crate::hardware::network::Link;
use crate::hardware::network::Network;
use crate::hardware::network::Torus;
use crate::hardware::sram::ACCESS_BYTES;
use crate::hardware::technology::Constant;
use crate::hardware::technology::MemoryConstant;
use crate::hardware::technology::Technology;
use crate::units::Area;
use crate::units::Bandwidth;
use crate::units::Frequency;
use crate::units::Time;

impl ChipKnobs {
    /// Its cores and memories.
    pub fn design(&self, technology: &Technology) -> Design {
        let chip = self.chip(technology);
        Design {
            tensor_cores: self.tensor_cores,
            vector_cores: self.vector_cores,
            width: self.width,
            depth: self.depth,
            vector_width: self.vector_width,
            local: Design::published_local(self.width, self.depth),
            vector_local: Design::published_vector_local(self.vector_width),
            glb: chip.glb,
            hbm: chip.memory.size,
        }
    }

    /// Its physics: clock, bandwidths and energies are its own; what knobs do not decide, such as
    /// the network, is that of `base`.
    ///
    /// # Errors
    /// A clock that no supply reaches.
    pub fn physics(&self, technology: &Technology, base: &Physics) -> Result<Physics, Unbuildable> {
        let rate = self.glb_bytes_per_cycle;
        let chip = self.chip(technology);
        let clock = Frequency::hertz(self.clock_mhz.saturating_mul(1_000_000));
        let own = Physics {
            clock: clock.unwrap_or(base.clock),
            glb: Port { read: rate, write: rate },
            hbm: HbmBandwidth::Fixed(chip.memory.bandwidth),
            ..base.clone()
        };
        chip.in_process(&own, technology)
    }

    /// The accelerator that it is, or why it cannot be built.
    ///
    /// # Errors
    /// A knob out of range, a buffer that holds no tile, an edge or a clock that cannot be.
    pub fn accelerator(
        &self,
        technology: &Technology,
        base: &Physics,
    ) -> Result<Accelerator, Unbuildable> {
        self.in_range()?;
        let chip = self.chip(technology);
        let die = DieArea::of(&chip, technology).ok_or_else(|| no_die(&chip, technology))?;
        let physics = self.physics(technology, base)?;
        self.made_of(technology, &physics, die.breakdown())
    }

    /// What no chip between `least` and this one can beat: as fast as this one, though no die might
    /// hold it, with the energies and the power at rest of `least`. `None` where even that cannot be.
    pub fn optimistic(
        &self,
        least: &Self,
        technology: &Technology,
        base: &Physics,
    ) -> Option<Accelerator> {
        Some(self.boundless(technology, base)?.with_energies_of(&least.frugal(technology, base)?))
    }

    /// As fast as this one, with its buffer, though no die might hold it, and with the energies and the power at rest
    /// of `least`: what no chip between both can beat where only knobs with a law differ. `None` where a buffer holds
    /// no tile, or no supply reaches a clock.
    pub fn greatest_at_energies_of(
        &self,
        least: &Self,
        technology: &Technology,
        base: &Physics,
    ) -> Option<Accelerator> {
        Some(self.dieless(technology, base)?.with_energies_of(&least.frugal(technology, base)?))
    }

    /// What lends its energies and its power at rest, those of its die, to bounds.
    fn frugal(&self, technology: &Technology, base: &Physics) -> Option<Accelerator> {
        let die = DieArea::of(&self.chip(technology), technology)?.breakdown();
        self.with_any_buffer(technology, base, die)
    }

    /// As fast as no chip nowhere above this one can be, whether or not a die holds it; for times
    /// alone. `None` where even that cannot be, or no supply reaches its clock.
    pub fn boundless(&self, technology: &Technology, base: &Physics) -> Option<Accelerator> {
        self.with_any_buffer(technology, base, AreaBreakdown::default())
    }

    /// With a buffer as large as one can be, so that no array is too large for it.
    fn with_any_buffer(
        &self,
        technology: &Technology,
        base: &Physics,
        area: AreaBreakdown,
    ) -> Option<Accelerator> {
        let physics = self.physics(technology, base).ok()?;
        let largest = Self { glb_mib: LARGEST_GLB_MIB, ..*self };
        largest.made_of(technology, &physics, area).ok()
    }

    /// What it would be if any die could hold it, for times alone: it has no area and draws nothing at
    /// rest. `None` where a buffer holds no tile, or no supply reaches its clock.
    pub fn dieless(&self, technology: &Technology, base: &Physics) -> Option<Accelerator> {
        let physics = self.physics(technology, base).ok()?;
        let physics = Physics { static_uw_per_mm2: 0, beside_uw: 0, ..physics };
        self.made_of(technology, &physics, AreaBreakdown::default()).ok()
    }

    /// In these physics and of so much silicon, by the rules of searched chips.
    fn made_of(
        &self,
        technology: &Technology,
        physics: &Physics,
        area: AreaBreakdown,
    ) -> Result<Accelerator, Unbuildable> {
        let made = Accelerator::with_area(self.design(technology), physics, area)?;
        Ok(made.counting(OffChipTime::Exact))
    }
}

impl Chip {
    /// `base` with the energies and the power at rest of this chip in its process, losses of voltage
    /// regulators included.
    ///
    /// # Errors
    /// A clock that no supply reaches.
    pub fn in_process(
        &self,
        base: &Physics,
        technology: &Technology,
    ) -> Result<Physics, Unbuildable> {
        let of = |constant| technology.of(constant);
        let supply = technology.supply(self.clock_mhz).ok_or_else(|| no_power(self, technology))?;
        let (supply, loss) = (u128::from(supply), 1000 + of(Constant::RegulatorLoss));
        // Thousandths of process, supply, supply and regulators.
        let scale = of(Constant::LogicEnergy) * supply * supply * loss;
        let logic = |femtojoules: u128| whole(femtojoules * scale / 1_000_000_000_000);
        let access = u128::from(ACCESS_BYTES);
        let memory = technology.memory(self.memory.generation);
        let local = match self.cores {
            // Millionths of the published energies, of which the process is known in thousandths.
            Cores::Systolic { .. } => scale / (of(Constant::PublishedEnergy) * 1000),
            // Operands from registers and caches are counted with the products.
            Cores::Simt { .. } => 0,
        };
        Ok(Physics {
            energies: ChipEnergies {
                mac_fj: logic(product_femtojoules(self, technology)),
                mac_fp8_fj: logic(fp8_product_femtojoules(self, technology)),
                register_fj: 0,
                lane_fj: logic(of(Constant::LaneEnergy)),
                lane_register_fj: 0,
                buffers: BufferEnergies::OfProcess {
                    local: whole(local),
                    glb_fj: logic(of(Constant::GlbEnergy) * access),
                },
            },
            hbm_fj: whole(memory.of(MemoryConstant::Energy) * 8 * access * loss / 1000),
            network_fj_per_byte: whole(of(Constant::SerdesEnergy) * 8 * loss / 1000),
            static_uw_per_mm2: whole(of(Constant::StaticPower) * supply * loss / 1_000_000),
            beside_uw: whole(
                u128::from(self.memory.stacks) * of(Constant::MemoryIdle) * loss / 1000,
            ),
            ..base.clone()
        })
    }
}

impl DieArea {
    /// The parts that every accelerator has, and all else together.
    pub fn breakdown(&self) -> AreaBreakdown {
        let own = AreaBreakdown {
            arrays: self.arrays,
            tensor_buffers: self.tensor_buffers,
            lanes: self.lanes,
            vector_buffers: self.vector_buffers,
            global_buffer: self.global_buffer,
            others: Area::ZERO,
        };
        let others = self.total().0 - own.total().0;
        AreaBreakdown { others: Area(others), ..own }
    }
}

/// The network of a chip with six ports that share its links, as the most cubic torus of so many
/// devices; a single device has neighbours of the same rate.
pub fn torus_of_links(links_gb_per_s: u64, devices: u64, latency: Time) -> Network {
    let rate = links_gb_per_s.saturating_mul(1_000_000_000) / TORUS_PORTS;
    let bandwidth = Bandwidth::bytes_per_second(rate.max(1)).expect("one is not zero");
    let link = Link { bandwidth, latency };
    match Torus::new(&cubic_torus(devices), link) {
        Ok(torus) => Network::Torus(torus),
        Err(_) => Network::flat(link),
    }
}

/// The largest global buffer that a chip may have.
const LARGEST_GLB_MIB: u64 = 1 << 20;

/// Ports of a chip in a torus of three dimensions, which share its links.
pub(super) const TORUS_PORTS: u64 = 6;

/// The sides of the most cubic box of so many devices, the shortest first; a side of one device is
/// left out.
pub fn cubic_torus(devices: u64) -> Vec<u64> {
    let fits = |sides: &[u64; 3]| sides[0] <= sides[1] && sides[1] <= sides[2];
    let divisors = |n: u64| (1..=n.isqrt()).filter(move |d| n.is_multiple_of(*d));
    let boxes = divisors(devices).flat_map(|a| {
        let rest = devices / a;
        divisors(rest).map(move |b| [a, b, rest / b])
    });
    // The least surface; of a given volume the cube has it.
    let surface = |[a, b, c]: &[u64; 3]| {
        let wide = |n: u64| u128::from(n);
        wide(*a) * wide(*b) + wide(*b) * wide(*c) + wide(*a) * wide(*c)
    };
    let best = boxes.filter(fits).min_by_key(surface);
    best.into_iter().flatten().filter(|side| *side > 1).collect()
}

/// Within 64 bits, which only an absurd technology leaves.
fn whole(found: u128) -> u64 {
    u64::try_from(found).unwrap_or(u64::MAX >> 8)
}

#[cfg(test)]
mod tests {
    use super::super::properties::example;
    use super::super::properties::physics;
    use super::super::properties::technology;
    use super::*;
    use crate::units::Bytes;

    #[test]
    fn a_torus_is_as_cubic_as_its_devices_allow() {
        let cases: [(u64, &[u64]); 6] = [
            (1024, &[8, 8, 16]),
            (64, &[4, 4, 4]),
            (12, &[2, 2, 3]),
            (7, &[7]),
            (4, &[2, 2]),
            (1, &[]),
        ];
        for (devices, sides) in cases {
            assert_eq!(cubic_torus(devices), sides, "{devices}");
        }
    }

    #[test]
    fn six_ports_share_the_links() {
        let network = torus_of_links(600, 64, Time(7));
        assert_eq!(network.nearest_bandwidth().as_bytes_per_second(), 100_000_000_000);
        assert!(matches!(network, Network::Torus(torus) if torus.dims().eq([4, 4, 4])));
        assert!(torus_of_links(600, 1, Time(7)).is_flat());
    }

    #[test]
    fn an_accelerator_has_the_die_of_its_chip() {
        let technology = technology();
        let base = physics();
        let chip = example().accelerator(&technology, &base).unwrap();
        let die = DieArea::of(&example().chip(&technology), &technology).unwrap();
        assert_eq!(chip.total_area(), die.total());
        assert_eq!(chip.hbm(), Bytes::GIB * 120);
        assert_eq!(chip.hbm_bandwidth().as_bytes_per_second(), 5_000_000_000_000);
        assert_eq!(chip.clock().as_hertz(), 1_600_000_000);
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_reason() {
        let technology = technology();
        let base = physics();
        let refused =
            |knobs: ChipKnobs| knobs.accelerator(&technology, &base).unwrap_err().to_string();
        let fast = ChipKnobs { clock_mhz: 3000, ..example() };
        assert!(refused(fast).contains("at most 2124 MHz"), "{}", refused(fast));
        let many = ChipKnobs { stacks: 7, ..example() };
        assert!(refused(many).contains("at most 6 stacks"), "{}", refused(many));
        let none = ChipKnobs { tensor_cores: 0, ..example() };
        assert!(refused(none).contains("`tensor_cores = 0`"));
    }
}

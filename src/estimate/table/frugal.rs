//! The energy that no mapping of an operator is below, however long it takes: what bounds of boxes of chips ask for
//! where energies are compared.
//!
//! Neither clock, ports nor off-chip memory's rate decide it, so that most chips of a box share what is found.

use std::sync::RwLock;

use super::EstimateTable;
use super::Interned;
use super::Key;
use super::LARGEST_MATMUL;
use super::Map;
use super::MatmulCost;
use super::N_SHARDS;
use super::SCRATCH;
use super::UNBOUNDED;
use super::fastest::LOST;
use super::macs;
use crate::estimate::TooLarge;
use crate::estimate::collective;
use crate::estimate::tensor_core::best;
use crate::estimate::vector_core;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::CoreSpec;
use crate::hardware::Port;
use crate::hardware::Use;
use crate::hardware::sram::ACCESS_BYTES;
use crate::model::op::Homes;
use crate::model::op::Matmul;
use crate::model::op::Numbers;
use crate::model::op::Op;
use crate::model::op::VectorWork;
use crate::model::op::Work;
use crate::units::Bandwidth;
use crate::units::Energy;
use crate::units::Frequency;

/// Remembers the least energy of matmuls.
pub(super) struct FrugalTable {
    shapes: Interned<(Matmul, Homes)>,
    specs: Interned<CoreSpec>,
    shards: Vec<RwLock<Map<Key, Option<Energy>>>>,
}

impl Default for FrugalTable {
    fn default() -> Self {
        Self {
            shapes: Interned(RwLock::default()),
            specs: Interned(RwLock::default()),
            shards: (0..N_SHARDS).map(|_| RwLock::default()).collect(),
        }
    }
}

/// So much longer than the fastest mapping, in millionths, that any may be taken.
const ANY_TIME: u64 = 1_000_000_000_000_000;

impl FrugalTable {
    /// Femtojoules that no mapping is below; `None` where none is known.
    fn least(&self, matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> Option<Energy> {
        let spec = without_rates(spec);
        let key = (self.shapes.number(&(*matmul, homes)), self.specs.number(&spec));
        let shard = &self.shards[(key.0.wrapping_mul(31).wrapping_add(key.1)) as usize % N_SHARDS];
        if let Some(known) = shard.read().expect(LOST).get(&key) {
            return *known;
        }
        let found = SCRATCH
            .with_borrow_mut(|scratch| best(matmul, homes, &spec, ANY_TIME, scratch))
            .map(|(_, cost)| cost.total_energy());
        shard.write().expect(LOST).insert(key, found);
        found
    }
}

/// A spec whose ports and off-chip memory are never waited for.
fn without_rates(spec: &CoreSpec) -> CoreSpec {
    const NEVER: Port = Port { read: 1 << 32, write: 1 << 32 };
    CoreSpec {
        local_port: NEVER,
        glb_port: NEVER,
        hbm: Bandwidth::bytes_per_second(UNBOUNDED).expect("it is not zero"),
        clock: Frequency::hertz(1).expect("it is not zero"),
        ..*spec
    }
}

impl EstimateTable {
    /// The least energy of an operator, on one core or on all, with any of its mappings, on this chip and on every
    /// one that has no more of any proved knob and whose parts take no less energy.
    pub fn least_energy(
        &self,
        op: &Op,
        chip: &Accelerator,
        cluster: &Cluster,
    ) -> Result<Energy, TooLarge> {
        let each =
            [Use::Alone, Use::Spread].map(|cores| self.least_energy_on(op, chip, cluster, cores));
        let least = each.into_iter().collect::<Option<Vec<Energy>>>();
        least.and_then(|each| each.into_iter().min()).ok_or_else(|| TooLarge(op.name.clone()))
    }

    fn least_energy_on(
        &self,
        op: &Op,
        chip: &Accelerator,
        cluster: &Cluster,
        cores: Use,
    ) -> Option<Energy> {
        let vector = chip.vector(cores);
        let (product, chain): (Energy, &[VectorWork]) = match &op.work {
            Work::Collective(exchange) => {
                return Some(collective::estimate(exchange, &vector, cluster).energy);
            }
            Work::Matmul { matmul, homes, fused, numbers, .. } => {
                macs(matmul).filter(|&macs| macs <= LARGEST_MATMUL)?;
                (self.frugal.least(matmul, *homes, &chip.tensor_in(*numbers, cores))?, fused)
            }
            Work::Opaque { flops } => {
                let cost = MatmulCost::of_operations(*flops, &chip.tensor_in(Numbers::Bf16, cores));
                (cost?.energy, &[])
            }
            Work::Vector(chain) => (Energy::ZERO, chain),
            Work::Move => (Energy::ZERO, &[]),
        };
        let needs = vector_core::needs(chain, &op.traffic, &vector, self.options.vector_costs)?;
        let eighths: u128 = needs.energy_eighths.iter().sum();
        Some(product + Energy(eighths.div_ceil(u128::from(ACCESS_BYTES))))
    }
}

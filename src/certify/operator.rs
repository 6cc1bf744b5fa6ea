//! What one operator takes, by definition: a mapping that the answer names is priced, never
//! searched; vector work and exchanges are short formulas (docs/estimate.md).

use crate::estimate::Estimate;
use crate::estimate::Limit;
use crate::estimate::VectorCosts;
use crate::estimate::collective;
use crate::estimate::tensor_core::Cost;
use crate::estimate::tensor_core::Loop;
use crate::estimate::tensor_core::Mapping;
use crate::estimate::tensor_core::Way;
use crate::estimate::tensor_core::cost::cost;
use crate::estimate::vector_core;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::CoreSpec;
use crate::hardware::Efficiency;
use crate::hardware::OffChipTime;
use crate::hardware::Use;
use crate::hardware::VectorSpec;
use crate::model::op::Home;
use crate::model::op::Homes;
use crate::model::op::Matmul;
use crate::model::op::Numbers;
use crate::model::op::Op;
use crate::model::op::Traffic;
use crate::model::op::VectorWork;
use crate::model::op::Work;
use crate::plan::MappingFacts;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

/// Where an operator runs.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The accelerator.
    pub chip: &'a Accelerator,
    /// What it stands in.
    pub cluster: &'a Cluster,
    /// Cycles of vector work.
    pub costs: VectorCosts,
}

/// What a matmul adds to the vector work behind it.
#[derive(Clone, Copy, Default)]
struct Product {
    /// Off-chip memory included, in whole cycles.
    cycles: u64,
    limit: Option<Limit>,
    /// Without off-chip memory.
    on_chip: u64,
    on_chip_limit: Option<Limit>,
    energy: Energy,
    hbm: u64,
    glb_read: u64,
    glb_written: u64,
}

/// What an operator takes on one core or on all; a matmul needs the mapping that it is said to
/// have. `None` where that is not a mapping of the operator, or it is too large to be timed.
pub fn price(op: &Op, place: Place, cores: Use, mapping: Option<&Mapping>) -> Option<Estimate> {
    let vector = place.chip.vector(cores);
    match &op.work {
        Work::Collective(exchange) => Some(collective::estimate(exchange, &vector, place.cluster)),
        Work::Vector(chain) => together(Product::default(), chain, &op.traffic, &vector, place),
        Work::Move => together(Product::default(), &[], &op.traffic, &vector, place),
        Work::Opaque { flops } => {
            let product = operations(*flops, place.chip, cores)?;
            together(product, &[], &op.traffic, &vector, place)
        }
        Work::Matmul { matmul, homes, fused, numbers, grouped } => {
            let (spec, mapping) = (place.chip.tensor_in(*numbers, cores), mapping?);
            if !is_legal(matmul, &spec, mapping) {
                return None;
            }
            let priced = cost(matmul, *homes, &spec, mapping)?;
            let part = part_of_peak(*numbers, *homes, *grouped, place.chip.efficiency());
            let (cycles, limit) = reached(&priced, part)?;
            let (on_chip, on_chip_limit) = on_chip(&priced);
            let product = Product {
                cycles,
                limit: Some(limit),
                on_chip: prolonged(on_chip, part)?,
                on_chip_limit: Some(on_chip_limit),
                energy: priced.total_energy(),
                hbm: priced.hbm_read.0.checked_add(priced.hbm_written.0)?,
                glb_read: priced.glb_read.0,
                glb_written: priced.glb_written.0,
            };
            together(product, fused, &op.traffic, &vector, place)
        }
    }
}

/// Thousandths of their peak that the arrays reach.
pub fn part_of_peak(numbers: Numbers, homes: Homes, grouped: bool, efficiency: &Efficiency) -> u16 {
    if homes.a == Home::Chip || homes.b == Home::Chip || homes.out == Home::Chip {
        return efficiency.attention;
    }
    let whole = if numbers == Numbers::Bf16 { efficiency.matmul } else { efficiency.matmul_fp8 };
    if !grouped {
        return whole;
    }
    let millionths = u32::from(whole) * u32::from(efficiency.grouped);
    u16::try_from(millionths.div_ceil(1000)).unwrap_or(whole)
}

/// Operations of which no loops are known: all arrays are busy at what matmuls reach, and nothing but
/// multiply-accumulators and their registers takes energy.
fn operations(flops: u64, chip: &Accelerator, cores: Use) -> Option<Product> {
    let spec = chip.tensor(cores);
    let per_cycle = 2 * spec.count * spec.width * spec.depth;
    let busy = flops.div_ceil(per_cycle);
    let cycles = prolonged(busy, chip.efficiency().matmul)?;
    let each = u128::from(spec.energies.mac) + u128::from(spec.energies.register);
    Some(Product {
        cycles,
        limit: Some(Limit::Compute),
        on_chip: cycles,
        on_chip_limit: Some(Limit::Compute),
        energy: Energy(u128::from(flops.div_ceil(2)) * each),
        ..Product::default()
    })
}

/// Cycles of a product beside memory that is never waited for, and the first that needs them all.
fn on_chip(priced: &Cost) -> (u64, Limit) {
    let needs = &priced.needs;
    let most = needs.compute.max(needs.local).max(needs.glb);
    let limit = match most {
        _ if most == needs.compute => Limit::Compute,
        _ if most == needs.local => Limit::Local,
        _ => Limit::Glb,
    };
    (most, limit)
}

fn prolonged(cycles: u64, part: u16) -> Option<u64> {
    u64::try_from((u128::from(cycles) * 1000).div_ceil(u128::from(part))).ok()
}

/// Cycles of a product where its arrays reach a part of their peak, and what decides them: memory
/// where that takes longer even so.
fn reached(priced: &Cost, part: u16) -> Option<(u64, Limit)> {
    if part == 1000 {
        return Some((priced.cycles.0, priced.limit));
    }
    let arrays = prolonged(on_chip(priced).0, part)?;
    Some(match priced.limit {
        Limit::Hbm if arrays >= priced.cycles.0 => (arrays, Limit::Compute),
        limit => (arrays.max(priced.cycles.0), limit),
    })
}

/// A matmul and the vector work behind it run at once: the longest need decides, and all bytes go
/// through each memory together.
fn together(
    product: Product,
    chain: &[VectorWork],
    traffic: &Traffic,
    spec: &VectorSpec,
    place: Place,
) -> Option<Estimate> {
    let needs = vector_core::needs(chain, traffic, spec, place.costs)?;
    let Efficiency { memory, launch, .. } = *place.chip.efficiency();
    let sum = |parts: [u64; 3]| parts.into_iter().try_fold(0_u64, u64::checked_add);
    let Traffic { hbm_read, hbm_written, glb_read, glb_written } = *traffic;
    let hbm = sum([product.hbm, hbm_read.0, hbm_written.0])?;
    // What crosses off-chip memory crosses the global buffer once more.
    let glb_read = sum([product.glb_read, glb_read.0, hbm_written.0])?;
    let glb_written = sum([product.glb_written, glb_written.0, hbm_read.0])?;
    let hertz = u128::from(spec.clock.as_hertz());
    let rate = u128::from(spec.hbm.as_bytes_per_second());
    let second = u128::from(Time::PER_SECOND);
    let reads = glb_read.div_ceil(spec.glb_port.read);
    let writes = glb_written.div_ceil(spec.glb_port.write);
    let beside =
        [(needs.lanes, Limit::Lanes), (needs.local, Limit::Local), (reads.max(writes), Limit::Glb)];
    // Among equals the first is named.
    let longest = |first: (u64, Limit), last: Option<(u64, Limit)>| {
        let all = std::iter::once(first).chain(beside).chain(last);
        all.collect::<Vec<_>>().into_iter().rev().max_by_key(|(cycles, _)| *cycles)
    };
    let named = |limit: Option<Limit>| limit.unwrap_or(Limit::Lanes);
    let (picoseconds, limit) = match place.chip.off_chip_time() {
        OffChipTime::WholeCycles => {
            let off_chip = (u128::from(hbm) * hertz).div_ceil(rate);
            let off_chip = u64::try_from((off_chip * 1000).div_ceil(u128::from(memory))).ok()?;
            let product = (product.cycles, named(product.limit));
            let (cycles, limit) = longest(product, Some((off_chip, Limit::Hbm)))?;
            ((u128::from(cycles) * second).div_ceil(hertz), limit)
        }
        OffChipTime::Exact => {
            let product = (product.on_chip, named(product.on_chip_limit));
            let (cycles, limit) = longest(product, None)?;
            let cores = (u128::from(cycles) * second).div_ceil(hertz);
            let bytes = u128::from(hbm) * 1000;
            let off_chip = (bytes * second).div_ceil(rate * u128::from(memory));
            if cores < off_chip { (off_chip, Limit::Hbm) } else { (cores, limit) }
        }
    };
    let picoseconds = picoseconds + u128::from(launch.0);
    let vector_energy = Energy(needs.energy_eighths.iter().sum::<u128>().div_ceil(8));
    Some(Estimate {
        time: Time(u64::try_from(picoseconds).ok()?),
        energy: vector_energy + product.energy,
        hbm: Bytes(hbm),
        glb_read: Bytes(glb_read),
        glb_written: Bytes(glb_written),
        limit,
    })
}

/// Whether a mapping is one of the space that docs/estimate.md defines; that its tiles fit their
/// buffers is for its cost to say.
fn is_legal(matmul: &Matmul, spec: &CoreSpec, mapping: &Mapping) -> bool {
    let sizes = [matmul.m, matmul.k, matmul.n];
    let Mapping { batch_split, split, way, local, glb, .. } = *mapping;
    let divides = |cores: u64, size: u64| {
        (1..=spec.count).contains(&cores)
            && (!spec.count.is_power_of_two() || cores.is_power_of_two())
            && cores <= size.next_power_of_two()
    };
    let product = split.iter().fold(u128::from(batch_split), |all, &n| all * u128::from(n));
    Way::ALL.contains(&way)
        && divides(batch_split, matmul.b)
        && (0..3).all(|i| divides(split[i], sizes[i]))
        && product <= u128::from(spec.count)
        && (0..3).all(|i| {
            let share = sizes[i].div_ceil(split[i]);
            let side = match Loop::ALL[i] {
                on if on == way.width => spec.width,
                on if on == way.depth => spec.depth,
                _ => 1,
            };
            is_tile(local[i], side, share) && is_glb_tile(glb[i], sizes[i])
        })
}

/// The whole part, or the side of the array doubled so often, if that is less.
fn is_tile(tile: u64, side: u64, part: u64) -> bool {
    let doubled = tile.is_multiple_of(side) && (tile / side).is_power_of_two();
    tile == part || (tile < part && doubled)
}

/// The whole size, or a power of two or three times one, if that is less.
fn is_glb_tile(tile: u64, size: u64) -> bool {
    let round = tile.is_power_of_two() || (tile.is_multiple_of(3) && (tile / 3).is_power_of_two());
    tile == size || (tile < size && round)
}

/// The mapping that an answer writes; `None` where a loop has no such name.
pub fn mapping(facts: &MappingFacts) -> Option<Mapping> {
    let named = |name: &str| Loop::ALL.into_iter().find(|along| along.name() == name);
    let tile = |tile: crate::plan::TileFacts| [tile.m, tile.k, tile.n];
    Some(Mapping {
        batch_split: facts.cores.b,
        split: [facts.cores.m, facts.cores.k, facts.cores.n],
        way: Way {
            width: named(&facts.array.width)?,
            depth: named(&facts.array.depth)?,
            stream: named(&facts.array.stream)?,
        },
        local: tile(facts.local_tile),
        local_inner: named(&facts.local_inner)?,
        glb: tile(facts.glb_tile),
        glb_inner: named(&facts.glb_inner)?,
    })
}

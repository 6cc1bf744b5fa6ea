//! How long vector work takes: lanes times cycles per element, or the bytes of the slowest memory.

use crate::hardware::MostLanes;
use crate::hardware::VectorSpec;
use crate::hardware::sram::ACCESS_BYTES;
use crate::model::op::Pass;
use crate::model::op::Traffic;
use crate::model::op::VectorKind;
use crate::model::op::VectorWork;

/// Which table of cycles per element is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VectorCosts {
    /// The primitives that each operator really needs.
    #[default]
    Corrected,
    /// The figures of the published evaluation, where it has any.
    Published,
}

/// One line of the table: cycles per element and lane, forward and backward.
pub struct Line {
    /// What is done.
    pub kind: VectorKind,
    /// As published; `None` where it is silent.
    pub published: Option<(u64, u64)>,
    /// By the primitives needed.
    pub corrected: (u64, u64),
    /// Why.
    pub reason: &'static str,
}

/// A look-up, addition, multiplication, comparison or multiply-add is one cycle, a division ten.
pub const TABLE: [Line; 22] = [
    line(VectorKind::Add, Some((1, 1)), (1, 1), "one addition; backward only a fork adds"),
    line(VectorKind::Bias, Some((1, 1)), (1, 1), "one addition; backward a sum over rows"),
    line(VectorKind::Scale, Some((1, 1)), (1, 1), "one multiplication each way"),
    line(VectorKind::Mask, Some((1, 1)), (1, 1), "one selection each way"),
    line(VectorKind::Multiply, Some((1, 2)), (1, 2), "backward one product for each factor"),
    line(VectorKind::Relu, Some((1, 1)), (1, 1), "one comparison each way"),
    line(VectorKind::SquaredRelu, None, (2, 2), "a comparison and a product each way"),
    line(
        VectorKind::Gelu,
        Some((1, 1)),
        (8, 12),
        "5 multiplications, 2 additions, 1 look-up of tanh; published as ReLU",
    ),
    line(
        VectorKind::Silu,
        Some((12, 2)),
        (13, 5),
        "a look-up of exp, an addition, a division, a multiplication",
    ),
    line(VectorKind::Tanh, Some((27, 2)), (1, 2), "a look-up; backward 1 - y² times the gradient"),
    line(VectorKind::Dropout, Some((2, 1)), (2, 1), "compare and scale; backward the mask"),
    line(
        VectorKind::Softmax,
        Some((10, 2)),
        (5, 4),
        "maximum, subtraction, exp, sum, scale, and one division per row",
    ),
    line(
        VectorKind::LayerNorm,
        Some((1, 1)),
        (6, 12),
        "sum, centre, square-sum, scale, gain, bias; backward with both parameter gradients",
    ),
    line(VectorKind::RmsNorm, None, (4, 8), "square-sum, scale, gain; backward with its gradient"),
    line(VectorKind::Rotary, None, (3, 3), "two products and a sum per element"),
    line(
        VectorKind::Route,
        None,
        (8, 4),
        "a softmax or sigmoid, and comparisons with the best few; backward that of a softmax",
    ),
    line(VectorKind::Weigh, None, (1, 2), "one product; backward one for each factor"),
    line(VectorKind::Join, None, (1, 1), "one move each way, backward a sum over rows"),
    line(VectorKind::Sigmoid, None, (12, 2), "a look-up of exp, an addition, a division"),
    line(VectorKind::CrossEntropy, None, (5, 2), "softmax and its reductions over the shard"),
    line(VectorKind::Sgd, None, (2, 2), "scale and subtract, per parameter"),
    line(VectorKind::Adam, None, (12, 12), "two moments, a root, a quotient, per parameter"),
];

const fn line(
    kind: VectorKind,
    published: Option<(u64, u64)>,
    corrected: (u64, u64),
    reason: &'static str,
) -> Line {
    Line { kind, published, corrected, reason }
}

/// Cycles of a division, per row of a softmax.
const DIVISION: u64 = 10;

/// What vector work needs of each resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Cycles of the lanes.
    pub lanes: u64,
    /// Cycles of the local buffers.
    pub local: u64,
    /// Femtojoules times 8 of lanes, registers, local buffers, global buffer and off-chip memory.
    pub energy_eighths: [u128; 5],
}

/// Cycles per element and lane.
pub fn cycles_per_element(kind: VectorKind, pass: Pass, costs: VectorCosts) -> u64 {
    let found = TABLE.iter().find(|line| line.kind == kind);
    let line = found.expect("every kind of vector work stands in the table");
    let (forward, backward) = match costs {
        VectorCosts::Corrected => line.corrected,
        VectorCosts::Published => line.published.unwrap_or(line.corrected),
    };
    match pass {
        Pass::Forward => forward,
        Pass::Backward => backward,
    }
}

/// Cycles of the lanes for one pass; `None` beyond 64 bits.
pub fn lane_cycles(work: &VectorWork, spec: &VectorSpec, costs: VectorCosts) -> Option<u64> {
    let lanes = spec.width * spec.count;
    let per_element = cycles_per_element(work.kind, work.pass, costs);
    let elements = work.rows.checked_mul(work.row)?;
    let cycles = elements.div_ceil(lanes).checked_mul(per_element)?;
    if (work.kind, work.pass) != (VectorKind::Softmax, Pass::Forward) {
        return Some(cycles);
    }
    let besides = match costs {
        VectorCosts::Corrected => work.rows.div_ceil(lanes).checked_mul(DIVISION)?,
        // The published form: a reduction along each row, and one division.
        VectorCosts::Published => {
            let rows = work.rows.div_ceil(spec.count);
            rows.checked_mul(work.row.div_ceil(spec.width))?.checked_add(DIVISION)?
        }
    };
    cycles.checked_add(besides)
}

/// Cycles of the lanes and of the local buffers that no vector cores are below which have at most so many lanes
/// together; `None` beyond 64 bits.
pub fn least_cycles(
    chain: &[VectorWork],
    traffic: &Traffic,
    (most, spec): (MostLanes, &VectorSpec),
    costs: VectorCosts,
) -> Option<[u64; 2]> {
    let all = most.lanes.max(1);
    let one_core = VectorSpec { count: 1, width: all, ..*spec };
    let mut lanes = 0_u64;
    for work in chain {
        let cycles = match costs {
            VectorCosts::Corrected => lane_cycles(work, &one_core, costs)?,
            // A reduction along rows does not tell by the number of lanes alone.
            VectorCosts::Published => {
                let per_element = cycles_per_element(work.kind, work.pass, costs);
                work.rows.checked_mul(work.row)?.div_ceil(all).checked_mul(per_element)?
            }
        };
        lanes = lanes.checked_add(cycles)?;
    }
    let by_lane = |rate: u64| u128::from(rate / spec.width.max(1)) * u128::from(all);
    let local = |bytes: u64, rate: u64| u128::from(bytes).div_ceil(by_lane(rate).max(1));
    let local = if most.fed_alike {
        local(traffic.glb_read.0, spec.local_port.read)
            .max(local(traffic.glb_written.0, spec.local_port.write))
    } else {
        0
    };
    Some([lanes, u64::try_from(local).ok()?])
}

/// What a chain of vector work with some traffic needs; `None` beyond 64 bits.
///
/// Between the works of a chain, elements pass in registers; what crosses the global buffer crosses
/// the local buffers too, evenly over the cores.
pub fn needs(
    chain: &[VectorWork],
    traffic: &Traffic,
    spec: &VectorSpec,
    costs: VectorCosts,
) -> Option<Needs> {
    let mut lanes = 0_u64;
    let mut busy = 0_u128;
    for work in chain {
        lanes = lanes.checked_add(lane_cycles(work, spec, costs)?)?;
        let per_element = cycles_per_element(work.kind, work.pass, costs);
        busy += u128::from(work.rows) * u128::from(work.row) * u128::from(per_element);
    }
    let per_core = |bytes: u64, rate: u64| bytes.div_ceil(spec.count).div_ceil(rate);
    let local = per_core(traffic.glb_read.0, spec.local_port.read)
        .max(per_core(traffic.glb_written.0, spec.local_port.write));
    let j = &spec.energies;
    let of = |bytes: u64, fj: u64| u128::from(bytes) * u128::from(fj);
    let each = u128::from(ACCESS_BYTES);
    let (fills, drains) = (traffic.hbm_read.0, traffic.hbm_written.0);
    Some(Needs {
        lanes,
        local,
        energy_eighths: [
            busy * u128::from(j.lane) * each,
            busy * u128::from(j.lane_register) * each,
            of(traffic.glb_read.0, j.local_read) + of(traffic.glb_written.0, j.local_write),
            of(traffic.glb_read.0, j.glb_read)
                + of(drains, j.glb_read)
                + of(traffic.glb_written.0, j.glb_write)
                + of(fills, j.glb_write),
            of(fills, j.hbm) + of(drains, j.hbm),
        ],
    })
}

//! Energy that no mapping, schedule or placement can do without (docs/search.md, step 5).

use super::roofline::OpNeeds;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Use;
use crate::hardware::sram::ACCESS_BYTES;
use crate::model::op::Matmul;
use crate::model::op::Numbers;
use crate::model::op::Traffic;
use crate::units::Bytes;

/// What operators move and compute at the least, whatever the design; bytes, but for the first three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeastWork {
    macs: u128,
    /// Those in 8 bits.
    macs_fp8: u128,
    lane_cycles: u128,
    hbm: u128,
    glb_read: u128,
    glb_written: u128,
    vector_local_read: u128,
    vector_local_written: u128,
}

/// Bytes of a product's operands: all of them, and those that cross HBM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperandBytes {
    /// Both factors.
    pub read: u64,
    /// The product.
    pub written: u64,
    /// Factors that come from HBM.
    pub filled: u64,
    /// The product, where it goes to HBM.
    pub drained: u64,
}

impl LeastWork {
    /// That of a pass.
    pub fn of(pass: &Dag<OpNeeds>) -> Self {
        let mut all = Self::default();
        for op in pass.nodes() {
            all.add(&Self::of_op(op), 1);
        }
        all
    }

    fn of_op(op: &OpNeeds) -> Self {
        let OpNeeds { operands, traffic, .. } = op;
        let wide = u128::from;
        let Traffic { hbm_read, hbm_written, glb_read, glb_written } = traffic;
        let (fills, drains) =
            (wide(operands.filled + hbm_read.0), wide(operands.drained + hbm_written.0));
        let products = op.matmul.map_or(0, |matmul| matmul.flops().0 / 2);
        let (in_16, in_8) = match op.numbers {
            Numbers::Bf16 | Numbers::Bf16BesideFp8 => (products, 0),
            Numbers::Fp8 => (0, products),
        };
        Self {
            macs: in_16 + wide(op.flops / 2),
            macs_fp8: in_8,
            lane_cycles: wide(op.lane_cycles),
            hbm: fills + drains,
            // The global buffer carries what fills and drains off-chip memory as well.
            glb_read: wide(operands.read + glb_read.0) + drains,
            glb_written: wide(operands.written + glb_written.0) + fills,
            vector_local_read: wide(glb_read.0),
            vector_local_written: wide(glb_written.0),
        }
    }

    /// Adds `times` times another.
    pub fn add(&mut self, other: &Self, times: u64) {
        let times = u128::from(times);
        self.macs += other.macs * times;
        self.macs_fp8 += other.macs_fp8 * times;
        self.lane_cycles += other.lane_cycles * times;
        self.hbm += other.hbm * times;
        self.glb_read += other.glb_read * times;
        self.glb_written += other.glb_written * times;
        self.vector_local_read += other.vector_local_read * times;
        self.vector_local_written += other.vector_local_written * times;
    }

    /// Femtojoules on a chip, where its arrays exchange at least `array_bytes` with their buffers.
    pub fn femtojoules(&self, array_bytes: u128, chip: &Accelerator) -> u128 {
        let (tensor, vector) =
            (chip.tensor(Use::Spread).energies, chip.vector(Use::Spread).energies);
        let fp8 = chip.tensor_in(Numbers::Fp8, Use::Spread).energies;
        let computing = self.macs * u128::from(tensor.mac + tensor.register)
            + self.macs_fp8 * u128::from(fp8.mac + fp8.register)
            + self.lane_cycles * u128::from(vector.lane + vector.lane_register);
        let array = tensor.local_read.min(tensor.local_write);
        let moved = [
            (self.hbm, vector.hbm),
            (self.glb_read, vector.glb_read),
            (self.glb_written, vector.glb_write),
            (self.vector_local_read, vector.local_read),
            (self.vector_local_written, vector.local_write),
            (array_bytes, array),
        ];
        let eighths: u128 = moved.iter().map(|&(bytes, fj)| bytes * u128::from(fj)).sum();
        computing + eighths / u128::from(ACCESS_BYTES)
    }
}

/// Bytes that arrays of `width` x `depth` exchange with their local buffers for a pass, at the
/// least: a tensor that streams passes once for each array tile along the loop that it lacks.
pub fn array_bytes(pass: &Dag<OpNeeds>, width: u64, depth: u64, element: u64) -> u128 {
    let of = |op: &OpNeeds| {
        let element = op.numbers.operand(Bytes(element)).0;
        let depth = depth.saturating_mul(op.numbers.per_cycle());
        op.matmul.map_or(0, |m| product_bytes(m, width, depth, element))
    };
    pass.nodes().iter().map(of).sum()
}

fn product_bytes(matmul: Matmul, width: u64, depth: u64, element: u64) -> u128 {
    let Matmul { b, m, k, n } = matmul;
    let wide = u128::from;
    let sizes = [m, k, n];
    // By the loop that each tensor lacks.
    let elements = [wide(k) * wide(n), wide(m) * wide(n), wide(m) * wide(k)];
    let ways = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)];
    let way = |(on_width, on_depth): (usize, usize)| -> u128 {
        let moves = |lacks: usize| match lacks {
            _ if lacks == on_width => wide(sizes[lacks].div_ceil(width)),
            _ if lacks == on_depth => wide(sizes[lacks].div_ceil(depth)),
            _ => 1,
        };
        // A partial sum has at least one byte, and is read back every time but the first.
        let sums = elements[1] * (2 * (moves(1) - 1) + wide(element));
        wide(element) * (elements[0] * moves(0) + elements[2] * moves(2)) + sums
    };
    ways.into_iter().map(way).min().unwrap_or(0) * wide(b)
}

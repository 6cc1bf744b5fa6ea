//! Rules like those of the published artifact, beside our own mapper.
//!
//! Shared by the test and the bench that compare with it.

mod registers;

use std::io::Read;

use phaze::estimate::tensor_core::Scratch;
use phaze::estimate::tensor_core::best;
use phaze::hardware::CoreSpec;
use phaze::input::hardware::preset;
use phaze::input::jobs::jobs;
use phaze::model::op::Homes;
use phaze::model::op::Matmul;
use phaze::units::Bandwidth;
use phaze::units::Bytes;

/// A point of the published mapper.
#[derive(Debug)]
pub struct Point {
    /// What is multiplied.
    pub matmul: Matmul,
    /// On which cores, by the published constants.
    pub core: CoreSpec,
    /// The cycles of the mapping that it chose.
    pub published: f64,
    /// All multiply-accumulators busy.
    pub ideal: f64,
}

/// What the artifact does otherwise than we do under its constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A buffer of n bytes holds n elements, each once.
    pub buffers_in_elements: bool,
    /// The local bandwidth is that of all cores together.
    pub local_for_the_chip: bool,
    /// Weights pass the local buffer by: sixteen stay in the registers of each
    /// multiply-accumulator.
    pub weight_registers: bool,
}

impl Rules {
    /// Ours, under the published constants.
    pub const OURS: Self =
        Self { buffers_in_elements: false, local_for_the_chip: false, weight_registers: false };
    /// All of the artifact's.
    pub const ARTIFACT: Self =
        Self { buffers_in_elements: true, local_for_the_chip: true, weight_registers: true };
    /// Ours, each of the artifact's alone, and all of them.
    pub const EACH: [Self; 5] = [
        Self::OURS,
        Self { weight_registers: true, ..Self::OURS },
        Self { buffers_in_elements: true, ..Self::OURS },
        Self { local_for_the_chip: true, ..Self::OURS },
        Self::ARTIFACT,
    ];
}

/// All 223 points.
pub fn points() -> Vec<Point> {
    let mut text = String::new();
    let file = std::fs::File::open("tests/golden/tensor_core.jsonl.gz").expect("it is there");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is whole");
    let hardware = preset("icml24", "").expect("it is built in");
    text.lines()
        .map(|line| {
            let mut value: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
            let artifact = value["artifact"].take();
            value.as_object_mut().expect("it is an object").remove("artifact");
            let job = jobs(&value.to_string(), "points", &hardware).expect("it is a job")[0];
            let number = |key: &str| artifact[key].as_f64().expect("it is a number");
            Point {
                matmul: job.matmul,
                core: job.core,
                published: number("cycles"),
                ideal: number("ideal_cycles"),
            }
        })
        .collect()
}

/// The least cycles of a point under some rules.
///
/// Bytes are counted 4,096 times finer, so that a core's share of the chip's local bandwidth is a
/// whole number.
pub fn cycles(point: &Point, rules: Rules) -> u64 {
    const FINER: u64 = 4096;
    let mut core = point.core;
    core.element_bytes *= FINER;
    core.partial_sum_bytes *= FINER;
    // Our buffers hold two copies of two-byte elements.
    let room = if rules.buffers_in_elements { 4 * FINER } else { FINER };
    core.local = Bytes(core.local.0 * room);
    core.glb = Bytes(core.glb.0 * room);
    let sharing = if rules.local_for_the_chip { core.count } else { 1 };
    core.local_port.read = core.local_port.read * FINER / sharing;
    core.local_port.write = core.local_port.write * FINER / sharing;
    core.glb_port.read *= FINER;
    core.glb_port.write *= FINER;
    core.hbm = Bandwidth::bytes_per_second(core.hbm.as_bytes_per_second() * FINER)
        .expect("it is not zero");
    let found = best(&point.matmul, Homes::ALL_HBM, &core, 0, &mut Scratch::default());
    let ours = found.expect("it has a mapping").1.cycles.0;
    if rules.weight_registers { registers::cycles(point, rules, ours) } else { ours }
}

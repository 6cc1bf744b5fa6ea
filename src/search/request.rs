//! What is asked of a search, complete and in plain figures: it is written into the answer, and
//! the answer can be checked from it alone.

use serde::Deserialize;
use serde::Serialize;

use super::objective::Combine;
use super::objective::Objective;
use crate::hardware::DesignSpace;
use crate::hardware::VectorWidths;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::units::Area;
use crate::units::Bytes;

/// A whole question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own, with its own name")]
pub struct Request {
    /// What is trained.
    pub models: Vec<ModelRequest>,
    /// The physics of every design: a built-in hardware's name, or a user's file with its text.
    pub hardware: Source,
    /// Accelerators at hand.
    pub devices: u64,
    /// Sequences in a batch.
    pub global_batch: u64,
    /// Sequences in a micro-batch, any of these.
    pub micro_batches: Vec<u64>,
    /// Tensor-parallel widths, any of these that a model allows.
    pub tensor_parallel: Vec<u64>,
    /// What may be computed again, any of these.
    pub recompute: Vec<Recompute>,
    /// Named as `phaze place` names it.
    pub optimizer: String,
    /// `stored` or `recomputed`.
    pub attention: String,
    /// Whether norms, dropouts and residual adds are divided along the sequence.
    pub sequence_parallel: bool,
    /// How the time of a batch is defined.
    pub time_model: TimeModel,
    /// `alone` or `own-kind`.
    pub rule: String,
    /// Whether vector operators cost what the published table says.
    pub published_vector_costs: bool,
    /// The designs.
    pub space: SpaceRequest,
    /// What is made as good as possible.
    pub objective: Objective,
    /// How several models become one number.
    pub combine: Combine,
    /// How many of the best are found exactly.
    pub top: usize,
    /// Whether the front over throughput, area and energy is found exactly.
    pub pareto: bool,
    /// Whether nothing is pruned.
    pub exhaustive: bool,
    /// The most that a device may draw on average, in watts.
    pub power_cap_w: Option<f64>,
}

/// A file by name, with its text where it is not built in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What the user calls it.
    pub name: String,
    /// What stands in it; `None` for a built-in one.
    pub text: Option<String>,
}

/// A model to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// What the user calls it: a built-in name or a path.
    pub name: String,
    /// The text of its file; `None` for a built-in one.
    pub text: Option<String>,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// How much it counts beside others.
    pub weight: f64,
}

/// Lists of knobs and limits of area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each is the knob of that name")]
pub struct SpaceRequest {
    pub tensor_cores: Vec<u64>,
    pub width: Vec<u64>,
    pub depth: Vec<u64>,
    pub vector_cores: Vec<u64>,
    /// Empty: as wide as the array.
    pub vector_width: Vec<u64>,
    pub glb_mib: Vec<u64>,
    /// Empty: as the hardware says.
    pub glb_bytes_per_cycle: Vec<u64>,
    pub hbm_gib: Vec<u64>,
    /// The largest chip, in square nanometres.
    pub max_area_nm2: u64,
    /// The smallest chip with several cores of each kind, in square nanometres.
    pub min_area_nm2: u64,
}

impl SpaceRequest {
    /// Combinations of all knobs and sizes of memory.
    pub fn points(&self) -> u128 {
        let lists = [
            &self.tensor_cores,
            &self.width,
            &self.depth,
            &self.vector_cores,
            &self.vector_width,
            &self.glb_mib,
            &self.glb_bytes_per_cycle,
            &self.hbm_gib,
        ];
        // An empty list leaves one value, that of the hardware or of another knob.
        lists.iter().map(|list| list.len().max(1) as u128).product()
    }
}

impl From<&DesignSpace> for SpaceRequest {
    fn from(space: &DesignSpace) -> Self {
        let in_units = |sizes: &[Bytes], unit: Bytes| sizes.iter().map(|s| s.0 / unit.0).collect();
        Self {
            tensor_cores: space.tensor_cores.clone(),
            width: space.widths.clone(),
            depth: space.depths.clone(),
            vector_cores: space.vector_cores.clone(),
            vector_width: match &space.vector_widths {
                VectorWidths::AsWidth => Vec::new(),
                VectorWidths::Free(widths) => widths.clone(),
            },
            glb_mib: in_units(&space.glb, Bytes::MIB),
            glb_bytes_per_cycle: space.glb_bytes_per_cycle.clone(),
            hbm_gib: in_units(&space.hbm, Bytes::GIB),
            max_area_nm2: space.max_area.0,
            min_area_nm2: space.min_area.0,
        }
    }
}

impl From<&SpaceRequest> for DesignSpace {
    fn from(space: &SpaceRequest) -> Self {
        let sizes = |counts: &[u64], unit: Bytes| counts.iter().map(|&n| unit * n).collect();
        Self {
            tensor_cores: space.tensor_cores.clone(),
            vector_cores: space.vector_cores.clone(),
            widths: space.width.clone(),
            depths: space.depth.clone(),
            vector_widths: match space.vector_width.as_slice() {
                [] => VectorWidths::AsWidth,
                widths => VectorWidths::Free(widths.to_vec()),
            },
            glb: sizes(&space.glb_mib, Bytes::MIB),
            glb_bytes_per_cycle: space.glb_bytes_per_cycle.clone(),
            hbm: sizes(&space.hbm_gib, Bytes::GIB),
            max_area: Area(space.max_area_nm2),
            min_area: Area(space.min_area_nm2),
        }
    }
}

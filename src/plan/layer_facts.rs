//! A layer told in full: every operator of both passes, its mapping, when and where it runs.
//!
//! Plain data, as files hold it (docs/outcome.md documents every key): what is in here was computed
//! before and is only read from here on.

use serde::Deserialize;
use serde::Serialize;

use crate::estimate::tensor_core::Loop;
use crate::estimate::tensor_core::Mapping;
use crate::model::op::Collective;

/// A kind of layer on a design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct LayerFacts {
    pub kind: String,
    pub count: usize,
    pub forward: PassFacts,
    pub backward: PassFacts,
}

/// One pass of a layer: its schedule, with proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct PassFacts {
    pub time_s: f64,
    pub makespan_s: f64,
    pub hbm_s: f64,
    pub glb_s: f64,
    pub proof: ScheduleProof,
    pub operators: Vec<OpFacts>,
}

/// Why a schedule is believed to be the fastest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ScheduleProof {
    pub kind: String,
    pub lower_bound_s: f64,
    pub gap: f64,
}

/// An operator as scheduled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct OpFacts {
    pub name: String,
    pub core: String,
    pub start_s: f64,
    pub end_s: f64,
    pub spread: bool,
    /// The core that it holds where it is not spread: tensor, then vector.
    pub cores: Vec<u32>,
    pub flops: f64,
    pub hbm_bytes: u64,
    pub energy_j: f64,
    pub limit: String,
    pub matmul: Option<MatmulFacts>,
    pub mapping: Option<MappingFacts>,
    /// What devices exchange, where that is what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeFacts>,
}

/// An exchange among the devices of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ExchangeFacts {
    /// Along which axis the devices are neighbours.
    pub axis: String,
    pub kind: String,
    /// The whole tensor, as the kind counts it.
    pub bytes: u64,
    pub devices: u64,
    /// How often it is done in a row.
    pub times: u64,
    /// Thousandths of it that run behind computation, whatever the schedule.
    pub hidden_per_mille: u16,
}

/// A matrix product's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct MatmulFacts {
    pub b: u64,
    pub m: u64,
    pub k: u64,
    pub n: u64,
}

/// How a matrix product is laid out on the cores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct MappingFacts {
    /// How many cores divide each loop.
    pub cores: MatmulFacts,
    pub array: ArrayFacts,
    pub local_tile: TileFacts,
    pub glb_tile: TileFacts,
    pub local_inner: String,
    pub glb_inner: String,
}

/// Which loops lie on the array, and which streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ArrayFacts {
    pub width: String,
    pub depth: String,
    pub stream: String,
}

/// The part of a product that a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct TileFacts {
    pub m: u64,
    pub k: u64,
    pub n: u64,
}

impl From<&Collective> for ExchangeFacts {
    fn from(exchange: &Collective) -> Self {
        Self {
            axis: exchange.axis.name().to_owned(),
            kind: exchange.kind.name().to_owned(),
            bytes: exchange.size.0,
            devices: exchange.group,
            times: exchange.times,
            hidden_per_mille: exchange.hidden,
        }
    }
}

impl From<&Mapping> for MappingFacts {
    fn from(mapping: &Mapping) -> Self {
        let name = |of: Loop| ["m", "k", "n"][of.index()].to_owned();
        let tile = |[m, k, n]: [u64; 3]| TileFacts { m, k, n };
        let [m, k, n] = mapping.split;
        Self {
            cores: MatmulFacts { b: mapping.batch_split, m, k, n },
            array: ArrayFacts {
                width: name(mapping.way.width),
                depth: name(mapping.way.depth),
                stream: name(mapping.way.stream),
            },
            local_tile: tile(mapping.local),
            glb_tile: tile(mapping.glb),
            local_inner: name(mapping.local_inner),
            glb_inner: name(mapping.glb_inner),
        }
    }
}

//! stub
use crate::plan::StepStart;
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkFigures { pub forward: u64, pub backward: u64, pub kept: u64 }
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AfterFigures { pub exposed: u64, pub after: u64 }
pub trait ChunkCosts {
    fn n_layers(&self) -> usize;
    fn chunk(&self, stage: usize, from: usize, to: usize) -> ChunkFigures;
    fn held(&self, rank: usize, chunks: &[(usize, usize)]) -> u128;
    fn after(&self, rank: usize, chunks: &[(usize, usize)]) -> AfterFigures;
}
#[derive(Clone, Copy, Debug)]
pub struct InterleavedShape { pub ranks: usize, pub chunks: usize, pub group: u64, pub micro_batches: u64, pub memory: u128, pub delay: u64, pub start: StepStart }
pub enum Scope { AllLayouts, Family { least: u128 } }
pub struct InterleavedLayout { pub sizes: Vec<usize>, pub time_per_batch: u128, pub scope: Scope }
pub fn best_layout(_: &impl ChunkCosts, _: InterleavedShape, _: Option<u128>) -> Result<Option<InterleavedLayout>, ()> { Ok(None) }

//! A design in full: the best way to train each model on it, with plans, schedules and mappings.

use super::AreaFacts;
use super::DesignFacts;
use super::Entry;
use super::evaluator::Evaluator;
use super::objective::Certainty;
use super::objective::Judge;
use crate::hardware::Accelerator;
use crate::hardware::Use;
use crate::strategy::Best;

/// A design's full entry; `best` holds one way to train for each model.
pub fn entry(
    evaluator: &Evaluator,
    judge: &Judge,
    chip: &Accelerator,
    index: Option<usize>,
    name: Option<&str>,
    best: &[Best],
) -> Entry {
    let standings: Vec<_> = best.iter().map(|best| best.chosen.standing).collect();
    let value = judge.merit(&standings, chip.total_area(), Certainty::Fact).value;
    let results =
        best.iter().enumerate().map(|(model, best)| evaluator.planner(model).result(chip, best));
    Entry {
        design: design_facts(chip, index, name),
        value: judge.figure(value),
        results: results.collect(),
    }
}

fn design_facts(chip: &Accelerator, index: Option<usize>, name: Option<&str>) -> DesignFacts {
    let design = chip.design();
    let area = chip.area();
    let um2 = |area: crate::units::Area| area.square_micrometres();
    DesignFacts {
        index,
        name: name.map(str::to_owned),
        tensor_cores: design.tensor_cores,
        width: design.width,
        depth: design.depth,
        vector_cores: design.vector_cores,
        vector_width: design.vector_width,
        glb_bytes: design.glb.0,
        hbm_bytes: design.hbm.0,
        local_tensor_bytes: design.local.0,
        local_vector_bytes: design.vector_local.0,
        clock_hz: chip.clock().as_hertz(),
        peak_flops_per_s: chip.peak_flops_per_second() as f64,
        hbm_bytes_per_s: chip.hbm_bandwidth().as_bytes_per_second(),
        glb_bytes_per_cycle: chip.tensor(Use::Spread).glb_port.read,
        area_um2: um2(chip.total_area()),
        area: AreaFacts {
            tensor_cores_um2: um2(area.arrays),
            vector_cores_um2: um2(area.lanes),
            tensor_local_um2: um2(area.tensor_buffers),
            vector_local_um2: um2(area.vector_buffers),
            glb_um2: um2(area.global_buffer),
        },
    }
}

//! A design in figures, rebuilt from its knobs.

use crate::hardware::Accelerator;
use crate::hardware::Candidate;
use crate::hardware::N_DESIGN_KNOBS;
use crate::hardware::PointKind;
use crate::hardware::Use;
use crate::search::AreaFacts;
use crate::search::DesignFacts;
use crate::units::Area;
use crate::units::Bytes;

use super::rebuild::Question;

/// What is to be said of a chip; `index` is its row in designs.csv, `name` that of a built-in one.
pub fn facts(chip: &Accelerator, index: Option<usize>, name: Option<&str>) -> DesignFacts {
    let design = chip.design();
    let parts = chip.area();
    let um2 = |area: Area| area.square_micrometres();
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
            tensor_cores_um2: um2(parts.arrays),
            vector_cores_um2: um2(parts.lanes),
            tensor_local_um2: um2(parts.tensor_buffers),
            vector_local_um2: um2(parts.vector_buffers),
            glb_um2: um2(parts.global_buffer),
        },
    }
}

/// The design of the space that has these knobs.
pub fn of_space(question: &Question, facts: &DesignFacts) -> Option<Candidate> {
    let grid = question.grid();
    let said = [
        facts.tensor_cores,
        facts.width,
        facts.depth,
        facts.vector_cores,
        facts.vector_width,
        facts.glb_bytes / Bytes::MIB.0,
        facts.glb_bytes_per_cycle,
    ];
    let mut point = [0; N_DESIGN_KNOBS];
    for (knob, place) in point.iter_mut().enumerate() {
        // What follows from others is not chosen.
        let given = grid.value(knob, 0).is_some();
        *place = grid.place_of(knob, given.then_some(said[knob]))?;
    }
    let candidate = grid.candidate(&point);
    let kind = question.request.space.kind(&candidate, &question.physics);
    (kind == PointKind::Design).then_some(candidate)
}

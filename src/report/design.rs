//! One accelerator, and a space of them, for people and for programs.

use std::io;
use std::io::Write;

use serde_json::Value;
use serde_json::json;

use super::part;
use super::part::Part;
use super::quantity::bytes;
use super::quantity::grouped;
use super::quantity::percent;
use super::quantity::si;
use crate::hardware::Accelerator;
use crate::hardware::Candidate;
use crate::hardware::Rejections;
use crate::hardware::Use;
use crate::units::Area;

/// The parts, bandwidths and balance of one accelerator.
pub fn text(chip: &Accelerator, name: &str, part: &Part, out: &mut dyn Write) -> io::Result<()> {
    let design = chip.design();
    let (tensor, vector) = (chip.tensor(Use::Spread), chip.vector(Use::Spread));
    let clock = chip.clock().as_hertz() as f64;
    let peak = chip.peak_flops_per_second() as f64;
    let hbm = chip.hbm_bandwidth().as_bytes_per_second() as f64;
    writeln!(out, "{name}")?;
    writeln!(
        out,
        "  tensor cores    {:>6} of {} x {}, {} local each",
        grouped(design.tensor_cores),
        design.width,
        design.depth,
        bytes(design.local)
    )?;
    writeln!(
        out,
        "  vector cores    {:>6} of {} lanes, {} local each",
        grouped(design.vector_cores),
        design.vector_width,
        bytes(design.vector_local)
    )?;
    writeln!(out, "  global buffer   {:>10}", bytes(design.glb))?;
    writeln!(out, "  registers       {:>10}", bytes(design.registers()))?;
    writeln!(out, "  HBM             {:>10}", bytes(design.hbm))?;
    writeln!(out, "  clock           {:>10}", si(clock, "Hz"))?;

    if part.making.is_none() {
        published_area(chip, out)?;
    }
    writeln!(out, "\npeak              {:>14}", si(peak, "FLOP/s"))?;
    writeln!(
        out,
        "vector peak       {:>14}",
        si(vector.count as f64 * vector.width as f64 * clock, "elements/s")
    )?;
    writeln!(out, "bandwidth                 read          written     FLOP per byte read")?;
    let mut row = |level: &str, read: f64, written: f64| {
        writeln!(
            out,
            "  {level:<18}{:>12} {:>16} {:>16.1}",
            si(read, "B/s"),
            si(written, "B/s"),
            peak / read
        )
    };
    let cores = tensor.count as f64 * clock;
    row(
        "local, all cores",
        tensor.local_port.read as f64 * cores,
        tensor.local_port.write as f64 * cores,
    )?;
    row(
        "global buffer",
        tensor.glb_port.read as f64 * clock,
        tensor.glb_port.write as f64 * clock,
    )?;
    row("HBM, both ways", hbm, hbm)?;
    match tensor.multicast {
        u64::MAX => writeln!(out, "  one read of the global buffer serves any number of cores")?,
        n => writeln!(out, "  one read of the global buffer serves at most {n} cores")?,
    }
    if chip.buffers_interpolated() {
        let what = if part.making.is_some() { "energy is" } else { "area and energy are" };
        writeln!(out, "\nA buffer's size is not tabled: its {what} interpolated on a log scale.")?;
    }
    part::text(part, out)?;
    if part.making.is_some() {
        let at_rest = si(chip.static_power_uw() as f64 / 1e6, "W");
        writeln!(out, "at rest it draws {at_rest}: leakage, memory, and losses of regulators")?;
    }
    Ok(())
}

/// The area by the published table of 22 nm.
fn published_area(chip: &Accelerator, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\narea (22 nm)      {:>10}", millimetres(chip.total_area()))?;
    for (part, area) in chip.area().parts() {
        let share = area.0 as f64 / chip.total_area().0 as f64;
        writeln!(out, "  {part:<20}{:>14} {:>8}", millimetres(area), percent(share))?;
    }
    writeln!(
        out,
        "  at rest it draws {} (0.15 W per mm² unless its file says otherwise: an assumption)",
        si(chip.static_power_uw() as f64 / 1e6, "W")
    )
}

/// The same for programs.
pub fn value(chip: &Accelerator, name: &str, part: &Part) -> Value {
    let design = chip.design();
    let tensor = chip.tensor(Use::Spread);
    let parts: serde_json::Map<String, Value> = chip
        .area()
        .parts()
        .iter()
        .map(|(part, area)| (part.replace([' ', '-'], "_"), json!(area.square_micrometres())))
        .collect();
    json!({
        "name": name,
        "tensor_cores": design.tensor_cores,
        "vector_cores": design.vector_cores,
        "width": design.width,
        "depth": design.depth,
        "vector_width": design.vector_width,
        "local_bytes": design.local.0,
        "vector_local_bytes": design.vector_local.0,
        "glb_bytes": design.glb.0,
        "hbm_bytes": design.hbm.0,
        "register_bytes": design.registers().0,
        "clock_hz": chip.clock().as_hertz(),
        "area_um2": chip.total_area().square_micrometres(),
        "area_parts_um2": parts,
        "static_power_w": chip.static_power_uw() as f64 / 1e6,
        "peak_flops_per_second": chip.peak_flops_per_second() as f64,
        "local_read_bytes_per_cycle": tensor.local_port.read,
        "local_write_bytes_per_cycle": tensor.local_port.write,
        "glb_read_bytes_per_cycle": tensor.glb_port.read,
        "glb_write_bytes_per_cycle": tensor.glb_port.write,
        "glb_multicast": (tensor.multicast != u64::MAX).then_some(tensor.multicast),
        "hbm_bytes_per_second": chip.hbm_bandwidth().as_bytes_per_second(),
        "flops_per_hbm_byte":
            chip.peak_flops_per_second() as f64
                / chip.hbm_bandwidth().as_bytes_per_second() as f64,
        "buffers_interpolated": chip.buffers_interpolated(),
        "chip": part::value(part),
    })
}

/// How many designs a space has, what ruled out the others, and its smallest and largest.
pub fn space_text(
    counts: Rejections,
    designs: &[(Candidate, Area)],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{:>8} designs", grouped(counts.designs))?;
    writeln!(out, "{:>8} points of the grid, of which", grouped(counts.points))?;
    writeln!(out, "{:>8} are larger than the area limit", grouped(counts.too_large))?;
    writeln!(out, "{:>8} are smaller than the least area", grouped(counts.too_small))?;
    writeln!(out, "{:>8} have a buffer that cannot hold one tile", grouped(counts.unbuildable))?;
    let (tensor, vector) = distinct(designs);
    writeln!(out, "{:>8} distinct (tensor cores, width, depth, global buffer)", grouped(tensor))?;
    writeln!(out, "{:>8} distinct (vector cores, lanes, global buffer)", grouped(vector))?;
    for (title, found) in extremes(designs) {
        let design = found.0.design;
        writeln!(
            out,
            "{title} {:>12}  {} tensor cores of {}x{}, {} vector cores of {}, {}",
            millimetres(found.1),
            design.tensor_cores,
            design.width,
            design.depth,
            design.vector_cores,
            design.vector_width,
            bytes(design.glb)
        )?;
    }
    Ok(())
}

/// The same for programs.
pub fn space_value(counts: Rejections, designs: &[(Candidate, Area)]) -> Value {
    let (tensor, vector) = distinct(designs);
    let mut value = json!({
        "designs": counts.designs,
        "grid_points": counts.points,
        "rejected_too_large": counts.too_large,
        "rejected_too_small": counts.too_small,
        "rejected_unbuildable": counts.unbuildable,
        "distinct_tensor_specs": tensor,
        "distinct_vector_specs": vector,
    });
    for (title, found) in extremes(designs) {
        value[format!("{title}_area_um2")] = json!(found.1.square_micrometres());
    }
    value
}

/// One line per design, in the order of the space.
pub fn csv(designs: &[(Candidate, Area)], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "tensor_cores,vector_cores,width,depth,vector_width,glb_bytes,glb_bytes_per_cycle,area_um2"
    )?;
    for (candidate, area) in designs {
        let design = candidate.design;
        writeln!(
            out,
            "{},{},{},{},{},{},{},{}",
            design.tensor_cores,
            design.vector_cores,
            design.width,
            design.depth,
            design.vector_width,
            design.glb.0,
            candidate.glb_bytes_per_cycle.map_or_else(String::new, |rate| rate.to_string()),
            area.square_micrometres()
        )?;
    }
    Ok(())
}

fn extremes(designs: &[(Candidate, Area)]) -> Vec<(&'static str, &(Candidate, Area))> {
    let smallest = designs.iter().min_by_key(|(_, area)| *area);
    let largest = designs.iter().rev().max_by_key(|(_, area)| *area);
    let found = [("smallest", smallest), ("largest", largest)];
    found.into_iter().filter_map(|(title, design)| Some((title, design?))).collect()
}

fn distinct(designs: &[(Candidate, Area)]) -> (u64, u64) {
    let count = |mut keys: Vec<[u64; 4]>| {
        keys.sort_unstable();
        keys.dedup();
        keys.len() as u64
    };
    let knobs = designs.iter().map(|(candidate, _)| candidate.design);
    let tensor = knobs.clone().map(|d| [d.tensor_cores, d.width, d.depth, d.glb.0]).collect();
    let vector = knobs.map(|d| [d.vector_cores, d.vector_width, d.glb.0, 0]).collect();
    (count(tensor), count(vector))
}

fn millimetres(area: Area) -> String {
    format!("{:.3} mm²", area.square_millimetres())
}

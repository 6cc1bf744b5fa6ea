//! What turning one knob would bring: which knob, from what to what, at which area, and whether
//! it can be built and fits. The throughput is for `deep` to say.

use crate::hardware::Accelerator;
use crate::hardware::DesignSpace;
use crate::hardware::HbmBandwidth;
use crate::hardware::Physics;
use crate::hardware::Use;
use crate::hardware::VectorWidths;
use crate::hardware::network::Network;
use crate::search::Sensitivity;
use crate::units::Area;
use crate::units::Bandwidth;
use crate::units::Bytes;

use super::claims::FalseClaim;
use super::claims::Verdict;
use super::claims::equal;
use super::claims::require;
use super::feasible;
use super::rebuild::Question;

/// A knob by its name.
type Turn = fn(&mut DesignSpace, &mut Physics, bool) -> (f64, f64);

const KNOBS: [(&str, Turn); 10] = [
    ("tensor cores", |space, _, doubled| turn(&mut space.tensor_cores, doubled)),
    ("array width", |space, _, doubled| turn(&mut space.widths, doubled)),
    ("array depth", |space, _, doubled| turn(&mut space.depths, doubled)),
    ("vector cores", |space, _, doubled| turn(&mut space.vector_cores, doubled)),
    ("vector lanes", |space, _, doubled| match &mut space.vector_widths {
        VectorWidths::Free(lanes) => turn(lanes, doubled),
        VectorWidths::AsWidth => (0.0, 0.0),
    }),
    ("global buffer (MiB)", |space, _, doubled| turn_size(&mut space.glb, Bytes::MIB, doubled)),
    ("global buffer (bytes/cycle)", |space, _, doubled| {
        turn(&mut space.glb_bytes_per_cycle, doubled)
    }),
    ("HBM (GiB)", |space, _, doubled| turn_size(&mut space.hbm, Bytes::GIB, doubled)),
    ("HBM (GB/s)", |space, physics, doubled| {
        let from = physics.hbm.of(space.hbm[0]);
        let to = turned_rate(from, doubled);
        physics.hbm = HbmBandwidth::Fixed(to);
        (gigabytes(from), gigabytes(to))
    }),
    ("network (GB/s)", |_, physics, doubled| turn_network(&mut physics.network, doubled)),
];

/// Judges all turns of the winner's chip.
pub fn check(question: &Question, chip: &Accelerator, claimed: &[Sensitivity]) -> Verdict {
    let (said, is) = (claimed.len(), 2 * KNOBS.len());
    require(said == is, "sensitivities.length", said, is)?;
    for (at, said) in claimed.iter().enumerate() {
        let (knob, doubled) = (KNOBS[at / 2], at % 2 == 0);
        one(&format!("sensitivities[{at}]"), question, chip, knob, doubled, said)?;
    }
    Ok(())
}

fn one(
    path: &str,
    question: &Question,
    chip: &Accelerator,
    (knob, turn): (&str, Turn),
    doubled: bool,
    said: &Sensitivity,
) -> Verdict {
    let design = chip.design();
    let mut space = DesignSpace {
        tensor_cores: vec![design.tensor_cores],
        vector_cores: vec![design.vector_cores],
        widths: vec![design.width],
        depths: vec![design.depth],
        vector_widths: VectorWidths::Free(vec![design.vector_width]),
        glb: vec![design.glb],
        glb_bytes_per_cycle: vec![chip.tensor(Use::Spread).glb_port.read],
        hbm: vec![design.hbm],
        max_area: Area(u64::MAX),
        min_area: Area(0),
    };
    let mut physics = question.physics.clone();
    physics.hbm = HbmBandwidth::Fixed(chip.hbm_bandwidth());
    let (from, to) = turn(&mut space, &mut physics, doubled);
    let (turned, _) = space.designs(&physics);
    let built = turned.first().and_then(|turned| turned.build(space.hbm[0], &physics).ok());
    let note = match &built {
        None => Some("cannot be built"),
        Some(chip) => {
            let fits = |model: usize| feasible::fits(question, model, chip.design().hbm);
            (!(0..question.models.len()).all(fits)).then_some("does not fit")
        }
    };
    let area = built
        .filter(|_| note.is_none())
        .map(|turned| turned.total_area().0 as f64 / chip.total_area().0 as f64);
    let plausible = said.throughput_ratio.is_some_and(|ratio| ratio.is_finite() && ratio > 0.0);
    if plausible != note.is_none() {
        let said = format!("{:?}", said.throughput_ratio);
        let is = note.unwrap_or("possible: it fits");
        return Err(FalseClaim::new(format!("{path}.throughput_ratio"), said, is));
    }
    let found = Sensitivity {
        knob: knob.into(),
        change: if doubled { "doubled" } else { "halved" }.into(),
        from,
        to,
        // Only a solver knows it.
        throughput_ratio: said.throughput_ratio,
        area_ratio: area,
        note: note.map(str::to_owned),
    };
    equal(path, said, &found)
}

fn turned(value: u64, doubled: bool) -> u64 {
    if doubled { value.saturating_mul(2) } else { value / 2 }
}

fn turn(list: &mut [u64], doubled: bool) -> (f64, f64) {
    let from = list[0];
    list[0] = turned(from, doubled);
    (from as f64, list[0] as f64)
}

fn turn_size(list: &mut [Bytes], unit: Bytes, doubled: bool) -> (f64, f64) {
    let from = list[0].0 / unit.0;
    let to = turned(from, doubled);
    list[0] = Bytes(to.saturating_mul(unit.0));
    (from as f64, to as f64)
}

fn turned_rate(rate: Bandwidth, doubled: bool) -> Bandwidth {
    let rate = rate.as_bytes_per_second();
    let turned = if doubled { rate.saturating_mul(2) } else { rate.div_ceil(2) };
    Bandwidth::bytes_per_second(turned).expect("half of a rate, rounded up, is not zero")
}

fn gigabytes(rate: Bandwidth) -> f64 {
    rate.as_bytes_per_second() as f64 / 1e9
}

/// Turns every link; answers the rate of the fastest, before and after.
fn turn_network(network: &mut Network, doubled: bool) -> (f64, f64) {
    match network {
        Network::Flat(flat) => {
            let from = flat.link.bandwidth;
            flat.link.bandwidth = turned_rate(from, doubled);
            (gigabytes(from), gigabytes(flat.link.bandwidth))
        }
        Network::Nodes(nodes) => {
            let from = nodes.inside.bandwidth;
            nodes.inside.bandwidth = turned_rate(from, doubled);
            nodes.between.bandwidth = turned_rate(nodes.between.bandwidth, doubled);
            (gigabytes(from), gigabytes(nodes.inside.bandwidth))
        }
    }
}

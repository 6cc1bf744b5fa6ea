//! The chip drawn to scale, and what it takes of every budget.

use std::fmt::Write as _;

use crate::search::chips::ChipFacts;
use crate::search::chips::ChipOutcome;
use crate::search::chips::Part;

use super::parts::bar;
use super::parts::colour;
use super::parts::keys;
use super::text;

/// Pixels of a millimetre.
const SCALE: f64 = 9.0;

/// The edge that the interface of a stack takes, and how far a stack reaches from the die, in mm: what
/// the site of a stack takes of a package.
const STACK: (f64, f64) = (11.0, 10.0);

/// Stacks that are drawn: more than any die has an edge for.
const MOST_STACKS: u64 = 64;

/// The die as a square, its parts as bands of their area: interfaces of memory along the sides where the
/// stacks stand, links along the lower edge, all else between.
pub fn picture(chip: &ChipFacts) -> String {
    let side = chip.die_mm2.max(1.0).sqrt();
    let stacks = chip.knobs.get("stacks").copied().unwrap_or(0).min(MOST_STACKS);
    let (left, right) = (stacks.div_ceil(2), stacks / 2);
    // Where more stand on a side than it is long, the package is higher than the die.
    let height = side.max(STACK.0 * left as f64);
    let (width, top) = (side + 2.0 * (STACK.1 + 1.0), (height - side) / 2.0);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {:.1} {:.1}\" width=\"{:.0}\" role=\"img\" aria-label=\"die of {:.0} mm² with \
         {stacks} stacks of memory, to scale\">",
        width * SCALE,
        (height + 3.0) * SCALE,
        width * SCALE,
        chip.die_mm2
    );
    let x = STACK.1 + 1.0;
    let mut rect = |class: &str, fill: &str, [x, y, w, h]: [f64; 4], said: &str| {
        let fill = if fill.is_empty() { String::new() } else { format!(" style=\"fill:{fill}\"") };
        let _ = write!(
            svg,
            "<rect class=\"{class}\"{fill} x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\">\
             <title>{}</title></rect>",
            x * SCALE,
            y * SCALE,
            w * SCALE,
            h * SCALE,
            text(said)
        );
    };
    let said = |part: &Part| format!("{}: {:.1} mm²", part.what, part.amount);
    let find = |what: &str| chip.die.iter().position(|part| part.what == what);
    let (memory, links) = (find("memory interfaces"), find("links"));
    // A band on each side that has stacks, by how many stand there.
    let mut bands = [0.0, 0.0];
    if let Some(at) = memory {
        let part = &chip.die[at];
        for (band, count) in bands.iter_mut().zip([left, right]) {
            *band = part.amount * count as f64 / stacks.max(1) as f64 / side;
        }
        let at_right = x + side - bands[1];
        rect("part", &colour(&part.what), [x, top, bands[0], side], &said(part));
        rect("part", &colour(&part.what), [at_right, top, bands[1], side], &said(part));
    }
    let inner = (side - bands[0] - bands[1]).max(0.1);
    let mut y = top;
    let order = (0..chip.die.len()).filter(|at| Some(*at) != memory && Some(*at) != links);
    for at in order.chain(links) {
        let part = &chip.die[at];
        let high = part.amount / inner;
        rect("part", &colour(&part.what), [x + bands[0], y, inner, high], &said(part));
        y += high;
    }
    let stack = chip.hbm_bytes as f64 / (1_u64 << 30) as f64 / stacks.max(1) as f64;
    for (count, at) in [(left, x - STACK.1 - 0.5), (right, x + side + 0.5)] {
        let first = top + (side - STACK.0 * count as f64) / 2.0;
        for place in 0..count {
            let y = first + STACK.0 * place as f64 + 0.3;
            let name = format!("a stack of {stack:.0} GiB");
            rect("stack", "", [at, y, STACK.1, STACK.0 - 0.6], &name);
        }
    }
    rect("outline", "", [x, top, side, side], "the die");
    let gb = chip.knobs.get("links").copied().unwrap_or(0);
    let _ = write!(
        svg,
        "<text class=\"muted\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{side:.1} mm; links of {gb} \
         GB/s per direction along the lower edge</text></svg>",
        (x + side / 2.0) * SCALE,
        (height + 2.0) * SCALE
    );
    format!("{svg}{}", keys(&chip.die, "mm²"))
}

/// What the chip takes of every budget, part by part, with the limit.
pub fn bars(outcome: &ChipOutcome, chip: &ChipFacts) -> String {
    let space = &outcome.request.space;
    let price = space.max_price_cents.map(|cents| cents as f64 / 100.0);
    let all = [
        ("silicon", "mm²", &chip.die, chip.die_mm2, Some(space.max_area_nm2 as f64 / 1e12)),
        ("design power", "W", &chip.power, chip.tdp_w, Some(space.tdp_mw as f64 / 1e3)),
        ("to make one", "$", &chip.cost, chip.cost_usd, price),
        ("to own one over its years", "$", &chip.ownership, chip.ownership_usd, None),
    ];
    let each = all.into_iter().map(|(what, unit, parts, total, limit)| {
        let limited = limit.map_or(String::new(), |limit| format!(" of {limit:.0} {unit}"));
        format!(
            "<figure><figcaption>{what}: {total:.1} {unit}{limited}</figcaption>{}{}</figure>",
            bar(parts, total, limit, unit),
            keys(parts, unit)
        )
    });
    format!("<div class=\"side\">{}</div>", each.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chip() -> ChipFacts {
        let part = |what: &str, amount: f64| Part { what: what.into(), amount };
        let die = vec![
            part("arrays", 250.0),
            part("global buffer", 50.0),
            part("memory interfaces", 60.0),
            part("links", 40.0),
        ];
        ChipFacts {
            knobs: [("stacks".to_owned(), 3), ("links".to_owned(), 400)].into(),
            peak_flops_per_s: 1e15,
            hbm_bytes: 72 << 30,
            hbm_bytes_per_s: 3_000_000_000_000,
            local_tensor_bytes: 0,
            local_vector_bytes: 0,
            die_mm2: 400.0,
            die,
            tdp_w: 1.0,
            power: Vec::new(),
            peak_w: 1.0,
            cost_usd: 1.0,
            cost: Vec::new(),
            ownership_usd: 1.0,
            ownership: Vec::new(),
            carbon_kg: 1.0,
        }
    }

    #[test]
    fn parts_cover_the_die_to_scale() {
        let svg = picture(&chip());
        let cut = |from: &str, text: &str| -> f64 {
            text.split(from).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let areas = svg
            .split("<rect class=\"part\"")
            .skip(1)
            .map(|rect| cut("width=\"", rect) * cut(" height=\"", rect) / SCALE / SCALE);
        let areas: Vec<f64> = areas.collect();
        assert!((areas.iter().sum::<f64>() - 400.0).abs() < 1.0, "{areas:?}");
        assert_eq!(svg.matches("class=\"stack\"").count(), 3);
        assert!((areas[0] - 40.0).abs() < 0.5, "two of three stacks stand at the left: {areas:?}");
    }
}

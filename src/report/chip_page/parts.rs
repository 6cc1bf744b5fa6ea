//! Something that is made of parts: as a bar and as keys, each part in its own colour wherever it occurs.

use std::fmt::Write as _;

use crate::search::chips::Part;

use super::text;

/// The colours of parts that stand side by side somewhere: of silicon, of watts, of dollars, of time.
const COLOURS: [(&str, &[&str]); 13] = [
    ("a", &["arrays", "dies", "chip", "tensor cores"]),
    ("b", &["vector lanes", "vector cores", "electricity"]),
    ("c", &["tensor-core buffers", "weight gathering"]),
    ("d", &["vector-core buffers", "exchanges in layers", "masks and design"]),
    ("e", &["global buffer", "packaging", "pipeline transfers"]),
    ("f", &["network on the chip", "building and cooling", "gradient exchange"]),
    ("g", &["ports of cores", "leakage"]),
    ("h", &["host and management", "host", "voltage regulators", "pipeline bubble"]),
    ("i", &["clock, power grid, test", "test and assembly", "optimizer step"]),
    ("j", &["memory interfaces", "off-chip memory", "memories"]),
    ("k", &["links"]),
    ("l", &["control", "off-chip memory at rest"]),
    ("m", &["asked for by the edge"]),
];

/// The colour of a part.
pub(super) fn colour(what: &str) -> String {
    let named = COLOURS.iter().find(|(_, parts)| parts.contains(&what));
    format!("var(--{})", named.map_or("muted", |(colour, _)| colour))
}

/// What the colours of parts mean, with figures.
pub(super) fn keys(parts: &[Part], unit: &str) -> String {
    let mut list = String::from("<ul class=\"keys\">");
    for part in parts {
        let _ = write!(
            list,
            "<li><i style=\"background:{}\"></i>{} {:.1} {unit}</li>",
            colour(&part.what),
            text(&part.what),
            part.amount
        );
    }
    list.push_str("</ul>");
    list
}

/// Parts side by side, and the limit of all.
pub(super) fn bar(parts: &[Part], total: f64, limit: Option<f64>, unit: &str) -> String {
    let (width, high) = (480.0, 26.0);
    let whole = limit.unwrap_or(total).max(total).max(1e-9);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {}\" width=\"{width}\" role=\"img\" aria-label=\"{total:.1} {unit}\">",
        high + 8.0
    );
    let mut x = 0.0;
    for part in parts {
        let wide = part.amount / whole * width;
        let _ = write!(
            svg,
            "<rect style=\"fill:{}\" x=\"{x:.2}\" y=\"4\" width=\"{wide:.2}\" height=\"{high}\"><title>{}: \
             {:.1} {unit}</title></rect>",
            colour(&part.what),
            text(&part.what),
            part.amount
        );
        x += wide;
    }
    if let Some(limit) = limit {
        let at = limit / whole * width;
        let _ = write!(
            svg,
            "<line class=\"limit\" x1=\"{at:.2}\" y1=\"0\" x2=\"{at:.2}\" y2=\"{}\"><title>at most {limit:.0} \
             {unit}</title></line>",
            high + 8.0
        );
    }
    svg.push_str("</svg>");
    svg
}

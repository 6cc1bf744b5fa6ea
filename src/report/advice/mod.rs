//! What a plan means, for who pays and waits: blocks of text, JSON, and what launch files open with.
//!
//! [`text()`] tells a plan, [`rows()`] what stands beside it, [`curve()`] what other numbers of devices
//! bring, [`value()`] everything for programs.

mod curve;
mod figures;
mod rows;
mod text;
mod value;

use crate::advise::Advice;
use crate::report::placement;
use crate::report::quantity::grouped;
use crate::report::quantity::shown;

pub use curve::plot;
pub use curve::write as curve;
pub use rows::infeasible;
pub use rows::write as rows;
pub use text::command;
pub use text::write as text;
pub use value::curve as curve_value;
pub use value::infeasible as infeasible_value;
pub use value::launch as launch_value;
pub use value::value;

/// What files that start a plan open with: the plan in words, the command that made it, what it was
/// predicted to do.
pub fn notes(advice: &Advice) -> Vec<String> {
    let plan = &advice.plan;
    let mut notes = vec![
        format!("{}: {}", title(advice), placement::strategy(plan)),
        format!("Made by: {}", advice.command),
    ];
    notes.push(format!("Predicted: {}", text::speed(advice).join("; ")));
    notes.push(format!("Run: {}", text::run(advice).join("; ")));
    notes
}

/// The model and what it runs on.
fn title(advice: &Advice) -> String {
    let plan = &advice.plan;
    let devices = grouped(plan.job.devices);
    let design = plan.training.as_ref().map_or("devices", |training| training.design.as_str());
    let nodes = match advice.per_node {
        Some(per_node) if plan.job.devices > per_node => {
            let nodes = plan.job.devices.div_ceil(per_node);
            format!(", {} nodes of {per_node}", grouped(nodes))
        }
        _ => String::new(),
    };
    format!(
        "{} ({}) on {devices} {}{nodes}",
        shown(&plan.name),
        figures::parameters(advice.parameters),
        shown(design)
    )
}
